import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph


@pytest.fixture
def graph() -> NodeGraph:
    """Documents of lines of words; a summary of each line beside its words; sentences apart."""
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.create_node_group("summary", lambda line: f"{len(line)} letters", parent="line")
    graph.create_node_group("sentence", lambda text: text.split("."))
    graph.add([Document("a b\nc. d", id="1"), Document("e", id="2")])
    return graph


def texts(nodes: list[Node]) -> list[str]:
    return [node.text for node in nodes]


def word(graph: NodeGraph, text: str) -> Node:
    (node,) = (node for node in graph.nodes("word") if node.text == text)
    return node


@pytest.mark.parametrize(
    ("group", "start", "expected"),
    [
        ("ROOT", "word:b", ["a b\nc. d"]),
        ("line", "word:b", ["a b"]),
        ("word", "word:b", ["b"]),
        ("word", "line:c. d", ["c.", "d"]),
        ("word", "ROOT:a b\nc. d", ["a", "b", "c.", "d"]),
        ("line", "ROOT:e", ["e"]),
        ("summary", "word:d", ["4 letters"]),  # across, through the line
        ("word", "summary:4 letters", ["c.", "d"]),
        ("sentence", "word:b", ["a b\nc", " d"]),  # across, through the document
        ("word", "sentence: d", ["a", "b", "c.", "d"]),
        ("ROOT", "ROOT:e", ["e"]),
    ],
)
def test_up_down_and_across(graph: NodeGraph, group: str, start: str, expected: list[str]) -> None:
    name, _, text = start.partition(":")
    (node,) = (node for node in graph.nodes(name) if node.text == text)
    assert texts(graph.find(group)(node)) == expected
    assert texts(graph.find(group)([node])) == expected
    assert all(found.group == group for found in graph.find(group)(node))


def test_many_give_each_once_in_document_order(graph: NodeGraph) -> None:
    words = [word(graph, text) for text in ("e", "d", "b", "a", "b")]
    assert texts(graph.find("line")(words)) == ["a b", "c. d", "e"]
    assert texts(graph.find("word")(words)) == ["a", "b", "d", "e"]
    assert texts(graph.find("ROOT")(iter(words))) == ["a b\nc. d", "e"]
    assert texts(graph.find("word")(graph.nodes("ROOT")[::-1])) == ["a", "b", "c.", "d", "e"]
    assert graph.find("word")([]) == []


def test_retrieval_results_are_taken_for_their_nodes(graph: NodeGraph) -> None:
    result = SimpleNamespace(node=word(graph, "d"), score=1.0)
    assert texts(graph.find("line")(result)) == ["c. d"]
    assert texts(graph.find("line")([result, word(graph, "a")])) == ["a b", "c. d"]


def test_kin_that_made_nothing() -> None:
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("late", lambda line: [] if line == "b" else line, parent="line")
    graph.add("a\nb\nc")
    nodes = [graph.find("late")(line) for line in graph.nodes("line")]
    assert [texts(found) for found in nodes] == [["a"], [], ["c"]]


def test_parent_root_and_children(graph: NodeGraph) -> None:
    node = word(graph, "d")
    assert node.parent is not None
    assert (node.parent.text, node.parent.group) == ("c. d", "line")
    assert (node.root.id, node.root.group) == ("1", "ROOT")
    assert node.parent.parent == node.root == node.parent.root == node.root.root
    assert node.root.parent is None
    assert node.children == {}
    assert {g: texts(c) for g, c in node.parent.children.items()} == {"word": ["c.", "d"]}
    assert {g: texts(c) for g, c in node.root.children.items()} == {"line": ["a b", "c. d"]}
    graph.build("summary", "sentence")
    assert list(node.parent.children) == ["word", "summary"]
    assert list(node.root.children) == ["line", "sentence"]
    assert graph.nodes("ROOT")[1].children["sentence"][0].parent == graph.node("2")


def test_children_follow_their_document(graph: NodeGraph) -> None:
    graph.nodes("word")
    graph.add([Document("new\nlines here", id="2"), Document("x", id="3")])
    assert texts(graph.node("2").children["line"]) == ["new", "lines here"]
    assert texts(graph.node("3").children["line"]) == ["x"]
    assert list(graph.node("2").children["line"][1].children) == ["word"]


@pytest.mark.parametrize("item", [None, "a", 3, {"node": "a"}, SimpleNamespace(node="a"), ["a"]])
def test_what_is_no_node(graph: NodeGraph, item: Any) -> None:
    with pytest.raises(TypeError, match="find takes nodes or retrieval results, not"):
        graph.find("line")([item])


def test_nodes_of_no_graph_or_another(graph: NodeGraph) -> None:
    other = NodeGraph()
    (i,) = other.add("a")
    travelled = pickle.loads(pickle.dumps(word(graph, "d")))
    for node in (other.node(i), Node("a"), travelled):
        with pytest.raises(ValueError, match="is not a node of this graph"):
            graph.find("line")(node)
    for ask in ("parent", "root", "children"):
        with pytest.raises(ValueError, match="belongs to no graph yet, so it has no kin"):
            getattr(Node("a") if ask != "parent" else travelled, ask)
    assert travelled == word(graph, "d")


def test_removed_nodes_are_missed_aloud(graph: NodeGraph) -> None:
    old, kept = word(graph, "d"), word(graph, "e")
    line, root = old.parent, old.root
    assert line is not None
    graph.remove("1")
    for node in (old, line, root):
        for group in ("word", "line", "ROOT", "sentence"):
            with pytest.raises(LookupError, match=f"no node '{node.id}' in the graph; it may have"):
                graph.find(group)([kept, node])
        with pytest.raises(LookupError, match="may have been removed or changed"):
            _ = node.children
        with pytest.raises(LookupError, match="may have been removed or changed"):
            _ = node.root
    assert old.text == "d"  # what one holds stays whole
    assert texts(graph.find("line")(kept)) == ["e"]


def test_a_node_that_is_gone_while_its_document_stays(graph: NodeGraph) -> None:
    old, kept = word(graph, "d"), word(graph, "a")
    graph.update(Document("0\na b", {"new": True}, id="1"))
    assert graph.nodes("word")
    with pytest.raises(LookupError):
        graph.find("line")(old)
    with pytest.raises(LookupError):
        _ = old.parent
    # One that is still there is taken as it is now.
    (now,) = graph.find("word")(kept)
    assert (kept.start, now.start, now.metadata) == (0, 2, {"new": True})


def test_nodes_are_equal_by_id(graph: NodeGraph) -> None:
    node = word(graph, "d")
    assert node == graph.node(node.id)
    assert len({node, graph.node(node.id), word(graph, "a")}) == 2
    assert Node("a") != Node("a")
    assert node != node.id
