"""Memory: what an index takes by part, and processes that build, reopen and answer.

Passages as in ``speed.py``, in documents of a thousand lines. Every process is a new one.
Memory is what was resident, in millions of bytes: its own at the end, what it maps from files
(shared with other processes that map them), and the most of both at a time while it built or
opened. numba is left out, which maps 100 MB of its own. After that many single updates (a
document of ten lines each) the first query's CPU time is measured.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import arguments, bytes_on_disk, in_new_process, show
from speed import corpora

Case = dict[str, Any]

UPDATES = 300


def resident(process: int | str = "self") -> Case:
    """Return a process's memory, in millions of bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    kinds = {"own": "RssAnon", "mapped": "RssFile", "most": "VmHWM"}
    return {name: _kilobytes(status, kind) / 1e3 for name, kind in kinds.items()}


def _kilobytes(status: str, kind: str) -> float:
    return int(re.findall(rf"{kind}:\s+(\d+) kB", status)[0]) * 1.024


def _open(case: Case) -> tuple[Any, Any]:
    sys.modules["numba"] = None  # type: ignore[assignment]  # so that its import fails
    from nodekin.nodegraph import NodeGraph
    from nodekin.retrievers import Retriever

    graph = NodeGraph(store=case["file"], progress=False)
    graph.create_node_group("passage", str.splitlines)
    return graph, Retriever(graph, "passage", "bm25")


def _documents(case: Case) -> Iterator[Any]:
    from nodekin.nodegraph import Document

    with Path(case["texts"]).open(encoding="utf-8") as file:
        while lines := list(itertools.islice(file, case["lines"])):
            yield Document("".join(lines))


def build(case: Case) -> Case:
    """Build, answer, and measure the index by part."""
    graph, retriever = _open(case)
    for document in _documents(case):
        graph.add(document)
    began = time.process_time()
    retriever.retrieve(case["query"])
    seconds = time.process_time() - began
    index = retriever.similarity.open(graph, "passage")
    arrays, postings = index.arrays(), len(index._postings)
    parts = {name: array.nbytes / 1e6 for name, array in arrays.items()}
    memory = resident()
    graph.close()
    return {"parts": parts, "postings": postings, "seconds": seconds, **memory}


def reopen(case: Case) -> Case:
    """Open, and answer one query."""
    before = resident()
    graph, retriever = _open(case)
    began = time.process_time()
    retriever.retrieve(case["query"])
    seconds = time.process_time() - began
    memory = resident()
    graph.close()
    return {"seconds": seconds, "before": before, **memory}


def update(case: Case) -> Case:
    """Change documents one by one, then ask."""
    from nodekin.nodegraph import Document

    graph, retriever = _open(case)
    retriever.retrieve(case["query"])
    documents = graph.nodes("ROOT")
    changed = documents[:: max(1, len(documents) // UPDATES)][:UPDATES]
    for number, node in enumerate(changed):
        graph.add(Document(f"{node.text}\nchanged {number}", id=node.id))
    began = time.process_time()
    retriever.retrieve(case["query"])
    seconds = time.process_time() - began
    graph.close()
    return {"updates": len(changed), "seconds": seconds}


TASKS = {"build": build, "reopen": reopen, "update": update}


def measure(language: str, texts: list[str], query: str, folder: Path) -> None:
    """Measure one corpus, in memory and in a file."""
    path = folder / "texts.txt"
    path.write_text("".join(f"{' '.join(text.split())}\n" for text in texts), encoding="utf-8")
    size = bytes_on_disk(path) / 1e6
    rows, parts = [], {}

    def run(task: str, file: Path | None, lines: int = 1000) -> Case:
        work = {"task": task, "texts": str(path), "query": query, "lines": lines}
        return in_new_process(__file__, {**work, "file": None if file is None else str(file)})

    def row(name: str, result: Case) -> list[str]:
        cells = [f"{result[kind]:.0f}" for kind in ("own", "mapped", "most")]
        return [name, *cells, f"{result['seconds']:.2f}"]

    file = folder / "graph.db"
    rows.append(row("built in memory", run("build", None)))
    built = run("build", file)
    rows.append(row("built in a file", built))
    rows.append(row("reopened, one answer", run("reopen", file)))
    parts = built["parts"]
    show(
        f"{language}, {len(texts):,} passages, {size:.1f} MB of text: memory in MB",
        ["process", "own", "mapped", "most", "CPU s of the first answer"],
        rows,
    )
    total = sum(parts.values())
    groups = {
        f"postings ({1e6 * parts['postings'] / built['postings']:.2f} bytes each)": ("postings",),
        "terms": ("term", "posting_"),
        "ids": ("id",),
        "places and lengths of nodes": ("orders", "lengths", "alive"),
        "documents and metadata": ("document", "metadata"),
    }
    sizes = {
        name: sum(size for part, size in parts.items() if part.startswith(begins))
        for name, begins in groups.items()
    }
    show(
        f"{language}: the index, {total:.1f} MB, {total / size:.2f} times the text",
        ["part", "MB"],
        [[name, f"{size:.1f}"] for name, size in sizes.items()],
    )
    small = folder / "small.db"
    run("build", small, 10)
    updated = run("update", small, 10)
    print(f"\nAfter {updated['updates']} single updates: {updated['seconds']:.2f} s")


def main() -> None:
    """Measure each language and size."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000])
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        print(json.dumps(TASKS[options.work["task"]](options.work)))
        return
    for size in options.sizes:
        for corpus in corpora(options.data, size, ["Chinese", "English"]):
            with tempfile.TemporaryDirectory() as folder:
                measure(corpus.language, corpus.texts, corpus.queries[0], Path(folder))


if __name__ == "__main__":
    main()
