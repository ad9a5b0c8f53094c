"""Read a stream for so long and no longer, whatever it does."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

T = TypeVar("T")


def stream_with_timeout(
    function: Callable[[], Iterator[T]], seconds: float | None
) -> Generator[T, None, None]:
    """Yield what a function's iterator gives, all of it within so many seconds.

    With a limit it is read in a thread, which nobody waits for after that. It ends with the next
    item. Items that came in time are yielded whenever they are wanted.

    Raises:
        concurrent.futures.TimeoutError: If it takes longer.
    """
    if seconds is None:
        yield from function()
        return
    end = time.monotonic() + seconds
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
    try:
        while True:
            try:
                take, item = items.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise FutureTimeout from None
            if take is None:
                return
            yield take(item)
    finally:
        stopped.set()


async def astream_with_timeout(
    function: Callable[[], AsyncIterator[T]], seconds: float | None
) -> AsyncGenerator[T, None]:
    """Async version of ``stream_with_timeout``. What is waited for is cancelled in the end.

    Raises:
        asyncio.TimeoutError: If it takes longer.
    """
    end = None if seconds is None else time.monotonic() + seconds
    iterator = aiter(function())
    try:
        while True:
            remaining = None if end is None else max(0.0, end - time.monotonic())
            try:
                item = await asyncio.wait_for(anext(iterator), remaining)
            except StopAsyncIteration:
                return
            yield item
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()


def _value(item: T) -> T:
    return item


def _raised(error: BaseException) -> Any:
    raise error
