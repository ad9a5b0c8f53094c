"""Sub-questions over named tools: retrievers and query engines."""

from __future__ import annotations

import asyncio

import pytest
from support.fixed_retriever import FailingRetriever, FixedRetriever

from nodekin.nodegraph import ModelError, NodeGraph
from nodekin.retrievers import (
    QueryDecomposition,
    QueryEngine,
    RerankRetriever,
    Retriever,
    SubQuestionRetriever,
)

BOTH = "How long is the Nile, and how is green tea made?"
PARTS = "rivers: How long is the Nile?\nteas: How is green tea made?"


@pytest.fixture
def passages() -> Retriever:
    graph = NodeGraph(progress=False)
    graph.add(["The Nile has 6,650 km.", "Green tea is steamed."])
    return Retriever(graph, "ROOT", top_k=1)


@pytest.fixture
def tools(passages):
    return {
        "rivers": ("All about rivers", QueryEngine(passages, lambda prompt: "6,650 km [1].")),
        "teas": ("All about\n tea", passages),
    }


def scripted(*answers):
    prompts = []
    rest = iter(answers)

    def model(prompt):
        prompts.append(prompt)
        answer = next(rest)
        if isinstance(answer, Exception):
            raise answer
        return answer

    model.prompts = prompts
    return model


def test_parts_go_to_the_chosen_tools(tools):
    model = scripted(PARTS)
    retriever = SubQuestionRetriever(tools, model)
    groups = retriever.grouped(BOTH)
    assert [(g.tool, g.question, g.answer, g.error) for g in groups] == [
        ("rivers", "How long is the Nile?", "6,650 km [1].", None),
        ("teas", "How is green tea made?", None, None),
    ]
    assert [g.results[0].node.text for g in groups] == ["6,650 km [1].", "Green tea is steamed."]
    assert "- rivers: All about rivers\n- teas: All about tea" in model.prompts[0]


def test_unknown_tool_is_reported_and_others_answer(tools):
    answer = f"{PARTS}\nseas: How deep is the sea?"
    model = scripted(answer, answer)
    groups = SubQuestionRetriever(tools, model).grouped(BOTH)
    assert "unknown tool 'seas'; the tools are rivers, teas" in model.prompts[1]
    assert [(g.tool, g.error) for g in groups] == [
        ("rivers", None),
        ("teas", None),
        ("seas", "LookupError: unknown tool 'seas'; known: 'teas', 'rivers'"),
    ]
    results = SubQuestionRetriever(tools, lambda prompt: answer)(BOTH)
    assert "unknown tool 'seas'" in results[0].evidence[0].variants[0].note
    with pytest.raises(ModelError, match="unknown tool 'seas'"):
        SubQuestionRetriever(tools, lambda prompt: answer, on_error="raise")(BOTH)


def test_failed_tool_is_reported_all_failed_raises(tools, passages):
    broken = FailingRetriever(None, error=ConnectionError("no route"))
    retriever = SubQuestionRetriever({**tools, "rivers": broken}, lambda prompt: PARTS)
    groups = retriever.grouped(BOTH)
    assert [g.error for g in groups] == ["ConnectionError: no route", None]
    assert [r.node.text for r in retriever(BOTH)] == ["Green tea is steamed."]
    for failing, on_error in (({**tools, "rivers": broken}, "raise"), ({"a": broken}, "keep")):
        with pytest.raises(ConnectionError, match="no route"):
            SubQuestionRetriever(failing, lambda prompt: PARTS, on_error=on_error)(BOTH)


@pytest.mark.parametrize("answer", ["", "NONE", RuntimeError("no model")])
def test_useless_model_sends_question_to_all_tools(tools, answer):
    retriever = SubQuestionRetriever(tools, scripted(*[answer] * 4))
    groups = retriever.grouped("How long is the Nile?")
    assert [(g.tool, g.question) for g in groups] == [
        ("rivers", "How long is the Nile?"),
        ("teas", "How long is the Nile?"),
    ]


