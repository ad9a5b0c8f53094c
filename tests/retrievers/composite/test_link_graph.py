"""Links between passages, and the scores of linked pairs, by hand."""

import math
from typing import Any

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.node import LinkedText
from nodekin.retrievers.composite.link_graph import (
    IN_TITLE,
    UNTITLED,
    LinkGraph,
    LinkMatrix,
    LinkOptions,
    PassageLink,
)
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.similarities.bm25 import DEFAULT_ANALYZER, open_postings


@pytest.fixture
def graph() -> NodeGraph:
    """Passages a to d; a and b share an entity, b links to c."""
    graph = NodeGraph(progress=False)
    graph.add([Document(f"text {name}", id=name) for name in "abcd"])
    graph.create_node_group(
        "entity", lambda nodes: [LinkedText("E", nodes[:2], "mentions")], scope="group"
    )
    graph.link("b", "c", "cites", weight=0.5)
    return graph


def index_of(graph: NodeGraph) -> TextIndex:
    index = open_postings(graph, "ROOT", DEFAULT_ANALYZER)
    index.sync()
    return index


def link_graph(graph: NodeGraph, **options: object) -> LinkGraph:
    limits = {"max_passages_per_entity": 9, "max_passages": 9}
    limits |= {name: options.pop(name) for name in limits if name in options}
    settings = {"via": "entity", "types": None, "allowed": None, **options}
    passages = index_of(graph).passages()
    return LinkGraph(graph, "ROOT", passages, size=4, options=LinkOptions(**limits), **settings)


def strengths(matrix: LinkMatrix) -> list[dict[str, float]]:
    """Return each seed's links by passage."""
    return [
        {name: float(s) for name, s in zip(matrix.passages, row, strict=True) if s}
        for row in matrix.strengths
    ]


def test_links_and_entities_connect_passages(graph: NodeGraph) -> None:
    rarity = math.log(5 / 2) / math.log(5)
    with graph.reader.reading("ROOT", "entity"):
        matrix = link_graph(graph).connections(["a", "b"])
        (entity,) = graph.nodes("entity")
    assert matrix.passages == ["a", "b", "c"]
    (a, b) = strengths(matrix)
    assert a == {"b": pytest.approx(rarity)}
    assert b == {"a": pytest.approx(rarity), "c": 0.5}
    assert matrix.connections[matrix.strongest[1, 2]] == PassageLink("cites")
    assert matrix.connections[matrix.strongest[0, 1]] == PassageLink("mentions", entity.id)
    assert 0 < UNTITLED < 1


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({"via": None}, ["b", "c"]),
        ({"types": ("cites",)}, ["b", "c"]),
        ({"types": ("mentions",)}, ["b", "a"]),
        ({"max_passages_per_entity": 1}, ["b", "c"]),
        ({"max_passages": 2}, ["b", "c"]),
        ({"allowed": lambda passage: passage != "c"}, ["b", "a"]),
    ],
)
def test_bounds(graph: NodeGraph, options: dict[str, object], passages: list[str]) -> None:
    with graph.reader.reading("ROOT", "entity"):
        assert link_graph(graph, **options).connections(["b"]).passages == passages


def test_a_search_sees_no_entities_that_another_thread_has_read_in_part(
    graph: NodeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[LinkMatrix] = []
    ends = LinkGraph._ends

    def interrupted(self: LinkGraph, of_nodes: list[Any]) -> list[list[str]]:
        monkeypatch.undo()
        seen.append(link_graph(graph).connections(["a", "b"]))
        return ends(self, of_nodes)

    monkeypatch.setattr(LinkGraph, "_ends", interrupted)
    with graph.reader.reading("ROOT", "entity"):
        matrix = link_graph(graph).connections(["a", "b"])
    assert strengths(seen[0]) == strengths(matrix)
    assert "b" in strengths(matrix)[0]


def test_what_a_title_names_is_closer_than_what_a_text_does() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"text {name}", id=name) for name in "abcd"])
    about = {"about": ["b"], "in_titles": ["c"]}
    graph.create_node_group(
        "entity", lambda nodes: [LinkedText(Node("E", about), nodes)], scope="group"
    )
    with graph.reader.reading("ROOT", "entity"):
        from_a, from_c = strengths(link_graph(graph).connections(["a", "c"]))
    rarity = math.log(5 / 4) / math.log(5)
    shares = {"b": 1.0, "c": IN_TITLE, "d": UNTITLED}
    assert from_a == {i: pytest.approx(share * rarity) for i, share in shares.items()}
    assert from_c == {i: pytest.approx(max(IN_TITLE, shares.get(i, 0)) * rarity) for i in "abd"}


@pytest.mark.parametrize("group", ["part", "ROOT"])
def test_entities_are_read_again_where_links_have_changed(
    group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("part", lambda text: [f"part of {text}"])
    graph.add([Document(f"text {name}", id=name) for name in "abcd"])
    graph.create_node_group(
        "entity", lambda nodes: [LinkedText("E", nodes[:2])], scope="group", parent=group
    )
    a, b, c, d = (node.id for node in graph.nodes(group))
    (entity,) = graph.nodes("entity")
    read: list[str] = []
    read_entities = LinkGraph._read_entities

    def noted(self: LinkGraph, ids: list[str], entities: Any) -> None:
        read.extend(ids)
        read_entities(self, ids, entities)

    def linked_to_a() -> tuple[bool, set[str]]:
        """Return whether the entity was read, and what is linked to a."""
        read.clear()
        with graph.reader.reading(group, "entity"):
            index = open_postings(graph, group, DEFAULT_ANALYZER)
            index.sync()
            links = LinkGraph(
                graph, group, index.passages(), None, 4, "entity", None, LinkOptions()
            )
            (from_a,) = strengths(links.connections([a]))
        return bool(read), {*from_a}

    monkeypatch.setattr(LinkGraph, "_read_entities", noted)
    assert linked_to_a() == (True, {b})
    assert linked_to_a() == (False, {b})
    graph.link(c, d, "cites")
    assert linked_to_a() == (True, {b})
    graph.link(d, entity, "mentions")
    assert linked_to_a() == (True, {b, d})
    graph.link(entity, c, "mentions")
    assert linked_to_a() == (True, {b, c, d})
    graph.unlink(d, entity, "mentions")
    assert linked_to_a() == (True, {b, c})
    graph.unlink(entity, c, "mentions")
    assert linked_to_a() == (True, {b})
    assert linked_to_a() == (False, {b})
