"""Hand on the pieces of a stream, without letting its reader into the run that makes them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any

from langchain_core.runnables.utils import AddableDict


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
