"""Answers by LlamaIndex's synthesizer and by nodekin's query engine, also streamed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import PromptTemplate, Settings
from query_engine_scripts import (
    BOTH,
    FailingFor,
    Scripted,
    ids,
    read,
)

from nodekin.adapters.llama_index import (
    NodeGraphQueryEngine,
)
from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import (
    QaRetriever,
    QueryEngine,
    Retriever,
)
from nodekin.retrievers.answers.answer import AnswerError

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
