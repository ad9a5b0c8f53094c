"""The effects of plans: ask a model, query a retriever, run several plans in parallel."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import math
import queue
import threading
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from ...nodegraph.concurrency import in_thread, run_in_tasks, run_in_threads
from ...nodegraph.errors import ModelError, ModelTimeoutError
from ..base_retriever import BaseRetriever, check_takes_filters, current_restriction
from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import Results
from ..tracing import ASKS, Span, start_span
from .plan import TURN, Effect, Plan, arun, run

if TYPE_CHECKING:
    from ...nodegraph.models.llm import LLM


T = TypeVar("T")

P = ParamSpec("P")

MAX_ANSWER = 1_000_000
"""Characters of an answer that is streamed, at most."""

MAX_PARALLEL = 8
"""How many plans or queries run at the same time, where no limit is lower."""


@dataclass(frozen=True, slots=True)
class Ask(Effect[str]):
    """Ask a language model. The result is its answer.

    Attributes:
        llm: The model.
        prompt: The prompt.
        schema: A JSON schema for the answer, where the model supports one. The result is JSON
            then, as a text.
        timeout: Seconds to wait for the answer. None leaves it to the model's client. A model
            that runs in a thread is not interrupted, but no longer waited for.
        streamed: Whether ``stream`` and ``astream`` pass on the answer as it comes.
    """

    llm: LLM
    prompt: str
    schema: Mapping[str, Any] | None = None
    timeout: float | None = None
    streamed: bool = False

    def run(self) -> str:
        """Return the model's answer.

        Raises:
            ModelTimeoutError: If the model takes too long.
            ModelError: If it fails.
        """
        with self._span() as span:
            answer = run_with_timeout(self._complete, self.timeout)
            span.attributes["answer"] = answer
        return answer

    async def arun(self) -> str:
        """Async version of ``run``."""
        with self._span() as span:
            answer = await asyncio.wait_for(self._acomplete(), self.timeout)
            span.attributes["answer"] = answer
        return answer

    def stream(self) -> Generator[str, None, str]:
        """Yield the answer as it comes. Return all that the model wrote."""
        texts, emitted = _Answer(self.llm.name), self._emitter()
        streamed = stream_with_timeout(partial(self.llm.stream, self.prompt), self.timeout)
        with self._span() as span, closing(streamed):
            for text in streamed:
                texts.append(text)
                yield from emitted(text)
            yield from emitted(None)
            span.attributes["answer"] = answer = "".join(texts)
        return answer

    async def astream(self, on_text: Callable[[str], None]) -> str:
        """Call ``on_text`` with the answer as it comes. Return all that the model wrote."""
        texts, emitted = _Answer(self.llm.name), self._emitter()
        streamed = astream_with_timeout(partial(self.llm.astream, self.prompt), self.timeout)
        with self._span() as span:
            async with aclosing(streamed):
                async for text in streamed:
                    texts.append(text)
                    for new in emitted(text):
                        on_text(new)
            for new in emitted(None):
                on_text(new)
            span.attributes["answer"] = answer = "".join(texts)
        return answer

    def _emitter(self) -> Callable[[str | None], list[str]]:
        """Return what turns a text of the model, at last None, into texts to stream."""
        return lambda text: [] if text is None else [text]

    @contextmanager
    def _span(self) -> Iterator[Span]:
        """Start a span. Turn a timeout into an error that names the model."""
        with start_span("ask", model=self.llm.name, prompt=self.prompt) as span:
            if (asks := ASKS.get()) is not None:
                asks.append(span)
            try:
                yield span
            except (FutureTimeout, asyncio.TimeoutError):
                raise ModelTimeoutError(
                    f"the language model {self.llm.name!r} did not answer within {self.timeout:g} s"
                ) from None

    def _complete(self) -> str:
        if self.schema is None:
            return self.llm.complete(self.prompt)
        return self.llm.json_text(self.prompt, self.schema)

    async def _acomplete(self) -> str:
        if self.schema is None:
            return await self.llm.acomplete(self.prompt)
        return await self.llm.ajson_text(self.prompt, self.schema)


class _Answer(list[str]):
    """Collect the texts of an answer that is streamed, up to a length.

    Args:
        model: The model's name.
    """

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._length = 0

    def append(self, text: str) -> None:
        """Add a text.

        Raises:
            ModelError: If the answer gets longer than ``MAX_ANSWER``.
        """
        super().append(text)
        self._length += len(text)
        if self._length > MAX_ANSWER:
            raise ModelError(
                f"the language model {self._model!r} does not end: it has written more than "
                f"{MAX_ANSWER:,} characters"
            )


@dataclass(frozen=True, slots=True)
class StreamedAsk(Ask):
    """Ask a model for a final answer. Only text that is certain to be part of it is streamed.

    The result is all that the model wrote: ``parse_final_answer`` reads it.

    Attributes:
        emitted: Gets the streamed texts.
    """

    streamed: bool = True
    emitted: list[str] = field(default_factory=list, compare=False)

    def _emitter(self) -> Callable[[str | None], list[str]]:
        from ...nodegraph.models.output.free_text import FinalAnswerParser

        parser = FinalAnswerParser()

        def emit(text: str | None) -> list[str]:
            new = parser.close() if text is None else parser.feed(text)
            texts = [new] if new else []
            self.emitted.extend(texts)
            return texts

        return emit


@dataclass(frozen=True, slots=True)
class Find(Effect[list[Results]]):
    """Query a retriever. The result is the scored nodes of each query, in their order.

    A retriever that has a ``batch`` of its own gets all queries in one call (they are embedded
    together), any other gets them in threads or tasks.
    """

    retriever: RetrieverProtocol
    queries: Sequence[str]
    top_k: int | None = None
    filters: Filters | None = None

    def run(self) -> list[Results]:
        """Return the results of each query.

        Raises:
            ValueError: If a restriction holds, and the retriever can't be filtered.
        """
        self._check_restriction()
        batch: Callable[[], list[Results]] | None = self._batch_call("batch")
        if batch:
            return batch()
        calls = self._single_calls(self.retriever.retrieve)
        return [calls[0]()] if len(calls) == 1 else run_in_threads(calls, MAX_PARALLEL)

    async def arun(self) -> list[Results]:
        """Async version of ``run``."""
        self._check_restriction()
        abatch: Callable[[], Awaitable[list[Results]]] | None = self._batch_call("abatch")
        if abatch:
            return await abatch()
        calls = self._single_calls(self.retriever.aretrieve)
        return [await calls[0]()] if len(calls) == 1 else await run_in_tasks(calls, MAX_PARALLEL)

    def _check_restriction(self) -> None:
        if current_restriction() is not None:
            check_takes_filters(self.retriever, "a restriction")

    def _batch_call(self, name: str) -> Any:
        """Return a call of the retriever's own batch method. None for one query, or without one."""
        default = getattr(BaseRetriever, name)
        if len(self.queries) < 2 or getattr(type(self.retriever), name, default) is default:
            return None
        method = getattr(self.retriever, name)
        return partial(method, list(self.queries), top_k=self.top_k, filters=self.filters)

    def _single_calls(self, method: Callable[..., T]) -> list[Callable[[], T]]:
        options: dict[str, Any] = {"top_k": self.top_k, "filters": self.filters}
        return [partial(method, query, **options) for query in self.queries]


