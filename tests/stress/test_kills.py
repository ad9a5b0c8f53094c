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
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph, builder
from nodekin.nodegraph.node import LinkedText
from nodekin.nodegraph.storage.sqlite import SQLiteDatabase
from nodekin.retrievers import Retriever

pytestmark = pytest.mark.slow

GROUPS = ["chunk", "line", "word", "initial"]
KILLS = 20
CALL = 0.02  # seconds per call of the simulated clock

Operation = tuple[str, Any]
State = dict[str, tuple[str, dict[str, Any] | None]]  # text and metadata by id; None for files


def operations(seed: int) -> tuple[list[Operation], list[State]]:
    """Return random operations and the expected states before each operation and at the end."""
    rng = random.Random(seed)
    todo: list[Operation] = []
    states: list[State] = [{}]
    made = 0

    def chunks(number: int) -> list[str]:
        nonlocal made
        made += number
        words = ["tea", "green", "black", "leaf", "river", "cup", "milk", "sugar"]
        return [
            f"{rng.choice(words)} n{at} {rng.choice(words)} {rng.choice(words)} n{at}"
            for at in range(made - number, made)  # all halves of chunks differ
        ]

    def do(kind: str, given: Any, state: State | None = None) -> None:
        todo.append((kind, given))
        states.append(states[-1] if state is None else state)

    def add(count: int, size: int) -> None:
        step = len(todo)
        new = {f"d{step}-{n}": ("\n\n".join(chunks(size)), {"step": step}) for n in range(count)}
        do("add", new, {**states[-1], **new})

    add(30, 4)
    do("build", "word")
    for _ in range(3):
        kinds = [
            "add",
            "update",
            "remove",
            "files",
            "build",
            "embed",
            "compact",
            "reopen",
            "search",
        ]
        for kind in rng.sample(kinds, len(kinds)):
            own = [i for i in states[-1] if not i.startswith("files/")]
            if kind == "add":
                add(rng.randrange(1, 12), 3)
            elif kind == "update":
                texts = {i: states[-1][i][0].split("\n\n") for i in rng.sample(own, 6)}
                changed = {
                    i: ("\n\n".join([*parts[1:], *chunks(1)]), {"step": len(todo)})
                    for i, parts in texts.items()
                }
                do("update", changed, {**states[-1], **changed})
            elif kind == "remove":
                removed = rng.sample(own, 5)
                do("remove", removed, {i: d for i, d in states[-1].items() if i not in removed})
            elif kind == "files":
                old = {i: d for i, d in states[-1].items() if i.startswith("files/")}
                kept = {i: old[i] for i in sorted(old)[1:]}
                step = len(todo)
                new = {f"files/f{step:03}-{n}.txt": "\n\n".join(chunks(2)) for n in range(4)}
                files = {**kept, **{i: (text, None) for i, text in new.items()}}
                others = {i: states[-1][i] for i in states[-1] if i in kept or i in own}
                do("files", {i[6:]: text for i, (text, _) in files.items()}, {**others, **files})
            else:
                do(kind, rng.choice(GROUPS))
    add(120, 1)
    do("build", "word")  # a long build
    do("compact", None)
    return todo, states


class Calls:
    """A log of answered model calls, and a clock that advances with each call."""

    def __init__(self, path: Path, seconds: float = 0) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._seconds = seconds
        self._count = 0

    def lines(self, chunk: str) -> list[str]:
        """Return the two halves of a chunk."""
        time.sleep(self._seconds)
        self._note(f"line {chunk}")
        half = len(chunk) // 2
        return [chunk[:half], chunk[half:].upper()]

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return counts of letters."""
        for text in texts:
            self._note(f"embed {text}")
        return [[text.lower().count(c) + 0.5 for c in "aeiklmrtn0123"] for text in texts]

    def _note(self, what: str) -> None:
        self._count += 1
        os.write(self._file, f"{what}\n".encode())

    def monotonic(self) -> float:
        return self._count * CALL


def initials(chunks: list[Node]) -> list[LinkedText]:
    """Return a node per first letter, linked to its chunks."""
    families: dict[str, list[Node]] = {}
    for chunk in chunks:
        families.setdefault(chunk.text[0], []).append(chunk)
    return [LinkedText(f"{letter} {len(each)}", to=each) for letter, each in families.items()]


def opened(store: Path | None, calls: Calls) -> NodeGraph:
    model = Embedder(calls.embed, "letters", batch_size=16)
    graph = NodeGraph(store=store, embed=model, progress=False)
    graph.create_node_group("chunk", lambda text: text.split("\n\n"), version="1")
    graph.create_node_group("line", calls.lines, parent="chunk", version="1", num_workers=2)
    graph.create_node_group("word", str.split, parent="line", version="1")
    graph.create_node_group("initial", initials, parent="chunk", version="1", scope="group")
    return graph


def perform(graph: NodeGraph, operation: Operation, folder: Path) -> None:
    """Perform one operation. A second time has no effect."""
    kind, given = operation
    if kind in ("add", "update"):
        documents = [Document(text, metadata, id=i) for i, (text, metadata) in given.items()]
        graph.add(documents)
    elif kind == "remove":
        known = {node.id for node in graph.nodes("ROOT")}
        graph.remove([i for i in given if i in known])
    elif kind == "files":
        files = folder / "files"
        files.mkdir(exist_ok=True)
        for path in files.iterdir():
            if path.name not in given:
                path.unlink()
        for name, text in given.items():
            (files / name).write_text(text)
        is_known = any(node.id.startswith("files/") for node in graph.nodes("ROOT"))
        graph.refresh() if is_known else graph.add(files)  # one transaction in each case
    elif kind == "build":
        graph.build(given)
    elif kind == "embed":
        graph.embeddings.vectors([node.text for node in graph.nodes("line")], "default")
    elif kind == "compact":
        graph.compact()
    elif kind == "link":
        graph.link(*given)
    else:
        if kind == "search":
            Retriever(graph, "word", "bm25")("tea")
        graph.close()  # stores the index


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


def facts(graph: NodeGraph) -> list[Any]:
    """Return the nodes, links and search results of a graph."""
    retrievers = [
        Retriever(graph, group, how, top_k=8)
        for group, how in (("word", "bm25"), ("chunk", "bm25"), ("line", "cosine"))
    ]
    return [
        [
            (
                *(n.id, n.text, n.content, n.metadata, n.start, n.end, n.offset, n.parent_id),
                [(link.source, link.target, link.type) for link in n.links],
            )
            for group in GROUPS
            for n in graph.nodes(group)
        ],
        [
            [(r.node.id, r.score) for r in retriever(query)]
            for retriever in retrievers
            for query in ("tea", "green river cup", "MILK n7")
        ],
    ]


def check_whole(path: Path) -> None:
    database = sqlite3.connect(path)
    checks = [database.execute(f"PRAGMA {what}_check") for what in ("integrity", "foreign_key")]
    assert [check.fetchall() for check in checks] == [[("ok",)], []]
    database.close()


def check(path: Path, allowed: Sequence[State], calls: Calls) -> None:
    """Compare a graph file with its allowed states and with a rebuilt graph."""
    with opened(path, calls) as graph:
        documents = [Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")]
        found = [(d.id, (d.text, None if "files/" in d.id else d.metadata)) for d in documents]
        assert found in [list(state.items()) for state in allowed]
        fresh = opened(None, calls)
        fresh.add(documents)
        assert facts(graph) == facts(fresh)
    check_whole(path)


def copied(folder: Path, to: Path) -> Path:
    """Copy the files on disk, the only state left after a kill."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for path in folder.glob("graph*"):
        if path.name != "graph-shm":
            (shutil.copytree if path.is_dir() else shutil.copy)(path, to / path.name)
    return to / "graph"


