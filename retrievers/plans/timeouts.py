"""Calls and streams with a time limit, sync and async."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()

TURN = 100
"""Items without a wait, after which a stream lets the event loop run other tasks."""


class TimeLimitError(TimeoutError):
    """A call took longer than its time limit. Timeouts of the call itself are other errors."""


def run_with_timeout(function: Callable[[], T], seconds: float | None) -> T:
    """Call a function; with a limit, in a thread that is abandoned after the limit.

    Raises:
        TimeLimitError: If the call takes longer.
    """
    if seconds is None:
        return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    _start_thread(work, "nodekin-call")
    if not wait([future], seconds).done:
        raise _late(seconds)
    return future.result()


async def arun_with_timeout(
    function: Callable[[], Awaitable[T]],
    seconds: float | None,
    late: TimeLimitError | None = None,
) -> T:
    """Async version of ``run_with_timeout``. The call is canceled after the limit.

    Args:
        function: The call.
        seconds: The limit. None: no limit.
        late: The error after the limit. Defaults to an error with the limit.
    """
    if seconds is None:
        return await function()
    import asyncio  # takes longer to import than a search

    error: Exception | None = None

    async def call() -> T | None:
        nonlocal error
        try:
            return await function()
        except Exception as raised:  # a timeout of the call is not a timeout of ``wait_for``
            error = raised
            return None

    try:
        result: Any = await asyncio.wait_for(call(), seconds)
    except asyncio.TimeoutError:
        raise late or _late(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def stream_with_timeout(
    function: Callable[[], Iterator[T]], seconds: float | None
) -> Generator[T, None, None]:
    """Yield the items of an iterator, with a limit for all of them.

    With a limit, a thread reads the iterator. After the limit the thread is abandoned, and ends
    with the next item. Items that arrived in time are yielded later as well.

    Args:
        function: Returns the iterator.
        seconds: Limit for all items together. None: no limit.

    Raises:
        TimeLimitError: If it takes longer.
    """
    if seconds is None:
        yield from function()
        return
    end = time.monotonic() + seconds
    items: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        try:
            iterator = function()
            is_generator = isinstance(iterator, Generator)
            with closing(iterator) if is_generator else nullcontext():  # type: ignore[type-var]
                for item in iterator:
                    if stopped.is_set():
                        return
                    if time.monotonic() >= end:
                        raise _late(seconds)
                    items.put((item, None))
            items.put((_END, None))
        except BaseException as error:
            items.put((None, error))

    _start_thread(work, "nodekin-stream")
    try:
        while True:
            try:
                item, error = items.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise _late(seconds) from None
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()


async def astream_with_timeout(
    function: Callable[[], AsyncIterator[T]], seconds: float | None
) -> AsyncGenerator[T, None]:
    """Async version of ``stream_with_timeout``. The pending item is canceled after the limit."""
    import asyncio

    end = None if seconds is None else time.monotonic() + seconds
    late = None if seconds is None else _late(seconds)
    iterator = aiter(function())
    try:
        for number in itertools.count(1):
            if number % TURN == 0:  # a client with a buffer never waits
                await asyncio.sleep(0)
            remaining = None if end is None else max(0.0, end - time.monotonic())
            try:
                item = await arun_with_timeout(iterator.__anext__, remaining, late)
            except StopAsyncIteration:
                return
            yield item
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


def _start_thread(work: Callable[[], None], name: str) -> None:
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name=name).start()


def _late(seconds: float) -> TimeLimitError:
    return TimeLimitError(f"the call did not answer within {seconds:g} s")