@dataclass(frozen=True, slots=True)
class Compute(Effect[T]):
    """Call a function. In an event loop its async form, or a worker thread if it has none.

    Attributes:
        function: A function without arguments.
        async_function: Its async form.
    """

    function: Callable[[], T]
    async_function: Callable[[], Awaitable[T]] | None = None

    @staticmethod
    def of(
        function: Callable[P, T],
        async_function: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Compute[T]:
        """Call a function or its async form with these arguments."""
        return Compute(partial(function, *args, **kwargs), partial(async_function, *args, **kwargs))

    def run(self) -> T:
        """Return the function's result."""
        return self.function()

    async def arun(self) -> T:
        """Async version of ``run``."""
        if self.async_function is None:
            return await asyncio.to_thread(self.function)
        return await self.async_function()


@dataclass(frozen=True, slots=True)
class Work(Effect[T]):
    """Call a function that takes the processor for long and waits for nothing.

    In an event loop it runs in a thread, so that other tasks go on. It has no time limit: a plan
    that is out of time still makes an answer of what it has.

    Attributes:
        function: A function without arguments.
    """

    function: Callable[[], T]

    def run(self) -> T:
        """Return the function's result."""
        return self.function()

    async def arun(self) -> T:
        """Async version of ``run``."""
        return await in_thread(self.function)


@dataclass(frozen=True, slots=True)
class Each(Effect["list[T | Exception]"], Generic[T]):
    """Run several plans in parallel. The result is a list of their results.

    Attributes:
        plans: The plans.
        fail_fast: Whether the first error is raised, and in an event loop cancels the other
            plans. Else the list has the error of a plan that fails in the place of its result.
        max_threads: How many plans run at the same time in threads. An event loop never runs
            fewer than ``MAX_PARALLEL``. ``limit_concurrency`` lowers both.
    """

    plans: Sequence[Plan[T]]
    fail_fast: bool = False
    max_threads: int = MAX_PARALLEL

    def run(self) -> list[T | Exception]:
        """Return the result or the exception of each plan, in their order."""
        functions = [partial(run, self._outcome(plan)) for plan in self.plans]
        return run_in_threads(functions, self.max_threads)

    async def arun(self) -> list[T | Exception]:
        """Async version of ``run``."""
        functions = [partial(arun, self._outcome(plan)) for plan in self.plans]
        return await run_in_tasks(functions, max(self.max_threads, MAX_PARALLEL))

    def _outcome(self, plan: Plan[T]) -> Plan[T | Exception]:
        try:
            return (yield from plan)
        except Exception as error:
            if self.fail_fast:
                raise
            return error


def gather(plans: Sequence[Plan[T]], max_threads: int = MAX_PARALLEL) -> Plan[list[T]]:
    """Run plans in parallel. Return all results, or raise the error of the first that fails."""
    outcomes = yield from Each(plans, fail_fast=True, max_threads=max_threads)
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]