def check_kills(seed: int, folder: Path) -> tuple[int, Counter[str]]:
    """Kill a process repeatedly during its operations. Return the kills, and the model calls."""
    todo, states = operations(seed)
    rng = random.Random(seed)
    work = folder / "work"
    work.mkdir(parents=True)
    calls = Calls(folder / "calls")
    done = kills = 0
    while done < len(todo):
        command = [sys.executable, "-W", "error", __file__, str(work), str(seed), str(done)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            if kills < KILLS:
                for _ in range(rng.randint(0, 2 * (len(todo) - done) // (KILLS - kills))):
                    done += child.stdout.readline() != b""
                time.sleep(rng.choice([0.02, 0.02, 0.3]) * rng.random())
                child.kill()
                child.wait()
                kills += 1
            done += len(child.stdout.readlines())
        assert child.returncode in (0, -signal.SIGKILL)
        check(copied(work, folder / "copy"), states[done : done + 2], calls)
    check_whole(work / "graph")
    return kills, Counter((work / "calls").read_text().splitlines())


def test_killed_process_leaves_only_complete_operations(tmp_path: Path) -> None:
    tally, runs = Tally("runs of killed processes"), amount(1, 50)
    killed = paid = repeated = 0
    for seed in range(20, 20 + runs):
        with tally.trying(seed):
            kills, calls = check_kills(seed, tmp_path / str(seed))
            killed += kills
            paid += len(calls)
            repeated += calls.total() - len(calls)
    tally.notes = {"kills": killed, "model calls": paid, "repeated calls": repeated}
    tally.check()
    assert killed >= runs * KILLS // 4  # a busy machine does more between two kills
    assert repeated < 0.25 * paid, "kills cost too many model calls"


def interrupted_after(number: int, patch: pytest.MonkeyPatch) -> None:
    """Raise a KeyboardInterrupt after a number of statements."""
    left = number

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **settings: Any) -> Any:
            nonlocal left
            result = run(*given, **settings)
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return result

        return counting

    for name in ("run_many", "rows", "close"):
        patch.setattr(SQLiteDatabase, name, counted(getattr(SQLiteDatabase, name)))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (("add", {"b": ("tea 2", {}), "c": ("milk", {})}), ["a", "b", "c"]),
        (("remove", ["a"]), ["b"]),
        (("build", "word"), ["a", "b"]),
        (("link", ("a", "b")), ["a", "b"]),
        (("compact", None), ["a", "b"]),
        (("reopen", None), ["a", "b"]),
    ],
    ids=lambda value: value[0],
)
def test_interrupt_after_any_statement_leaves_graph_consistent(
    operation: Operation, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(tmp_path / "calls")
    before = {"a": "green tea", "b": "cup"}
    with opened(tmp_path / "first", calls) as graph:
        graph.add([Document(text, id=i) for i, text in before.items()])
        graph.build("line")
    after = {**before, "b": "tea 2", "c": "milk"} if operation[0] == "add" else before
    number, interrupted = 0, True
    while interrupted:
        number += 1 if number < 30 else 5
        path = Path(shutil.copy(tmp_path / "first", tmp_path / str(number)))
        graph = opened(path, calls)
        with monkeypatch.context() as patch:
            interrupted_after(number, patch)
            try:
                perform(graph, operation, tmp_path)
                interrupted = False
            except KeyboardInterrupt:
                pass
        if operation[0] != "remove":
            assert {n.id: n.text for n in graph.nodes("ROOT")} in (before, after)
        perform(graph, operation, tmp_path)
        assert [n.id for n in graph.nodes("ROOT")] == expected
        assert len(graph.nodes("chunk")) == len(expected)
        graph.close()
        check_whole(path)
    assert number > 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
