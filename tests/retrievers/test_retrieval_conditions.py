"""Conditions of different owners are added, and hold for everything that is returned."""

from typing import Any

import pytest
from support.fixed_retriever import texts

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.node import LinkedText
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    LinkRetriever,
    Retriever,
    WindowRetriever,
)


def graph_of(**documents: list[tuple[str, dict[str, Any]]]) -> NodeGraph:
    """Return a graph of documents with metadata on their lines."""
    graph = NodeGraph(progress=False)

    def lines(node: Node) -> list[Node]:
        parts = documents[node.id]
        starts = [node.text.index(text) for text, _ in parts]
        return [
            Node(text, fields, start=start, end=start + len(text))
            for (text, fields), start in zip(parts, starts, strict=True)
        ]

    graph.create_node_group("line", lines, trans_node=True)
    for name, parts in documents.items():
        graph.add(Document("\n".join(text for text, _ in parts), {"name": name}, id=name))
    return graph


@pytest.fixture
def book() -> NodeGraph:
    return graph_of(
        book=[
            ("Tea is green.", {"heading": "Tea"}),
            ("Tea is black.", {"heading": "Tea"}),
            ("Tea and milk.", {"heading": "Milk"}),
        ],
        other=[("Tea of others.", {"heading": "Others"})],
    )


# Which node is checked


def test_child_field_can_meet_filter_of_document(book: NodeGraph) -> None:
    retriever = Retriever(book, "line", target="ROOT", filters={"heading": "Milk"})
    assert [result.node.id for result in retriever("tea")] == ["book"]


def test_field_of_target_overrides_field_of_hit() -> None:
    graph = graph_of(mixed=[("Tea is ours.", {"name": "ours"}), ("Tea is theirs.", {})])
    lines = Retriever(graph, "line", filters={"name": "ours"})
    assert texts(lines("tea")) == ["Tea is ours."]
    # The document has another name.
    assert Retriever(graph, "line", target="ROOT", filters={"name": "ours"})("tea") == []
    # If lifted downwards, the fields of the children count.
    down = Retriever(graph, "ROOT", target="line", filters={"name": "mixed"})
    assert texts(down("tea")) == ["Tea is theirs."]


@pytest.mark.parametrize("lift", ["max", "sum", "mean"])
def test_top_k_is_filled_despite_excluded_targets(lift: Any) -> None:
    names = {f"d{i}": [(f"Tea {i}.", {"name": "ours"} if i < 5 else {})] for i in range(8)}
    graph = graph_of(**names)
    filters = {"name": ["ours", "d5", "d6", "d7"]}
    retriever = Retriever(graph, "line", target="ROOT", lift=lift, top_k=3, filters=filters)
    assert {result.node.id for result in retriever("tea")} == {"d5", "d6", "d7"}


def test_linked_node_requires_matching_linked_documents() -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(f"Tea of {t}.", {"tenant": t}, id=t) for t in "ab"])

    def clusters(nodes: list[Node]) -> list[LinkedText]:
        return [LinkedText("Ours. Tea.", nodes[:1]), LinkedText("Of both. Tea.", nodes)]

    graph.create_node_group("cluster", clusters, scope="group", trans_node=True)
    graph.create_node_group(
        "part", lambda text: [Node(text.split(". ")[1], {"tenant": "a"})], parent="cluster"
    )
    retriever = Retriever(graph, "part", target="cluster")
    assert sorted(texts(retriever("tea"))) == ["Of both. Tea.", "Ours. Tea."]
    assert texts(retriever("tea", filters={"tenant": "a"})) == ["Ours. Tea."]
    assert texts(AutoMergeRetriever(retriever)("tea", filters={"tenant": "a"})) == ["Ours. Tea."]


# What widens


def test_window_ends_before_filtered_neighbor(book: NodeGraph) -> None:
    lines = Retriever(book, "line", top_k=1)
    (plain,) = WindowRetriever(lines)("black")
    assert plain.node.text == "Tea is green.\nTea is black.\nTea and milk."
    (window,) = WindowRetriever(lines)("black", filters={"heading": "Tea"})
    assert window.node.text == "Tea is green.\nTea is black."
    own = Retriever(book, "line", top_k=1, filters={"heading": "Tea"})
    (window,) = WindowRetriever(own)("black")
    assert window.node.text == "Tea is green.\nTea is black."


def test_parent_with_filtered_child_is_not_merged(book: NodeGraph) -> None:
    lines = Retriever(book, "line")
    merging = AutoMergeRetriever(lines)
    assert "book" in [result.node.id for result in merging("tea")]
    kept = merging("tea", filters={"heading": "Tea"})
    assert {result.node.group for result in kept} == {"line"}
    all_of_them = merging("tea", filters={"heading": ["Tea", "Milk"]})
    assert [result.node.id for result in all_of_them] == ["book"]
    own = AutoMergeRetriever(Retriever(book, "line", filters={"heading": "Tea"}))
    assert {result.node.group for result in own("tea")} == {"line"}


# Links


@pytest.fixture
def linked() -> NodeGraph:
    graph = NodeGraph(progress=False)
    names = ("a-tea", "b-tea", "a-milk", "b-milk")
    graph.add([Document(f"About {n[2:]}.", {"tenant": n[0]}, id=n) for n in names])
    for source in ("a-tea", "b-tea"):
        for target in ("a-milk", "b-milk"):
            graph.link(source, target)
    return graph


def test_linked_passages_meet_conditions_of_all_hits(linked: NodeGraph) -> None:
    ours = Retriever(linked, "ROOT", filters={"tenant": "a"})
    for inner in (ours, FusionRetriever([ours]), WindowRetriever(FusionRetriever([ours]))):
        results = LinkRetriever(inner, linked)("tea")
        assert {result.node.id for result in results} == {"a-tea", "a-milk"}
    both = FusionRetriever([ours, Retriever(linked, "ROOT", filters={"tenant": "b"})])
    results = LinkRetriever(both, linked)("tea")
    assert {r.node.id for r in results} == {"a-tea", "b-tea"}


# Replacing


def test_with_filters_replaces_filters_in_copy(book: NodeGraph) -> None:
    tea = Retriever(book, "line", filters={"heading": "Tea"})
    assert tea("tea", filters={"heading": "Milk"}) == []
    milk = tea.with_filters({"heading": "Milk"})
    assert texts(milk("tea")) == ["Tea and milk."]
    assert len(tea.with_filters(None)("tea")) == 4
    assert len(tea("tea")) == 2
    with pytest.raises(ValueError, match="no value"):
        tea.with_filters({"heading": []})


# The parts


def test_evidence_contains_conditions_of_retriever_and_call(book: NodeGraph) -> None:
    retriever = Retriever(book, "line", filters={"heading": "Tea"})
    (match,) = retriever("black", filters={"name": "book"})[0].evidence
    assert match.filters == {"and": [{"heading": "Tea"}, {"name": "book"}]}
    assert Retriever(book, "line")("black")[0].evidence[0].filters is None