def results_or_errors(
    retriever: RetrieverProtocol, queries: Sequence[str], limit: int | None, filters: Filters | None
) -> Plan[list[Results | Exception]]:
    """Query a retriever. Return for each query its results, or the error it raised.

    All queries go in one call. Only if that fails they go one by one, to see which of them fail.
    """
    try:
        return [*(yield from Find(retriever, queries, limit, filters))]
    except Exception as error:
        if len(queries) == 1:
            return [error]
        return (yield from Each([find_one(retriever, query, limit, filters) for query in queries]))


def find_one(
    retriever: RetrieverProtocol, query: str, limit: int | None, filters: Filters | None
) -> Plan[Results]:
    """Query a retriever for one query."""
    (results,) = yield from Find(retriever, [query], limit, filters)
    return results


def run_with_timeout(function: Callable[[], T], seconds: float | None) -> T:
    """Call a function. With a limit in a thread that nobody waits for after so many seconds.

    Raises:
        concurrent.futures.TimeoutError: If it takes longer.
    """
    if seconds is None:
        return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="nodekin-ask").start()
    return future.result(seconds)


GROWTH = 4
"""How many times as many candidates each further search is for."""


def fetch_until_full(
    retriever: RetrieverProtocol,
    queries: Sequence[str],
    select: Callable[[Sequence[str], Sequence[Results]], Plan[list[tuple[Results, bool]]]],
    *,
    fetch: int,
    most: int,
    filters: Filters | None,
) -> Plan[list[Results]]:
    """Retrieve candidates and select from them, from more and more of them where it takes more.

    What is returned for a query was selected from the candidates of one search, its last. A
    retriever that returns fewer than it was asked for, or no more than before, has no more.

    Args:
        retriever: Gives the candidates.
        queries: The queries. Those that have enough are not searched for again.
        select: Takes queries and the candidates of each. Returns the results of each, and
            whether more candidates are wanted for it.
        fetch: How many candidates the first search is for.
        most: How many candidates a search is for at most.
        filters: Conditions for the candidates.
    """
    selected: list[Results] = [[] for _ in queries]
    counts = [0] * len(queries)
    short = list(range(len(queries)))
    while short:
        short_queries = [queries[at] for at in short]
        candidates = yield from Find(retriever, short_queries, fetch, filters)
        outcomes = yield from select(short_queries, candidates)
        still_short = []
        for at, of_query, outcome in zip(short, candidates, outcomes, strict=True):
            selected[at], wants_more = outcome
            has_more = len(of_query) >= fetch and len(of_query) > counts[at]
            counts[at] = len(of_query)
            if wants_more and has_more and fetch < most:
                still_short.append(at)
        short, fetch = still_short, min(GROWTH * fetch, most)
    return selected


