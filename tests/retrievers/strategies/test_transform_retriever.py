"""Retrievers around query transforms: searches, fusion, evidence and traces."""

import asyncio
from typing import Any

import pytest

from nodekin.retrievers import HyDERetriever, Retriever, ScoredNode, trace
from nodekin.retrievers.ranking import fuse
from nodekin.retrievers.results import QueryVariant
from nodekin.retrievers.strategies.rewrite import (
    MultiQueryRetriever,
    QueryExpansion,
    QueryRewrite,
)
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
    with pytest.raises(TypeError, match="batch takes a list of queries"):
        retriever.batch("Nile")


@pytest.mark.parametrize("kind", KINDS)
def test_top_k_and_filters_reach_inner_retriever(kind: Any, plain: Retriever) -> None:
    retriever = kind(plain, lambda prompt: "How long is the Nile? 尼罗河有多长？")
    assert len(retriever.retrieve("Nile and Amazon 尼罗河", top_k=1)) == 1
    assert len(kind(plain, retriever.query_transform, top_k=2).retrieve("km long 全长")) == 2
    found = retriever.retrieve("km long 全长", filters={"lang": "zh"})
    assert found
    assert {result.node.metadata["lang"] for result in found} == {"zh"}
    with pytest.raises(ValueError, match="top_k"):
        retriever.retrieve("Nile", top_k=0)
    contents = kind(plain, retriever.query_transform, output_format="content", join=" | ")
    assert isinstance(contents("Nile"), str)


@pytest.mark.parametrize("mode", ["relative", "distribution", "concat"])
def test_mode_chooses_the_fusion(mode: Any, plain: Retriever, scripted: Any) -> None:
    retriever = MultiQueryRetriever(plain, scripted("the Nile\nkm long"), mode=mode)
    found = [plain.retrieve(query) for query in ("tea", "the Nile", "km long")]
    results = retriever.retrieve("tea")
    expected = fuse(found, mode, top_k=max(map(len, found)))
    assert [(r.node.id, r.score) for r in results] == [(r.node.id, r.score) for r in expected]


def test_batch_parallelizes_models_and_searches_once(plain: Retriever) -> None:
    import threading

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


def test_invalid_arguments_raise(plain: Retriever) -> None:
    model = str.upper
    with pytest.raises(TypeError, match="a retriever must be an object with retrieve"):
        MultiQueryRetriever(7, model)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError,
        match=r"options \['max_queries'\] need a model as llm; with a transform, write Query",
    ):
        MultiQueryRetriever(plain, QueryExpansion(model), max_queries=2)
    with pytest.raises(TypeError, match="llm must be a QueryTransform"):
        TransformRetriever(plain, model)
    with pytest.raises(TypeError, match="cuont"):
        MultiQueryRetriever(plain, model, cuont=2)
    with pytest.raises(ValueError, match="query_weight must be above 0"):
        MultiQueryRetriever(plain, model, query_weight=0)
    with pytest.raises(ValueError, match=r"mode must be 'rrf', .*, got 'rff'"):
        MultiQueryRetriever(plain, model, mode="rff")  # type: ignore[arg-type]


def test_braces_in_a_query_stay(scripted: Any) -> None:
    model = scripted("Nile?")
    QueryRewrite(model)("What does {domain} or {query} mean?")
    assert "What does {domain} or {query} mean?" in model.prompts[0]


def test_phrasings_are_fused_with_the_query(plain: Retriever, scripted: Any) -> None:
    retriever = MultiQueryRetriever(plain, scripted("the Nile\nthe Amazon"), query_weight=3)
    queries = ["tea drink", "the Nile", "the Amazon"]
    assert retriever.query_transform(queries[0]) == queries
    results = retriever.retrieve(queries[0])
    expected = fuse([plain.retrieve(query) for query in queries], "rrf", [3, 1, 1], 1)
    assert ids(results) == ids(expected) == ["tea"]  # as many as the longest of them
    wider = retriever.retrieve(queries[0], top_k=3)
    assert ids(wider) == ["tea", "nile", "amazon"]
    variants = {result.node.id: [m.variants for m in result.evidence] for result in wider}
    assert variants["tea"] == [()]  # found for the query itself
    assert variants["nile"] == [(QueryVariant("tea drink", "phrasing"),)]


def test_include_query_false_leaves_out_the_query(plain: Retriever, scripted: Any) -> None:
    retriever = MultiQueryRetriever(plain, scripted("the Nile"), include_query=False)
    assert ids(retriever.retrieve("tea drink")) == ["nile"]


@pytest.mark.parametrize("include_query", [True, False])
def test_passages_and_query_are_fused(plain: Retriever, include_query: bool) -> None:
    retriever = HyDERetriever(plain, lambda prompt: "A tea drink.", include_query=include_query)
    results = retriever.retrieve("nile", top_k=2)
    queries = {match.query for result in results for match in result.evidence}
    assert queries == ({"nile", "A tea drink."} if include_query else {"A tea drink."})
    matches = [match for result in results for match in result.evidence]
    (variant,) = next(m for m in matches if m.query == "A tea drink.").variants
    assert (variant.query, variant.strategy) == ("nile", "hyde")
    assert len(retriever.retrieve("nile", top_k=1)) == 1
    assert retriever.retrieve("nile", filters={"lang": "zh"}) == []
    assert retriever.batch([" ", "nile"], top_k=2) == [[], results]
