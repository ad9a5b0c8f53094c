"""Retrievers that convert the hits of another retriever."""

from collections.abc import Sequence

from support.composite_graphs import pick, words
from support.fixed_retriever import FixedRetriever, fixed, scored, texts

from nodekin.retrievers import ScoredNode, trace
from nodekin.retrievers.composite.postprocessing import PostprocessRetriever
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
