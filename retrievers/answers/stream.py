"""An answer that is read while it is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from dataclasses import dataclass, field
from types import TracebackType

from ..plans import CallCounter
from .answer import Answer, Source
from .context import Task


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


@dataclass(slots=True)
class Progress:
    """Hold what is known while a question is answered.

    Attributes:
        question: What was asked.
        searched: What was searched for, once that is known.
        notes: What is to be known besides.
        told: The pieces of the answer that were streamed.
        tally: Counts the calls of the model.
        task: What the mode works on, once something was retrieved.
        ended: The answer, once it is complete.
    """

    question: str
    searched: str = ""
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    counter: CallCounter = field(default_factory=CallCounter)
    task: Task | None = None
    ended: Answer | None = None

    def answer(self) -> Answer:
        """Return the answer, or what there is of it."""
        if self.ended is not None:
            return self.ended
        return self.unfinished("the answer is not complete")

    def untold(self) -> str:
        """Return what is to be told at the end: the answer, where it is not what was streamed."""
        text = self.answer().text
        told = "".join(self.told)
        if told.endswith(text):
            return ""
        return f"\n\n{text}" if told else text

    def unfinished(self, why: str) -> Answer:
        """Return what there is of an answer."""
        task = self.task
        return Answer(
            "".join(self.told).strip(),
            self.question,
            sources=() if task is None else tuple(task.sources),
            found=bool(self.told),
            left_out=() if task is None else tuple(task.left_out),
            notes=(*dict.fromkeys(self.notes), why),
            searched=self.searched,
            calls=self.counter.calls,
        )
