"""HyDE: the search of imagined passages."""

import asyncio

import pytest

from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.strategies.hyde import HyDERetriever


@pytest.mark.parametrize("include_query", [True, False])
def test_passages_and_query_are_fused(embedded: Retriever, include_query: bool) -> None:
    retriever = HyDERetriever(
        embedded,
        lambda prompt: "Tea drink.",
        include_query=include_query,
    )
    results = retriever.retrieve("nile")
    assert asyncio.run(retriever.aretrieve("nile")) == results
    queries = {match.query for result in results for match in result.evidence}
    assert queries == ({"nile", "Tea drink."} if include_query else {"Tea drink."})
    (variant,) = next(m for m in results[0].evidence if m.query == "Tea drink.").variants
    assert (variant.query, variant.strategy) == ("nile", "hyde")


def test_failed_model_keeps_the_plain_search(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "")
    found, plain = retriever.retrieve("nile"), embedded.retrieve("nile")
    assert [(r.node, r.score) for r in found] == [(r.node, r.score) for r in plain]
    assert "hyde failed" in found[0].explain()
    assert retriever.batch([" ", "nile"]) == [[], found]


@pytest.mark.parametrize(
    "garbage", ['{"a": [1,2', '{"a": 1}', "42", "https://example.org/nile", '{"error": "busy"}']
)
def test_garbage_keeps_the_plain_search(embedded: Retriever, garbage: str) -> None:
    for inner in (embedded, FusionRetriever([embedded])):
        found = HyDERetriever(inner, lambda prompt: garbage).retrieve("nile")
        assert [(r.node, r.score) for r in found] == [
            (r.node, r.score) for r in inner.retrieve("nile")
        ]


def test_filters_top_k_and_blank_queries_work(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "Tea.")
    assert len(retriever.retrieve("nile", top_k=2)) == 2
    assert retriever.retrieve("nile", filters={"lang": "zh"}) == []
    assert retriever.retrieve(" ") == [] == asyncio.run(retriever.aretrieve(" "))
