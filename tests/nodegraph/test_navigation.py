"""Parents, children, roots, and the way to the kin in any group."""

import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, UnknownGroupError

pytestmark = pytest.mark.usefixtures("every_store")


def texts(nodes: list[Node]) -> list[str]:
    return [node.text for node in nodes]


@pytest.fixture
def graph() -> NodeGraph:
    """Documents of paragraphs of words; beside them, lines of letters' twins."""
    graph = NodeGraph(progress=False)
    graph.add([Document("a b. c\nd. a", id="1"), Document("e f\ng", id="2")])
    graph.create_node_group("paragraph", lambda text: text.split(". "))
    graph.create_node_group("word", str.split, parent="paragraph")
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("upper", str.upper, parent="line")
    return graph


def test_parent_and_root(graph: NodeGraph) -> None:
    nodes = graph.nodes("word")
    assert texts(nodes) == ["a", "b", "c", "d", "a", "e", "f", "g"]
    parents = [node.parent for node in nodes]
    assert [p.text for p in parents if p] == ["a b", "a b", "c\nd", "c\nd", "a", *["e f\ng"] * 3]
    assert {p.group for p in parents if p} == {"paragraph"}
    assert [node.root.id for node in nodes] == ["1"] * 5 + ["2"] * 3
    (first, _) = graph.nodes("ROOT")
    assert (first.parent, first.root) == (None, first)
    assert first.children.keys() == {"paragraph"}


def test_children_are_by_group_of_the_groups_that_were_needed(graph: NodeGraph) -> None:
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


def test_children_are_those_of_now(graph: NodeGraph) -> None:
    graph.nodes("line")
    graph.add(Document("new", id="1"))
    assert texts(graph.node("1").children["line"]) == ["new"]


def test_a_node_without_children_has_an_empty_list(graph: NodeGraph) -> None:
    graph.nodes("line")
    graph.add(Document(" ", id="blank"))
    assert graph.node("blank").children == {"line": []}


def test_find_up(graph: NodeGraph) -> None:
    words = graph.nodes("word")
    assert texts(graph.find("paragraph")(words[3])) == ["c\nd"]
    assert texts(graph.find("ROOT")(words[3])) == ["a b. c\nd. a"]


def test_find_down(graph: NodeGraph) -> None:
    first, second = graph.nodes("ROOT")
    assert texts(graph.find("word")(first)) == ["a", "b", "c", "d", "a"]
    assert texts(graph.find("word")(graph.nodes("paragraph")[1])) == ["c", "d"]
    assert texts(graph.find("upper")([second])) == ["E F", "G"]


def test_find_across_goes_through_the_common_ancestor(graph: NodeGraph) -> None:
    b = graph.nodes("word")[1]
    assert texts(graph.find("line")(b)) == ["a b. c", "d. a"]
    assert texts(graph.find("upper")(b)) == ["A B. C", "D. A"]
    (upper, *_) = graph.nodes("upper")
    assert texts(graph.find("word")(upper)) == ["a", "b", "c", "d", "a"]


def test_find_in_its_own_group_is_itself(graph: NodeGraph) -> None:
    words = graph.nodes("word")
    assert graph.find("word")(words[4]) == [words[4]]


def test_find_gives_each_once_in_document_order(graph: NodeGraph) -> None:
    words = graph.nodes("word")
    assert texts(graph.find("paragraph")(reversed(words))) == ["a b", "c\nd", "a", "e f\ng"]
    assert graph.find("word")([words[7], words[0], words[7]]) == [words[0], words[7]]
    assert texts(graph.find("ROOT")([words[7], words[0]])) == ["a b. c\nd. a", "e f\ng"]


def test_find_takes_what_holds_a_node(graph: NodeGraph) -> None:
    @dataclass
    class Hit:
        node: Node
        score: float

    words = graph.nodes("word")
    hits = [Hit(words[2], 0.5), Hit(words[0], 0.4)]
    assert texts(graph.find("paragraph")(hits)) == ["a b", "c\nd"]
    assert texts(graph.find("paragraph")(hits[0])) == ["c\nd"]
    assert graph.find("paragraph")([]) == []


def test_find_builds_what_it_needs_and_only_that(graph: NodeGraph) -> None:
    find = graph.find("upper")
    assert not graph.groups["upper"].built
    assert texts(find(graph.node("2"))) == ["E F", "G"]
    assert {name for name, each in graph.groups.items() if each.built} == {"ROOT", "line", "upper"}


