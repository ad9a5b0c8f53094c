"""Retrievers that convert the hits of another retriever."""

from collections.abc import Sequence

import pytest
from support.composite_graphs import pick, words
from support.fixed_retriever import FixedRetriever, fixed, scored, texts

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode, trace
from nodekin.retrievers.composite.postprocessing import (
    PostprocessRetriever,
    joined_node,
    merge_hits,
    span_node,
)
from nodekin.retrievers.retrieval_conditions import HitConditions


class Reversed(PostprocessRetriever):
    name = "reverse"

    def postprocess(
        self, hits: list[ScoredNode], limit: int | None, conditions: HitConditions
    ) -> list[ScoredNode]:
        return hits[::-1][:limit]


class Batching(FixedRetriever):
    """A retriever that answers queries in batches only."""

    def batch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: object = None
    ) -> list[list[ScoredNode]]:
        self.calls.append((" + ".join(queries), top_k, filters))
        return [self.results[:top_k] for _ in queries]

    async def abatch(
        self, queries: Sequence[str], *, top_k: int | None = None, filters: object = None
    ) -> list[list[ScoredNode]]:
        return self.batch(queries, top_k=top_k, filters=filters)


async def test_postprocess_results_are_equal_for_all_calls() -> None:
    graph = words("a b c")
    inner = fixed(pick(graph, "a,b,c"))
    retriever = Reversed(inner, top_k=2)
    expected = inner.results[::-1][:2]
    assert retriever.retrieve("q") == await retriever.aretrieve("q") == expected
    assert retriever.batch(["q", ""]) == await retriever.abatch(["q", ""]) == [expected, []]
    assert retriever.batch([]) == await retriever.abatch([]) == []
    assert set(inner.top_ks) == {8}
    retriever.retrieve("q", filters={"number": 0})
    assert inner.calls[-1] == ("q", 8, {"number": 0})


async def test_batch_queries_inner_retriever_once() -> None:
    graph = words("a b c")
    inner = Batching(scored(pick(graph, "a,b")))
    retriever = Reversed(inner)
    with trace() as traced:
        assert [texts(results) for results in retriever.batch(["p", "q"])] == [["b", "a"]] * 2
    assert await retriever.abatch(["p", "q"]) == retriever.batch(["p", "q"])
    assert {query for query, _, _ in inner.calls} == {"p + q"}
    (span,) = traced.children
    assert span.name == "reverse"
    assert span.attributes == {"query": "2 queries", "hits": 4, "results": 4}


def test_postprocess_with_invalid_argument_raises() -> None:
    retriever = Reversed(fixed([]))
    with pytest.raises(TypeError, match="batch takes a list of queries"):
        retriever.batch("q")
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        retriever.retrieve("q", top_k=0)
    with pytest.raises(TypeError, match="inner must be an object with retrieve"):
        Reversed("bm25")  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        PostprocessRetriever(fixed([])).retrieve("q")


def test_merge_hits_keeps_best_score_and_evidence() -> None:
    graph = words("a b")
    a, b = scored(pick(graph, "a,b"), [1.0, 3.0])
    merged = merge_hits(graph.node("d0"), [a, b, a])
    assert (merged.score, merged.evidence) == (3.0, (*a.evidence, *b.evidence))


def test_span_node_covers_first_to_last_node() -> None:
    graph = words("a b c d")
    a, c = pick(graph, "a,c")
    text = graph.node("d0").text
    node = span_node([a, c], c, text)
    assert node is not None
    assert (node.text, node.start, node.end, node.id) == ("a b c", 0, 5, f"{a.id}..{c.id}")
    assert span_node([c], c, text) is c
    assert span_node([c, a], c, text) is None  # out of order
    assert span_node([a, Node("x", start=2, end=3)], a, text) is None  # not a span of the document
    assert joined_node([a, c], c).text == "a\nc"
