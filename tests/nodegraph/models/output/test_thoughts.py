"""Thoughts in the marks of all models reach neither answers nor queries."""

import asyncio

import pytest
from support.answer_forms import THOUGHT_FORMS, Scripted

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.models.output.thoughts import (
    may_begin_with_thoughts,
    without_leading_thoughts,
)
from nodekin.retrievers import HyDE, QueryEngine, QueryRewrite, Retriever

THOUGHT = "Hm, which town? Perhaps [2] or Bergen."


@pytest.fixture(name="engine_for", scope="module")
def fixture_engine_for():
    graph = NodeGraph()
    graph.add(["Ibsen lived in Skien.", "Ibsen wrote in Rome."])
    retriever = Retriever(graph, "ROOT")
    return lambda answer, size=7: QueryEngine(retriever, Scripted(answer, size))


def with_thoughts(form: str, text: str) -> str:
    end = "</answer>" if form.endswith("<answer>") else ""
    return f"{form.replace('{}', THOUGHT)}{text}{end}".replace("⏎", "\n")


def test_thoughts_are_no_part_of_queries_and_passages() -> None:
    wrong = []
    for form in THOUGHT_FORMS:
        query = QueryRewrite(Scripted(with_thoughts(form, "Where did Ibsen live?")))("wher ibsn")
        passage = HyDE(Scripted(with_thoughts(form, "He lived in Skien.")))("wher ibsn")
        if [*query, *passage[1:]] != ["Where did Ibsen live?", "He lived in Skien."]:
            wrong.append((form, query, passage))
    assert wrong == []


def test_thoughts_are_no_part_of_answers(engine_for) -> None:
    answers = {
        form: engine_for(with_thoughts(form, "He lived in Skien [1].")).query("Where did he live?")
        for form in THOUGHT_FORMS
    }
    assert {answer.text for answer in answers.values()} == {"He lived in Skien [1]."}
    assert {tuple(s.number for s in answer.cited) for answer in answers.values()} == {(1,)}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_thoughts_are_no_part_of_streams(engine_for, size: int) -> None:
    async def streamed(engine: QueryEngine) -> str:
        return "".join([text async for text in engine.astream("Where did he live?")])

    wrong = []
    for form in THOUGHT_FORMS:
        if form.startswith("{}"):
            continue  # without an opening mark, thoughts are streamed before their end is known
        engine = engine_for(with_thoughts(form, "He lived in Skien [1]."), size)
        texts = ["".join(engine.stream("Where did he live?")), asyncio.run(streamed(engine))]
        if [text.strip() for text in texts] != ["He lived in Skien [1]."] * 2:
            wrong.append((form, texts))
    assert wrong == []


@pytest.mark.parametrize(
    "answer",
    [
        "Use <think> to begin a thought.",
        "Write </think> to end it.",
        "`</think>` ends it.",
        "Thoughts are free.",
        "Thinking, Fast and Slow is a book.",
        "Analysis is the first step.",
        "> A quotation.",
    ],
)
def test_answer_about_thoughts_stays(answer: str) -> None:
    assert without_leading_thoughts(answer) == answer
    assert not may_begin_with_thoughts(f"{answer} It is so.")
