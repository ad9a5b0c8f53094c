"""Build, reopen, change by one document, and memory, beside the peers, in one run.

The texts are those of ``speed.py``, in documents of a thousand lines; vectors have 384 numbers and
come from ``fake_model.py``, at next to no cost. Every figure is taken in a process of its own,
after the imports. Build: from nothing until everything is kept and has answered once. Reopen: from
before the graph (index, store) is opened to the first answer. Change: until the change is kept and
has been found, by words and by vectors; of nodekin the median of 20, of the peers, which build
their text index anew for any change, one. LlamaIndex keeps vectors as JSON: with them it is
measured up to 10,000. Ratios are the peer's time over nodekin's, or of a build over reopening what
it made.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import (
    arguments,
    bytes_on_disk,
    cmrc,
    in_new_process,
    milliseconds_each,
    peak_megabytes,
    seconds,
    show,
)
from kept_systems import SYSTEMS, System
from speed import passages

LLAMA_INDEX_VECTORS_UP_TO = 10_000
ROUNDS = 20
Case = dict[str, Any]


# What a process of its own does


def texts_alone(case: Case, data: Path) -> Case:
    """Hold the texts, for what they take by themselves."""
    paragraphs, _ = cmrc(data)
    held = passages(paragraphs, case["size"])
    return {"megabytes": peak_megabytes(), "texts": len(held)}


def build(case: Case, data: Path) -> Case:
    """Build a system and keep it."""
    system, imports = _loaded(case)
    paragraphs, questions = cmrc(data)
    texts, lines = passages(paragraphs, case["size"]), case["lines"]
    step = range(0, len(texts), lines)
    documents = {str(at): texts[at : at + lines] for at in step}
    took, _ = seconds(lambda: system.build(documents, questions[0].text))
    kept = 0 if case["folder"] is None else bytes_on_disk(Path(case["folder"])) / 1e6
    return {"imports": imports, "seconds": took, "megabytes": peak_megabytes(), "disk": kept}


def reopen(case: Case, data: Path) -> Case:
    """Open what is kept; ask once by each kind, then more often."""
    system, imports = _loaded(case)
    queries = [question.text for question in cmrc(data)[1][:100]]
    result: Case = {"imports": imports}
    for kind in case["kinds"]:
        took, found = seconds(lambda kind=kind: _opened(system, kind, queries[0]))
        assert len(found) == 10, found
        result[kind] = took
    for kind in case["kinds"]:
        result[f"{kind} query"] = milliseconds_each(getattr(system, kind), queries[:20], 1)
    return {**result, "megabytes": peak_megabytes()}


def _opened(system: System, kind: str, query: str) -> list[str]:
    system.open()
    found: list[str] = getattr(system, kind)(query)
    return found


def change(case: Case, data: Path) -> Case:
    """Change a document and find that, again and again."""
    system, _ = _loaded(case)
    query = cmrc(data)[1][0].text
    system.open()
    kinds = ("bm25", "cosine") if case["vectors"] else ("bm25",)
    for kind in kinds:
        getattr(system, kind)(query)

    def lines(number: int, count: int, word: str) -> list[str]:
        return [f"{word}{number}line{at} 新来的文章：{query}" for at in range(count)]

    def found(line: str, there: bool = True) -> None:
        mark = line.split()[0]
        for kind in kinds:
            answers: list[str] = getattr(system, kind)(line)
            assert any(mark in answer for answer in answers) == there, (kind, line, answers)

    def put(count: int, word: str) -> Callable[[int], None]:
        def work(number: int) -> None:
            made = lines(number, count, word)
            system.put(f"{count} {number}", made)
            found(made[-1])

        return work

    def remove(number: int) -> None:
        own: Any = system
        own.remove(f"1 {number}")
        found(lines(number, 1, "new")[0], there=False)

    works: dict[str, Callable[[int], None]] = {"add 1 line": put(1, "new")}
    if case["system"] == "nodekin":
        works["add 10 lines"] = put(10, "new")
        works["update 10 lines"] = put(10, "changed")
        works["remove 1 line"] = remove
    return {name: _milliseconds(work, case["rounds"]) for name, work in works.items()}


def _milliseconds(work: Callable[[int], None], rounds: int) -> float:
    return 1000 * statistics.median(seconds(lambda n=n: work(n))[0] for n in range(rounds))


def _loaded(case: Case) -> tuple[System, float]:
    """Return the system, and how long its imports took."""
    folder = None if case["folder"] is None else Path(case["folder"])
    system: System = SYSTEMS[case["system"]](folder, case["vectors"])
    imports, _ = seconds(system.load)
    return system, imports


TASKS: dict[str, Callable[[Case, Path], Case]] = {
    "texts alone": texts_alone,
    "build": build,
    "reopen": reopen,
    "change": change,
}


# What this one does with them


class Bench:
    """Runs the tasks of one size, and keeps what they say by system and whether with vectors."""

    def __init__(self, size: int, data: Path, folder: Path) -> None:
        self.size = size
        self.data = data
        self.folder = folder
        self.missing: dict[str, str] = {}

    def run(self, task: str, **case: Any) -> Case:
        """Run a task in a process of its own."""
        work = {"task": task, "size": self.size, "data": str(self.data), "lines": 1000, **case}
        result = in_new_process(__file__, work)
        print(f"{self.size:,} {case.get('system', '')} {task}: {result}", file=sys.stderr)
        return result

    def everything(self, name: str, vectors: bool, lines: int = 1000) -> Case:
        """Build, reopen and change one system."""
        folder = self.folder / f"{name} {vectors} {lines} {self.size}"
        folder.mkdir()
        case = {"system": name, "vectors": vectors, "folder": str(folder), "lines": lines}
        built = self.run("build", **case)
        opened = self.run("reopen", **case, kinds=["cosine", "bm25"] if vectors else ["bm25"])
        if vectors:  # what the second kind takes is not what it takes as the first
            opened.pop("bm25")
        changed = self.run("change", **case, rounds=ROUNDS if name == "nodekin" else 1)
        after = self.run("reopen", **case, kinds=["bm25"])["bm25"] if name == "nodekin" else 0.0
        return {"build": built, "reopen": opened, "change": changed, "after": after}

    def results(self) -> Iterator[tuple[str, bool, Case]]:
        """Run every system there is a package for, without vectors and with them."""
        for name in SYSTEMS:
            for vectors in (False, True):
                too_slow = vectors and self.size > LLAMA_INDEX_VECTORS_UP_TO
                if name in self.missing or (name == "LlamaIndex" and too_slow):
                    continue
                try:
                    yield name, vectors, self.everything(name, vectors)
                except ImportError as error:
                    self.missing[name] = f"not installed: {error.name}"


def _times(name: str, kept: str, result: Case) -> list[str]:
    built, opened = result["build"]["seconds"], result["reopen"]
    first = [opened.get(kind) for kind in ("bm25", "cosine")]
    cells = [
        cell
        for took in first
        for cell in (["", ""] if took is None else [f"{took:.2f}", f"{built / took:.0f}"])
    ]
    imports, disk = opened["imports"], result["build"]["disk"]
    return [name, kept, f"{built:.1f}", *cells, f"{imports:.2f}", f"{disk:.0f}"]


def _show_times(bench: Bench, results: dict[tuple[str, bool], Case], fine: Case | None) -> None:
    rows = [
        _times(_bold(name), _kept(vectors), result) for (name, vectors), result in results.items()
    ]
    if fine is not None:
        rows.insert(2, _times(_bold("nodekin"), "the same, documents of 10 lines", fine))
    rows += [[name, why, *[""] * 7] for name, why in bench.missing.items()]
    header = ["system", "kept", "build s", "first bm25 answer s", "build / that"]
    header += ["first cosine answer s", "build / that", "imports s", "MB"]
    show(f"Reopen, {bench.size:,} passages", header, rows)


def _show_changes(bench: Bench, results: dict[tuple[str, bool], Case]) -> None:
    rows = []
    for vectors in (False, True):
        changed = {n: r["change"] for (n, v), r in results.items() if v == vectors}
        own = changed.pop("nodekin")
        for what, mine in own.items():
            cells = [_against(changed.get(name, {}).get(what), mine) for name in _peers()]
            rows.append([what, _kept(vectors), f"{mine:.1f}", *cells])
        after = 1000 * results["nodekin", vectors]["after"]
        rows.append(["reopen after all that, bm25", _kept(vectors), f"{after:.0f}", "", ""])
    header = ["change", "kept", "**nodekin** ms", *(f"{name} ms" for name in _peers())]
    show(f"Change one document, {bench.size:,} passages", header, rows)


def _show_memory(
    bench: Bench, results: dict[tuple[str, bool], Case], memory: dict[bool, Case]
) -> None:
    alone = bench.run("texts alone")["megabytes"]
    rows = [["Python, numpy and the texts alone", "", f"{alone:.0f}", ""]]
    for (name, vectors), result in results.items():
        figures = [f"{result[task]['megabytes']:.0f}" for task in ("build", "reopen")]
        rows.append([_bold(name), _kept(vectors), *figures])
    for vectors, built in memory.items():
        row = [_bold("nodekin") + ", in memory", _kept(vectors), f"{built['megabytes']:.0f}", ""]
        rows.insert(3 + vectors, row)
    header = ["system", "kept", "building, MB", "reopened and answering, MB"]
    show(f"Memory at its peak, {bench.size:,} passages", header, rows)


def _against(theirs: float | None, mine: float) -> str:
    return "" if theirs is None else f"{theirs:,.0f} ({theirs / mine:,.0f}x)"


def _peers() -> list[str]:
    return [name for name in SYSTEMS if name != "nodekin"]


def _bold(name: str) -> str:
    return f"**{name}**" if name == "nodekin" else name


def _kept(vectors: bool) -> str:
    return "text index, vectors" if vectors else "text index"


def measure(size: int, data: Path, fine: bool) -> None:
    """Measure one size; ``fine``: with documents of ten lines too."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(size, data, Path(folder))
        results = {(name, vectors): result for name, vectors, result in bench.results()}
        in_tens = bench.everything("nodekin", True, lines=10) if fine else None
        memory = {
            vectors: bench.run("build", system="nodekin", vectors=vectors, folder=None)
            for vectors in (False, True)
        }
        _show_times(bench, results, in_tens)
        _show_changes(bench, results)
        _show_memory(bench, results, memory)


def main() -> None:
    """Measure each size in one go."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        try:
            result = TASKS[options.work["task"]](options.work, Path(options.work["data"]))
        except ImportError as error:
            result = {"missing": error.name}
        print(json.dumps(result))
        return
    cmrc(options.data)
    for size in options.sizes:
        measure(size, options.data, fine=size == max(options.sizes))


if __name__ == "__main__":
    main()
