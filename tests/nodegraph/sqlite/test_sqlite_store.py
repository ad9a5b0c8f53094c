"""The store in a file against a simple model, under random writes."""

import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings
from hypothesis.stateful import rule
from store_checks import check_store
from store_machine import StoreMachine
from stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph, NodeStore, build_writer
from nodekin.nodegraph.sqlite.connection import Connection
from nodekin.nodegraph.sqlite.file import GraphFile
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore


class FileMachine(StoreMachine):
    """The same, the file being closed and opened again now and then."""

    def make(self) -> NodeStore:
        self.folder = tempfile.TemporaryDirectory()
        return SQLiteStore(Path(self.folder.name, "graph"))

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = SQLiteStore(Path(self.folder.name, "graph"))

    @rule()
    def compact(self) -> None:
        self.store.compact()

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestSQLiteStore = FileMachine.TestCase
TestSQLiteStore.settings = settings(max_examples=amount(8, 25), stateful_step_count=25)


def test_siblings_share_what_they_inherit_and_no_one_else_does(tmp_path: Path) -> None:
    def part(node: Node) -> list[Node]:
        return [Node(text, {"part": text[0]}) for text in node.text.split(". ")]

    documents = [Document(f"{i}a one. {i}b two. {i}a three", {"year": i}, id=str(i)) for i in "12"]
    graph = NodeGraph(store=tmp_path / "graph", progress=False)
    graph.add(documents)
    graph.create_node_group("part", part, trans_node=True)
    graph.create_node_group("word", str.split, parent="part")
    expected = [
        {"year": i, "part": text[0]} for i in "12" for text in (f"{i}a", f"{i}b", f"{i}a") * 2
    ]
    graph.build("word")
    with NodeGraph(store=tmp_path / "graph", progress=False) as again:
        again.create_node_group("part", part, trans_node=True)
        again.create_node_group("word", str.split, parent="part")
        words = again.nodes("word")
        assert [word.metadata for word in words] == expected
        for first, second in zip(words[::2], words[1::2], strict=True):
            assert first.inherited is second.inherited  # an index of many nodes holds it once
        assert words[0].inherited == words[4].inherited != words[6].inherited
    graph.close()


NORMAL, FULL = 1, 2  # as SQLite numbers them


@pytest.mark.parametrize(
    ("seconds", "threads", "build"), [(0.0005, 0, NORMAL), (0.02, 0, FULL), (0.0005, 2, FULL)]
)
def test_a_build_waits_for_the_disk_where_it_is_not_made_again_at_once(
    seconds: float, threads: int, build: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, commits = [0.0], []

    def lines(text: str) -> list[str]:
        now[0] += seconds
        return text.splitlines()

    def noted(file: GraphFile, connection: Connection, touched: bool) -> None:
        commits.extend(connection.row("PRAGMA synchronous") or ())
        commit(file, connection, touched)

    commit = GraphFile._commit
    monkeypatch.setattr(GraphFile, "_commit", noted)
    monkeypatch.setattr(build_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.create_node_group("line", lines, num_workers=threads)
        for text in ("one\ntwo", "three"):
            commits.clear()
            graph.add(text)
            assert set(commits) == {FULL}
            commits.clear()
            graph.build("line")
            assert set(commits) == {build}
        graph.link(*graph.nodes("line")[:2], "next")
        assert commits[-1] == FULL


def test_an_add_reads_each_group_once(tmp_path: Path) -> None:
    statements: list[str] = []
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(["one\ntwo", "three"])
        graph.build("line")
        writer = graph._store._database._writer  # type: ignore[attr-defined]
        connection: sqlite3.Connection = writer._db
        connection.set_trace_callback(statements.append)
        graph.add("four")
        graph.build("line")
    transactions = "\n".join(statements).split("COMMIT")
    assert len(transactions) == 3
    assert [part.count("FROM groups WHERE name = ") for part in transactions] == [1, 2, 0]
    assert [part.count("UPDATE groups") for part in transactions] == [1, 2, 0]


@pytest.mark.slow
def test_store_in_file_passes_checks(tmp_path: Path) -> None:
    numbers = iter(range(100))
    check_store(
        lambda: SQLiteStore(tmp_path / f"{next(numbers)}.db"),
        reopen=lambda store: SQLiteStore(getattr(store, "path", "")),
    )
