"""A nodekin retriever, with a strategy or without, as a LlamaIndex query engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings, get_response_synthesizer
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
    NodeGraphRetriever,
    NodeWithEvidence,
    SpanStartEvent,
)
from nodekin.nodegraph import ModelError, Node, NodeGraph
from nodekin.retrievers import (
    MultiStepRetriever,
    QaRetriever,
    QueryEngine,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.answers import AnswerError

BOTH = "Is green tea fermented, and is black tea?"
PARTS = "Is green tea fermented?\nIs black tea fermented?"
APART: dict[str, Any] = {
    "prompt": {"en": "Take apart: {query}", "zh": "分解：{query}"},
    "answer_prompt": {"en": "Part: {query} {context}", "zh": "部分：{query} {context}"},
}
STEP: dict[str, Any] = {"prompt": "Step: {question} {passages}"}
Scripted = Callable[[Any], Any]


def taking_apart(prompt: str) -> str:
    """Be a model that decomposes, answers parts, and answers."""
    if prompt.startswith("Take apart"):
        return PARTS
    if prompt.startswith("Part"):
        return "Green: no." if "Is green tea" in prompt else "Black: yes."
    return "Only black tea."


def ids(nodes: Any) -> list[str]:
    return [node.node.node_id for node in nodes]


async def read(response: Any) -> list[str]:
    return [piece async for piece in response.response_gen]


# Without a strategy


def test_answers_from_what_the_retriever_finds(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Black tea.")
    engine = NodeGraphQueryEngine(search, llm)
    response = engine.query("Which tea is fermented?")
    expected = search("Which tea is fermented?")
    assert str(response) == "Black tea."
    assert ids(response.source_nodes) == [each.node.id for each in expected]
    assert [each.score for each in response.source_nodes] == [each.score for each in expected]
    assert all(isinstance(each, NodeWithEvidence) for each in response.source_nodes)
    assert response.metadata[expected[0].node.id]["topic"] == "tea"
    assert "sub_qa" not in response.metadata
    assert "errors" not in response.metadata
    (prompt,) = llm.asked
    assert all(each.node.text in prompt for each in expected)


def test_is_the_same_as_retriever_query_engine(
    search: Retriever, retriever: NodeGraphRetriever, scripted: Scripted
) -> None:
    theirs_llm, ours_llm = scripted("Tea."), scripted("Tea.")
    theirs = RetrieverQueryEngine.from_args(retriever, llm=theirs_llm).query(BOTH)
    ours = NodeGraphQueryEngine(search, ours_llm).query(BOTH)
    assert ours_llm.asked == theirs_llm.asked
    assert ids(ours.source_nodes) == ids(theirs.source_nodes)
    assert ours.metadata == theirs.metadata


@pytest.mark.usefixtures("unblocked")
def test_async_is_the_same(search: Retriever, scripted: Scripted) -> None:
    async def main() -> None:
        for strategy in ("none", "rewrite", "multi_query", "hyde", "sub_question", "multi_step"):
            engine = NodeGraphQueryEngine(search, scripted("Is tea black?"), strategy=strategy)
            made = await engine.aquery(BOTH)
            again = await asyncio.to_thread(engine.query, BOTH)
            assert str(made) == str(again)
            assert ids(made.source_nodes) == ids(again.source_nodes)
            assert made.metadata.keys() == again.metadata.keys()
            bundle = QueryBundle(BOTH)
            assert ids(await engine.aretrieve(bundle)) == ids(made.source_nodes)
            synthesized = await engine.asynthesize(bundle, made.source_nodes)
            assert ids(synthesized.source_nodes) == ids(made.source_nodes)

    asyncio.run(main())


def test_searches_a_graph(graph: NodeGraph, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(
        graph, scripted("白色。"), group="paragraph", similarity_top_k=1, filters={"year": 2005}
    )
    (node,) = engine.query("大熊猫的毛是什么颜色？").source_nodes
    assert node.text == "大熊猫的毛是黑白两色的。"


def test_nothing_found(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("?")
    response = NodeGraphQueryEngine(search, llm).query("quux")
    assert str(response) == "Empty Response"
    assert response.source_nodes == []
    assert llm.asked == []


def test_postprocessors_take_part(search: Retriever, scripted: Scripted) -> None:
    found = search("Which tea is fermented?")
    cut = SimilarityPostprocessor(similarity_cutoff=found[0].score)
    for source in (search, QueryEngine(search, scripted("Tea [1]."))):
        engine = NodeGraphQueryEngine(source, scripted("Tea."), node_postprocessors=[cut])
        assert ids(engine.query("Which tea is fermented?").source_nodes) == [found[0].node.id]
        assert ids(engine.retrieve("Which tea is fermented?")) == [found[0].node.id]


def test_synthesize_takes_any_nodes(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Tea."))
    bundle = QueryBundle("Which tea is fermented?")
    first, *rest = engine.retrieve(bundle)
    response = engine.synthesize(bundle, [first], rest)
    assert ids(response.source_nodes) == ids([first, *rest])
    answered = NodeGraphQueryEngine(QueryEngine(search, lambda prompt: "Tea [1]."))
    response = answered.synthesize(bundle, [first], rest)
    assert ids(response.source_nodes) == ids([first, *rest])
    assert response.metadata["cited"] == [1]


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
        assert str(engine.query(BOTH)) == llm.says
        assert len(llm.asked) == 2
    assert len(first.asked) == 2


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
        assert llm.asked[0].startswith("MINE ")


# Strategies


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
    llm = scripted(taking_apart)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **APART)
    response = engine.query(BOTH)
    assert str(response) == "Only black tea."
    told = response.metadata["sub_qa"]
    assert [(question, str(answer)) for question, answer in told] == [
        ("Is green tea fermented?", "Green: no."),
        ("Is black tea fermented?", "Black: yes."),
    ]
    assert all(isinstance(answer, Response) for _, answer in told)
    assert told[0][1].source_nodes[0].text.startswith("Green tea")
    assert "Question: Is green tea fermented?\nAnswer: Green: no." in llm.asked[-1]
    assert all(each.text in llm.asked[-1] for each in response.source_nodes)
    plain = SubQuestionRetriever(search, taking_apart, prompt=APART["prompt"])
    assert ids(response.source_nodes) == [each.node.id for each in plain(BOTH)]
    assert [n.score for n in response.source_nodes] == [each.score for each in plain(BOTH)]
    assert "errors" not in response.metadata


def test_sub_questions_are_retrieved_only(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(taking_apart)
    engine = NodeGraphQueryEngine(search, llm, strategy="sub_question", **APART)
    found = engine.retrieve(BOTH)
    assert len(llm.asked) == 1
    assert ids(found) == ids(engine.query(BOTH).source_nodes)
    assert len(llm.asked) == 1 + 4


def test_sub_questions_in_chinese(search: Retriever, scripted: Scripted) -> None:
    def says(prompt: str) -> str:
        if prompt.startswith("分解"):
            return "红茶是什么茶？\n大熊猫的毛是什么颜色的？"
        return "红茶是全发酵茶。" if prompt.startswith("部分") else "如上。"

    llm = scripted(says)
    response = NodeGraphQueryEngine(search, llm, strategy="sub_question", **APART).query(
        "红茶是什么茶，大熊猫的毛又是什么颜色？"
    )
    assert [question for question, _ in response.metadata["sub_qa"]] == [
        "红茶是什么茶？",
        "大熊猫的毛是什么颜色的？",
    ]
    assert "问题：红茶是什么茶？\n答案：红茶是全发酵茶。" in llm.asked[-1]


class FailingFor:
    """A retriever that fails for some queries."""

    def __init__(self, inner: Retriever, *words: str) -> None:
        self.inner, self.words = inner, words

    def retrieve(self, query: str, **settings: Any) -> Any:
        if any(word in query for word in self.words):
            raise OSError(f"no disk for {query}")
        return self.inner.retrieve(query, **settings)

    async def aretrieve(self, query: str, **settings: Any) -> Any:
        return self.retrieve(query, **settings)


def test_a_sub_question_that_fails_is_told(search: Retriever, scripted: Scripted) -> None:
    some = FailingFor(search, "Is black tea fermented?")
    engine = NodeGraphQueryEngine(some, scripted(taking_apart), strategy="sub_question", **APART)
    response = engine.query(BOTH)
    assert response.metadata["errors"] == [
        {
            "question": "Is black tea fermented?",
            "error": "OSError: no disk for Is black tea fermented?",
        }
    ]
    assert [answer.response for _, answer in response.metadata["sub_qa"]] == ["Green: no.", None]
    every = FailingFor(search, "tea")
    failing = NodeGraphQueryEngine(every, scripted(taking_apart), strategy="sub_question", **APART)
    with pytest.raises(OSError, match="no disk"):
        failing.query(BOTH)
    with pytest.raises(OSError, match="no disk"):
        asyncio.run(failing.aquery(BOTH))


def test_an_empty_plan_answers_the_question(search: Retriever, scripted: Scripted) -> None:
    llm = scripted(lambda prompt: "NONE" if prompt.startswith("Take") else "Black tea.")
    response = NodeGraphQueryEngine(search, llm, strategy="sub_question", **APART).query(
        "Which tea is fermented?"
    )
    assert response.metadata["sub_qa"] == []
    assert ids(response.source_nodes) == [r.node.id for r in search("Which tea is fermented?")]


def step(answer: str, answered: str, question: str) -> str:
    return f"Answer: {answer}\nAnswered: {answered}\nNext question: {question}"


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
    assert "Answer: black tea" in llm.asked[-1]
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


# Prompts


def test_prompts_are_read_and_replaced(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Is tea black?")
    engine = NodeGraphQueryEngine(search, llm, strategy="rewrite")
    prompts = engine.get_prompts()
    assert {
        "response_synthesizer:refine_template",
        "response_synthesizer:text_qa_template",
        "retriever:rewrite_en",
        "retriever:rewrite_zh",
    } <= set(prompts)
    assert all(name.count(":") == 1 for name in prompts)  # update_prompts breaks on deeper ones
    assert "{query}" in prompts["retriever:rewrite_en"].get_template()
    engine.update_prompts(
        {
            "retriever:rewrite_en": PromptTemplate('Mend as {{"q": ...}}: {query}'),
            "response_synthesizer:text_qa_template": PromptTemplate("From {context_str}"),
        }
    )
    engine.query("black tee")
    assert llm.asked[0] == 'Mend as {"q": ...}: black tee'
    assert llm.asked[1].startswith("From ")
    assert engine.get_prompts()["retriever:rewrite_en"].get_template() == (
        'Mend as {{"q": ...}}: {query}'
    )
    with pytest.raises(ValueError, match=r"no place for 'query'; write \{query\}"):
        engine.update_prompts({"retriever:rewrite_en": PromptTemplate("Mend it")})


def test_updating_with_its_own_prompts_changes_nothing(
    search: Retriever, scripted: Scripted
) -> None:
    for strategy in ("rewrite", "hyde", "multi_query", "sub_question", "multi_step"):
        llm = scripted("Is tea black?")
        engine = NodeGraphQueryEngine(search, llm, strategy=strategy)
        engine.query(BOTH)
        before = list(llm.asked)
        engine.update_prompts(engine.get_prompts())
        llm.asked.clear()
        engine.query(BOTH)
        assert sorted(llm.asked) == sorted(before)


def test_prompts_of_the_query_engine(search: Retriever) -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "Tea [1]."

    given = QueryEngine(search, model)
    engine = NodeGraphQueryEngine(given)
    assert "response_synthesizer:answer_en" in engine.get_prompts()
    mine = PromptTemplate("{passages} Q: {question}")
    engine.update_prompts({"response_synthesizer:answer_en": mine})
    engine.query("Which tea is black?")
    assert asked[-1].endswith(" Q: Which tea is black?")
    assert given.prompts["answer"].en != "{passages} Q: {question}"


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


# What is told


@pytest.mark.parametrize("answering", [False, True])
def test_spans_and_events(
    search: Retriever, scripted: Scripted, watched: SimpleNamespace, answering: bool
) -> None:
    llm = scripted(taking_apart)
    source = QueryEngine(search, llm) if answering else search
    NodeGraphQueryEngine(source, llm, strategy="sub_question", **APART).query(BOTH)
    spans = {span.id_: span for span in watched.spans.completed_spans}

    def above(span: Any) -> list[str]:
        return [span.id_, *above(spans[span.parent_id])] if span.parent_id in spans else [span.id_]

    (outer,) = [s for s in spans.values() if s.parent_id not in spans]
    assert outer.id_.startswith("NodeGraphQueryEngine.query")
    searches = [span for span in spans.values() if span.id_.startswith("nodekin.search")]
    assert len(searches) == 1  # of three queries
    assert all(above(span)[-1] == outer.id_ for span in searches)
    assert all(any("sub-questions" in name for name in above(span)) for span in searches)
    started = [each for each in watched.events if isinstance(each, SpanStartEvent)]
    assert sum(each.span == "search" for each in started) == 1  # each is told once
    assert sum(each.span == "answer" for each in started) == answering
    assert sum(isinstance(each, QueryStartEvent) for each in watched.events) == 1
    assert sum(isinstance(each, QueryEndEvent) for each in watched.events) == 1


def test_callbacks(search: Retriever, scripted: Scripted) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([handler])
    llm = scripted(taking_apart)
    engine = NodeGraphQueryEngine(
        search, llm, strategy="sub_question", **APART, callback_manager=manager
    )
    assert engine.retriever.callback_manager is manager
    engine.query(BOTH)
    assert len(handler.get_event_pairs(CBEventType.QUERY)) == 1
    assert len(handler.get_event_pairs(CBEventType.RETRIEVE)) == 1
    assert len(handler.get_event_pairs(CBEventType.SYNTHESIZE)) == 1
    told = [pair[1].payload for pair in handler.get_event_pairs(CBEventType.SUB_QUESTION)]
    assert [next(iter(each.values())).answer for each in told] == ["Green: no.", "Black: yes."]


def test_a_given_synthesizers_callback_manager_is_taken(
    search: Retriever, scripted: Scripted
) -> None:
    manager = CallbackManager([])
    synthesizer = get_response_synthesizer(llm=scripted("Tea."), callback_manager=manager)
    engine = NodeGraphQueryEngine(search, response_synthesizer=synthesizer)
    assert engine.callback_manager is manager


# Inside LlamaIndex


class TwoQuestions(BaseQuestionGenerator):
    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=q, tool_name="tea") for q in PARTS.splitlines()]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


def test_as_a_tool_of_their_sub_question_engine(search: Retriever, scripted: Scripted) -> None:
    engine = NodeGraphQueryEngine(search, scripted("Tea."), strategy="rewrite")
    tool = QueryEngineTool.from_defaults(engine, name="tea", description="tea")
    outer = SubQuestionQueryEngine.from_defaults(
        [tool], question_gen=TwoQuestions(), llm=scripted("All."), verbose=False, use_async=False
    )
    response = outer.query(BOTH)
    assert str(response) == "All."
    assert len(response.source_nodes) > 2
    assert str(tool.call(input="Which tea is black?")) == "Tea."


# What is refused


def test_what_is_wrong_is_said(search: Retriever, scripted: Scripted) -> None:
    llm = scripted("Tea.")
    with pytest.raises(ValueError, match="no strategy 'multistep'; there is 'multi_step'"):
        NodeGraphQueryEngine(search, llm, strategy="multistep")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"settings \['max_steps'\] are those of a strategy"):
        NodeGraphQueryEngine(search, llm, max_steps=2)
    with pytest.raises(TypeError, match="answers with a LlamaIndex LLM"):
        NodeGraphQueryEngine(search, lambda prompt: "Tea.")
    with pytest.raises(TypeError, match="retriever is a nodekin retriever"):
        NodeGraphQueryEngine(llm, llm)
    synthesizer = get_response_synthesizer(llm=llm)
    with pytest.raises(TypeError, match="response_synthesizer is LlamaIndex's"):
        NodeGraphQueryEngine(search, response_synthesizer=QueryEngine(search, llm))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="answers by itself"):
        NodeGraphQueryEngine(QueryEngine(search, llm), response_synthesizer=synthesizer)
    with pytest.raises(ValueError, match="streaming=True"):
        NodeGraphQueryEngine(search, response_synthesizer=synthesizer, streaming=True)
