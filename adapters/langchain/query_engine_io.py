"""Read the inputs of a query engine's runnable, and build its outputs and streams."""

from __future__ import annotations

import asyncio
import contextvars
import operator
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables.utils import AddableDict

from ...retrievers.answers.answer import Answer
from .documents import Details, to_document

Message = Mapping[str, str]

_QUESTION_KEYS = ("question", "input", "query", "messages")


class QuestionInput(NamedTuple):
    """Hold a question, and the conversation before it.

    Attributes:
        text: The question.
        history: The messages before it, the oldest first, as ``QueryEngine`` takes them.
    """

    text: str
    history: list[Message]


def read_question(input: Any, question_key: str | None, history_key: str) -> QuestionInput:
    """Return the question of a runnable's input, and the conversation before it.

    Args:
        input: A text; a message; messages, the last of which is the question; or a mapping with
            one of these, and with a history beside it.
        question_key: Where in a mapping the question is; None for ``question``, ``input``,
            ``query`` or ``messages``.
        history_key: Where the history is: messages in any format that LangChain takes.

    Raises:
        TypeError: If the input has no question.
        ValueError: If a mapping has none, or the last message is not the user's.

    Example:
        >>> read_question({"input": "And how long?", "chat_history": [("human", "Nile?")]},
        ...               None, "chat_history")
        QuestionInput(text='And how long?', history=[{'role': 'user', 'content': 'Nile?'}])
    """
    if not isinstance(input, Mapping):
        return _question(input)
    keys = _QUESTION_KEYS if question_key is None else (question_key,)
    key = next((key for key in keys if key in input), None)
    if key is None:
        raise ValueError(
            f"there is no question: the input has the keys {sorted(map(str, input))}, and it is "
            f"looked for under {' or '.join(map(repr, keys))}; name yours with question_key="
        )
    question = _question(input[key])
    history = input.get(history_key)
    if history is None:
        return question
    if isinstance(history, str):
        raise TypeError(
            f"{history_key!r} holds messages, such as ('human', 'What is tea?'), not "
            f"{history!r:.80}"
        )
    return QuestionInput(question.text, [*_history(history), *question.history])


def _question(input: Any) -> QuestionInput:
    if isinstance(input, str):
        return QuestionInput(input, [])
    if isinstance(input, PromptValue):
        input = input.to_messages()
    if isinstance(input, BaseMessage):
        input = [input]
    if not isinstance(input, Sequence) or not input:
        raise TypeError(
            "a question is a text, a message, a list of messages, or a mapping with one of these, "
            f"not {input!r:.80}"
        )
    *history, last = convert_to_messages(input)
    if _role(last) != "user":
        raise ValueError(f"the last message is the user's question, not {last!r:.80}")
    return QuestionInput(_text(last), _history(history))


def _history(messages: Any) -> list[Message]:
    """Return messages as a query engine takes them, without those of tools and the system."""
    turns = [(_role(message), _text(message)) for message in convert_to_messages(messages)]
    return [{"role": role, "content": text} for role, text in turns if role and text]


_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage | AIMessage):
        return "user" if isinstance(message, HumanMessage) else "assistant"
    return _ROLES.get(message.role, "") if isinstance(message, ChatMessage) else ""


def _text(message: BaseMessage) -> str:
    """Return the text of a message, its parts joined; parts that are no text are left out."""
    if isinstance(message.content, str):
        return message.content
    parts = (part if isinstance(part, str) else part.get("text") for part in message.content)
    return "\n".join(part for part in parts if isinstance(part, str))


def join_chunks(chunks: Sequence[Any]) -> Any:
    """Return an input that was streamed: texts and messages are joined, mappings by key.

    Raises:
        TypeError: If there are no chunks.

    Example:
        >>> join_chunks([{"question": "What "}, {"question": "is tea?"}, {"chat_history": []}])
        {'question': 'What is tea?', 'chat_history': []}
    """
    if not chunks:
        raise TypeError("there is no question: the input is empty")
    if all(isinstance(chunk, Mapping) for chunk in chunks):
        chunks = [AddableDict(chunk) for chunk in chunks]
    return reduce(operator.add, chunks)


def stream_in_context(chunks: Generator[Any, None, Any]) -> Generator[Any, None, None]:
    """Yield the chunks of a generator that runs in a context of its own.

    What it sets in the context (the current run) does not apply to the consumer between two chunks.
    """
    context = contextvars.copy_context()
    end = object()
    try:
        while (chunk := context.run(next, chunks, end)) is not end:
            yield chunk
    finally:
        context.run(chunks.close)


async def stream_from_task(
    produce: Callable[[Callable[[Any], None]], Awaitable[None]],
) -> AsyncGenerator[Any, None]:
    """Yield the chunks of a function that runs in a task of its own.

    The task is cancelled when the consumer stops.

    Args:
        produce: Is called with the function that emits a chunk.
    """
    chunks: asyncio.Queue[Any] = asyncio.Queue()
    end = object()
    task = asyncio.ensure_future(produce(chunks.put_nowait))
    task.add_done_callback(lambda _: chunks.put_nowait(end))
    try:
        while (chunk := await chunks.get()) is not end:
            yield chunk
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def first_fields(answer: Answer, details: Details = False) -> dict[str, Any]:
    """Return the fields of an answer's mapping that come before its text."""
    context = [to_document(source.result, details=details) for source in answer.sources]
    return {"question": answer.question, "context": context}


def last_fields(answer: Answer) -> dict[str, Any]:
    """Return the fields of an answer's mapping that come after its text."""
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "title": source.title,
            "id": source.result.node.id,
            "document_id": source.result.node.document_id,
            "score": float(source.result.score),
            "text": source.text,
        }
        for source in answer.sources
    ]
    return {"sources": sources, "found": answer.answered, "notes": list(answer.notes)}
