"""The store of a graph, against a simple model and by its promises."""

import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import rule
from support.store_machine import StoreMachine
from support.stores import file_store, memory_store
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.storage.graph_store import Changes, GraphStore


class StoreInMemory(StoreMachine):
    def make(self) -> GraphStore:
        return memory_store()


class StoreInFile(StoreMachine):
    def make(self) -> GraphStore:
        self.folder = tempfile.TemporaryDirectory()
        return file_store(Path(self.folder.name, "g.nodekin"))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = file_store(Path(self.folder.name, "g.nodekin"))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


class TestStoreInMemory(StoreInMemory.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=amount(25, 300), stateful_step_count=25)


class TestStoreInFile(StoreInFile.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=amount(10, 300), stateful_step_count=20)


@pytest.mark.parametrize("name", ["a b", "组", "half \ud800", "x" * 300, "ROOT2"])
def test_group_names_may_be_any_text(name: str, tmp_path: Path) -> None:
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("one\ntwo")
        graph.create_node_group(name, str.splitlines)
        assert [node.text for node in graph.nodes(name)] == ["one", "two"]
        graph.close()
        assert [node.group for node in graph.nodes(name)] == [name, name]


def test_graph_in_file_is_pickled_by_its_path(tmp_path: Path) -> None:
    graph = NodeGraph(store=tmp_path / "g")
    graph.add(Document("one", id="a"))
    pickled = pickle.dumps(graph)
    graph.add(Document("two", id="b"))
    assert [node.text for node in pickle.loads(pickled).nodes("ROOT")] == ["one", "two"]


def test_revision_of_another_history_is_unknown(tmp_path: Path) -> None:
    """Indexes beside a restored backup must not apply changes of the lost history."""
    backup = tmp_path / "backup"
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("one")
    backup.write_bytes((tmp_path / "g").read_bytes())
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("lost")
        lost = graph.reader.revision("ROOT")
    (tmp_path / "g").write_bytes(backup.read_bytes())
    with NodeGraph(store=tmp_path / "g") as graph:
        graph.add("other")
        assert graph.reader.changes("ROOT", lost).complete


def test_recreated_file_has_another_state(tmp_path: Path) -> None:
    """A group is not fresh because an equal number of changes preceded it in the deleted file."""
    path = tmp_path / "g"
    graph = NodeGraph(store=path)
    graph.create_node_group("line", str.splitlines)
    graph.add("old")
    graph.build("line")
    graph.close()
    path.unlink()
    with NodeGraph(store=path) as other:
        for text in ("one", "two", "three"):  # as many changes as the add and the build
            other.add(text)
    assert [node.text for node in graph.nodes("line")] == ["one", "two", "three"]


def test_unknown_group_is_empty(store: GraphStore) -> None:
    assert list(store.nodes("never")) == []
    assert (store.count("never"), store.revision("never")) == (0, 0)
    assert store.derivations("never", ["a"]) == {}
    assert store.get(["never", "a"])[0] is None
    (root,) = store.get(["a"])
    assert root is not None
    assert list(store.children("never", root)) == []
    assert store.changes("never", 0) == Changes(0, [], [], complete=True)