def test_find_sees_what_came_later(graph: NodeGraph) -> None:
    find = graph.find("word")
    find(graph.node("2"))
    graph.add(Document("x y", id="3"))
    assert texts(find(graph.node("3"))) == ["x", "y"]


def test_find_refuses_what_is_no_node_of_it(graph: NodeGraph) -> None:
    other = NodeGraph(progress=False)
    other.add(Document("a b. c\nd. a", id="1"))
    stranger = other.node("1")
    find = graph.find("word")
    with pytest.raises(ValueError, match="is not a node of this graph"):
        find(stranger)
    with pytest.raises(ValueError, match="is not a node of this graph"):
        find(Node("loose"))
    with pytest.raises(TypeError, match="find takes nodes or retrieval results, not 'a b'"):
        find("a b")
    with pytest.raises(TypeError, match="not 3"):
        find([graph.node("1"), 3])
    with pytest.raises(UnknownGroupError, match="no node group 'wrod'; the graph has 'word'"):
        graph.find("wrod")


@pytest.mark.parametrize("gone", ["removed", "changed"])
def test_a_node_that_is_gone_says_so(graph: NodeGraph, gone: str) -> None:
    graph.nodes("upper")
    word = graph.nodes("word")[1]
    paragraph = word.parent
    assert paragraph is not None
    if gone == "removed":
        graph.remove("1")
    else:
        graph.add(Document("other", id="1"))
        graph.nodes("word")
    message = "it may have been removed or changed"
    with pytest.raises(LookupError, match=message):
        _ = word.parent
    with pytest.raises(LookupError, match=message):
        _ = paragraph.children
    for group in ("word", "paragraph", "upper", "ROOT"):
        with pytest.raises(LookupError, match=message):
            graph.find(group)(word)
    if gone == "removed":
        with pytest.raises(LookupError, match=message):
            _ = word.root
    assert word.text == "b"  # what it holds, it keeps


def test_a_node_that_moved_finds_its_way(graph: NodeGraph) -> None:
    word = graph.nodes("word")[1]
    graph.add(Document("new. a b. c", id="1"))
    assert texts(graph.find("paragraph")(word)) == ["a b"]
    assert texts(graph.find("ROOT")(word)) == ["new. a b. c"]


def test_a_loose_node_has_no_kin() -> None:
    node = Node("loose")
    for kin in ("root", "children"):
        with pytest.raises(ValueError, match="belongs to no graph yet, so it has no kin"):
            getattr(node, kin)
    assert node.parent is None
    assert node != Node("loose")  # without ids only the same is the same
    assert len({node, node, Node("loose")}) == 2


def test_a_node_travels_alone(graph: NodeGraph) -> None:
    word = graph.nodes("word")[1]
    alone = pickle.loads(pickle.dumps(word))
    assert alone == word
    assert (alone.text, alone.start, alone.metadata) == ("b", 2, {})
    with pytest.raises(ValueError, match="belongs to no graph yet"):
        _ = alone.parent


def test_neighbours_stand_in_the_group_and_document_across_parents(tmp_path: Path) -> None:
    for store in (None, tmp_path / "graph.db"):
        with NodeGraph(store=store, progress=False) as graph:
            graph.add([Document("a b\nc", id="1"), Document("d", id="2")])
            graph.create_node_group("line", str.splitlines)
            graph.create_node_group("word", str.split, parent="line")
            graph.create_node_group("all", lambda nodes: [n.text for n in nodes], scope="group")
            pairs = [graph.neighbours(node) for node in graph.nodes("word")]
            shown = [tuple(n and n.text for n in pair) for pair in pairs]
            assert shown == [(None, "b"), ("a", "c"), ("b", None), (None, None)]
            assert graph.neighbours(graph.node("1")) == (None, None)
            assert [graph.neighbours(n) for n in graph.nodes("all")] == [(None, None)] * 2
            word = graph.nodes("word")[1]
            graph.add(Document("new a b c", id="1"))
            graph.build("word")
            assert [n and n.text for n in graph.neighbours(word)] == ["a", "c"]
            graph.remove("1")
            with pytest.raises(LookupError, match="removed or changed"):
                graph.neighbours(word)
