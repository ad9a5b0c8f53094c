"""A nodekin retriever, with and without a strategy, as a LlamaIndex query engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import (
    PromptTemplate,
    get_response_synthesizer,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.schema import QueryBundle
from support.fixed_retriever import FailingRetriever

from nodekin.adapters.llama_index import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.adapters.llama_index.nodes import NodeWithEvidence
from nodekin.nodegraph import ModelError
from nodekin.retrievers import RerankRetriever, Retriever
from nodekin.retrievers.strategies.strategy_registry import make_strategy

QUESTION = "Which tea is fermented?"
BOTH = "Is green tea fermented, and is black tea?"
PARTS = "Is green tea fermented?\nIs black tea fermented?"
DECOMPOSE: dict[str, Any] = {
    "prompt": {"en": "Take apart: {query}", "zh": "分解：{query}"},
    "answers": True,
    "answer_prompt": {"en": "Part: {query} {context}", "zh": "部分：{query} {context}"},
}
STEP: dict[str, Any] = {"prompt": "Step: {question} {passages}"}
Scripted = Callable[[Any], Any]


def decompose_and_answer(prompt: str) -> str:
    """Return what a model answers: sub-questions, the answer to one, or the final answer."""
    if prompt.startswith("Take apart"):
        return PARTS
    if prompt.startswith("Part"):
        return "Green: no." if "Is green tea" in prompt else "Black: yes."
    return "Only black tea."


def ids(nodes: Any) -> list[str]:
    return [node.node.node_id for node in nodes]


def step(answer: str, answered: str, question: str) -> str:
    return f"Answer: {answer}\nAnswered: {answered}\nNext question: {question}"


def test_answer_is_written_from_results_of_the_retriever(
    search: Retriever, scripted: Scripted
) -> None:
    llm = scripted("Black tea.")
    response = NodeGraphQueryEngine(search, llm).query(QUESTION)
    expected = search(QUESTION)
    assert str(response) == "Black tea."
    assert ids(response.source_nodes) == [each.node.id for each in expected]
    assert [each.score for each in response.source_nodes] == [each.score for each in expected]
    assert all(isinstance(each, NodeWithEvidence) for each in response.source_nodes)
    assert response.metadata[expected[0].node.id]["topic"] == "tea"
    assert "sub_qa" not in response.metadata
    assert "errors" not in response.metadata
    (prompt,) = llm.prompts
    assert all(each.node.text in prompt for each in expected)


@pytest.mark.usefixtures("unblocked")
@pytest.mark.parametrize(
    "strategy",
    ["none", "rewrite", "multi_query", "hyde", "sub_question", "multi_step", "self_query"],
)
async def test_async_query_equals_sync_query(
    search: Retriever, scripted: Scripted, strategy: Any
) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Is tea black?"), strategy=strategy)
    made = await engine.aquery(BOTH)
    again = await asyncio.to_thread(engine.query, BOTH)
    assert str(made) == str(again)
    assert ids(made.source_nodes) == ids(again.source_nodes)
    assert made.metadata.keys() == again.metadata.keys()
    assert ids(await engine.aretrieve(BOTH)) == ids(made.source_nodes)
    synthesized = await engine.asynthesize(QueryBundle(BOTH), made.source_nodes)
    assert ids(synthesized.source_nodes) == ids(made.source_nodes)


def test_span_and_events_of_a_query(
    search: Retriever, scripted: Scripted, watched: SimpleNamespace
) -> None:
    NodeGraphQueryEngine(search, scripted("Tea.")).query(BOTH)
    spans = {span.id_: span for span in watched.spans.completed_spans}
    (outer,) = [span for span in spans.values() if span.parent_id not in spans]
    assert outer.id_.startswith("NodeGraphQueryEngine.query")
    assert any(name.startswith("NodeGraphRetriever.retrieve") for name in spans)
    for event in (QueryStartEvent, QueryEndEvent):
        assert sum(isinstance(each, event) for each in watched.events) == 1


# Strategies


@pytest.mark.parametrize(
    "strategy", ["rewrite", "multi_query", "hyde", "sub_question", "self_query"]
)
def test_failed_model_leaves_the_plain_query(
    search: Retriever, scripted: Scripted, strategy: Any
) -> None:
    def failing(prompt: str) -> str:
        raise ConnectionError("gone")

    options: dict[str, Any] = {"response_synthesizer": get_response_synthesizer(scripted("Tea."))}
    engine = NodeGraphQueryEngine(search, failing, strategy=strategy, **options)
    (best, *_) = sources = engine.query(QUESTION).source_nodes
    assert ids(sources) == [r.node.id for r in search(QUESTION)]
    assert "ConnectionError: gone" in str(best.evidence)
    options["on_error"] = "raise"
    with pytest.raises(ModelError, match="gone"):
        NodeGraphQueryEngine(search, failing, strategy=strategy, **options).query(QUESTION)


def test_sub_questions_are_answered_and_listed(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE)
    response = engine.query(BOTH)
    assert str(response) == "Only black tea."
    listed = response.metadata["sub_qa"]
    assert [(question, str(answer)) for question, answer in listed] == [
        ("Is green tea fermented?", "Green: no."),
        ("Is black tea fermented?", "Black: yes."),
    ]
    assert all(isinstance(answer, Response) for _, answer in listed)
    assert listed[0][1].source_nodes[0].text.startswith("Green tea")
    assert "Question: Is green tea fermented?\nAnswer: Green: no." in llm.prompts[-1]
    assert all(each.text in llm.prompts[-1] for each in response.source_nodes)
    assert "errors" not in response.metadata


def test_retrieve_asks_no_sub_question_for_an_answer(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE)
    results = engine.retrieve(BOTH)
    assert len(llm.prompts) == 1
    assert ids(results) == ids(engine.query(BOTH).source_nodes)


def test_best_passages_of_sub_answers_are_sources(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(
        search, llm, strategy="sub_question", similarity_top_k=1, **DECOMPOSE
    )
    response = engine.query(BOTH)
    behind = {answer.source_nodes[0].node_id for _, answer in response.metadata["sub_qa"]}
    assert behind <= {*ids(response.source_nodes)}
    assert len(ids(response.source_nodes)) == len({*ids(response.source_nodes)})


def test_failed_sub_question_is_recorded_unless_all_fail(
    search: Retriever, scripted: Scripted
) -> None:
    llm = scripted(decompose_and_answer)
    some = FailingRetriever(search, "Is black tea", OSError("no disk"))
    response = NodeGraphQueryEngine(some, llm, strategy="sub_question", **DECOMPOSE).query(BOTH)
    error = "OSError: no disk"
    assert response.metadata["errors"] == [{"question": "Is black tea fermented?", "error": error}]
    assert [answer.response for _, answer in response.metadata["sub_qa"]] == ["Green: no.", None]
    every = FailingRetriever(search, "tea", OSError("no disk"))
    failing = NodeGraphQueryEngine(every, llm, strategy="sub_question", **DECOMPOSE)
    with pytest.raises(OSError, match="no disk"):
        failing.query(BOTH)
    with pytest.raises(OSError, match="no disk"):
        asyncio.run(failing.aquery(BOTH))


def test_empty_plan_answers_the_question(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(lambda prompt: "NONE" if prompt.startswith("Take") else "Black tea.")
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE)
    response = engine.query(QUESTION)
    assert response.metadata["sub_qa"] == []
    assert ids(response.source_nodes) == [r.node.id for r in search(QUESTION)]


def test_sub_qa_lists_all_steps(search: Retriever, scripted: Scripted) -> None:
    steps = iter(
        [
            step("unknown", "no", "Which tea keeps for years nonetheless?"),
            step("black tea", "no", "How did tea come to Europe?"),
            step("by sea", "yes", "NONE"),
        ]
    )
    llm = scripted(lambda prompt: next(steps) if prompt.startswith("Step") else "By sea.")
    engine = NodeGraphQueryEngine(search, llm, strategy="multi_step", **STEP, max_steps=3)
    response = engine.query("How did the tea that keeps come to Europe?")
    assert [(question, str(answer)) for question, answer in response.metadata["sub_qa"]] == [
        ("Which tea keeps for years nonetheless?", "black tea"),
        ("How did tea come to Europe?", "by sea"),
    ]
    assert response.metadata["ended"] == "answered"
    assert "Answer: black tea" in llm.prompts[-1]


def test_repeated_and_failed_steps_end_the_search(search: Retriever, scripted: Scripted) -> None:
    again = scripted(step("unknown", "no", "Which tea is black tea?"))
    engine = NodeGraphQueryEngine(search, again, strategy="multi_step", **STEP)
    assert engine.query("Tea?").metadata["ended"] in ("repeated", "nothing new")
    failing = scripted(lambda prompt: RuntimeError("off") if prompt.startswith("Step") else "Tea.")
    engine = NodeGraphQueryEngine(search, failing, strategy="multi_step", **STEP)
    response = engine.query("Black tea?")
    assert response.metadata["ended"] == "failed"
    assert "RuntimeError: off" in response.metadata["errors"][0]["error"]


@pytest.mark.parametrize("is_async", [False, True])
def test_sub_questions_of_an_inner_strategy_are_listed(
    search: Retriever, scripted: Scripted, is_async: bool
) -> None:
    failing = FailingRetriever(search, "Is green tea fermented?", OSError("no disk"))
    parts = make_strategy("sub_question", failing, decompose_and_answer, **DECOMPOSE)
    outer = RerankRetriever(
        parts, "ModuleReranker", model=lambda query, texts: [len(text) for text in texts]
    )
    engine = NodeGraphQueryEngine(outer, scripted("Only black tea."))
    response = asyncio.run(engine.aquery(BOTH)) if is_async else engine.query(BOTH)
    assert [(question, str(answer)) for question, answer in response.metadata["sub_qa"]] == [
        ("Is green tea fermented?", "None"),
        ("Is black tea fermented?", "Black: yes."),
    ]
    (error,) = response.metadata["errors"]
    assert error["question"] == "Is green tea fermented?"


# Prompts and errors


def test_prompts_are_read_and_replaced_one_level_deep(
    search: Retriever, scripted: Scripted
) -> None:
    llm = scripted("How did tea come to Europe?")
    engine = NodeGraphQueryEngine(search, llm, strategy="rewrite")
    names = {"retriever:rewrite_en", "retriever:rewrite_zh"}
    prompts = engine.get_prompts()
    assert names < {*prompts}
    assert "response_synthesizer:text_qa_template" in prompts
    assert "{query}" in prompts["retriever:rewrite_en"].get_template()
    engine.update_prompts({"retriever:rewrite_en": PromptTemplate('MINE {{"a": 1}} {query}')})
    engine.query("tee 2 europe")
    assert llm.prompts[0] == 'MINE {"a": 1} tee 2 europe'
    engine.query("茶")
    assert not llm.prompts[-2].startswith("MINE")
    with pytest.raises(ValueError, match=r"must contain \{query\}"):
        engine.update_prompts({"retriever:rewrite_en": PromptTemplate("MINE")})


def test_prompts_of_another_engine_stay(search: Retriever, scripted: Scripted) -> None:
    strategy = make_strategy("rewrite", search, scripted("Tea?"))
    first = NodeGraphQueryEngine(NodeGraphRetriever(strategy), scripted("Tea."))
    second = NodeGraphQueryEngine(NodeGraphRetriever(strategy), scripted("Tea."))
    first.update_prompts({"retriever:rewrite_en": PromptTemplate("MINE {query}")})
    assert first.get_prompts()["retriever:rewrite_en"].get_template() == "MINE {query}"
    assert second.get_prompts()["retriever:rewrite_en"].get_template() != "MINE {query}"


def test_wrong_arguments_raise(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Tea.")
    with pytest.raises(ValueError, match="unknown strategy 'multistep'; known: 'multi_step'"):
        NodeGraphQueryEngine(search, llm, strategy="multistep")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"\['max_steps'\] are options of a strategy"):
        NodeGraphQueryEngine(search, llm, max_steps=2)
    synthesizer = get_response_synthesizer(llm=llm)
    with pytest.raises(ValueError, match=r"pass \['streaming'\] to the response_synthesizer"):
        NodeGraphQueryEngine(search, response_synthesizer=synthesizer, streaming=True)
