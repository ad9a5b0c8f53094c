"""What plans want done: models asked, retrievers asked, several plans run at once."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from ...nodegraph import LLM, ModelTimeoutError
from ...nodegraph.locking import holding
from ...nodegraph.models.output import SaidReader
from ..base_retriever import Answering
from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import ScoredNode
from ..tracing import start_span
from .plan import Plan, arun, run

T = TypeVar("T")

AT_ONCE = 8
"""How many plans, or queries, are worked on at a time."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a language model; the answer is a text.

    Attributes:
        llm: The model.
        prompt: What it is asked.
        schema: A JSON schema to hold the model to, where it offers that; the answer is JSON then,
            as a text.
        timeout: Seconds to wait for the answer; None leaves it to the model's client. A model
            that is asked in a thread is not interrupted, but no longer waited for.
        streamed: Whether this is what ``stream`` yields the pieces of.
    """

    llm: LLM
    prompt: str
    schema: Mapping[str, Any] | None = None
    timeout: float | None = None
    streamed: bool = False

    def do(self) -> str:
        """Return the model's answer.

        Raises:
            ModelTimeoutError: If the model takes too long.
            ModelError: If it fails.
        """
        with start_span("ask", model=self.llm.name, prompt=self.prompt) as done:
            if self.timeout is None:
                answer = self._answer()
            else:
                try:
                    answer = _waited(self._answer, self.timeout)
                except FutureTimeout:
                    raise self._late() from None
            done.facts["answer"] = answer
        return answer

    async def ado(self) -> str:
        """Return the same without blocking the event loop."""
        with start_span("ask", model=self.llm.name, prompt=self.prompt) as done:
            try:
                answer = await asyncio.wait_for(self._aanswer(), self.timeout)
            except asyncio.TimeoutError:
                raise self._late() from None
            done.facts["answer"] = answer
        return answer

    def pieces(self) -> Generator[str, None, str]:
        """Yield the answer as it comes; return the whole."""
        with start_span("ask", model=self.llm.name, prompt=self.prompt) as done:
            told = []
            for piece in self.llm.stream(self.prompt):
                told.append(piece)
                yield piece
            done.facts["answer"] = "".join(told)
        return "".join(told)

    async def say(self, hear: Callable[[str], None]) -> str:
        """Tell the answer as it comes; return the whole."""
        with start_span("ask", model=self.llm.name, prompt=self.prompt) as done:
            told = []
            async for piece in self.llm.astream(self.prompt):
                told.append(piece)
                hear(piece)
            done.facts["answer"] = "".join(told)
        return "".join(told)

    def _answer(self) -> str:
        if self.schema is None:
            return self.llm.complete(self.prompt)
        return _as_text(self.llm.json(self.prompt, self.schema))

    async def _aanswer(self) -> str:
        if self.schema is None:
            return await self.llm.acomplete(self.prompt)
        return _as_text(await self.llm.ajson(self.prompt, self.schema))

    def _late(self) -> ModelTimeoutError:
        return ModelTimeoutError(
            f"the language model {self.llm.name!r} did not answer within {self.timeout:g} s"
        )


@dataclass(frozen=True, slots=True)
class Find:
    """Ask a retriever one or more queries; what comes of it is a list of results for each.

    A retriever that has a ``batch`` of its own is asked them at once (they are embedded in one
    call), any other in threads or tasks.
    """

    retriever: RetrieverProtocol
    queries: Sequence[str]
    top_k: int | None = None
    filters: Filters | None = None

    def do(self) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries."""
        batch = getattr(type(self.retriever), "batch", Answering.batch)
        settings: dict[str, Any] = {"top_k": self.top_k, "filters": self.filters}
        if batch is not Answering.batch and len(self.queries) > 1:
            return self.retriever.batch(list(self.queries), **settings)  # type: ignore[attr-defined, no-any-return]
        asked = [partial(self.retriever.retrieve, query, **settings) for query in self.queries]
        return in_threads(asked)

    async def ado(self) -> list[list[ScoredNode]]:
        """Return the same without blocking the event loop."""
        batch = getattr(type(self.retriever), "abatch", Answering.abatch)
        settings: dict[str, Any] = {"top_k": self.top_k, "filters": self.filters}
        if batch is not Answering.abatch and len(self.queries) > 1:
            return await self.retriever.abatch(list(self.queries), **settings)  # type: ignore[attr-defined, no-any-return]
        asked = [partial(self.retriever.aretrieve, query, **settings) for query in self.queries]
        return await _in_tasks(asked)


@dataclass(frozen=True, slots=True)
class Each:
    """Run several plans at once; what comes of it is a list of their results.

    The place of a plan that fails has its exception, for the plan that asked to judge.
    """

    plans: Sequence[Plan[Any]]

    def do(self) -> list[Any]:
        """Return the result or the exception of each plan, in their order."""

        def try_(plan: Plan[Any]) -> Any:
            try:
                return run(plan)
            except Exception as error:
                return error

        return in_threads([partial(try_, plan) for plan in self.plans])

    async def ado(self) -> list[Any]:
        """Return the same without blocking the event loop."""

        async def try_(plan: Plan[Any]) -> Any:
            try:
                return await arun(plan)
            except Exception as error:
                return error

        return await _in_tasks([partial(try_, plan) for plan in self.plans])


def in_threads(works: Sequence[Callable[[], T]], at_once: int = AT_ONCE) -> list[T]:
    """Do works at once in threads; one after the other where this thread holds a graph.

    Waiting for other threads could then be waiting for itself.
    """
    if len(works) < 2 or holding():
        return [work() for work in works]
    contexts = [contextvars.copy_context() for _ in works]
    with ThreadPoolExecutor(min(len(works), at_once), "nodekin") as pool:
        return list(pool.map(lambda context, work: context.run(work), contexts, works))


async def _in_tasks(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Do works at once in tasks; one that fails takes the others with it."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def work_(work: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await work()

    tasks = [asyncio.ensure_future(work_(work)) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def _as_text(value: Any) -> str:
    """Return a JSON value as text; what JSON has not, in words."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _waited(work: Callable[[], T], seconds: float) -> T:
    """Do a work in a thread that no one waits for longer.

    Raises:
        concurrent.futures.TimeoutError: If it takes longer.
    """
    future: Future[T] = Future()

    def work_() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work_,), daemon=True, name="nodekin-ask").start()
    return future.result(seconds)


@dataclass(frozen=True, slots=True)
class Speak(Ask):
    """Ask a model; streamed, only what is certain to be part of its answer is told.

    What comes of it is the whole answer as the model gave it: ``read_said`` reads it.

    Attributes:
        told: Gets the pieces that were told.
    """

    streamed: bool = True
    told: list[str] = field(default_factory=list, compare=False)

    def pieces(self) -> Generator[str, None, str]:
        """Yield the answer as it comes; return the whole."""
        reader = SaidReader()
        pieces = Ask.pieces(self)
        try:
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    whole: str = end.value
                    break
                if text := reader.feed(piece):
                    self.told.append(text)
                    yield text
            if text := reader.close():
                self.told.append(text)
                yield text
            return whole
        finally:
            pieces.close()

    async def say(self, hear: Callable[[str], None]) -> str:
        """Tell the answer as it comes; return the whole."""
        reader = SaidReader()

        def tell(text: str) -> None:
            if text:
                self.told.append(text)
                hear(text)

        whole = await Ask.say(self, lambda piece: tell(reader.feed(piece)))
        tell(reader.close())
        return whole
