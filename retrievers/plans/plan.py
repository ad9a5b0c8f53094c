"""Strategies as ``async def`` functions that run with or without an event loop.

A strategy awaits two kinds of effects: ``Do`` (one call) and ``All`` (several strategies in
parallel). ``run`` and ``stream`` drive a strategy in the calling thread, ``arun`` and ``astream``
in an event loop. All of them take a function that returns the coroutine.
"""

from __future__ import annotations

import contextvars
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing, closing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import coroutine
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from ...nodegraph.concurrency import in_thread, run_in_tasks, run_in_threads
from ...nodegraph.models.usage import ModelText, usage_of
from .timeouts import arun_with_timeout, astream_with_timeout, run_with_timeout, stream_with_timeout

T = TypeVar("T")

Y = TypeVar("Y")

Kind = Literal["model", "search", "work"]
"""Limits count model calls, and end model calls and searches. Work is always completed."""

Part: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
"""A function that returns the coroutine of a strategy."""

MAX_PARALLEL = 8
"""Default number of parallel parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Do(Generic[T]):
    """A call that a strategy awaits.

    Attributes:
        call: A function without arguments.
        acall: The async version of ``call``. If None, an event loop runs ``call`` in a thread.
        kind: ``"model"``, ``"search"`` or ``"work"``. Call limits count only model calls. Time
            limits end model calls and searches, but never work.
        timeout: Maximum seconds. A call in a thread is abandoned, not interrupted. None means no
            limit.
        stream: An optional function that returns the texts of the answer. Their concatenation is
            the result.
        astream: The async version of ``stream``.

    Raises:
        TimeLimitError: If the call takes longer than ``timeout``. A ``TimeoutError`` of the call
            itself is raised unchanged.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import BaseRetriever, ScoredNode
        >>> answers = {"tea": "Tea is a drink."}
        >>> class Remote(BaseRetriever):
        ...     async def search_all(self, queries, limit, filters):
        ...         texts = await Do(lambda: [answers[query] for query in queries], timeout=5)
        ...         return [[ScoredNode(Node(text), 1.0)] for text in texts]
        >>> Remote().retrieve("tea")[0].text
        'Tea is a drink.'
    """

    call: Callable[[], T]
    acall: Callable[[], Awaitable[T]] | None = None
    _: KW_ONLY
    kind: Kind = "search"
    timeout: float | None = None
    stream: Callable[[], Iterator[str]] | None = None
    astream: Callable[[], AsyncIterator[str]] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return cast(T, (yield self))

    def run(self, emit: Callable[[str], str] | None) -> Generator[str, None, T]:
        """Yield the emitted part of each streamed text, and return the result."""
        if emit is None or self.stream is None:
            return run_with_timeout(self.call, self.timeout)
        texts: list[str] = []
        with closing(stream_with_timeout(self.stream, self.timeout)) as streamed:
            for text in streamed:
                texts.append(text)
                if emitted := emit(text):
                    yield emitted
        return cast(T, _joined(texts))

    async def arun(self, on_text: Callable[[str], object] | None) -> T:
        """Async version of ``run`` that calls ``on_text`` with each text."""
        if on_text is None or self.astream is None:
            acall = partial(in_thread, self.call) if self.acall is None else self.acall
            return await arun_with_timeout(acall, self.timeout)
        texts: list[str] = []
        async with aclosing(astream_with_timeout(self.astream, self.timeout)) as streamed:
            async for text in streamed:
                texts.append(text)
                on_text(text)
        return cast(T, _joined(texts))


def _joined(texts: Sequence[str]) -> ModelText:
    """Return the text of a stream, with the usage that its last part reports."""
    if not texts:
        return ModelText("", usage_of(""))
    return ModelText("".join(texts), usage_of(texts[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class All(Generic[T]):
    """Several strategies that run in parallel, in threads or tasks.

    The result is a list of their results, in order. If a part fails, the list contains its
    exception, unless ``fail_fast`` is set.

    Attributes:
        parts: Functions that return a coroutine.
        fail_fast: Whether to raise the first error. Tasks are then canceled, and threads complete
            their current part.
        max_parallel: Maximum number of parallel threads or tasks. ``limit_concurrency`` lowers it.

    Example:
        >>> from functools import partial
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import BaseRetriever, ScoredNode
        >>> async def find(query):
        ...     return await Do(lambda: [ScoredNode(Node(f"About {query}"), 1.0)])
        >>> class Parallel(BaseRetriever):
        ...     async def search_all(self, queries, limit, filters):
        ...         return await All([partial(find, query) for query in queries], fail_fast=True)
        >>> [results[0].text for results in Parallel().batch(["tea", "rivers"])]
        ['About tea', 'About rivers']
    """

    parts: Sequence[Part[T]]
    fail_fast: bool = False
    max_parallel: int = MAX_PARALLEL

    def __await__(self) -> Generator[Any, Any, list[T | Exception]]:
        return cast("list[T | Exception]", (yield self))

    def run(self, emit: object) -> Generator[str, None, list[T | Exception]]:
        """Return the results. The waiting thread runs the parts that no other thread has begun."""
        calls = [partial(run, self._outcome, part) for part in self.parts]
        yield from ()  # parts are not streamed
        return run_in_threads(calls, self.max_parallel)

    async def arun(self, on_text: object) -> list[T | Exception]:
        """Async version of ``run``."""
        calls = [partial(arun, self._outcome, part) for part in self.parts]
        return await run_in_tasks(calls, self.max_parallel)

    async def _outcome(self, part: Part[T]) -> T | Exception:
        try:
            return await part()
        except Exception as error:
            if self.fail_fast:
                raise
            return error


async def gather_each(
    function: Callable[..., Coroutine[Any, Any, T]], items: Iterable[Any], *args: Any
) -> list[T]:
    """Run ``function(item, *args)`` for each item in parallel. See ``gather``."""
    return await gather([partial(function, item, *args) for item in items])


async def work(call: Callable[..., T], *args: Any) -> T:
    """Return the result of a call that limits do not end. An event loop runs it in a thread."""
    return await Do(partial(call, *args), kind="work")


async def gather(parts: Sequence[Part[T]], max_parallel: int = MAX_PARALLEL) -> list[T]:
    """Run strategies in parallel. Return their results, or raise the first error."""
    outcomes = await All(parts, fail_fast=True, max_parallel=max_parallel)
    return cast(list[T], outcomes)


Effect: TypeAlias = Do[Any] | All[Any]


def run(function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Run a strategy in this thread, without an event loop, and return its result.

    Args:
        function: A function that returns the coroutine.
        *args: The arguments of the function.

    Raises:
        TypeError: If the strategy awaits anything but ``Do`` and ``All``.

    Example:
        >>> from nodekin.retrievers import All, Do
        >>> from nodekin.retrievers.plans.plan import run
        >>> async def length(text: str) -> int:
        ...     return await Do(lambda: len(text))
        >>> async def lengths() -> list[int | Exception]:
        ...     return await All([lambda: length("tea"), lambda: length("coffee")])
        >>> run(lengths)
        [3, 6]
    """
    # The context is copied, so that a span of the strategy never becomes the caller's span.
    driver = drive(function, _without_stream, *args)
    try:
        contextvars.copy_context().run(driver.send, None)
    except StopIteration as end:
        return cast(T, end.value)
    raise AssertionError("a strategy without a stream has yielded a text")


