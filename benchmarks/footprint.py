"""Measure the size of the base install, the CPU time of a cold start, and the memory use.

``python benchmarks/footprint.py size`` installs the checkout in a fresh virtual environment.
``start`` and ``memory`` measure the installed package that this Python imports. Memory is measured
with 100,000 passages, each of which consists of three random sentences from CMRC 2018. Times are
CPU seconds (user and system), which are hardly affected by other work on the machine.
"""

from __future__ import annotations

import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from harness import arguments, bytes_on_disk, cmrc_texts, peak_megabytes

from nodekin.nodegraph import ROOT, Document, NodeGraph, split_sentences
from nodekin.retrievers import Retriever

CHECKOUT = Path(__file__).resolve().parents[1]
RUNS = 5
QUESTIONS = 50


def size() -> dict[str, float]:
    """Return the size in megabytes of the package and of the package with all its dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
        subprocess.run([*pip, "install", "-q", "--no-compile", str(CHECKOUT)], check=True)
        (packages,) = environment.glob("lib/*/site-packages")
        parts = {path.name: bytes_on_disk(path) / 1e6 for path in packages.iterdir()}
    largest = sorted(parts, key=lambda name: -parts[name])[:8]
    return {
        "all MB": round(sum(parts.values()), 1),
        "nodekin MB": round(parts["nodekin"], 2),
        **{f"{name} MB": round(parts[name], 1) for name in largest if name != "nodekin"},
    }


def start() -> dict[str, float]:
    """Return the minimum CPU seconds for an import and for a search on the command line."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "docs").mkdir()
        (Path(folder) / "docs" / "tea.md").write_text("# Tea\n\nGreen tea is steamed.\n")
        command = [sys.executable, "-m", "nodekin"]
        subprocess.run([*command, "index", "docs", "--quiet"], cwd=folder, check=True)
        works = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import nodekin": [sys.executable, "-c", "import nodekin"],
            "import nodekin.retrievers": [
                sys.executable,
                "-c",
                "from nodekin import NodeGraph, Retriever",
            ],
            "nodekin search": [*command, "search", "green", "tea"],
        }
        return {f"{name}, CPU s": least(work, folder) for name, work in works.items()}


def least(command: list[str], folder: str) -> float:
    """Run a command several times, and return the minimum CPU time in seconds."""
    times = []
    for _ in range(RUNS + 1):
        before = children_seconds()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        times.append(children_seconds() - before)
    return round(min(times[1:]), 3)


def children_seconds() -> float:
    """Return the total CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory(data: Path, passages: int, store: str | None, build: bool) -> dict[str, float]:
    """Build or reopen a graph, ask 50 questions, and measure the CPU time and memory."""
    paragraphs, questions = cmrc_texts(data)
    base, began = megabytes(), time.process_time()
    graph = NodeGraph(store=store, progress=False)
    if build:
        sentences = [s for text in paragraphs for s in split_sentences(text)]
        choose = random.Random(2018)
        for first in range(0, passages, 10_000):
            graph.add(
                Document("".join(choose.sample(sentences, 3)), id=str(number))
                for number in range(first, min(passages, first + 10_000))
            )
    retriever = Retriever(graph, ROOT, "bm25", top_k=10)
    retriever.retrieve(questions[-1])
    built = time.process_time() - began
    began = time.process_time()
    for question in questions[:QUESTIONS]:
        retriever.retrieve(question)
    asked = time.process_time() - began
    measured = {
        "until the first result, CPU s": round(built, 1),
        "a query, CPU ms": round(1000 * asked / QUESTIONS, 2),
        "resident MB": round(megabytes() - base),
        "peak MB": round(peak_megabytes() - base),
        "before, MB": round(base),
    }
    graph.close()
    return measured


def megabytes() -> float:
    """Return the resident memory of this process in megabytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


def main(args: Namespace) -> None:
    """Print all measurements as JSON. Memory is measured in separate processes."""
    if args.what == "size":
        print(json.dumps(size()))
    elif args.what == "start":
        print(json.dumps(start()))
    elif args.state:
        build = args.state != "reopened"
        print(json.dumps(memory(args.data, args.passages, args.store, build)))
    else:
        with tempfile.TemporaryDirectory() as folder:
            store = str(Path(folder) / "graph.nodekin")
            states = {"in memory": None, "in a file": store, "reopened": store}
            for state, path in states.items():
                command = [sys.executable, __file__, "memory", "--state", state]
                command += ["--data", str(args.data), "--passages", str(args.passages)]
                command += ["--store", path] if path else []
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                print(state, done.stdout.strip(), flush=True)
            print("on disk, MB", round(bytes_on_disk(Path(folder)) / 1e6, 1))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("what", choices=["size", "start", "memory"])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--state", help="of one process: in memory, in a file, reopened")
    parser.add_argument("--store")
    main(parser.parse_args())
