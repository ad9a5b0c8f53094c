"""Histories, streaming, async and structured output with one class exchanged."""

import asyncio
from typing import Any

import pytest
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts import PromptTemplate
from support.llama_index_models import closed_memories  # noqa: F401
from support.llama_index_programs import QUESTION, Kit, answering, check, described


class Drink(BaseModel):
    """A drink of a structured answer."""

    name: str
    hot: bool


def history(kit: Kit) -> Any:
    memory = ChatMemoryBuffer.from_defaults(token_limit=900)
    engine = kit.from_documents().as_chat_engine(
        chat_mode="context", llm=answering(), memory=memory, system_prompt="Be short."
    )
    replies = [engine.chat(text) for text in (QUESTION, "And which is steamed?")]
    said = [(message.role.value, message.content) for message in memory.get()]
    return said, [described(reply.source_nodes) for reply in replies]


def condensed(kit: Kit) -> Any:
    retriever = kit.from_documents().as_retriever(similarity_top_k=2)
    engine = CondensePlusContextChatEngine.from_defaults(retriever, llm=answering("Steamed tea?"))
    engine.chat(QUESTION)
    reply = engine.chat("And steamed?")
    return str(reply), described(reply.source_nodes)


def condensed_question(kit: Kit) -> Any:
    engine = kit.from_documents().as_chat_engine(
        chat_mode="condense_question", llm=answering("Which tea is steamed?")
    )
    engine.chat(QUESTION)
    reply = engine.chat("And steamed?")
    return str(reply), described(reply.source_nodes)


def streamed(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(
        llm=answering("Black tea is."), streaming=True, similarity_top_k=3
    )
    response = engine.query(QUESTION)
    return [*response.response_gen], described(response.source_nodes)


def streamed_chat(kit: Kit) -> Any:
    engine = kit.from_documents().as_chat_engine(chat_mode="context", llm=answering("It is."))
    reply = engine.stream_chat(QUESTION)
    return [*reply.response_gen], described(reply.source_nodes)


def several_at_once(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(llm=answering())
    questions = ["Which tea is black?", "What is roasted?", "What is cold?"]

    async def ask() -> Any:
        return await asyncio.gather(*map(engine.aquery, questions))

    return [(str(reply), described(reply.source_nodes)) for reply in asyncio.run(ask())]


def structured(kit: Kit) -> Any:
    engine = kit.from_documents().as_query_engine(
        llm=answering('{"name": "tea", "hot": true}'), output_cls=Drink, response_mode="compact"
    )
    response = engine.query(QUESTION)
    return str(response), described(response.source_nodes)


def own_prompt_and_mode(kit: Kit) -> Any:
    model = answering()
    engine = kit.from_documents().as_query_engine(
        llm=model,
        response_mode="tree_summarize",
        summary_template=PromptTemplate("Say: {context_str} / {query_str}"),
    )
    response = engine.query(QUESTION)
    return str(response), model.prompts, described(response.source_nodes)


@pytest.mark.usefixtures("closed_memories")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LlamaIndex's workflows
@pytest.mark.parametrize(
    "program",
    [
        history,
        condensed,
        condensed_question,
        streamed,
        streamed_chat,
        several_at_once,
        structured,
        own_prompt_and_mode,
    ],
    ids=lambda program: program.__name__,
)
def test_program_has_equal_results_and_events(program: Any, monkeypatch: Any) -> None:
    check(program, monkeypatch)
