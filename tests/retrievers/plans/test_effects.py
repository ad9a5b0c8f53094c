"""Candidates are fetched until ``top_k`` results pass a filter, a reranker or a window merge."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import (
    FusionRetriever,
    KeywordFilter,
    Reranker,
    RerankRetriever,
    Retriever,
    ScoredNode,
    WindowRetriever,
)
from nodekin.retrievers.results import Results


@pytest.fixture(scope="module")
def teas() -> Retriever:
    """Return a retriever that finds 60 green teas, then 60 black teas, then 60 rice teas."""
    graph = NodeGraph(progress=False)
    graph.add([Document(f"green {'tea ' * 9}number {n}", id=f"green{n}") for n in range(60)])
    graph.add([Document(f"black {'tea ' * 3}number {n}", id=f"black{n}") for n in range(60)])
    graph.add([Document(f"rice and tea, number {n}, and a cup", id=f"rice{n}") for n in range(60)])
    return Retriever(graph, "ROOT")


def everywhere(retriever: Any, query: str = "tea", **options: Any) -> list[ScoredNode]:
    """Return the results, which are equal sync, async and in batches."""
    results: list[ScoredNode] = retriever.retrieve(query, **options)
    assert asyncio.run(retriever.aretrieve(query, **options)) == results
    assert retriever.batch([query, "cup", query], **options)[::2] == [results] * 2
    assert asyncio.run(retriever.abatch([query, "cup"], **options))[0] == results
    return results


@pytest.mark.parametrize(
    "keywords",
    [{"excluded": ["green"]}, {"required": ["rice"]}, {"required": "rice", "excluded": "9"}],
)
def test_keyword_filter_fetches_until_top_k_pass(teas: Retriever, keywords: dict[str, Any]) -> None:
    keep = KeywordFilter(**keywords)
    passing = keep.rerank(teas.retrieve("tea", top_k=180), "tea")
    assert len(passing) > 50
    for inner in (teas, FusionRetriever([teas, teas])):
        results = everywhere(RerankRetriever(inner, keep), top_k=6)
        assert len(results) == 6
    assert everywhere(RerankRetriever(teas, keep), top_k=6) == passing[:6]
    everything = everywhere(RerankRetriever(teas, keep), top_k=100)
    assert everything == passing[:100]


def test_filter_without_matches_ends(teas: Retriever) -> None:
    assert everywhere(RerankRetriever(teas, KeywordFilter(required="coffee"))) == []
    assert everywhere(RerankRetriever(teas, KeywordFilter(required="tea")), "coffee") == []


def test_fetching_stops_at_limits_of_reranker(teas: Retriever) -> None:
    calls: list[int] = []

    class Counted(KeywordFilter):
        def rerank(self, results: Sequence[ScoredNode], query: str, **options: Any) -> Results:
            calls.append(len(results))
            return super().rerank(results, query, **options)

    two = Reranker(Counted(required="green"), top_k=2)
    assert len(RerankRetriever(teas, two).retrieve("tea")) == 2
    assert calls == [24]
    calls.clear()
    best = teas.retrieve("tea")[0].score
    cut = Reranker(Counted(excluded="rice"), min_score=best * 2)  # no later score is higher
    assert RerankRetriever(teas, cut).retrieve("tea") == []
    assert calls == [24]


class Paid:
    """A reranker with a model. Only rice teas score above 0."""

    name = "paid"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        self.calls.append(len(results))
        return [ScoredNode(r.node, float("rice" in r.node.text), r.evidence) for r in results]


def test_model_reranker_runs_once(teas: Retriever) -> None:
    paid = Paid()
    retriever = RerankRetriever(teas, Reranker(paid, min_score=0.5))
    assert retriever.retrieve("tea") == []
    assert paid.calls == [24]


def test_max_fetch_allows_more_reranked_candidates(teas: Retriever) -> None:
    paid = Paid()
    retriever = RerankRetriever(teas, Reranker(paid, min_score=0.5), max_fetch_k=170)
    assert len(retriever.retrieve("tea")) == 6
    assert paid.calls == [24, 96, 170]
    assert len(everywhere(retriever)) == 6


def test_merged_windows_are_replaced() -> None:
    graph = NodeGraph(progress=False)
    tea = " ".join(f"Tea is a drink, {n}." for n in range(40))
    graph.add([Document(tea + f" And document {n}.", id=str(n)) for n in range(12)])
    graph.create_node_group("sentence", split_sentences)
    sentences = Retriever(graph, "sentence")
    windows = WindowRetriever(sentences, 5, 5, top_k=6)
    results = everywhere(windows)
    assert len(results) == 6
    assert len({result.node.document_id for result in results}) == 6
    assert len(everywhere(windows, top_k=20)) == 12  # exhausted
