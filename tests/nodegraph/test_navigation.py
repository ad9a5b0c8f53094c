"""Parents, children, roots and relatives of nodes."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, UnknownGroupError

pytestmark = pytest.mark.usefixtures("every_store")


def texts(nodes: list[Node]) -> list[str]:
    return [node.text for node in nodes]


@pytest.fixture
def graph() -> NodeGraph:
    """Return a graph with two branches: paragraphs with words, and lines in upper case."""
    graph = NodeGraph(progress=False)
    graph.add([Document("a b. c\nd. a", id="1"), Document("e f\ng", id="2")])
    graph.create_node_group("paragraph", lambda text: text.split(". "))
    graph.create_node_group("word", str.split, parent="paragraph")
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("upper", str.upper, parent="line")
    return graph


def test_nodes_have_parent_and_root(graph: NodeGraph) -> None:
    nodes = graph.nodes("word")
    assert texts(nodes) == ["a", "b", "c", "d", "a", "e", "f", "g"]
    parents = [node.parent for node in nodes]
    assert [p.text for p in parents if p] == ["a b", "a b", "c\nd", "c\nd", "a", *["e f\ng"] * 3]
    assert {p.group for p in parents if p} == {"paragraph"}
    assert [node.root.id for node in nodes] == ["1"] * 5 + ["2"] * 3
    (first, _) = graph.nodes("ROOT")
    assert (first.parent, first.root) == (None, first)
    assert first.children.keys() == {"paragraph"}


def test_children_are_keyed_by_built_group(graph: NodeGraph) -> None:
    first = graph.node("1")
    assert first.children == {}
    graph.nodes("word")
    graph.nodes("line")
    children = first.children
    assert {group: texts(nodes) for group, nodes in children.items()} == {
        "paragraph": ["a b", "c\nd", "a"],
        "line": ["a b. c", "d. a"],
    }
    paragraph = children["paragraph"][1]
    assert {group: texts(nodes) for group, nodes in paragraph.children.items()} == {
        "word": ["c", "d"]
    }
    assert paragraph.children["word"][0].children == {}
    assert texts(children["line"][0].children.get("upper", [])) == []


@pytest.mark.parametrize(
    ("start", "position", "group", "expected"),
    [
        ("word", 3, "paragraph", ["c\nd"]),  # up
        ("word", 3, "ROOT", ["a b. c\nd. a"]),
        ("ROOT", 0, "word", ["a", "b", "c", "d", "a"]),  # down
        ("paragraph", 1, "word", ["c", "d"]),
        ("ROOT", 1, "upper", ["E F", "G"]),
        ("word", 1, "line", ["a b. c", "d. a"]),  # across, through the common ancestor
        ("word", 1, "upper", ["A B. C", "D. A"]),
        ("upper", 0, "word", ["a", "b", "c", "d", "a"]),
        ("word", 4, "word", ["a"]),
    ],
)
def test_find_returns_relatives_in_each_direction(
    graph: NodeGraph, start: str, position: int, group: str, expected: list[str]
) -> None:
    assert texts(graph.find(group)(graph.nodes(start)[position])) == expected


def test_find_returns_unique_nodes_in_document_order(graph: NodeGraph) -> None:
    words = graph.nodes("word")
    assert texts(graph.find("paragraph")(reversed(words))) == ["a b", "c\nd", "a", "e f\ng"]
    assert graph.find("word")([words[7], words[0], words[7]]) == [words[0], words[7]]
    assert texts(graph.find("ROOT")([words[7], words[0]])) == ["a b. c\nd. a", "e f\ng"]


def test_find_accepts_retrieval_results(graph: NodeGraph) -> None:
    @dataclass
    class Hit:
        node: Node
        score: float

    words = graph.nodes("word")
    hits = [Hit(words[2], 0.5), Hit(words[0], 0.4)]
    assert texts(graph.find("paragraph")(hits)) == ["a b", "c\nd"]
    assert texts(graph.find("paragraph")(hits[0])) == ["c\nd"]
    assert graph.find("paragraph")([]) == []


def test_find_rejects_foreign_items(graph: NodeGraph) -> None:
    other = NodeGraph(progress=False)
    other.add(Document("a b. c\nd. a", id="1"))
    stranger = other.node("1")
    find = graph.find("word")
    with pytest.raises(ValueError, match="is not a node of this graph"):
        find(stranger)
    with pytest.raises(ValueError, match="is not a node of this graph"):
        find(Node("loose"))
    with pytest.raises(TypeError, match="items must be nodes or retrieval results, got 'a b'"):
        find("a b")
    with pytest.raises(TypeError, match="got 3"):
        find([graph.node("1"), 3])
    with pytest.raises(UnknownGroupError, match="unknown group 'wrod', registered groups: 'word'"):
        graph.find("wrod")


@pytest.mark.parametrize("gone", ["removed", "changed"])
def test_removed_node_raises_lookup_error(graph: NodeGraph, gone: str) -> None:
    graph.nodes("upper")
    word = graph.nodes("word")[1]
    paragraph = word.parent
    assert paragraph is not None
    if gone == "removed":
        graph.remove("1")
    else:
        graph.add(Document("other", id="1"))
        graph.nodes("word")
    uses = [lambda: word.parent, lambda: paragraph.children]
    uses += [lambda: graph.find("word")(word), lambda: graph.find("ROOT")(word)]
    for use in uses if gone == "changed" else [*uses, lambda: word.root]:
        with pytest.raises(LookupError, match="it may have been removed or changed"):
            use()
    assert word.text == "b"


def test_node_without_graph_has_no_relatives() -> None:
    node = Node("loose")
    for kin in ("root", "children"):
        with pytest.raises(ValueError, match="has no graph, so it has no relatives"):
            getattr(node, kin)
    assert node.parent is None
    assert node != Node("loose")
    assert len({node, node, Node("loose")}) == 2


def test_neighbors_cross_parents_within_the_document(tmp_path: Path) -> None:
    for store in (None, tmp_path / "graph.db"):
        with NodeGraph(store=store, progress=False) as graph:
            graph.add([Document("a b\nc", id="1"), Document("d", id="2")])
            graph.create_node_group("line", str.splitlines)
            graph.create_node_group("word", str.split, parent="line")
            graph.create_node_group("all", lambda nodes: [n.text for n in nodes], scope="group")
            pairs = [graph.neighbors(node) for node in graph.nodes("word")]
            shown = [tuple(n and n.text for n in pair) for pair in pairs]
            assert shown == [(None, "b"), ("a", "c"), ("b", None), (None, None)]
            assert graph.neighbors(graph.node("1")) == (None, None)
            assert [graph.neighbors(n) for n in graph.nodes("all")] == [(None, None)] * 2
            word = graph.nodes("word")[1]
            graph.add(Document("new a b c", id="1"))
            graph.build("word")
            assert [n and n.text for n in graph.neighbors(word)] == ["a", "c"]
            graph.remove("1")
            with pytest.raises(LookupError, match="removed or changed"):
                graph.neighbors(word)
