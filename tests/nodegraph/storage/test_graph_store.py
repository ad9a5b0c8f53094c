"""The store of a graph, against a simple model and by its promises."""

import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.storage import graph_store
from nodekin.nodegraph.storage.graph_store import Changes, GraphStore


def test_graph_in_file_is_pickled_by_its_path(tmp_path: Path) -> None:
    graph = NodeGraph(store=tmp_path / "g")
    graph.add(Document("one", id="a"))
    pickled = pickle.dumps(graph)
    graph.add(Document("two", id="b"))
    assert [node.text for node in pickle.loads(pickled).nodes("ROOT")] == ["one", "two"]


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


def test_graph_leaves_random_numbers_of_program() -> None:
    random.seed(0)
    np.random.seed(0)
    before = random.getstate()
    before_of_numpy = pickle.dumps(np.random.get_state())
    graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts])
    ids = graph.add(["Green tea is steamed.", "Black tea is fermented."])
    graph.search("tea")
    graph.link(ids[0], ids[1])
    graph.remove(ids[1])
    assert random.getstate() == before
    assert pickle.dumps(np.random.get_state()) == before_of_numpy


def test_unknown_group_is_empty(store: GraphStore) -> None:
    assert list(store.nodes.of_group("never")) == []
    assert (store.groups.count("never"), store.groups.revision("never")) == (0, 0)
    assert store.derivations("never", ["a"]) == {}
    assert store.nodes.get(["never", "a"])[0] is None
    (root,) = store.nodes.get(["a"])
    assert root is not None
    assert list(store.nodes.children("never", root)) == []
    assert store.nodes.count_children("never", root) == 0
    assert store.changes("never", 0) == Changes(0, [], [], complete=True)


def test_failed_addition_of_several_portions_changes_nothing(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(graph_store, "_DOCUMENTS", 3)
    graph = NodeGraph(store=tmp_path / "graph.db")
    graph.create_node_group("line", str.splitlines)
    graph.add(Document("old text", id="d0"))
    graph.build("line")
    line = graph.nodes("line")[0]
    documents = [Document(f"text {n}", id=f"d{n}") for n in range(10)]
    with pytest.raises(ValueError, match="already used"):
        graph.add([*documents, Document("last", id=line.id)])
    assert [node.text for node in graph.nodes("ROOT")] == ["old text"]
    assert [result.node.text for result in graph.search("text", top_k=20)] == ["old text"]
    graph.add(documents)
    assert [node.text for node in graph.nodes("line")] == [f"text {n}" for n in range(10)]
    assert len(graph.search("text", top_k=20)) == 10
