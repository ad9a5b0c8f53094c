"""The store in a file against a simple model, under random writes."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import rule
from store_machine import StoreMachine
from stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph, NodeStore
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
