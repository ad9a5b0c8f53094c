"""Calls and tokens of models, from the server to answers, searches and evaluations."""

import asyncio
from types import SimpleNamespace

import pytest

from nodekin.nodegraph import LLM, CachedLLM, NodeGraph
from nodekin.nodegraph.models.usage import ModelText, Usage, usage_of
from nodekin.retrievers import (
    Answer,
    MultiStepRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    Retriever,
)
from nodekin.retrievers.evaluation import Dataset, GoldPassage, Question, evaluate

COUNTS = {"prompt_tokens": 9, "completion_tokens": 2}


class Counting:
    """A model that reports nine tokens of each prompt and two of each answer."""

    name = "counting"

    def __init__(self, text: str = "It has 6,650 km [1].") -> None:
        self.text = text

    def complete(self, prompt: str) -> object:
        return SimpleNamespace(text=self.text, usage=SimpleNamespace(**COUNTS))

    async def acomplete(self, prompt: str) -> object:
        return self.complete(prompt)

    def stream(self, prompt: str):
        yield from self.text.split(" ")
        yield SimpleNamespace(text="", usage=SimpleNamespace(**COUNTS))

    async def astream(self, prompt: str):
        for chunk in self.stream(prompt):
            yield chunk


@pytest.fixture(name="words")
def fixture_words() -> Retriever:
    graph = NodeGraph()
    graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
    return Retriever(graph, "ROOT")


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "Tea.", "usage": COUNTS},
        SimpleNamespace(content="Tea.", usage=SimpleNamespace(**COUNTS)),
        SimpleNamespace(content="Tea.", usage_metadata={"input_tokens": 9, "output_tokens": 2}),
        SimpleNamespace(text="Tea.", raw=SimpleNamespace(usage=SimpleNamespace(**COUNTS))),
        SimpleNamespace(text="Tea.", raw={"usage": COUNTS}),
        SimpleNamespace(text="Tea.", raw={"prompt_eval_count": 9, "eval_count": 2}),
        SimpleNamespace(text="Tea.", additional_kwargs=COUNTS),
        ModelText("Tea.", Usage(1, 0, 9, 2)),
    ],
)
def test_llm_reads_tokens_of_all_models(answer: object) -> None:
    text = LLM(lambda prompt: answer, "scripted").complete("?")
    assert (text, text.usage) == ("Tea.", Usage(1, 0, 9, 2))


@pytest.mark.parametrize("answer", ["Tea.", SimpleNamespace(text="Tea.", usage=None), {}])
def test_usage_without_tokens_is_unknown(answer: object) -> None:
    assert usage_of(answer) == Usage(1, 0, None, None)


def test_messages_of_frameworks_have_tokens() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    counts = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    message = messages.AIMessage("Tea.", usage_metadata=counts)
    assert usage_of(message) == Usage(1, 0, 9, 2)
    llms = pytest.importorskip("llama_index.core.llms")
    assert usage_of(llms.CompletionResponse(text="Tea.", raw={"usage": COUNTS})).calls == 1
    assert usage_of(llms.CompletionResponse(text="Tea.", raw={"usage": COUNTS})).prompt_tokens == 9


def test_cached_calls_have_no_tokens() -> None:
    cached = LLM(CachedLLM(LLM(Counting(), "counting")))
    usages = [cached.complete("?").usage for _ in range(2)]
    assert usages == [Usage(1, 0, 9, 2), Usage(1, 1, 0, 0)]


@pytest.mark.parametrize("mode", ["stuff", "map_reduce", "map_rerank", "refine"])
def test_answer_has_usage(words: Retriever, mode) -> None:
    engine = QueryEngine(words, Counting(), mode)
    answers = [engine.query("How long is the Nile?"), asyncio.run(engine.aquery("The Nile?"))]
    assert [answer.usage for answer in answers] == [Usage(1, 0, 9, 2)] * 2
    assert Answer.from_dict(answers[0].to_dict()).usage == answers[0].usage


def test_streamed_answer_has_usage(words: Retriever) -> None:
    engine = QueryEngine(words, Counting())

    async def streamed() -> Usage:
        stream = engine.astream("How long is the Nile?")
        assert [text async for text in stream]
        return stream.answer.usage

    stream = engine.stream("How long is the Nile?")
    assert list(stream)
    assert [stream.answer.usage, asyncio.run(streamed())] == [Usage(1, 0, 9, 2)] * 2


def test_usage_of_answer_includes_strategies(words: Retriever) -> None:
    rewriting = QueryRewriteRetriever(words, Counting("How long is the Nile?"))
    answer = QueryEngine(rewriting, Counting()).query("how logn is teh nile")
    assert answer.usage == Usage(2, 0, 18, 4)
    assert answer.calls == 1


def test_tokens_are_unknown_if_one_call_reports_none(words: Retriever) -> None:
    rewriting = QueryRewriteRetriever(words, lambda prompt: "How long is the Nile?")
    answer = QueryEngine(rewriting, Counting()).query("how logn is teh nile")
    assert answer.usage == Usage(2, 0, None, None)


def test_failed_calls_count(words: Retriever) -> None:
    def broken(prompt: str) -> str:
        raise ConnectionError("no server")

    answer = QueryEngine(QueryRewriteRetriever(words, broken), Counting()).query("The Nile?")
    assert answer.usage == Usage(2, 0, None, None)


def test_steps_have_usage(words: Retriever) -> None:
    steps = MultiStepRetriever(words, Counting("Answered: yes\nAnswer: 6,650 km")).steps("Nile?")
    assert (steps.ended, steps.usage) == ("answered", Usage(1, 0, 9, 2))


def test_evaluation_has_tokens_per_question(words: Retriever) -> None:
    questions = [Question("1", "How long is the Nile?", (GoldPassage("6,650 km"),))]
    rewriting = QueryRewriteRetriever(words, Counting("How long is the Nile?"))
    evaluation = evaluate({"rewrite": rewriting, "plain": words}, Dataset(questions))
    costs = evaluation.costs("rewrite")
    assert (costs["model_calls"], costs["prompt_tokens"], costs["completion_tokens"]) == (1, 9, 2)
    assert evaluation.costs("plain")["prompt_tokens"] == 0
    assert "model tokens" in evaluation.table()
