"""An answer that is read while the model writes it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing
from types import TracebackType

from ..plans.plan import Plan, astream, stream
from .answer import Answer, Source
from .context import AnswerContext


class _Stream:
    """Give both kinds of stream the answer as far as it is written."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context

    @property
    def answer(self) -> Answer:
        """The answer. Before the end, and if the model breaks off, what there is of it."""
        return self._context.current_answer()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, complete when the first text comes. What is cited is set at the end."""
        return self.answer.sources

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._context.answer is not None

    def on_end(self, callback: Callable[[Answer], None]) -> None:
        """Call a function with the answer once it is complete and was read to its end."""
        self._context.callbacks.append(callback)


class AnswerStream(_Stream, Iterator[str]):
    """Iterate over an answer's text as the model writes it.

    Nothing is done before the first text is read. ``with`` (or ``close``) ends the model's work
    when no more is needed.

    Attributes:
        answer: The complete answer at the end. Before, what there is.
        sources: The passages, complete when the first text comes.
        ended: Whether the answer is complete.
    """

    def __init__(self, plan: Plan[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _texts(plan, context)

    def __next__(self) -> str:
        return next(self._texts)

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream, also in the middle."""
        self._texts.close()

    def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        for _ in self:
            pass
        return self.answer


class AsyncAnswerStream(_Stream, AsyncIterator[str]):
    """Iterate over an answer's text with ``async for``. See ``AnswerStream``."""

    def __init__(self, plan: Plan[Answer], context: AnswerContext) -> None:
        super().__init__(context)
        self._texts = _async_texts(plan, context)

    async def __anext__(self) -> str:
        return await self._texts.__anext__()

    async def __aenter__(self) -> AsyncAnswerStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream, also in the middle."""
        await self._texts.aclose()

    async def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        async for _ in self:
            pass
        return self.answer


def _texts(plan: Plan[Answer], context: AnswerContext) -> Generator[str, None, None]:
    yield from stream(plan)
    yield from _end(context)


async def _async_texts(plan: Plan[Answer], context: AnswerContext) -> AsyncGenerator[str, None]:
    async with aclosing(astream(plan)) as texts:
        async for text in texts:
            yield text
    for text in _end(context):
        yield text


def _end(context: AnswerContext) -> Iterator[str]:
    """Yield the text of the answer that was not streamed. Report that it is complete."""
    if remaining := context.remaining_text():
        yield remaining
    for callback in context.callbacks:
        callback(context.current_answer())
