"""Retrievers that are searched together, and searches while the graph changes."""

import asyncio
import random
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import FusionRetriever, Retriever, ScoredNode
from nodekin.retrievers.ranking import fuse

WORDS = "tea river music chess bread star horse glass stone bird lamp salt".split()
QUERIES = ["tea by the river", "salt", "chess horse", "nothing of it"]


def letters(texts: list[str]) -> np.ndarray:
    return np.array([[1 + text.count(letter) for letter in "abeiorst"] for text in texts])


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    rnd = random.Random(7)
    graph = NodeGraph(embed={"one": letters, "two": lambda t: letters(t)[:, ::-1]}, progress=False)
    graph.add(
        [
            Document(
                " ".join(
                    " ".join(rnd.choices(WORDS, k=rnd.randint(2, 9))).capitalize() + "."
                    for _ in range(rnd.randint(1, 9))
                ),
                {"of": rnd.choice(["a", "b"])},
                id=str(number),
            )
            for number in range(150)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def shown(results: list[ScoredNode]) -> list[Any]:
    return [(result.node.id, result.score, result.explain()) for result in results]


def branches(graph: NodeGraph, **options: Any) -> dict[str, Retriever]:
    vectors = {"embed_keys": ["one"], **options}
    return {
        "whole": Retriever(graph, "ROOT", "bm25", top_k=20, **options),
        "sentences": Retriever(graph, "sentence", "bm25", target="ROOT", top_k=20, **options),
        "vectors": Retriever(graph, "sentence", "cosine", target="ROOT", top_k=12, **vectors),
    }


@pytest.mark.parametrize("mode", ["rrf", "relative", "distribution", "concat"])
@pytest.mark.parametrize(
    "options",
    [{}, {"filters": {"of": "a"}}, {"min_score": 0.9}, {"fetch_k": 7}, {"lift": "sum"}],
    ids=str,
)
def test_fusion_of_local_retrievers_equals_fuse(
    graph: NodeGraph, mode: Any, options: dict[str, Any]
) -> None:
    of_all = branches(graph, **options)
    for names in (["whole", "sentences"], ["sentences", "whole"], list(of_all)):
        weights = [1.0, 3.0, 2.0][: len(names)]
        retrievers = [of_all[name] for name in names]
        fusion = FusionRetriever(retrievers, mode, weights)
        for top_k in (None, 1, 40):
            expected = []
            for query in QUERIES:
                limits = [max(top_k or 0, retriever.top_k) for retriever in retrievers]
                rankings = [
                    retriever.retrieve(query, top_k=limit)
                    for retriever, limit in zip(retrievers, limits, strict=True)
                ]
                expected.append(shown(fuse(rankings, mode, weights, top_k or fusion.top_k)))
            for found in (
                [fusion.retrieve(query, top_k=top_k) for query in QUERIES],
                fusion.batch(QUERIES, top_k=top_k),
                asyncio.run(fusion.abatch(QUERIES, top_k=top_k)),
            ):
                assert list(map(shown, found)) == expected
