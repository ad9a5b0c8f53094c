"""Responses, and the record of their retrieval in their metadata."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings, get_response_synthesizer
from llama_index.core.base.response.schema import Response
from query_engine_scripts import (
    BOTH,
    DECOMPOSE,
    STEP,
    FailingFor,
    Scripted,
    decompose_and_answer,
    ids,
    read,
    step,
)

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
)
from nodekin.nodegraph import ModelError, Node, NodeGraph
from nodekin.retrievers import (
    FusionRetriever,
    MultiStepRetriever,
    QaRetriever,
    QueryEngine,
    QueryRewriteRetriever,
    RerankRetriever,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.answers.answer import AnswerError
from nodekin.retrievers.strategies.strategy_registry import make_strategy

# The model of the settings


def test_the_settings_model_is_looked_up_when_it_is_asked(
    search: Retriever, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    engine = NodeGraphQueryEngine(search, strategy="rewrite")
    engine.get_prompts()
    assert Settings._llm is None
    first, second = scripted("Is tea black?"), scripted("Is green tea black?")
    for llm in (first, second):
        monkeypatch.setattr(Settings, "_llm", llm)
        assert str(engine.query(BOTH)) == llm.answer
        assert len(llm.prompts) == 2
    assert len(first.prompts) == 2


def test_a_prompt_that_was_replaced_outlives_a_change_of_the_model(
    search: Retriever, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", None)
    engine = NodeGraphQueryEngine(search)
    mine = PromptTemplate("MINE {context_str} {query_str}")
    engine.update_prompts({"response_synthesizer:text_qa_template": mine})
    for _ in range(2):
        monkeypatch.setattr(Settings, "_llm", llm := scripted("Tea."))
        engine.query(BOTH)
        assert llm.prompts[0].startswith("MINE ")


# Streaming


def test_streaming(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Black tea is."), streaming=True)
    response = engine.query("Which tea is fermented?")
    assert ids(response.source_nodes) == [r.node.id for r in search("Which tea is fermented?")]
    assert list(response.response_gen) == ["Black", " tea", " is."]
    later = asyncio.run(stream_and_read(engine, "Which tea is fermented?"))
    assert "".join(later) == "Black tea is."


async def stream_and_read(engine: NodeGraphQueryEngine, question: str) -> list[str]:
    response = await engine.aquery(question)
    assert response.source_nodes
    return await read(response)


def test_streaming_by_the_query_engine(search: Retriever, scripted: Scripted) -> None:
    answers = QueryEngine(search, scripted("Black tea is [1]."))
    engine = NodeGraphQueryEngine(answers, streaming=True)
    response = engine.query("Which tea is fermented?")
    assert ids(response.source_nodes) == [r.node.id for r in search("Which tea is fermented?")]
    assert "cited" not in response.metadata
    assert "".join(response.response_gen) == "Black tea is [1]."
    assert response.metadata["cited"] == [1]
    assert response.metadata[response.source_nodes[0].node.node_id]["topic"] == "tea"


@pytest.mark.usefixtures("unblocked")
def test_async_streaming_by_the_query_engine(search: Retriever, scripted: Scripted) -> None:
    answers = QueryEngine(search, scripted("Black tea is [1]."))
    engine = NodeGraphQueryEngine(answers, streaming=True, strategy="sub_question")

    async def main() -> None:
        response = await engine.aquery("Which tea is fermented?")
        assert "".join(await read(response)) == "Black tea is [1]."
        assert response.metadata["cited"] == [1]
        assert "sub_qa" in response.metadata

    asyncio.run(main())


def test_a_stream_that_is_left(search: Retriever, scripted: Scripted, watched: Any) -> None:
    answers = QueryEngine(search, scripted("Black tea is [1]."))
    response = NodeGraphQueryEngine(answers, streaming=True).query("Which tea is fermented?")
    assert next(response.response_gen)
    response.response_gen.close()
    assert watched.spans.open_spans == {}


# nodekin's query engine


def test_answers_are_cited(search: Retriever) -> None:
    answers = QueryEngine(search, lambda prompt: "Black tea is [1], green tea is not [2].")
    response = NodeGraphQueryEngine(answers).query("Which tea is fermented?")
    expected = answers.query("Which tea is fermented?")
    assert str(response) == expected.text
    assert ids(response.source_nodes) == [each.result.node.id for each in expected.sources]
    assert response.metadata["cited"] == [1, 2]
    assert response.metadata["found"] is True
    nothing = NodeGraphQueryEngine(answers).query("quux")
    assert nothing.metadata["found"] is False
    assert nothing.source_nodes == []


def test_preset_answers_need_neither_model_nor_search(search: Retriever) -> None:
    pairs = NodeGraph()
    pairs.add("Pairs")
    pair = Node("Which tea is best?", {"answer": "The one you like."})
    pairs.create_node_group("qa", lambda text: [pair])
    nothing = FailingFor(search, "tea")
    engine = QueryEngine(nothing, lambda prompt: "never", qa=QaRetriever(pairs, "qa"))
    for made in (NodeGraphQueryEngine(engine), NodeGraphQueryEngine(engine, streaming=True)):
        response = made.query("which tea is best")
        assert str(response) == "The one you like."
        assert response.metadata["preset"] is True
        assert response.metadata["calls"] == 0
        assert [node.text for node in response.source_nodes] == [
            "Which tea is best?\nThe one you like."
        ]


def test_a_model_that_fails_is_raised(search: Retriever, scripted: Scripted) -> None:
    failing = scripted(ConnectionError("gone"))
    for streaming in (False, True):
        engine = NodeGraphQueryEngine(QueryEngine(search, failing), streaming=streaming)
        with pytest.raises(AnswerError, match="gone"):
            engine.query("Which tea is fermented?")
        with pytest.raises(AnswerError, match="gone"):
            asyncio.run(engine.aquery("Which tea is fermented?"))


def test_rewrite(search: Retriever, scripted: Scripted) -> None:
    def says(prompt: str) -> str:
        return "By sea." if "by sea" in prompt else "How did tea come to Europe?"

    engine = NodeGraphQueryEngine(search, scripted(says), strategy="rewrite")
    response = engine.query("tee 2 europe??")
    assert response.source_nodes[0].text == "Tea came to Europe by sea."
    (form,) = response.source_nodes[0].evidence[0]["variants"]
    assert form == {"query": "tee 2 europe??", "strategy": "rewrite", "note": None}


@pytest.mark.parametrize("strategy", ["rewrite", "multi_query", "hyde", "sub_question"])
def test_a_model_that_fails_leaves_the_plain_query(
    search: Retriever, scripted: Scripted, strategy: Any
) -> None:
    failing = lambda prompt: (_ for _ in ()).throw(ConnectionError("gone"))  # noqa: E731
    made = {"sub_question": SubQuestionRetriever}
    synthesizer = get_response_synthesizer(llm=scripted("Tea."))
    engine = NodeGraphQueryEngine(
        search, failing, strategy=strategy, response_synthesizer=synthesizer
    )
    response = engine.query("Which tea is fermented?")
    assert ids(response.source_nodes) == [r.node.id for r in search("Which tea is fermented?")]
    (error,) = response.metadata["errors"]
    assert error["question"] == "Which tea is fermented?"
    assert "ConnectionError: gone" in error["error"]
    assert ("sub_qa" in response.metadata) == (strategy in made)
    with pytest.raises(ModelError, match="gone"):
        NodeGraphQueryEngine(
            search,
            failing,
            strategy=strategy,
            response_synthesizer=synthesizer,
            on_error="raise",
        ).query("Which tea is fermented?")


def test_sub_questions(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE)
    response = engine.query(BOTH)
    assert str(response) == "Only black tea."
    told = response.metadata["sub_qa"]
    assert [(question, str(answer)) for question, answer in told] == [
        ("Is green tea fermented?", "Green: no."),
        ("Is black tea fermented?", "Black: yes."),
    ]
    assert all(isinstance(answer, Response) for _, answer in told)
    assert told[0][1].source_nodes[0].text.startswith("Green tea")
    assert "Question: Is green tea fermented?\nAnswer: Green: no." in llm.prompts[-1]
    assert all(each.text in llm.prompts[-1] for each in response.source_nodes)
    plain = SubQuestionRetriever(search, decompose_and_answer, prompt=DECOMPOSE["prompt"])
    assert ids(response.source_nodes) == [each.node.id for each in plain(BOTH)]
    assert [n.score for n in response.source_nodes] == [each.score for each in plain(BOTH)]
    assert "errors" not in response.metadata


def test_sub_questions_are_retrieved_only(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(decompose_and_answer)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE)
    found = engine.retrieve(BOTH)
    assert len(llm.prompts) == 1
    assert ids(found) == ids(engine.query(BOTH).source_nodes)
    assert len(llm.prompts) == 1 + 4


def test_sub_questions_in_chinese(search: Retriever, scripted: Scripted) -> None:
    def says(prompt: str) -> str:
        if prompt.startswith("分解"):
            return "红茶是什么茶？\n大熊猫的毛是什么颜色的？"
        return "红茶是全发酵茶。" if prompt.startswith("部分") else "如上。"

    llm = scripted(says)
    response = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE).query(
        "红茶是什么茶，大熊猫的毛又是什么颜色？"
    )
    assert [question for question, _ in response.metadata["sub_qa"]] == [
        "红茶是什么茶？",
        "大熊猫的毛是什么颜色的？",
    ]
    assert "问题：红茶是什么茶？\n答案：红茶是全发酵茶。" in llm.prompts[-1]


def test_a_sub_question_that_fails_is_told(search: Retriever, scripted: Scripted) -> None:
    some = FailingFor(search, "Is black tea fermented?")
    engine = NodeGraphQueryEngine(
        some, scripted(decompose_and_answer), strategy="sub_question", **DECOMPOSE
    )
    response = engine.query(BOTH)
    assert response.metadata["errors"] == [
        {
            "question": "Is black tea fermented?",
            "error": "OSError: no disk for Is black tea fermented?",
        }
    ]
    assert [answer.response for _, answer in response.metadata["sub_qa"]] == ["Green: no.", None]
    every = FailingFor(search, "tea")
    failing = NodeGraphQueryEngine(
        every, scripted(decompose_and_answer), strategy="sub_question", **DECOMPOSE
    )
    with pytest.raises(OSError, match="no disk"):
        failing.query(BOTH)
    with pytest.raises(OSError, match="no disk"):
        asyncio.run(failing.aquery(BOTH))


def test_an_empty_plan_answers_the_question(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(lambda prompt: "NONE" if prompt.startswith("Take") else "Black tea.")
    response = NodeGraphQueryEngine(search, llm, strategy="sub_question", **DECOMPOSE).query(
        "Which tea is fermented?"
    )
    assert response.metadata["sub_qa"] == []
    assert ids(response.source_nodes) == [r.node.id for r in search("Which tea is fermented?")]


def test_multi_step(search: Retriever, scripted: Scripted) -> None:
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
    assert {"Tea came to Europe by sea."} <= {node.text for node in response.source_nodes}


def test_steps_end(search: Retriever, scripted: Scripted) -> None:
    again = scripted(step("unknown", "no", "Which tea is black tea?"))
    engine = NodeGraphQueryEngine(search, again, strategy="multi_step", **STEP)
    assert engine.query("Tea?").metadata["ended"] in ("repeated", "nothing new")
    failing = scripted(lambda prompt: RuntimeError("off") if prompt.startswith("Step") else "Tea.")
    response = NodeGraphQueryEngine(search, failing, strategy="multi_step", **STEP).query(
        "Black tea?"
    )
    assert response.metadata["ended"] == "failed"
    assert "RuntimeError: off" in response.metadata["errors"][0]["error"]
    assert ids(response.source_nodes) == [each.node.id for each in search("Black tea?")]


def test_a_strategy_of_ones_own(search: Retriever, scripted: Scripted) -> None:
    done = MultiStepRetriever(search, lambda prompt: step("no", "no", "Which tea is green?"))
    response = NodeGraphQueryEngine(done, scripted("Tea.")).query("Which tea is fermented?")
    assert [question for question, _ in response.metadata["sub_qa"]] == ["Which tea is green?"]


def again(query: str, texts: Any) -> list[float]:
    return [float(len(text)) for text in texts]


def in_a_rerank(inner: Any, llm: Any) -> Any:
    return RerankRetriever(inner, "ModuleReranker", model=again)


def in_a_rewrite(inner: Any, llm: Any) -> Any:
    return QueryRewriteRetriever(inner, lambda prompt: BOTH, prompt="Mend: {query}")


def in_a_fusion(inner: Any, llm: Any) -> Any:
    return FusionRetriever([in_a_rerank(inner, llm), inner.inner])


@pytest.mark.parametrize("outer", [in_a_rerank, in_a_rewrite, in_a_fusion])
@pytest.mark.parametrize("is_async", [False, True])
def test_sub_questions_are_told_from_any_depth(
    search: Retriever, scripted: Scripted, outer: Any, is_async: bool
) -> None:
    failing = FailingFor(search, "Is green tea fermented?")
    parts = make_strategy("sub_question", failing, decompose_and_answer, **DECOMPOSE)
    engine = NodeGraphQueryEngine(outer(parts, decompose_and_answer), scripted("Only black tea."))
    response = asyncio.run(engine.aquery(BOTH)) if is_async else engine.query(BOTH)
    assert [(question, str(answer)) for question, answer in response.metadata["sub_qa"]] == [
        ("Is green tea fermented?", "None"),
        ("Is black tea fermented?", "Black: yes."),
    ]
    (error,) = response.metadata["errors"]
    assert error["question"] == "Is green tea fermented?"
    assert "no disk" in error["error"]


def test_steps_are_told_from_any_depth(search: Retriever, scripted: Scripted) -> None:
    replies = iter([step("unknown", "no", "Is black tea fermented?"), step("yes", "yes", "NONE")])
    steps = make_strategy("multi_step", search, lambda prompt: next(replies), **STEP)
    engine = NodeGraphQueryEngine(in_a_rerank(steps, None), scripted("Yes."))
    response = engine.query(BOTH)
    assert [question for question, _ in response.metadata["sub_qa"]] == ["Is black tea fermented?"]
    assert response.metadata["ended"] == "answered"


def test_only_the_outermost_strategys_questions_are_told(
    search: Retriever, scripted: Scripted
) -> None:
    parts = make_strategy("sub_question", search, decompose_and_answer, prompt=DECOMPOSE["prompt"])
    replies = iter([step("unknown", "no", "Is black tea fermented?"), step("yes", "yes", "NONE")])
    steps = make_strategy("multi_step", parts, lambda prompt: next(replies), **STEP)
    response = NodeGraphQueryEngine(steps, scripted("Yes.")).query(BOTH)
    assert [question for question, _ in response.metadata["sub_qa"]] == ["Is black tea fermented?"]


def test_retrieving_only_answers_no_sub_question_at_any_depth(
    search: Retriever, scripted: Scripted
) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return decompose_and_answer(prompt)

    parts = make_strategy("sub_question", search, model, **DECOMPOSE)
    engine = NodeGraphQueryEngine(in_a_rerank(parts, None), scripted("Only black tea."))
    assert engine.retrieve(BOTH)
    assert len(prompts) == 1
