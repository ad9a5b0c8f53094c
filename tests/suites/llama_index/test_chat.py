"""Chat engines: ``index.as_chat_engine``."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import MessageRole
from llama_index.core.memory import ChatMemoryBuffer
from support.llama_index_models import ScriptedLLM

pytestmark = pytest.mark.usefixtures("closed_memories")

MODES = ("condense_plus_context", "context", "condense_question")
QUESTION = "Which tea is fermented?"


def topics(response: Any) -> list[str]:
    return [source.metadata["topic"] for source in response.source_nodes]


@pytest.mark.parametrize("mode", MODES)
async def test_questions_are_answered_with_sources(index: Any, llm: ScriptedLLM, mode: str) -> None:
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
def test_answers_are_streamed(index: Any, llm: ScriptedLLM, mode: str) -> None:
    response = index.as_chat_engine(chat_mode=mode, llm=llm).stream_chat(QUESTION)
    assert "".join(response.response_gen) == "It is."
    assert topics(response)[0] == "tea"


@pytest.mark.parametrize("mode", MODES)
async def test_answers_are_streamed_in_async_code(index: Any, llm: ScriptedLLM, mode: str) -> None:
    response = await index.as_chat_engine(chat_mode=mode, llm=llm).astream_chat(QUESTION)
    assert "".join([text async for text in response.async_response_gen()]) == "It is."


@pytest.mark.parametrize("mode", ["condense_plus_context", "condense_question"])
def test_a_question_is_condensed_with_those_before(index: Any, llm: ScriptedLLM, mode: str) -> None:
    def reply(prompt: str) -> str:
        condenses = "Standalone question" in prompt or "standalone question" in prompt
        return "Is the Nile 6,650 km long?" if condenses else "It is."

    llm.answer = reply
    chat = index.as_chat_engine(chat_mode=mode, llm=llm, similarity_top_k=1)
    chat.chat(QUESTION)
    assert topics(chat.chat("And how long is that river?")) == ["rivers"]


def test_memory_and_system_prompt(index: Any, llm: ScriptedLLM) -> None:
    memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
    chat = index.as_chat_engine(
        chat_mode="context", llm=llm, memory=memory, system_prompt="You are a waiter."
    )
    chat.chat(QUESTION)
    assert "You are a waiter." in llm.prompts[-1]
    assert [message.content for message in memory.get_all()] == [QUESTION, "It is."]


def test_filters_of_a_chat(index: Any, llm: ScriptedLLM) -> None:
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    rivers = MetadataFilters(filters=[MetadataFilter(key="topic", value="rivers")])
    chat = index.as_chat_engine(chat_mode="context", llm=llm, filters=rivers)
    assert topics(chat.chat("Is tea fermented, or the Nile long?")) == ["rivers"]


def test_a_chat_without_retrieval(index: Any, llm: ScriptedLLM) -> None:
    chat = index.as_chat_engine(chat_mode="simple", llm=llm)
    assert str(chat.chat("Hello!")) == "It is."
