"""Every strategy: sync, async, batches, streams, nesting, failing models and searches."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.fixed_retriever import FailingRetriever
from support.foreign_retrievers import answers, ways

from nodekin.nodegraph import ModelError
from nodekin.retrievers import (
    FilterField,
    FusionRetriever,
    HyDERetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    QueryRewriteRetriever,
    RerankRetriever,
    Retriever,
    RouterRetriever,
    ScoredNode,
    SelfQueryRetriever,
    SubQuestionRetriever,
    restrict,
)
from nodekin.retrievers.strategies.strategy_registry import STRATEGIES

QUERY = "How long is the Nile?"

LANGUAGES = {"lang": FilterField("text", values=("en", "zh"), is_complete=True)}

Make = Callable[..., Any]

WITH_MODEL: Mapping[str, Make] = {
    "rewrite": QueryRewriteRetriever,
    "multi_query": MultiQueryRetriever,
    "hyde": HyDERetriever,
    "sub_question": SubQuestionRetriever,
    "answers": lambda inner, llm, **o: SubQuestionRetriever(inner, llm, answers=True, **o),
    "tools": lambda inner, llm, **o: SubQuestionRetriever({"a": inner, "b": inner}, llm, **o),
    "multi_step": MultiStepRetriever,
    "self_query": lambda inner, llm, **o: SelfQueryRetriever(inner, llm, LANGUAGES, **o),
    "router": lambda inner, llm, **o: RouterRetriever({"a": inner, "b": inner}, llm, **o),
    "router with default": lambda inner, llm, **o: RouterRetriever(
        {"a": inner, "b": inner}, llm, default="b", **o
    ),
}

COMPOSITES: Mapping[str, Make] = {
    **WITH_MODEL,
    "fusion": lambda inner, llm: FusionRetriever([inner, inner]),
    "rerank": lambda inner, llm: RerankRetriever(
        inner, "ModuleReranker", model=lambda query, texts: [float(len(text)) for text in texts]
    ),
    "keywords": lambda inner, llm: RerankRetriever(inner, "KeywordFilter", excluded=["tea"]),
    "restrict": lambda inner, llm: restrict(inner, {"lang": "en"}),
    "several fusions": lambda inner, llm: FusionRetriever([FusionRetriever([inner]), inner]),
}


def helpful(prompt: str) -> str:
    """Answer each prompt of the package in its form."""
    if "Sources:" in prompt:
        return "b"
    if "<fields>" in prompt:
        return '{"query": "How long is the river Nile?", "filters": {"lang": "en"}}'
    if "Tools:" in prompt:
        return "a: How long is the Nile in km?\nb: Is the Amazon longer?"
    if "The five lines:" in prompt:
        question = "NONE" if "1. " in prompt else "How long is the Amazon?"
        return f"Known: it\nMissing: x\nNext question: {question}\nAnswered: no\nAnswer: unknown"
    if "<passages>" in prompt:
        return "6,650 km"
    return "How long is the river Nile?\nIs the Amazon longer?"


def scored(results: Any) -> list[tuple[str, float]]:
    return [(result.node.id, result.score) for result in results]


def test_table_covers_every_strategy() -> None:
    assert STRATEGIES.keys() <= WITH_MODEL.keys()
    assert len(COMPOSITES) ** 2 == 225


@pytest.mark.parametrize("outer", COMPOSITES)
@pytest.mark.parametrize("inner", COMPOSITES)
def test_composites_nest_in_any_order(inner: str, outer: str, plain: Retriever) -> None:
    retriever = COMPOSITES[outer](COMPOSITES[inner](plain, helpful), helpful)
    first, *others = map(scored, ways(retriever, QUERY))
    assert "nile" in dict(first)
    assert others == [first] * 5


@pytest.mark.parametrize("name", COMPOSITES)
def test_answers_are_equal_sync_async_and_streamed(name: str, plain: Retriever) -> None:
    every = answers(COMPOSITES[name](plain, helpful), QUERY)
    assert {(answer.text, answer.answered) for answer in every} == {("It is green tea [1].", True)}
    sources = [[source.result.node.id for source in answer.sources] for answer in every]
    assert sources == [sources[0]] * 3


# Models that fail

GARBAGE = (
    *("", " \n", "。。。", "asdf qwer", "42", "null", "[]", "{}", '{"a": 1}', '{"a": [1,2'),
    *("I'm sorry, but I can't help with that.", "抱歉，我无法回答。", "NO_ANSWER", "N/A"),
    *("```json\n```", "<think>hm", "\x00", "{" * 5000, "x" * 100_000),
)
"""Useless answers of models, 19 for each of ten strategies in two ways: 380 cases."""


class Scripted:
    """A model with one answer or error for all prompts."""

    def __init__(self, told: str | Exception) -> None:
        self.told = told

    def complete(self, prompt: str) -> str:
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    async def acomplete(self, prompt: str) -> str:
        return self.complete(prompt)


def retrieved(way: str, retriever: Any) -> list[ScoredNode]:
    if way == "sync":
        results: list[ScoredNode] = retriever.retrieve(QUERY)
        return results
    return asyncio.run(retriever.abatch([QUERY]))[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", WITH_MODEL)
@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda text: repr(text)[:12])
def test_garbage_keeps_results_of_the_question(
    garbage: str, name: str, way: str, plain: Retriever
) -> None:
    results = retrieved(way, WITH_MODEL[name](plain, Scripted(garbage)))
    assert dict(scored(plain.retrieve(QUERY))).keys() <= dict(scored(results)).keys()


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", WITH_MODEL)
@pytest.mark.parametrize("error", [RuntimeError("down"), TimeoutError("late"), OSError("gone")])
def test_failed_model_keeps_results_and_notes_the_error(
    error: Exception, name: str, way: str, plain: Retriever
) -> None:
    make = WITH_MODEL[name]
    results = retrieved(way, make(plain, Scripted(error)))
    assert [id for id, _ in scored(results)] == [id for id, _ in scored(plain.retrieve(QUERY))]
    for result in results:
        assert str(error) in result.explain()
    with pytest.raises(ModelError, match=str(error)):
        retrieved(way, make(plain, Scripted(error), on_error="raise"))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", WITH_MODEL)
def test_late_model_keeps_results_and_notes_the_timeout(
    name: str, way: str, plain: Retriever
) -> None:
    release = threading.Event()

    class Late:
        def complete(self, prompt: str) -> str:
            release.wait(300)
            return prompt

        async def acomplete(self, prompt: str) -> str:
            await asyncio.Event().wait()
            return prompt

    results = retrieved(way, WITH_MODEL[name](plain, Late(), timeout=0.02))
    release.set()
    assert [id for id, _ in scored(results)] == [id for id, _ in scored(plain.retrieve(QUERY))]
    assert "did not answer within 0.02 s" in results[0].explain()


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", COMPOSITES)
def test_failed_search_of_every_query_raises(name: str, way: str, plain: Retriever) -> None:
    with pytest.raises(RuntimeError, match="unreachable"):
        retrieved(way, COMPOSITES[name](FailingRetriever(plain), helpful))


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("name", ["multi_query", "hyde", "sub_question", "answers", "multi_step"])
def test_failed_search_of_a_variant_is_noted(name: str, way: str, plain: Retriever) -> None:
    inner = FailingRetriever(plain, lambda query: query != QUERY)
    results = retrieved(way, WITH_MODEL[name](inner, helpful))
    assert {*dict(scored(results))} == {*dict(scored(plain.retrieve(QUERY)))}
    assert all("RuntimeError: unreachable" in result.explain() for result in results)
    with pytest.raises(RuntimeError, match="unreachable"):
        retrieved(way, WITH_MODEL[name](inner, helpful, on_error="raise"))
