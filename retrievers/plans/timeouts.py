"""Calls and streams with a time limit, sync and async."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import math
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()

TURN = 100
"""Items without a wait, after which a stream lets the event loop run other tasks."""


def run_with_timeout(function: Callable[[], T], seconds: float | None) -> T:
    """Call a function; with a limit, in a thread that is abandoned after the limit.

    Raises:
        concurrent.futures.TimeoutError: If the call takes longer.
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
    threading.Thread(target=context.run, args=(work,), daemon=True, name="nodekin-call").start()
    return future.result(seconds)


def stream_with_timeout(
    function: Callable[[], Iterator[T]], seconds: float | None, silence: float = math.inf
) -> Generator[T, None, None]:
    """Yield the items of an iterator, with a limit for all of them.

    With a limit, a thread reads the iterator. After the limit the thread is abandoned, and ends
    with the next item. Items that arrived in time are yielded later as well.

    Args:
        function: Returns the iterator.
        seconds: Limit for all items together. None: no limit.
        silence: Limit for each item after the first, in seconds.

    Raises:
        concurrent.futures.TimeoutError: If it takes longer. The message names a silence.
    """
    if seconds is None and silence == math.inf:
        yield from function()
        return
    end = math.inf if seconds is None else time.monotonic() + seconds
    items: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
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
                    items.put((item, None))
            items.put((_END, None))
        except BaseException as error:
            items.put((None, error))

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True, name="nodekin-stream").start()
    allowed = math.inf  # for the next item
    try:
        while True:
            remaining = max(0.0, end - time.monotonic())
            try:
                wait = min(remaining, allowed)
                item, error = items.get(timeout=None if wait == math.inf else wait)
            except queue.Empty:
                raise FutureTimeout(*_silence_note(remaining, allowed)) from None
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
            allowed = silence
    finally:
        stopped.set()


async def astream_with_timeout(
    function: Callable[[], AsyncIterator[T]], seconds: float | None, silence: float = math.inf
) -> AsyncGenerator[T, None]:
    """Async version of ``stream_with_timeout``. The pending item is canceled after the limit.

    Raises:
        asyncio.TimeoutError: If it takes longer.
    """
    import asyncio

    end = math.inf if seconds is None else time.monotonic() + seconds
    iterator = aiter(function())
    allowed = math.inf  # for the next item
    try:
        for number in itertools.count(1):
            if number % TURN == 0:  # a client with a buffer never waits
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
    return [f"nothing came for {silence:g} s"] if silence < remaining else []
