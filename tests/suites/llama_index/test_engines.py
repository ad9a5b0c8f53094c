"""Query engines and chat engines of an index."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import QueryBundle, get_response_synthesizer
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import TransformQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from support.llama_index_models import ScriptedLLM

pytestmark = pytest.mark.usefixtures("closed_memories")

QUESTION = "Which tea is fermented?"


def topics(response: Any) -> list[str]:
    return [source.metadata["topic"] for source in response.source_nodes]


@pytest.mark.parametrize(
    "mode", ["compact", "refine", "tree_summarize", "simple_summarize", "accumulate"]
)
async def test_response_mode_uses_retrieved_texts(index: Any, llm: ScriptedLLM, mode: str) -> None:
    engine = index.as_query_engine(llm=llm, response_mode=mode)
    for response in (engine.query(QUESTION), await engine.aquery(QueryBundle(QUESTION))):
        assert isinstance(response, Response)
        assert "It is." in str(response)
        assert topics(response)[0] == "tea"
        assert any("Black tea is fermented." in prompt for prompt in llm.prompts)


@pytest.mark.parametrize("mode", ["no_text", "context_only"])
def test_mode_without_model_returns_sources(index: Any, mode: str) -> None:
    response = index.as_query_engine(response_mode=mode).query(QUESTION)
    assert topics(response)[0] == "tea"
    assert ("Black tea is fermented." in str(response)) == (mode == "context_only")


def test_response_metadata_equal_metadata_of_nodes(index: Any, llm: ScriptedLLM) -> None:
    response = index.as_query_engine(llm=llm).query(QUESTION)
    for source in response.source_nodes:
        assert response.metadata[source.node_id] == source.metadata


def test_streaming_response_yields_the_answer(index: Any, llm: ScriptedLLM) -> None:
    response = index.as_query_engine(llm=llm, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert "".join(response.response_gen) == "It is."
    assert topics(response)[0] == "tea"


def test_engine_uses_the_model_of_settings(index: Any) -> None:
    assert str(index.as_query_engine().query(QUESTION)) == "It is."


def test_engine_retrieves_and_synthesizes(index: Any, llm: ScriptedLLM) -> None:
    engine = index.as_query_engine(llm=llm)
    nodes = engine.retrieve(QueryBundle(QUESTION))
    assert nodes[0].metadata["topic"] == "tea"
    response = engine.synthesize(QueryBundle(QUESTION), nodes[:1])
    assert (str(response), topics(response)) == ("It is.", ["tea"])


def test_engine_takes_retriever_and_synthesizer(kind: Any, index: Any, llm: ScriptedLLM) -> None:
    retriever = index.as_retriever(similarity_top_k=1)
    engine = kind.engine.from_args(retriever, llm=llm)
    assert topics(engine.query(QUESTION)) == ["tea"]
    synthesizer = get_response_synthesizer(llm=llm, response_mode="compact")
    engine = kind.engine(retriever, response_synthesizer=synthesizer)
    assert str(engine.query(QUESTION)) == "It is."


def test_engine_without_results_answers_empty_response(kind: Any, llm: ScriptedLLM) -> None:
    response = kind.index.from_documents([]).as_query_engine(llm=llm).query(QUESTION)
    assert (str(response), response.source_nodes) == ("Empty Response", [])


# In LlamaIndex's own engines and tools


def tools(kind: Any, documents: list[Any], llm: ScriptedLLM) -> list[QueryEngineTool]:
    return [
        QueryEngineTool(
            query_engine=kind.index.from_documents([document]).as_query_engine(llm=llm),
            metadata=ToolMetadata(name=document.id_, description=f"All about {document.id_}"),
        )
        for document in documents
    ]


async def test_query_engine_tool_returns_answer_and_sources(
    kind: Any, documents: list[Any], llm: ScriptedLLM
) -> None:
    (tool, *_) = tools(kind, documents, llm)
    output = tool.call(input=QUESTION)
    assert output.content == "It is."
    assert topics(output.raw_output) == ["tea"]
    assert (await tool.acall(input=QUESTION)).content == "It is."


def test_transform_query_engine_transforms_the_query(index: Any, llm: ScriptedLLM) -> None:
    llm.answer = "The Nile is 6,650 km long and runs to the Mediterranean sea."
    hyde = HyDEQueryTransform(llm=llm, include_original=False)
    engine = TransformQueryEngine(index.as_query_engine(llm=llm, similarity_top_k=1), hyde)
    assert topics(engine.query("How long is the Nile?")) == ["rivers"]


def test_sub_questions_use_all_tools(kind: Any, documents: list[Any], llm: ScriptedLLM) -> None:
    parts = {"tea": QUESTION, "rivers": "How long is the Nile?"}

    def reply(prompt: str) -> str:
        if "Simpler questions:" in prompt:
            return "\n".join(f"{tool}: {question}" for tool, question in parts.items())
        if "Sub question:" in prompt or "sub-question" in prompt.lower():
            items = (f'{{"sub_question": "{q}", "tool_name": "{t}"}}' for t, q in parts.items())
            return f'```json\n{{"items": [{", ".join(items)}]}}\n```'
        return "It is."

    llm.answer = reply
    settings: dict[str, Any] = {"llm": llm}
    if kind.sub_questions.__module__.startswith("llama_index"):
        settings["question_gen"] = LLMQuestionGenerator.from_defaults(llm=llm)
        settings["use_async"] = False
    engine = kind.sub_questions.from_defaults(
        query_engine_tools=tools(kind, documents, llm), **settings
    )
    response = engine.query("Which tea is fermented, and how long is the Nile?")
    assert str(response)
    assert {"tea", "rivers"} <= {source.metadata.get("topic") for source in response.source_nodes}


# Chat engines

MODES = ("condense_plus_context", "context", "condense_question")


@pytest.mark.parametrize("mode", MODES)
async def test_chat_answers_with_sources_and_history(
    index: Any, llm: ScriptedLLM, mode: str
) -> None:
    chat = index.as_chat_engine(chat_mode=mode, llm=llm)
    response = chat.chat(QUESTION)
    assert str(response) == "It is."
    assert topics(response)[0] == "tea"
    roles = [MessageRole.USER, MessageRole.ASSISTANT]
    assert [message.role for message in chat.chat_history] == roles
    again = await chat.achat("And how long is the Nile?")
    assert str(again) == "It is."
    assert [message.role for message in chat.chat_history] == roles * 2
    chat.reset()
    assert chat.chat_history == []


@pytest.mark.parametrize("mode", MODES)
async def test_chat_streams_its_answer(index: Any, llm: ScriptedLLM, mode: str) -> None:
    response = index.as_chat_engine(chat_mode=mode, llm=llm).stream_chat(QUESTION)
    assert "".join(response.response_gen) == "It is."
    assert topics(response)[0] == "tea"
    response = await index.as_chat_engine(chat_mode=mode, llm=llm).astream_chat(QUESTION)
    assert "".join([text async for text in response.async_response_gen()]) == "It is."


@pytest.mark.parametrize("mode", ["condense_plus_context", "condense_question"])
def test_chat_condenses_question_with_history(index: Any, llm: ScriptedLLM, mode: str) -> None:
    def reply(prompt: str) -> str:
        condenses = "Standalone question" in prompt or "standalone question" in prompt
        return "Is the Nile 6,650 km long?" if condenses else "It is."

    llm.answer = reply
    chat = index.as_chat_engine(chat_mode=mode, llm=llm, similarity_top_k=1)
    chat.chat(QUESTION)
    assert topics(chat.chat("And how long is that river?")) == ["rivers"]


def test_chat_uses_memory_and_system_prompt(index: Any, llm: ScriptedLLM) -> None:
    memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
    chat = index.as_chat_engine(
        chat_mode="context", llm=llm, memory=memory, system_prompt="You are a waiter."
    )
    chat.chat(QUESTION)
    assert "You are a waiter." in llm.prompts[-1]
    assert [message.content for message in memory.get_all()] == [QUESTION, "It is."]


def test_chat_applies_filters(index: Any, llm: ScriptedLLM) -> None:
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    rivers = MetadataFilters(filters=[MetadataFilter(key="topic", value="rivers")])
    chat = index.as_chat_engine(chat_mode="context", llm=llm, filters=rivers)
    assert topics(chat.chat("Is tea fermented, or the Nile long?")) == ["rivers"]


def test_simple_chat_answers_without_retrieval(index: Any, llm: ScriptedLLM) -> None:
    chat = index.as_chat_engine(chat_mode="simple", llm=llm)
    assert str(chat.chat("Hello!")) == "It is."
