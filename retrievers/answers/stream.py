"""An answer that is read while it is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType

from .answer import Answer, Source
from .progress import Progress


class _Told:
    """What both kinds of stream know."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    @property
    def answer(self) -> Answer:
        """The answer; before the end, and if the model breaks off, what there is of it."""
        return self._progress.answer()

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, known when the first piece comes; what is cited is known at the end."""
        return self.answer.sources

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._progress.ended is not None


class AnswerStream(_Told, Iterator[str]):
    """Iterate over the pieces of an answer's text as the model writes it.

    Nothing is done before the first piece is asked for. ``with`` (or ``close``) ends the model's
    work when no more is wanted.

    Attributes:
        answer: The answer: at the end the whole of it; before, what there is.
        sources: The passages, known when the first piece comes.
        ended: Whether the answer is complete.
    """

    def __init__(self, pieces: Generator[str, None, object], progress: Progress) -> None:
        super().__init__(progress)
        self._pieces = pieces

    def __next__(self) -> str:
        return next(self._pieces)

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
        self._pieces.close()

    def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        for _ in self:
            pass
        return self.answer


class AsyncAnswerStream(_Told, AsyncIterator[str]):
    """Iterate over the pieces of an answer's text, with ``async for``; see ``AnswerStream``."""

    def __init__(self, pieces: AsyncGenerator[str, None], progress: Progress) -> None:
        super().__init__(progress)
        self._pieces = pieces

    async def __anext__(self) -> str:
        return await self._pieces.__anext__()

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
        await self._pieces.aclose()

    async def finish(self) -> Answer:
        """Read to the end, and return the answer."""
        async for _ in self:
            pass
        return self.answer
