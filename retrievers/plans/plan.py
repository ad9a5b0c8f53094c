"""Strategies as ``async def`` functions that run with or without an event loop.

A strategy awaits two kinds of objects, which are called effects: ``Do`` represents a single call,
and ``All`` represents several coroutines that run in parallel. ``run`` and ``stream`` execute a
strategy in the calling thread; ``arun`` and ``astream`` execute it in an event loop. Each of them
expects a function that returns the coroutine.
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
"""The kind of a call.

Call limits count model calls only. Time limits interrupt model calls and searches, but not other
work.
"""

Part: TypeAlias = Callable[[], Coroutine[Any, Any, T]]
"""A function without arguments that returns a coroutine."""

MAX_PARALLEL = 8
"""The default maximum number of coroutines that run in parallel."""


@dataclass(frozen=True, slots=True, eq=False)
class Do(Generic[T]):
    """A single call that a strategy awaits.

    Attributes:
        call: A function. It has no arguments unless ``args`` are given.
        acall: The asynchronous version of ``call``. If None, ``call`` runs in a thread of the event
            loop.
        args: The positional arguments of ``call``, ``acall``, ``stream`` and ``astream``.
        kind: The kind of the call: ``"model"``, ``"search"`` or ``"work"``. Call limits count model
            calls only. Time limits interrupt model calls and searches, but not work.
        timeout: The time limit in seconds. When it expires, a call in a thread is abandoned, but it
            is not interrupted. If None, the time is not limited.
        stream: An optional function that yields the answer in parts. The result is the
            concatenation of the parts.
        astream: The asynchronous version of ``stream``.

    Raises:
        TimeLimitError: If the call takes longer than ``timeout``. A ``TimeoutError`` that the call
            itself raises is not converted.

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

    call: Callable[..., T]
    acall: Callable[..., Awaitable[T]] | None = None
    _: KW_ONLY
    args: tuple[Any, ...] = ()
    kind: Kind = "search"
    timeout: float | None = None
    stream: Callable[..., Iterator[str]] | None = None
    astream: Callable[..., AsyncIterator[str]] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return cast(T, (yield self))

    def run(self, emit: Callable[[str], str] | None) -> Generator[str, None, T]:
        """Execute the call and return its result.

        If the answer is streamed, yield its emitted parts.
        """
        if emit is None or self.stream is None:
            return run_with_timeout(self.call, self.timeout, *self.args)
        texts: list[str] = []
        with closing(stream_with_timeout(self.stream, self.timeout, *self.args)) as streamed:
            for text in streamed:
                texts.append(text)
                if emitted := emit(text):
                    yield emitted
        return cast(T, _joined(texts))

    async def arun(self, on_text: Callable[[str], object] | None) -> T:
        """Asynchronous version of ``run``, which passes each part of the answer to ``on_text``."""
        if on_text is None or self.astream is None:
            if self.acall is None:
                return await arun_with_timeout(in_thread, self.timeout, self.call, *self.args)
            return await arun_with_timeout(self.acall, self.timeout, *self.args)
        texts: list[str] = []
        parts = astream_with_timeout(self.astream, self.timeout, *self.args)
        async with aclosing(parts) as streamed:
            async for text in streamed:
                texts.append(text)
                on_text(text)
        return cast(T, _joined(texts))


def _joined(texts: Sequence[str]) -> ModelText:
    """Join the parts of a streamed answer. The last part reports the number of tokens used."""
    if not texts:
        return ModelText("", usage_of(""))
    return ModelText("".join(texts), usage_of(texts[-1]))


@dataclass(frozen=True, slots=True, eq=False)
class All(Generic[T]):
    """Several coroutines that run in parallel, in threads or asyncio tasks.

    The result is a list of their results, in order. If a coroutine fails, the list contains its
    exception, unless ``fail_fast`` is True.

    Attributes:
        parts: Functions without arguments, each of which returns a coroutine.
        fail_fast: Whether the first error is raised immediately. Other tasks are then canceled, and
            other threads complete the coroutine that they are running.
        max_parallel: The maximum number of parallel threads or tasks. ``limit_concurrency`` can
            lower this number.

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
        """Run all coroutines in threads and return their results.

        The calling thread helps by running coroutines that no other thread has started.
        """
        yield from ()  # makes this function a generator; the coroutines are not streamed
        return run_in_threads(self._run_part, self.parts, self.max_parallel)

    async def arun(self, on_text: object) -> list[T | Exception]:
        """Asynchronous version of ``run``."""
        return await run_in_tasks(self._arun_part, self.parts, self.max_parallel)

    def _run_part(self, part: Part[T]) -> T | Exception:
        return run(self._outcome, part)

    async def _arun_part(self, part: Part[T]) -> T | Exception:
        return await arun(self._outcome, part)

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
    """Return the result of a call that time limits do not interrupt.

    An event loop runs the call in a thread.
    """
    return await Do(call, args=args, kind="work")


async def gather(parts: Sequence[Part[T]], max_parallel: int = MAX_PARALLEL) -> list[T]:
    """Run coroutines in parallel and return their results. The first error is raised."""
    outcomes = await All(parts, fail_fast=True, max_parallel=max_parallel)
    return cast(list[T], outcomes)


Effect: TypeAlias = Do[Any] | All[Any]


def run(function: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Run a strategy in the current thread, without an event loop, and return its result.

    Args:
        function: A function that returns the coroutine of the strategy.
        *args: The arguments of the function.

    Raises:
        TypeError: If the coroutine awaits anything other than ``Do`` and ``All``.

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
    """Run a strategy, yield the text of its streamed calls, and return its result.

    Args:
        function: A function that returns the coroutine of the strategy.
        emit: A function that receives each text and returns the part to yield. If None, nothing is
            streamed.
        *args: The arguments of ``function``.
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
        function: A function that returns the coroutine of the strategy.
        *args: The arguments of the function.
        on_text: A function that is called with each text of the streamed calls.
    """
    return await intercept(function, lambda effect: effect.arun(on_text).__await__(), *args)


async def astream(
    function: Part[Any], emit: Callable[[str], str] = str
) -> AsyncGenerator[str, None]:
    """Asynchronous version of ``stream``.

    The strategy runs in a task, which is canceled when the generator is closed.
    """
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
    """Run a strategy, pass each effect that it awaits to a hook, and return the strategy's result.

    If the hook raises an exception, the exception is raised at the current ``await`` of the
    strategy. This includes cancellation.

    Args:
        function: A function that returns the coroutine of the strategy.
        hook: A function that executes an effect and returns its result.
        *args: The arguments of ``function``.
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
    """Run a strategy inside another coroutine, and pass each effect that it awaits to a hook."""
    awaitable: Awaitable[T] = coroutine(drive)(function, hook, *args)  # type: ignore[no-untyped-call]
    return await awaitable
