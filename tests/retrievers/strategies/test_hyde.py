"""Imagined passages: fused, or the mean of their vectors."""

import asyncio
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Embedder, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.strategies import HyDERetriever

AXES = {"tea": 0, "nile": 1, "drink": 2}


def vectors(texts: list[str]) -> Any:
    return np.array(
        [[text.lower().count(word) for word in AXES] + [0.01] for text in texts], np.float32
    )


@pytest.fixture
def embedded() -> Retriever:
    graph = NodeGraph(embed=Embedder(vectors, name="words"), progress=False)
    graph.add(["Tea.", "The Nile.", "Drink tea.", "A drink by the Nile."])
    return Retriever(graph, "ROOT", "cosine", top_k=4)


def unit(text: str) -> Any:
    (vector,) = vectors([text])
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("include_query", [True, False])
def test_the_mean_of_the_vectors_is_searched_for(
    embedded: Retriever, weight: float, include_query: bool
) -> None:
    told = iter(["Tea tea drink", "Nile drink", "Tea tea drink", "Nile drink"])
    retriever = HyDERetriever(
        embedded,
        lambda prompt: next(told),
        count=2,
        include_query=include_query,
        query_weight=weight,
    )
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


def test_passages_are_embedded_as_passages() -> None:
    asked: list[tuple[str, list[str]]] = []

    def passages(texts: list[str]) -> Any:
        asked.append(("passages", list(texts)))
        return vectors(texts)

    def queries(texts: list[str]) -> Any:
        asked.append(("queries", list(texts)))
        return vectors(texts)

    graph = NodeGraph(embed=Embedder(passages, name="two", embed_queries=queries), progress=False)
    graph.add(["Tea.", "Nile."])
    retriever = HyDERetriever(Retriever(graph, "ROOT", "cosine"), lambda prompt: "Tea drink.")
    retriever.batch(["nile", "tea"])
    assert ("queries", ["nile", "tea"]) in asked
    assert ("passages", ["Tea drink."]) in asked


def test_a_failing_model_leaves_the_plain_search(embedded: Retriever) -> None:
    retriever = HyDERetriever(embedded, lambda prompt: "")
    found, plain = retriever.retrieve("nile"), embedded.retrieve("nile")
    assert [(r.node, r.score) for r in found] == [(r.node, r.score) for r in plain]
    assert "hyde failed" in found[0].explain()
    assert retriever.batch([" ", "nile"]) == [[], found]


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