def test_single_tool_gets_all_parts(passages):
    model = scripted("How long is the Nile?\nHow is green tea made?")
    groups = SubQuestionRetriever({"all": passages}, model).grouped(BOTH)
    assert [g.question for g in groups] == ["How long is the Nile?", "How is green tea made?"]
    assert "all" not in model.prompts[0].split("Question:")[0].split("\n")[-1]


def test_answers_of_tools_reach_the_final_prompt(tools):
    """What was paid for is answered from, also through a reranking."""
    prompts = []

    def answering(prompt):
        prompts.append(prompt)
        return "Both [1][2]."

    strategy = SubQuestionRetriever(
        tools, lambda prompt: PARTS, answers=True, answer_llm=lambda prompt: "By steaming."
    )
    reranked = RerankRetriever(strategy, "ModuleReranker", model=lambda q, t: [1.0] * len(t))
    engine = QueryEngine(reranked, answering)
    answer = engine.query(BOTH)
    assert "rivers: How long is the Nile?\n6,650 km [1]." in prompts[0]
    assert (
        "<partial>\nQuestion: How is green tea made?\nAnswer: By steaming.\n</partial>"
        in prompts[0]
    )
    assert len(answer.cited) == 2
    asyncio.run(engine.aquery(BOTH))
    list(engine.stream(BOTH))
    assert prompts == prompts[:1] * 3


@pytest.mark.parametrize("mode", ["stuff", "refine", "map_reduce"])
def test_answers_to_parts_reach_the_final_prompt(passages, mode):
    def strategy(prompt):
        return "6,650 km" if "<passages>" in prompt else "How long is the Nile?\nAnd tea?"

    for answers in (True, False):
        prompts = []
        parts = SubQuestionRetriever(passages, strategy, answers=answers)
        QueryEngine(parts, lambda p: (prompts.append(p), "Both [1].")[1], mode).query(BOTH)  # noqa: B023
        of_parts = [p for p in prompts if "Question: How long is the Nile?\nAnswer" in p]
        assert len(of_parts) == (0 if mode == "map_reduce" and len(prompts) == 1 else int(answers))
        assert answers or mode != "stuff" or "<partial>" not in prompts[0]


def test_answers_without_space_are_noted(passages):
    def strategy(prompt):
        return "word " * 60 if "<passages>" in prompt else "How long is the Nile?\nAnd tea?"

    engine = QueryEngine(
        SubQuestionRetriever(passages, strategy, answers=True),
        lambda prompt: "It [1].",
        context_window=560,
        num_output=200,
    )
    assert any("answers to sub-questions" in note for note in engine.query(BOTH).notes)


@pytest.mark.parametrize(
    ("tools", "error", "message"),
    [
        ({}, ValueError, "tools must not be empty"),
        ({"a": 3}, TypeError, "the tool 'a' must be an object with retrieve"),
        ({"a": ("x", 3)}, TypeError, "the tool 'a' must be an object with retrieve"),
        ({"a": ("x", 3, 4)}, TypeError, "a pair"),
        ({"": FixedRetriever([])}, ValueError, "must not be blank"),
        ({3: FixedRetriever([])}, TypeError, "must be a string"),
        ([FixedRetriever([])], TypeError, "several with names go into"),
    ],
)
def test_invalid_tools_raise(tools, error, message):
    with pytest.raises(error, match=message):
        SubQuestionRetriever(tools, lambda prompt: "")


def test_decomposition_without_tools_accepts_them_later(tools) -> None:
    def model(prompt: str) -> str:
        return PARTS if "All about rivers" in prompt else "How long is the Nile?"

    plain = SubQuestionRetriever(tools, model).grouped(BOTH)
    given = SubQuestionRetriever(tools, QueryDecomposition(model)).grouped(BOTH)
    assert [part.question for part in given] == [part.question for part in plain]
    assert [part.error for part in given] == [part.error for part in plain]
    assert len(given) == 2
