"""HyDE: the search of imagined passages."""

import asyncio

import pytest

from nodekin.retrievers import Retriever
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


def test_filters_top_k_and_blank_queries_work(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "Tea.")
    assert len(retriever.retrieve("nile", top_k=2)) == 2
    assert retriever.retrieve("nile", filters={"lang": "zh"}) == []
    assert retriever.retrieve(" ") == [] == asyncio.run(retriever.aretrieve(" "))