def stream_with_timeout(
    function: Callable[[], Iterator[T]], seconds: float | None, silence: float = math.inf
) -> Generator[T, None, None]:
    """Yield what a function's iterator gives, all of it within so many seconds.

    With a limit it is read in a thread, which nobody waits for after that. It ends with the next
    item. Items that came in time are yielded whenever they are wanted.

    Args:
        function: Returns the iterator.
        seconds: How long all of it may take. None for no limit.
        silence: How long one item after the first may take, in seconds.

    Raises:
        concurrent.futures.TimeoutError: If it takes longer. Its text says what took too long,
            where that was an item.
    """
    if seconds is None and silence == math.inf:
        yield from function()
        return
    end = math.inf if seconds is None else time.monotonic() + seconds
    items: queue.SimpleQueue[tuple[Callable[[Any], T] | None, Any]] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        try:
            with contextlib.ExitStack() as stack:
                iterator = function()
                if isinstance(iterator, Generator):
                    stack.enter_context(contextlib.closing(iterator))
                for item in iterator:
                    if stopped.is_set():
                        return
                    if time.monotonic() >= end:
                        raise FutureTimeout
                    items.put((_value, item))
            items.put((None, None))
        except BaseException as error:
            items.put((_raised, error))

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="nodekin-stream").start()
    allowed = math.inf  # for the next item
    try:
        while True:
            remaining = max(0.0, end - time.monotonic())
            try:
                wait = min(remaining, allowed)
                take, item = items.get(timeout=None if wait == math.inf else wait)
            except queue.Empty:
                raise FutureTimeout(*_silence_note(remaining, allowed)) from None
            if take is None:
                return
            yield take(item)
            allowed = silence
    finally:
        stopped.set()


async def astream_with_timeout(
    function: Callable[[], AsyncIterator[T]], seconds: float | None, silence: float = math.inf
) -> AsyncGenerator[T, None]:
    """Async version of ``stream_with_timeout``. What is waited for is cancelled in the end.

    Items that are there without waiting, as of a client that buffers them, keep no other task
    from the event loop.

    Raises:
        asyncio.TimeoutError: If it takes longer.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    iterator = aiter(function())
    allowed = math.inf  # for the next item
    try:
        for number in itertools.count(1):
            if number % TURN == 0:
                await asyncio.sleep(0)
            remaining = max(0.0, end - time.monotonic())
            wait = min(remaining, allowed)
            try:
                item = await asyncio.wait_for(anext(iterator), None if wait == math.inf else wait)
            except StopAsyncIteration:
                return
            except asyncio.TimeoutError:
                raise asyncio.TimeoutError(*_silence_note(remaining, allowed)) from None
            yield item
            allowed = silence
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


def _silence_note(remaining: float, silence: float) -> list[str]:
    """Return what an error says where there was time left, and an item did not come."""
    return [f"nothing came for {silence:g} s"] if silence < remaining else []


def _value(item: T) -> T:
    return item


def _raised(error: BaseException) -> Any:
    raise error
