"""A killed process leaves the state before or after its current operation.

This file is also the killed program. The program runs operations on one graph and reports each
completed operation. The test checks a copy of the files, so that the next process continues from
the unchanged files of the killed process.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph, builder
from nodekin.nodegraph.node import LinkedText

GROUPS = ["chunk", "line", "word", "initial"]
KILLS = 20
CALL = 0.02
"""Seconds that a call takes by the clock of what is killed, however busy the machine is."""
LOST = 200
"""Calls that a kill may cost: the calls of one second by that clock, and during a slow write."""

if TYPE_CHECKING:  # not imported in the killed program
    import pytest
    from support.stress import Tally, amount

Operation = tuple[str, Any]


class Truth(NamedTuple):
    """What the graph has to hold: texts and metadata by id (None for a file's), and links."""

    documents: dict[str, tuple[str, dict[str, Any] | None]]
    links: set[tuple[str, str]]


def after(truth: Truth, operation: Operation) -> Truth:
    """Apply an operation to the expected state."""
    kind, given = operation
    documents, links = dict(truth.documents), set(truth.links)
    if kind in ("add", "update"):
        documents.update(given)
    elif kind == "remove":
        for i in given:
            documents.pop(i, None)
    elif kind == "files":
        now = {f"files/{name}": text for name, text in given.items()}
        documents = {i: d for i, d in documents.items() if "files/" not in i or i in now}
        documents.update((i, (text, None)) for i, text in sorted(now.items()))
    elif kind == "link":
        links.update(given)
    elif kind == "unlink":
        links.difference_update(given)
    return Truth(documents, {(a, b) for a, b in links if a in documents and b in documents})


def operations(seed: int) -> tuple[list[Operation], list[Truth]]:
    """Return random operations and the expected states before each operation and at the end."""
    choose = random.Random(seed)
    truths = [Truth({}, set())]
    done: list[Operation] = []
    files: dict[str, str] = {}
    made = 0

    def chunks(number: int) -> list[str]:
        nonlocal made
        made += number
        words = ["tea", "green", "black", "leaf", "river", "cup", "milk", "sugar"]
        return [
            f"{choose.choice(words)} n{at} {choose.choice(words)} {choose.choice(words)} n{at}"
            for at in range(made - number, made)  # no two halves of chunks are the same
        ]

    def do(kind: str, given: Any = None) -> None:
        done.append((kind, given))
        truths.append(after(truths[-1], done[-1]))

    def add(count: int, size: int) -> None:
        step = len(done)
        new = [f"d{step}-{n}" for n in range(count)]
        do("add", {i: ("\n\n".join(chunks(size)), {"step": step}) for i in new})

    add(30, 4)
    do("build", "word")
    add(10, 3)
    do("link", [("d0-1", "d0-2"), ("d0-3", "d2-1")])
    kinds = ["add", "update", "remove", "files", "link", "unlink", "build", "embed", "compact"]
    kinds += ["reopen", "build", "search"]
    for _ in range(3):
        for kind in choose.sample(kinds, len(kinds)):
            ids = list(truths[-1].documents)
            if kind == "add":
                add(choose.randrange(1, 12), 3)
            elif kind == "update":
                some = [i for i in choose.sample(ids, 6) if "files/" not in i]
                step = len(done)
                texts = {i: truths[-1].documents[i][0].split("\n\n") for i in some}
                changed = {i: [*parts[1:], *chunks(1)] for i, parts in texts.items()}
                do("update", {i: ("\n\n".join(c), {"step": step}) for i, c in changed.items()})
            elif kind == "remove":
                # A file that was removed comes back with the next refresh, and is paid for again.
                do("remove", choose.sample([i for i in ids if "files/" not in i], 5))
            elif kind == "files":
                files = {
                    f"r{name}" if n == 0 else name: t
                    for n, (name, t) in enumerate(sorted(files.items()))
                    if n != 1
                }
                files.update({f"f{len(done)}-{n}.txt": "\n\n".join(chunks(2)) for n in range(4)})
                do("files", dict(files))
            elif kind in ("link", "unlink"):
                known = sorted(truths[-1].links)
                pairs = [tuple(choose.sample(ids, 2)) for _ in range(4)]
                do(kind, pairs if kind == "link" else choose.sample(known, min(2, len(known))))
            elif kind == "build":
                do("build", choose.choice(GROUPS))
            else:
                do(kind)
    add(120, 1)  # a long build at the end, to be interrupted often
    do("build", "word")
    do("compact")
    return done, truths


class Calls:
    """A log of answered model calls."""

    def __init__(self, path: Path, seconds: float) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._seconds = seconds
        self._count = 0

    def lines(self, chunk: str) -> list[str]:
        """Cut a chunk in two, after a while."""
        time.sleep(self._seconds)
        self._note(f"line {chunk}")
        half = len(chunk) // 2
        return [chunk[:half], chunk[half:].upper()]

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Count letters."""
        for text in texts:
            self._note(f"embed {text}")
        return [[text.lower().count(c) + 0.5 for c in "aeiklmrtn0123"] for text in texts]

    def _note(self, what: str) -> None:
        self._count += 1
        os.write(self._file, f"{what}\n".encode())

    def monotonic(self) -> float:
        """Return a simulated time that advances with each call."""
        return self._count * CALL


def initials(chunks: list[Node]) -> list[LinkedText]:
    """Make a node of each first letter, linked to the chunks that begin with it."""
    families: dict[str, list[Node]] = {}
    for chunk in chunks:
        families.setdefault(chunk.text[0], []).append(chunk)
    return [LinkedText(f"{letter} {len(each)}", to=each) for letter, each in families.items()]


def opened(store: Path | None, calls: Calls) -> NodeGraph:
    graph = NodeGraph(
        store=store, embed=Embedder(calls.embed, "letters", batch_size=16), progress=False
    )
    graph.create_node_group("chunk", lambda text: text.split("\n\n"), version="1")
    graph.create_node_group("line", calls.lines, parent="chunk", version="1", num_workers=2)
    graph.create_node_group("word", str.split, parent="line", version="1")
    graph.create_node_group("initial", initials, parent="chunk", version="1", scope="group")
    return graph


def perform(graph: NodeGraph, operation: Operation, folder: Path) -> None:
    """Do one operation; once more does no harm, since it may have been done before the kill."""
    kind, given = operation
    if kind in ("add", "update"):
        documents = [Document(text, more, id=i) for i, (text, more) in given.items()]
        (graph.add if kind == "add" else graph.update)(documents)
    elif kind == "remove":
        there = {node.id for node in graph.nodes("ROOT")}
        graph.remove([i for i in given if i in there])
    elif kind == "files":
        files = folder / "files"
        files.mkdir(exist_ok=True)
        for path in files.iterdir():
            if path.name not in given:
                path.unlink()
        for name, text in given.items():
            (files / name).write_text(text)
        if any(node.id.startswith("files/") for node in graph.nodes("ROOT")):
            graph.refresh()
        else:  # one write each: a kill between two would leave a third state
            graph.add(files)
    elif kind in ("link", "unlink"):
        for source, target in given:
            getattr(graph, kind)(source, target, "cites")
    elif kind == "build":
        graph.build(given)
    elif kind == "embed":
        graph.embeddings.vectors([node.text for node in graph.nodes("line")], "default")
    elif kind == "compact":
        graph.compact()
    elif kind == "reopen":
        graph.close()
    elif kind == "search":
        from nodekin.retrievers import Retriever

        Retriever(graph, "word", "bm25")("tea")
        graph.close()  # keeps the index


def main(folder: Path, seed: int, first: int) -> None:
    calls = Calls(folder / "calls", 0.008)
    builder.time = calls  # type: ignore[attr-defined]
    graph = opened(folder / "graph", calls)
    os.write(1, b"ready\n")
    for number, operation in enumerate(operations(seed)[0]):
        if number >= first:
            perform(graph, operation, folder)
            os.write(1, b"%d\n" % number)
    graph.close()


def facts(node: Node) -> tuple[Any, ...]:
    place = (node.start, node.end, node.offset, node.parent_id, node.document_id)
    return node.id, node.text, node.content, node.metadata, *place


def links_of(graph: NodeGraph, node: Node) -> list[tuple[str, str, str]]:
    return [(link.source, link.target, link.type) for link in graph.links(node)]


def answers(graph: NodeGraph) -> list[list[tuple[str, float]]]:
    from nodekin.retrievers import Retriever

    asked = [("word", "bm25"), ("chunk", "bm25"), ("line", "cosine")]
    retrievers = [Retriever(graph, group, how, top_k=8) for group, how in asked]
    return [
        [(r.node.id, r.score) for r in retriever(query)]
        for retriever in retrievers
        for query in ("tea", "green river cup", "MILK n7")
    ]


def is_whole(path: Path) -> bool:
    database = sqlite3.connect(path)
    try:
        checks = [database.execute(f"PRAGMA {what}_check") for what in ("integrity", "foreign_key")]
        return [check.fetchall() for check in checks] == [[("ok",)], []]
    finally:
        database.close()


def copied(folder: Path, to: Path) -> Path:
    """Copy the files on disk, the only state left after a kill."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for name in ("graph", "graph-wal"):
        if (folder / name).exists():
            shutil.copy(folder / name, to / name)
    if (folder / "graph-indexes").exists():
        shutil.copytree(folder / "graph-indexes", to / "graph-indexes")
    return to / "graph"


def check(path: Path, allowed: Sequence[Truth], calls: Calls) -> Truth:
    """Compare a graph file with its allowed states and with a rebuilt graph."""
    graph = opened(path, calls)
    documents = [Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")]
    links = {(a, b) for d in documents for a, b, _ in links_of(graph, graph.node(d.id))}
    found = {d.id: (d.text, None if "files/" in d.id else d.metadata) for d in documents}
    matching = [t for t in allowed if list(t.documents.items()) == list(found.items())]
    assert matching, f"{list(found)} is neither of {[list(t.documents) for t in allowed]}"
    # Each link is written separately, so a kill can split the links of one operation.
    assert allowed[0].links & allowed[-1].links <= links <= allowed[0].links | allowed[-1].links

    fresh = opened(None, calls)
    fresh.add(documents)
    for group in GROUPS:
        ours, anew = graph.nodes(group), fresh.nodes(group)
        assert [facts(node) for node in ours] == [facts(node) for node in anew]
        assert [links_of(graph, n) for n in ours] == [links_of(fresh, n) for n in anew]
        assert [n.order for n in ours] == sorted({n.order for n in ours})
    assert answers(graph) == answers(fresh)
    graph.close()
    assert is_whole(path)
    return matching[0]


def check_kills(seed: int, tmp_path: Path) -> int:
    """Kill a process that works through operations again and again; return how often."""
    todo, truths = operations(seed)
    choose = random.Random(seed)
    folder = tmp_path / "work"
    folder.mkdir()
    unpaid = Calls(tmp_path / "ours", 0)
    done = 0
    kills: list[int] = []  # the calls that had been made
    while done < len(todo):
        command = [sys.executable, "-W", "error", __file__, str(folder), str(seed), str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            if len(kills) < KILLS:
                left = (len(todo) - done) // (KILLS - len(kills))
                for _ in range(choose.randint(0, 2 * left)):
                    done += child.stdout.readline() != b""
                time.sleep(choose.choice([0.02, 0.02, 0.3]) * choose.random())
                child.kill()
                child.wait()
                kills.append((folder / "calls").read_bytes().count(b"\n"))
            done += len(child.stdout.readlines())
        assert child.returncode in (0, -signal.SIGKILL)
        check(copied(folder, tmp_path / "copy"), truths[done : done + 2], unpaid)
    assert len(kills) >= KILLS // 4  # on a busy machine more is done between two

    assert is_whole(folder / "graph")
    paid: dict[str, list[int]] = {}
    for moment, what in enumerate((folder / "calls").read_text().splitlines()):
        paid.setdefault(what, []).append(moment)
    for what, moments in paid.items():
        for first, again in pairwise(moments):
            ends = [kill - first for kill in kills if first <= kill <= again]
            assert ends, f"{what} was paid for twice, though nothing happened"
            assert min(ends) < LOST, f"{what} was paid for twice; {ends} calls came after it"
    return len(kills)


def test_killed_process_leaves_only_complete_operations(tmp_path: Path) -> None:
    tally, kills = Tally("runs of killed processes"), 0
    for seed in range(20, 20 + amount(1, 50)):
        with tally.trying(seed):
            folder = tmp_path / str(seed)
            folder.mkdir()
            kills += check_kills(seed, folder)
            shutil.rmtree(folder)
    tally.notes["kills"] = kills
    tally.check()


def interrupted_after(number: int, patch: "pytest.MonkeyPatch") -> None:
    """Raise a KeyboardInterrupt after a number of statements."""
    from nodekin.nodegraph.storage.sqlite import SQLiteDatabase

    left = [number]

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **settings: Any) -> Any:
            result = run(*given, **settings)
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            return result

        return counting

    for name in ("_run", "run_many", "rows", "close"):
        patch.setattr(SQLiteDatabase, name, counted(getattr(SQLiteDatabase, name)))


INTERRUPTED: list[tuple[Operation, list[str]]] = [
    (("add", {"b": ("tea 2", {}), "c": ("milk", {})}), ["a", "b", "c"]),
    (("remove", ["a"]), ["b"]),
    (("build", "word"), ["a", "b"]),
    (("link", [("a", "b")]), ["a", "b"]),
    (("compact", None), ["a", "b"]),
    (("reopen", None), ["a", "b"]),
]


@pytest.mark.slow
def test_interrupt_after_any_statement_leaves_graph_consistent(
    tmp_path: Path, monkeypatch: "pytest.MonkeyPatch"
) -> None:
    calls = Calls(tmp_path / "calls", 0)
    with opened(tmp_path / "first", calls) as graph:
        graph.add([Document("green tea", id="a"), Document("cup", id="b")])
        graph.build("line")
    for operation, wanted in INTERRUPTED:
        number = 0
        interrupted = True
        while interrupted:
            number += 1 if number < 30 else 5
            path = Path(shutil.copy(tmp_path / "first", tmp_path / f"{operation[0]}{number}"))
            graph = opened(path, calls)
            with monkeypatch.context() as patch:
                interrupted_after(number, patch)
                try:
                    perform(graph, operation, tmp_path)
                    interrupted = False
                except KeyboardInterrupt:
                    pass
            now = [(n.id, n.text) for n in graph.nodes("ROOT")]
            new = [(i, operation[1][i][0]) for i in ("b", "c")] if operation[0] == "add" else []
            if operation[0] == "add":
                assert now in ([("a", "green tea"), ("b", "cup")], [("a", "green tea"), *new])
            perform(graph, operation, tmp_path)
            assert [n.id for n in graph.nodes("ROOT")] == wanted
            assert len(graph.nodes("chunk")) == len(wanted)
            graph.close()
            assert is_whole(path)
        assert number > 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
else:
    import pytest
    from support.stress import Tally, amount

    pytest.mark.slow(test_killed_process_leaves_only_complete_operations)