def _without_stream(effect: Effect) -> Generator[str, None, Any]:
    return effect.run(None)


def stream(
    function: Callable[..., Coroutine[Any, Any, T]],
    emit: Callable[[str], str] | None = str,
    *args: Any,
) -> Generator[str, None, T]:
    """Run a strategy. Yield the text of its streamed calls, and return its result.

    Args:
        function: A function that returns the coroutine.
        emit: A function that is called with each text and returns the part to yield. If None,
            nothing is streamed.
        *args: The arguments of the function.
    """

    # The context is copied, so that a span of the strategy never becomes the caller's span.
    context = contextvars.copy_context()
    driver = drive(function, lambda effect: effect.run(emit), *args)
    try:
        while True:
            try:
                text = context.run(driver.send, None)
            except StopIteration as end:
                return cast(T, end.value)
            yield text
    finally:
        context.run(driver.close)


async def arun(
    function: Callable[..., Coroutine[Any, Any, T]],
    *args: Any,
    on_text: Callable[[str], object] | None = None,
) -> T:
    """Run a strategy in an event loop and return its result.

    Args:
        function: A function that returns the coroutine.
        *args: The arguments of the function.
        on_text: A function that is called with the texts of streamed calls.
    """
    return await intercept(function, lambda effect: effect.arun(on_text).__await__(), *args)


async def astream(
    function: Part[Any], emit: Callable[[str], str] = str
) -> AsyncGenerator[str, None]:
    """Async version of ``stream``. The strategy runs in a task, which ends with the generator."""
    import asyncio

    items: asyncio.Queue[Any] = asyncio.Queue()
    end = object()

    def on_text(text: str) -> None:
        if emitted := emit(text):
            items.put_nowait(emitted)

    task = asyncio.ensure_future(arun(function, on_text=on_text))
    task.add_done_callback(lambda _: items.put_nowait(end))
    try:
        while (item := await items.get()) is not end:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def drive(
    function: Callable[..., Coroutine[Any, Any, T]],
    hook: Callable[[Effect], Generator[Y, Any, Any]],
    *args: Any,
) -> Generator[Y, Any, T]:
    """Run a strategy with a hook that handles its effects, and return the strategy's result.

    Exceptions of the hook, including cancellation, are raised at the current ``await`` of the
    strategy.

    Args:
        function: A function that returns the coroutine.
        hook: A function that handles an effect and returns the result for the strategy.
        *args: The arguments of the function.
    """
    strategy = function(*args)
    value: Any = None
    failure: BaseException | None = None
    while True:
        try:
            effect = strategy.send(value) if failure is None else strategy.throw(failure)
        except StopIteration as end:
            return cast(T, end.value)
        try:
            if not isinstance(effect, Do | All):
                raise TypeError(
                    f"a strategy awaits Do(...), All(...) or another strategy, got {effect!r:.80}; "
                    "write: await Do(function, async_function)"
                )
            value = yield from hook(effect)
            failure = None
        except BaseException as error:
            failure = error


async def intercept(
    function: Callable[..., Coroutine[Any, Any, T]],
    hook: Callable[[Effect], Generator[Any, Any, Any]],
    *args: Any,
) -> T:
    """Run a strategy inside a coroutine, with a hook that handles its effects."""
    awaitable: Awaitable[T] = coroutine(drive)(function, hook, *args)  # type: ignore[no-untyped-call]
    return await awaitable
