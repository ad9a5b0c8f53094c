"""Words in an engine beside the store, in place of an index in each process: memory and time.

Passages as in ``speed.py``, in documents of a hundred lines, in a graph in a file. The engine is
milvus-lite, served by a process of its own: its time says little of a Milvus server, which it
only stands for; what the graph's processes hold, and what the store has in addition, are the same.
Memory is what was resident of a new process that opens the graph and answers a hundred questions,
in millions of bytes: its own, and what it maps from files. numba is left out. Results are compared.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import arguments, bytes_on_disk, in_new_process, show
from memory import resident
from speed import corpora

Case = dict[str, Any]

LINES = 100


def opened(case: Case) -> tuple[Any, Any]:
    """Return a graph, and a retriever of its words."""
    sys.modules["numba"] = None  # type: ignore[assignment]  # so that its import fails
    from nodekin.nodegraph import NodeGraph
    from nodekin.retrievers import Retriever

    graph = NodeGraph(store=case["file"], index=case["index"], progress=False)
    graph.create_node_group("passage", str.splitlines)
    return graph, Retriever(graph, "passage", "bm25", top_k=10)


def build(case: Case) -> Case:
    """Add all texts, and ask once."""
    from nodekin.nodegraph import Document

    graph, retriever = opened(case)
    texts = Path(case["texts"]).read_text(encoding="utf-8").splitlines()
    parts = range(0, len(texts), LINES)
    graph.add([Document("\n".join(texts[at : at + LINES]), id=str(at)) for at in parts])
    graph.build("passage")
    began, cpu = time.perf_counter(), time.process_time()
    retriever.retrieve(case["queries"][0])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    memory = resident()
    graph.close()
    return {"seconds": seconds, "cpu": cpu, **memory}


def answer(case: Case) -> Case:
    """Open, and answer all queries."""
    graph, retriever = opened(case)
    retriever.retrieve(case["queries"][0])
    began, cpu = time.perf_counter(), time.process_time()
    results = [[(r.node.id, r.score) for r in retriever.retrieve(q)] for q in case["queries"]]
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    memory = resident()
    graph.close()
    return {"results": results, "seconds": seconds, "cpu": cpu, **memory}


TASKS = {"build": build, "answer": answer}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a file of milvus-lite until the block ends; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "milvus-lite"), "server", "--data-dir"]
    command += [str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                with socket.socket() as waiting:
                    if waiting.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"milvus://127.0.0.1:{port}?timeout=600"
        finally:
            server.terminate()


def measure(language: str, texts: list[str], queries: list[str], folder: Path) -> None:
    """Measure one corpus with each."""
    path = folder / "texts.txt"
    path.write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8")
    with served(folder / "engine") as address:
        cases = {"each process": None, "the engine": address}
        rows, figures, results = [], [], []
        for name, index in cases.items():
            file = folder / f"{len(rows)}.db"
            case = {"texts": str(path), "queries": queries, "file": str(file), "index": index}
            built = in_new_process(__file__, {**case, "task": "build"})
            answered = in_new_process(__file__, {**case, "task": "answer"})
            results.append(answered["results"])
            rows.append(
                [
                    name,
                    f"{built['cpu']:.1f} ({built['seconds']:.0f})",
                    f"{built['most']:.0f}",
                    *(f"{answered[kind]:.0f}" for kind in ("own", "mapped")),
                    *(f"{answered[kind] / len(queries) * 1e3:.1f}" for kind in ("cpu", "seconds")),
                ]
            )
            figures.append(bytes_on_disk(file) / 1e6)
    same = sum(map(list.__eq__, *results))
    show(
        f"{language}, {len(texts):,} passages, {bytes_on_disk(path) / 1e6:.1f} MB of text: "
        f"{same} of {len(queries)} answers are the same; the file has {figures[0]:.0f} and "
        f"{figures[1]:.0f} MB",
        [
            *("words in", "built: CPU s (s)", "most MB", "answering: own MB", "mapped MB"),
            *("CPU ms a query", "ms a query"),
        ],
        rows,
    )


def main() -> None:
    """Measure each language and size."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3_000, 30_000])
    parser.add_argument("--languages", nargs="+", default=["Chinese", "English"])
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        print(json.dumps(TASKS[options.work["task"]](options.work)))
        return
    for size in options.sizes:
        for corpus in corpora(options.data, size, options.languages):
            with tempfile.TemporaryDirectory() as folder:
                measure(corpus.language, corpus.texts, corpus.queries, Path(folder))


if __name__ == "__main__":
    main()
