"""The store of a graph, against a simple model and by its promises."""

import pickle
import random
from pathlib import Path

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.storage.graph_store import Changes, GraphStore


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


def test_seeded_program_gets_other_revisions(tmp_path: Path) -> None:
    """The index of a deleted file must not be used for a new file of a seeded program."""
    revisions = set()
    for name in ("one", "two", "three"):
        random.seed(0)
        np.random.seed(0)
        with NodeGraph(store=tmp_path / name) as graph:
            graph.add(["green tea", "black tea"])
            revisions.add(graph.reader.revision("ROOT"))
    assert len(revisions) > 1


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
    assert list(store.nodes("never")) == []
    assert (store.count("never"), store.revision("never")) == (0, 0)
    assert store.derivations("never", ["a"]) == {}
    assert store.get(["never", "a"])[0] is None
    (root,) = store.get(["a"])
    assert root is not None
    assert list(store.children("never", root)) == []
    assert store.changes("never", 0) == Changes(0, [], [], complete=True)
