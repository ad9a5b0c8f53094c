import asyncio
import contextvars

import pytest
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from nodekin.adapters.langchain.query_engine_io import (
    first_fields,
    join_chunks,
    last_fields,
    read_question,
    stream_from_task,
    stream_in_context,
)
from nodekin.retrievers import QueryEngine

NILE = {"role": "user", "content": "Nile?"}


def read(input, question_key=None):
    return read_question(input, question_key, "chat_history")


@pytest.mark.parametrize(
    ("input", "question"),
    [
        ("How long?", ("How long?", [])),
        ({"query": "How long?"}, ("How long?", [])),
        ({"input": "How long?", "query": "other"}, ("How long?", [])),
        ({"question": "How long?", "chat_history": ["Nile?"]}, ("How long?", [NILE])),
        (
            {"input": [("human", "Nile?"), ("human", "How long?")], "chat_history": []},
            ("How long?", [NILE]),
        ),
        ([ChatMessage("How long?", role="human")], ("How long?", [])),
        ([HumanMessage(["How", {"type": "text", "text": "long?"}, {"type": "image"}])],
         ("How\nlong?", [])),
    ],
)  # fmt: skip
def test_question_and_history(input, question):
    assert read(input) == question


def test_a_history_has_no_messages_of_tools_and_the_system():
    history = [
        SystemMessage("Be brief."),
        HumanMessage("Nile?"),
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
        ToolMessage("6,650 km", tool_call_id="1"),
        AIMessage("A river."),
    ]
    question = read({"question": "How long?", "chat_history": history})
    assert question.history == [NILE, {"role": "assistant", "content": "A river."}]


def test_errors_name_the_keys():
    with pytest.raises(ValueError, match=r"keys \['topic'\].*'frage'"):
        read({"topic": "x"}, "frage")
    with pytest.raises(TypeError, match="holds messages"):
        read({"query": "x", "chat_history": "earlier"})


def test_joined_chunks():
    assert join_chunks(["How ", "long?"]) == "How long?"
    assert join_chunks([{"a": "x"}, {"a": "y", "b": [1]}, {"b": [2]}]) == {"a": "xy", "b": [1, 2]}


def test_a_generator_in_a_context_of_its_own():
    current = contextvars.ContextVar("current", default="outside")
    closed = []

    def chunks():
        token = current.set("inside")
        try:
            yield current.get()
            yield current.get()
        finally:
            current.reset(token)  # an error in another context
            closed.append(True)

    stream = stream_in_context(chunks())
    assert (next(stream), current.get()) == ("inside", "outside")
    stream.close()
    assert closed == [True]


async def test_a_task_ends_with_its_consumer():
    cancelled = []

    async def produce(emit):
        emit(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    stream = stream_from_task(produce)
    assert await anext(stream) == 1
    await stream.aclose()
    assert cancelled == [True]


async def test_an_error_of_a_task_comes_after_its_chunks():
    async def produce(emit):
        emit(1)
        raise ValueError("broken")

    stream = stream_from_task(produce)
    assert await anext(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(stream)


def test_the_fields_of_an_answer(native):
    answer = QueryEngine(native, lambda prompt: "Black tea is [1].").query("fermented tea")
    first = first_fields(answer)
    assert [d.id for d in first["context"]] == ["tea", "rivers", "press"]
    last = last_fields(answer)
    assert [s["cited"] for s in last["sources"]] == [True, False, False]
    assert (last["found"], last["notes"]) == (True, [])
