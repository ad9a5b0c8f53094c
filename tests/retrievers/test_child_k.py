"""How many hits are looked at before lifting."""

import asyncio

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
)
from nodekin.retrievers.base_retriever import child_k_override

LINES = {
    "many": "tea\ntea\ntea\ntea cup",
    "one": "tea and a long line about something else\nrivers",
    "茶": "tea 绿茶\n红茶",
}


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=name) for name, text in LINES.items()])
    graph.create_node_group("line", str.splitlines)
    return graph


def found(results):
    return [(each.node.id, len(each.evidence)) for each in results]


def test_without_it_hits_are_read_until_there_are_enough_targets(graph):
    retriever = Retriever(graph, "line", target="ROOT")
    assert found(retriever.retrieve("tea", top_k=1)) == [("many", 1)]
    assert [name for name, _ in found(retriever.retrieve("tea"))] == ["many", "茶", "one"]


@pytest.mark.parametrize(
    ("child_k", "expected"),
    [
        (1, [("many", 1)]),
        (3, [("many", 3)]),
        (5, [("many", 4), ("茶", 1)]),
        (99, [("many", 4), ("茶", 1), ("one", 1)]),
    ],
)
def test_so_many_hits_are_looked_at(graph, child_k, expected):
    retriever = Retriever(graph, "line", target="ROOT", child_k=child_k)
    assert found(retriever.retrieve("tea")) == expected
    assert found(retriever.retrieve("tea", top_k=1)) == expected[:1]


def test_sums_and_means_are_over_them(graph):
    single = Retriever(graph, "line", "bm25").retrieve("tea")[0].score
    for lift, expected in (("sum", 3 * single), ("mean", single)):
        retriever = Retriever(graph, "line", target="ROOT", lift=lift, child_k=3)
        (result,) = retriever.retrieve("tea")
        assert result.score == pytest.approx(expected)


def test_without_lifting_it_has_no_meaning(graph):
    retriever = Retriever(graph, "line", child_k=1)
    assert len(retriever.retrieve("tea", top_k=4)) == 4


def test_a_hit_may_have_several_targets(graph):
    retriever = Retriever(graph, "ROOT", target="line", child_k=1)
    assert len(retriever.retrieve("cup", top_k=9)) == 4
    assert len(retriever.retrieve("cup", top_k=3)) == 3


def test_several_graphs_are_one(graph):
    other = NodeGraph(progress=False)
    other.add([Document("tea\ntea", id="other")])
    other.create_node_group("line", str.splitlines)
    retriever = Retriever([graph, other], "line", target="ROOT", child_k=4)
    results = retriever.retrieve("tea")
    assert sum(len(each.evidence) for each in results) == 4
    one_by_one = [each.score for each in Retriever([graph, other], "line").retrieve("tea", top_k=4)]
    assert sorted((e.score for r in results for e in r.evidence), reverse=True) == one_by_one


def test_each_embedding_looks_at_so_many():
    graph = NodeGraph(
        embed={
            "a": lambda texts: [[1.0, len(text)] for text in texts],
            "b": lambda texts: [[len(text), 1.0] for text in texts],
        },
        progress=False,
    )
    graph.add([Document(text, id=name) for name, text in LINES.items()])
    graph.create_node_group("line", str.splitlines)
    retriever = Retriever(graph, "line", "cosine", target="ROOT", lift="mean", child_k=2)
    assert sum(len(each.evidence) for each in retriever.retrieve("tea")) == 4


def test_recursive_retrieval_takes_it_too(graph):
    retriever = RecursiveRetriever(graph, ["line"], "ROOT", child_k=3)
    assert found(retriever.retrieve("tea")) == [("many", 3)]


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: inner,
        lambda inner: FusionRetriever([inner, inner], "concat"),
        lambda inner: RerankRetriever(
            FusionRetriever([inner, inner]),
            "ModuleReranker",
            model=lambda query, texts: [1.0] * len(texts),
        ),
    ],
    ids=["alone", "fused", "reranked"],
)
def test_a_block_says_it_for_all_within(graph, make):
    retriever = make(Retriever(graph, "line", target="ROOT", child_k=99))
    with child_k_override(3):
        assert [each.node.id for each in retriever.retrieve("tea")] == ["many"]
        assert [each.node.id for each in asyncio.run(retriever.aretrieve("tea"))] == ["many"]
        with child_k_override(None):
            assert len(retriever.retrieve("tea")) == 1
    assert len(retriever.retrieve("tea")) == 3


def test_what_merges_asks_for_so_many_hits(graph):
    retriever = AutoMergeRetriever(Retriever(graph, "line"), ratio=0.9)
    with child_k_override(3):
        assert [each.node.group for each in retriever.retrieve("tea")] == ["line"] * 3
    with child_k_override(4):
        assert [each.node.id for each in retriever.retrieve("tea")] == ["many"]


@pytest.mark.parametrize(
    ("child_k", "error", "told"),
    [(0, ValueError, "1 or more, not 0"), ("3", TypeError, "'3'"), (True, TypeError, "True")],
)
def test_what_is_no_number_is_refused(graph, child_k, error, told):
    with pytest.raises(error, match=told):
        Retriever(graph, "line", child_k=child_k)
    with pytest.raises(error, match=told), child_k_override(child_k):
        pass
