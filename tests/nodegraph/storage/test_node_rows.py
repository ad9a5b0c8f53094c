"""The columns of nodes: metadata of every type, and what nodes inherit."""

import datetime
import decimal
import pathlib
import uuid
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.storage.graph_store import GraphStore


def test_metadata_values_keep_their_types(store: GraphStore) -> None:
    metadata = {
        "day": datetime.date(2024, 5, 1),
        "at": datetime.datetime(2024, 5, 1, 12, 30),
        "price": decimal.Decimal("1.10"),
        "id": uuid.UUID(int=5),
        "tags": ("a", "b"),
        "set": {1, 2},
        "raw": b"\x00\xff",
        "path": pathlib.PurePosixPath("a/b"),
        "nested": {"list": [1, None, True, 2.5]},
    }
    store.change_documents([Document("text", metadata, id="typed")])
    (node,) = store.nodes.get(["typed"])
    assert node is not None
    assert dict(node.metadata) == metadata
    assert type(node.metadata["tags"]) is tuple


class Thing:
    """An object that JSON cannot express."""


def test_memory_keeps_objects_in_metadata() -> None:
    things = {"a": Thing(), "b": Thing(), "c": Thing()}
    graph = NodeGraph()
    graph.add([Document("text", {"thing": thing}, id=i) for i, thing in things.items()])
    assert [graph.node(i).metadata["thing"] for i in things] == list(things.values())


def test_file_rejects_objects_in_metadata(tmp_path: Path) -> None:
    graph = NodeGraph(store=tmp_path / "g")
    with pytest.raises(TypeError, match="metadata field 'thing' of document 'a': Thing"):
        graph.add([Document("fine", id="b"), Document("text", {"thing": Thing()}, id="a")])
    assert graph.nodes("ROOT") == []


def test_nodes_inherit_the_fields_of_their_parent(tmp_path: Path) -> None:
    """A section keeps its own year when the document gets another one."""
    graph = NodeGraph(store=tmp_path / "g", progress=False)
    graph.create_node_group(
        "section", lambda node: [Node(node.text, {"year": 1})], trans_node=True, parent="ROOT"
    )
    graph.create_node_group("line", str.splitlines, parent="section")
    for year in (1, 2, 1):
        graph.add(Document("one\ntwo", {"year": year, "tag": "t"}, id="a"))
        (section,) = graph.nodes("section")
        assert section.inherited == {"year": year, "tag": "t"}
        assert [node.metadata for node in graph.nodes("line")] == [{"year": 1, "tag": "t"}] * 2


@pytest.mark.parametrize("later", [{"year": 2}, {}])
@pytest.mark.parametrize("before", [{"year": 1}, {}])
def test_outdated_nodes_keep_their_text_and_metadata(
    before: dict[str, int], later: dict[str, int], tmp_path: Path
) -> None:
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(Document("one\ntwo", before, id="a"))
        lines = [(node.id, node.text) for node in graph.nodes("line")]
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        for text in ("three", "four"):
            graph.add(Document(text, later, id="a"))
        assert graph.node("a").metadata == later
        for node_id, text in lines:
            node = graph.node(node_id)
            assert (node.text, node.metadata) == (text, before)
        (four,) = graph.nodes("line")
        assert (four.text, four.metadata) == ("four", later)
