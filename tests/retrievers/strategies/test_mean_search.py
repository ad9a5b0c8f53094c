"""Searching for the mean of several texts' vectors."""

import asyncio
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Embedder, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.strategies.hyde import FindMean, HyDERetriever, mean_name


def test_passages_are_embedded_as_passages(vectors: Any) -> None:
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


def test_results_stand_by_their_queries(embedded: Retriever, vectors: Any) -> None:
    search = FindMean(embedded, ["nile", " ", "tea"], [["nile", "Tea."], ["x"], ["Drink tea."]])
    first, blank, third = search.run()
    assert asyncio.run(search.arun()) == [first, blank, third]
    assert blank == []
    nile, tea, drink_tea = vectors(["nile", "Tea.", "Drink tea."])
    mean = nile / np.linalg.norm(nile) + tea / np.linalg.norm(tea)
    for results, vector in ((first, mean), (third, drink_tea)):
        texts = [result.node.text for result in results]
        cosines = vectors(texts) @ vector
        cosines = cosines / np.linalg.norm(vector) / np.linalg.norm(vectors(texts), axis=1)
        assert [result.score for result in results] == pytest.approx(cosines, abs=2e-6)
    assert first[0].evidence[0].query == "Tea."


def test_the_name_of_a_mean() -> None:
    assert mean_name("a", ["a", "b", "c"]) == "b\nc"
    assert mean_name("a", ["a"]) == "a"
