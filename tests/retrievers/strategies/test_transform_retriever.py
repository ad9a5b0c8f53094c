"""Retrievers around query transforms: searches, fusion, evidence and traces."""

import asyncio
from typing import Any

import pytest
from support.fixed_retriever import FailingRetriever

from nodekin.retrievers import Retriever, ScoredNode, trace
from nodekin.retrievers.ranking import fuse
from nodekin.retrievers.strategies.rewrite import (
    MultiQueryRetriever,
    QueryExpansion,
    QueryRewriteRetriever,
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


def test_failed_variant_is_noted(plain: Retriever, scripted: Any) -> None:
    inner = FailingRetriever(plain, "Amazon")
    model = scripted("the Nile\nthe Amazon")
    for results in (
        MultiQueryRetriever(inner, model).retrieve("tea", top_k=3),
        asyncio.run(MultiQueryRetriever(inner, model).aretrieve("tea", top_k=3)),
    ):
        assert ids(results) == ["tea", "nile"]
        note = results[0].evidence[0].variants[0].note
        assert note == "1 of 3 searches failed: 'the Amazon': RuntimeError: unreachable"
    with pytest.raises(RuntimeError, match="unreachable"):
        MultiQueryRetriever(inner, model, on_error="raise").retrieve("tea")
    with pytest.raises(RuntimeError, match="unreachable"):
        MultiQueryRetriever(FailingRetriever(plain), model).retrieve("tea")


def test_failed_search_of_the_query_raises_after_empty_variants(
    plain: Retriever, scripted: Any
) -> None:
    retriever = QueryRewriteRetriever(FailingRetriever(plain, "tea"), scripted("zzz"))
    with pytest.raises(RuntimeError, match="unreachable"):
        retriever.retrieve("tea")
    with pytest.raises(RuntimeError, match="unreachable"):
        asyncio.run(retriever.abatch(["drink", "tea"]))
    assert ids(retriever.retrieve("drink")) == ["tea"]


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
    with pytest.raises(ValueError, match="unknown mode 'rff'"):
        MultiQueryRetriever(plain, model, mode="rff")  # type: ignore[arg-type]
