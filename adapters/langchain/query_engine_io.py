"""Read what a query engine is asked out of what chains hand on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
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

from ...retrievers import Answer
from .documents import to_documents

Message = Mapping[str, str]

_QUESTIONS = ("question", "input", "query")


class Question(NamedTuple):
    """Hold what is asked, and what was said before.

    Attributes:
        text: The question.
        history: The messages before it, the oldest first, as ``QueryEngine`` takes them.
    """

    text: str
    history: list[Message]


def read_question(given: Any, question_key: str | None, history_key: str) -> Question:
    """Return the question, and the conversation before it.

    Args:
        given: A text; a message; messages, the last of which asks; or a mapping with one of
            these, and with a history beside it.
        question_key: Where in a mapping the question is; None for ``question``, ``input`` or
            ``query``.
        history_key: Where the history is: messages in any form that LangChain takes.

    Raises:
        TypeError: If there is no question in it.
        ValueError: If a mapping has none, or the last message is not the user's.

    Example:
        >>> read_question({"input": "And how long?", "chat_history": [("human", "Nile?")]},
        ...               None, "chat_history")
        Question(text='And how long?', history=[{'role': 'user', 'content': 'Nile?'}])
    """
    if not isinstance(given, Mapping):
        return _asked(given)
    keys = _QUESTIONS if question_key is None else (question_key,)
    named = [key for key in keys if key in given]
    if not named:
        raise ValueError(
            f"there is no question: the input has the keys {sorted(map(str, given))}, and it is "
            f"looked for under {' or '.join(map(repr, keys))}; name yours with question_key="
        )
    asked = _asked(given[named[0]])
    before = given.get(history_key)
    if before is None:
        return asked
    if isinstance(before, str):
        raise TypeError(
            f"{history_key!r} holds messages, such as ('human', 'What is tea?'), not {before!r:.80}"
        )
    return Question(asked.text, [*_history(before), *asked.history])


def _asked(given: Any) -> Question:
    if isinstance(given, str):
        return Question(given, [])
    if isinstance(given, PromptValue):
        given = given.to_messages()
    if isinstance(given, BaseMessage):
        given = [given]
    if not isinstance(given, Sequence) or not given:
        raise TypeError(
            "a question is a text, a message, a list of messages, or a mapping with one of these, "
            f"not {given!r:.80}"
        )
    *before, last = convert_to_messages(given)
    if _role(last) != "user":
        raise ValueError(f"the last message is the user's question, not {last!r:.80}")
    return Question(_text(last), _history(before))


def _history(messages: Any) -> list[Message]:
    """Return messages as a query engine takes them; what tools were asked and said is left out."""
    told = [(_role(each), _text(each)) for each in convert_to_messages(messages)]
    return [{"role": role, "content": text} for role, text in told if role and text]


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ChatMessage) and message.role in ("user", "human", "assistant", "ai"):
        return "user" if message.role in ("user", "human") else "assistant"
    return ""


def _text(message: BaseMessage) -> str:
    """Return the text of a message, of several parts too; what is no text has none."""
    if isinstance(message.content, str):
        return message.content
    parts = (each if isinstance(each, str) else each.get("text") for each in message.content)
    return "\n".join(part for part in parts if isinstance(part, str))


def in_own_context(made: Generator[Any, None, Any]) -> Generator[Any, None, None]:
    """Yield what a generator yields, which runs in a context of its own.

    What it sets there (the run that things happen in) does not hold for whoever reads it, between
    one piece and the next.
    """
    context = contextvars.copy_context()
    end = object()
    try:
        while (piece := context.run(next, made, end)) is not end:
            yield piece
    finally:
        context.run(made.close)


async def in_own_task(
    work: Callable[[Callable[[Any], None]], Awaitable[None]],
) -> AsyncGenerator[Any, None]:
    """Yield what a work tells, which runs in a task of its own; cancel it when no one wants more.

    Args:
        work: Is given the function to tell a piece with.
    """
    pieces: asyncio.Queue[Any] = asyncio.Queue()
    end = object()

    async def work_() -> None:
        await work(pieces.put_nowait)

    task = asyncio.create_task(work_())
    task.add_done_callback(lambda _: pieces.put_nowait(end))
    try:
        while (piece := await pieces.get()) is not end:
            yield piece
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def added_up(pieces: Sequence[Any]) -> Any:
    """Return an input that came in pieces: texts and messages are joined, mappings by key.

    Raises:
        TypeError: If there is none.

    Example:
        >>> added_up([{"question": "What "}, {"question": "is tea?"}, {"chat_history": []}])
        {'question': 'What is tea?', 'chat_history': []}
    """
    if not pieces:
        raise TypeError("there is no question: the input is empty")
    whole = pieces[0]
    for piece in pieces[1:]:
        if isinstance(whole, dict) and isinstance(piece, Mapping):
            whole = AddableDict(whole) + AddableDict(piece)
        else:
            whole = whole + piece
    return whole


def answer_dict(answer: Answer, *, score_key: str | None, details: bool) -> dict[str, Any]:
    """Return an answer as a mapping, of plain values and documents; see ``NodeGraphQueryEngine``.

    Args:
        answer: The answer.
        score_key: The documents' field for the score.
        details: Whether documents tell their place and evidence.
    """
    return {
        **begun(answer, score_key=score_key, details=details),
        "answer": answer.text,
        **ended(answer),
    }


def begun(answer: Answer, *, score_key: str | None, details: bool) -> dict[str, Any]:
    """Return what is known when the answer begins: the question and the documents."""
    results = [source.result for source in answer.sources]
    context = to_documents(results, score_key=score_key, details=details)
    return {"question": answer.question, "context": context}


def ended(answer: Answer) -> dict[str, Any]:
    """Return what is known when the answer has ended."""
    return {"sources": list(_sources(answer)), "found": answer.found, "notes": list(answer.notes)}


def _sources(answer: Answer) -> Iterator[dict[str, Any]]:
    for source in answer.sources:
        yield {
            "number": source.number,
            "cited": source.cited,
            "title": source.title,
            "id": source.result.node.id,
            "document_id": source.result.node.document_id,
            "score": float(source.result.score),
            "text": source.text,
        }
