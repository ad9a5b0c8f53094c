"""A stream of the text of an answer."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Generator,
    Iterator,
)
from contextlib import aclosing

from ..plans.plan import Part, astream, stream
from .answer import Answer
from .context import AnswerContext


class AnswerStream(Iterator[str], AsyncIterator[str]):
    """An iterator over the text of an answer, which supports ``for`` and ``async for``.

    The search starts when the first text is read. To stop the model early, call ``close`` or
    ``aclose``, or leave the ``with`` block.
    """

    def __init__(self, answer: Part[Answer], context: AnswerContext) -> None:
        self._context = context
        self._texts = _texts(answer, context)
        self._async_texts = _async_texts(answer, context)

    @property
    def answer(self) -> Answer:
        """The answer. Until the stream ends, and after a failure, it is the incomplete answer.

        ``sources`` is complete when the first text arrives. ``cited`` is set for all sources at the
        end of the stream.
        """
        return self._context.current_answer()

    def __next__(self) -> str:
        return next(self._texts)

    async def __anext__(self) -> str:
        return await anext(self._async_texts)

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> AnswerStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Stop the stream."""
        self._texts.close()

    async def aclose(self) -> None:
        """Stop the asynchronous stream."""
        await self._async_texts.aclose()


def _texts(answer: Part[Answer], context: AnswerContext) -> Generator[str, None, None]:
    yield from stream(answer, context.emit)
    if remaining := context.remaining_text():
        yield remaining


async def _async_texts(answer: Part[Answer], context: AnswerContext) -> AsyncGenerator[str, None]:
    async with aclosing(astream(answer, context.emit)) as texts:
        async for text in texts:
            yield text
    if remaining := context.remaining_text():
        yield remaining
