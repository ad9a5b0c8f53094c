"""The order, documents and parents of LlamaIndex nodes, and what is no hierarchy."""

from typing import Any

import pytest
from llama_index.core.schema import (
    Document,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from nodekin.adapters.llama_index import import_nodes
from nodekin.adapters.llama_index.import_export import joined_text, ordered_ids
from nodekin.nodegraph import NodeGraph


def below(parent: str, kind: NodeRelationship = NodeRelationship.SOURCE) -> dict[Any, Any]:
    return {kind: RelatedNodeInfo(node_id=parent)}


def test_the_order_is_that_of_the_neighbours() -> None:
    texts = ["same", "other", "same", "茶", "same"]
    nodes = [
        TextNode(
            text=text,
            id_=f"{at}",
            start_char_idx=0,
            relationships={
                **below("d"),
                **(below(f"{at + 1}", NodeRelationship.NEXT) if at < 4 else {}),
            },
        )
        for at, text in enumerate(texts)
    ]
    document = Document(text=" ".join(texts), id_="d")
    graph = NodeGraph()
    import_nodes(graph, [nodes[at] for at in (3, 0, 4, 2, 1)], documents=[document], groups=["s"])
    assert [n.metadata["llama_index_id"] for n in graph.nodes("s")] == ["0", "1", "2", "3", "4"]
    assert [n.start for n in graph.nodes("s")] == [0, 5, 11, 16, 18]


def test_documents_are_put_together() -> None:
    info = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    nodes = [
        TextNode(text="茶树", start_char_idx=4, end_char_idx=6, relationships=info, id_="b"),
        TextNode(text="tea ", start_char_idx=0, end_char_idx=4, relationships=info, id_="a"),
        TextNode(text="树 x", start_char_idx=5, end_char_idx=8, relationships=info, id_="c"),
    ]
    graph = NodeGraph()
    import_nodes(graph, nodes, groups=["part"])
    assert graph.node("d").text == "tea 茶树 x"
    assert [(n.metadata["llama_index_id"], n.start) for n in graph.nodes("part")] == [
        ("a", 0),
        ("b", 4),
        ("c", 5),
    ]


def test_blank_nodes_are_told() -> None:
    made = import_nodes(
        NodeGraph(), [TextNode(text=" ", id_="b", relationships=below("d"))], groups=["part"]
    )
    assert made.blank == ("b",)


PARENT = NodeRelationship.PARENT


class Own(TextNode):
    """A class of a user."""


@pytest.mark.parametrize(
    ("nodes", "error", "message"),
    [
        (["text"], TypeError, "takes LlamaIndex nodes, not 'text'"),
        ([Own(text="a")], TypeError, "classes .*is a Own; leave it out"),
        ([TextNode(text="a", relationships=below("x", PARENT))], ValueError, "'x' of node"),
        ([IndexNode(text="a", index_id="x")], ValueError, "stands for 'x'"),
        ([TextNode(text="a", id_="1"), TextNode(text="b", id_="1")], ValueError, "the id '1'"),
        (
            [
                TextNode(text="a", id_="1", relationships=below("2", PARENT)),
                TextNode(text="b", id_="2", relationships=below("1", PARENT)),
            ],
            ValueError,
            "stands below itself",
        ),
        (
            [
                TextNode(text="b", id_="2", relationships=below("1")),
                TextNode(text="c", id_="3", relationships=below("2", PARENT)),
            ],
            ValueError,
            "names 1 levels, and the nodes have 2",
        ),
    ],
)
def test_what_can_not_be_imported(nodes: Any, error: type[Exception], message: str) -> None:
    graph = NodeGraph()
    with pytest.raises(error, match=message):
        import_nodes(graph, nodes, groups=["part"])
    assert graph.nodes("ROOT") == []


def test_siblings_without_relationships_are_ordered_by_their_starts() -> None:
    nodes = [TextNode(text=text, id_=text, start_char_idx=at) for text, at in (("b", 2), ("a", 0))]
    assert ordered_ids(nodes) == ["a", "b"]
    assert joined_text(nodes) == "a b"
    unplaced = [TextNode(text=text, id_=text) for text in ("b", "a")]
    assert ordered_ids(unplaced) == ["b", "a"]
    assert joined_text(unplaced) == "b\n\na"
