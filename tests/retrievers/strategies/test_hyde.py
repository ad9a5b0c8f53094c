"""Imagined passages: fused, or the mean of their vectors."""

import asyncio
from typing import Any

import numpy as np
import pytest

from nodekin.retrievers import FusionRetriever, Retriever, StrategySettings
from nodekin.retrievers.strategies.hyde import HyDERetriever


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("include_query", [True, False])
def test_the_mean_of_the_vectors_is_searched_for(
    embedded: Retriever, vectors: Any, weight: float, include_query: bool
) -> None:
    told = iter(["Tea tea drink", "Nile drink", "Tea tea drink", "Nile drink"])
    retriever = HyDERetriever(
        embedded,
        lambda prompt: next(told),
        count=2,
        settings=StrategySettings(include_query=include_query),
        query_weight=weight,
    )

    def unit(text: str) -> Any:
        (vector,) = vectors([text])
        return vector / np.linalg.norm(vector)

    mean = unit("Tea tea drink") + unit("Nile drink")
    if include_query:
        mean = mean + weight * unit("nile")
    mean /= np.linalg.norm(mean)
    for results in (retriever.retrieve("nile"), asyncio.run(retriever.aretrieve("nile"))):
        scores = {result.node.text: result.score for result in results}
        expected = {text: float(unit(text) @ mean) for text in scores}
        assert scores == pytest.approx(expected, abs=2e-6)
        assert len(scores) == 4
        assert [r.score for r in results] == sorted(scores.values(), reverse=True)
        (match,) = results[0].evidence
        assert {*match.query.split("\n")} == {"Tea tea drink", "Nile drink"}
        assert [(f.query, f.strategy) for f in match.variants] == [("nile", "hyde")]


def test_a_failing_model_leaves_the_plain_search(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "")
    found, plain = retriever.retrieve("nile"), embedded.retrieve("nile")
    assert [(r.node, r.score) for r in found] == [(r.node, r.score) for r in plain]
    assert "hyde failed" in found[0].explain()
    assert retriever.batch([" ", "nile"]) == [[], found]


@pytest.mark.parametrize(
    "garbage", ['{"a": [1,2', '{"a": 1}', "42", "https://example.org/nile", '{"error": "busy"}']
)
def test_garbage_leaves_the_plain_search(embedded: Retriever, garbage: str) -> None:
    for inner in (embedded, FusionRetriever([embedded])):
        found = HyDERetriever(inner, lambda prompt: garbage).retrieve("nile")
        assert [(r.node, r.score) for r in found] == [
            (r.node, r.score) for r in inner.retrieve("nile")
        ]


def test_filters_top_k_and_blanks(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "Tea.")
    assert len(retriever.retrieve("nile", top_k=2)) == 2
    assert retriever.retrieve("nile", filters={"lang": "zh"}) == []
    assert retriever.retrieve(" ") == [] == asyncio.run(retriever.aretrieve(" "))


def test_other_retrievers_are_asked_the_passages(plain: Retriever, embedded: Retriever) -> None:
    passage = "The Amazon is about 7,000 km long."
    retriever = HyDERetriever(plain, lambda prompt: passage)
    assert not retriever.mean
    results = retriever.retrieve("tea")
    assert {result.node.id for result in results} == {"tea", "amazon"}
    fusion = HyDERetriever(FusionRetriever([embedded, embedded]), lambda prompt: "Tea.")
    assert not fusion.mean
    assert fusion.retrieve("nile")
    fused = HyDERetriever(embedded, lambda prompt: "Tea.", mean=False).retrieve("nile")
    assert {match.query for result in fused for match in result.evidence} == {"nile", "Tea."}
    with pytest.raises(ValueError, match="mean=True wants a Retriever that compares embeddings"):
        HyDERetriever(plain, str.upper, mean=True)
