"""Composite retrievers, for tests with retrievers of other frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    RecursiveRetriever,
    RerankRetriever,
    RouterRetriever,
    ScoredNode,
    SubQuestionRetriever,
)

STEPS = "Answer: unknown\nAnswered: no\nNext question: Which tea is black?"


def about_tea(query: str, texts: list[str]) -> list[float]:
    """Score texts like a cross-encoder."""
    return [float("tea" in text) for text in texts]


def _referring(inner: Any) -> RecursiveRetriever:
    graph = NodeGraph(progress=False)
    graph.add(Document("All about tea.", {"topic": "tea"}))
    entry = graph.nodes("ROOT")[0].id
    return RecursiveRetriever(graph, ["ROOT"], references={entry: inner})


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "fusion": lambda inner: FusionRetriever([inner]),
    "rerank": lambda inner: RerankRetriever(inner, "ModuleReranker", model=about_tea),
    "keywords": lambda inner: RerankRetriever(inner, "KeywordFilter", required=["tea"]),
    "rewrite": lambda inner: QueryRewriteRetriever(inner, lambda prompt: "green tea"),
    "multi_query": lambda inner: MultiQueryRetriever(
        inner, lambda prompt: "1. green tea?\n2. Is tea green?"
    ),
    "hyde": lambda inner: HyDERetriever(inner, lambda prompt: "Green tea is steamed."),
    "sub_question": lambda inner: SubQuestionRetriever(
        inner, lambda prompt: "Which tea is green?\nWhich tea is black?"
    ),
    "multi_step": lambda inner: MultiStepRetriever(inner, lambda prompt: STEPS, max_steps=1),
    "router": lambda inner: RouterRetriever({"it": inner}, lambda prompt: "it"),
    "tool_question": lambda inner: SubQuestionRetriever(
        {"it": inner}, lambda prompt: "it: Is tea green?\nit: Which tea is green?"
    ),
    "choose": lambda inner: RouterRetriever({"it": inner}, lambda prompt: "it"),
    "references": _referring,
}
"""Functions that create a composite retriever around a retriever, keyed by name."""


def ways(retriever: Any, query: str, **options: Any) -> list[list[ScoredNode]]:
    """Return the results of synchronous, asynchronous and batch searches for a query."""

    async def in_a_loop() -> list[list[ScoredNode]]:
        one = await retriever.aretrieve(query, **options)
        return [one, *(await retriever.abatch([query, query], **options))]

    one = retriever.retrieve(query, **options)
    many = retriever.batch([query, query], **options)
    return [one, *many, *asyncio.run(in_a_loop())]


def answers(inner: Any, question: str) -> list[Any]:
    """Return the synchronous, asynchronous and streamed answers of a query engine."""
    engine = QueryEngine(inner, lambda prompt: "It is green tea [1].")
    stream = engine.stream(question)
    list(stream)
    return [engine.query(question), asyncio.run(engine.aquery(question)), stream.answer]
