"""Retrievers around query transforms: searches, fusion, evidence and traces."""

import asyncio
import threading
from typing import Any

import pytest

from nodekin.retrievers import HyDERetriever, Retriever, ScoredNode, trace
from nodekin.retrievers.ranking import fuse
from nodekin.retrievers.results import QueryVariant
from nodekin.retrievers.strategies.rewrite import MultiQueryRetriever, QueryExpansion
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES
from nodekin.retrievers.strategies.transform_retriever import TransformRetriever

KINDS: list[Any] = [s.retriever for s in STRATEGIES.values() if s.transform]


def ids(results: list[ScoredNode]) -> list[str]:
    return [result.node.id for result in results]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_keep_the_order_of_queries(kind: Any, plain: Retriever) -> None:
    retriever = kind(plain, lambda prompt: "The Nile, the Amazon and tea")
    queries = ["What is the Nile?", "What is the Amazon?", " ", "尼罗河有多长？"]
    one_by_one = [retriever.retrieve(query) for query in queries]
    assert retriever.batch(queries) == one_by_one == asyncio.run(retriever.abatch(queries))
    assert retriever.batch([]) == asyncio.run(retriever.abatch([])) == []
    with pytest.raises(TypeError, match="queries must be a list of texts"):
        retriever.batch("Nile")


@pytest.mark.parametrize("kind", KINDS)
def test_top_k_and_filters_reach_inner_retriever(kind: Any, plain: Retriever) -> None:
    retriever = kind(plain, lambda prompt: "How long is the Nile? 尼罗河有多长？")
    assert len(retriever.retrieve("Nile and Amazon 尼罗河", top_k=1)) == 1
    assert len(kind(plain, retriever.query_transform, top_k=2).retrieve("km long 全长")) == 2
    found = retriever.retrieve("km long 全长", filters={"lang": "zh"})
    assert {result.node.metadata["lang"] for result in found} == {"zh"}
    assert isinstance(retriever("Nile", output_format="content", join=" | "), str)


@pytest.mark.parametrize("mode", ["rrf", "relative", "distribution", "concat"])
def test_phrasings_are_fused_with_the_query(mode: Any, plain: Retriever, scripted: Any) -> None:
    model, queries = scripted("the Nile\nthe Amazon"), ["tea drink", "the Nile", "the Amazon"]
    retriever = MultiQueryRetriever(plain, model, mode=mode)
    assert retriever.query_transform(queries[0]) == queries
    results = retriever.retrieve(queries[0], top_k=3)
    expected = fuse([plain.retrieve(query) for query in queries], mode, None, 3)
    assert [(r.node.id, r.score) for r in results] == [(r.node.id, r.score) for r in expected]
    variants = {result.node.id: [m.variants for m in result.evidence] for result in results}
    assert variants["tea"] == [()]  # found for the query itself
    assert variants["nile"] == [(QueryVariant("tea drink", "phrasing"),)]
    assert len(retriever.retrieve(queries[0])) == 1  # as many as the longest ranking


@pytest.mark.parametrize("include_query", [True, False])
def test_passages_of_hyde_and_query_are_fused(plain: Retriever, include_query: bool) -> None:
    retriever = HyDERetriever(plain, lambda prompt: "A tea drink.", include_query=include_query)
    results = retriever.retrieve("nile", top_k=2)
    matches = [match for result in results for match in result.evidence]
    queries = {"nile", "A tea drink."} if include_query else {"A tea drink."}
    assert {match.query for match in matches} == queries
    (variant,) = next(m for m in matches if m.query == "A tea drink.").variants
    assert (variant.query, variant.strategy) == ("nile", "hyde")


def test_batch_parallelizes_models_and_searches_once(plain: Retriever) -> None:
    meet = threading.Barrier(3, timeout=300)  # passed only by three calls at a time

    def model(prompt: str) -> str:
        meet.wait()
        return "the Nile\nthe Amazon"

    with trace() as traced:
        results = MultiQueryRetriever(plain, model).batch(["tea", "drink", "long"])
    assert len(results) == 3
    (span,) = traced.children
    assert [each.name for each in span.children] == ["expand"] * 3 + ["search"]
    assert span.children[-1].attributes["query"] == "5 queries"  # each once


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"inner": 7}, TypeError, "a retriever must be an object with retrieve"),
        ({"llm": QueryExpansion(str.upper), "max_queries": 2}, TypeError,
         r"options \['max_queries'\] need a model as llm; with a transform, write Query"),
        ({"cuont": 2}, TypeError, "cuont"),
        ({"mode": "rff"}, ValueError, "mode must be 'share', 'rrf', .*, got 'rff'"),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(
    plain: Retriever, arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        MultiQueryRetriever(**{"inner": plain, "llm": str.upper, **arguments})
    with pytest.raises(TypeError, match="llm must be a QueryTransform"):
        TransformRetriever(plain, str.upper)
