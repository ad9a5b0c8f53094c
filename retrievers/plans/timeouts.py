"""Time limits for calls and streams, synchronous and asynchronous."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class TimeLimitError(TimeoutError):
    """An error that is raised if a call takes longer than its time limit.

    Timeouts that the call itself raises are not converted to this class.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the call did not answer within {seconds:g} s")


def run_with_timeout(function: Callable[..., T], seconds: float | None, *args: Any) -> T:
    """Call ``function(*args)`` with a time limit.

    If a limit is given, the call runs in a separate thread, which is abandoned when the limit
    expires.

    Raises:
        TimeLimitError: If the call takes longer than the limit.
    """
    if seconds is None:
        return function(*args)
    (result,) = stream_with_timeout(lambda: (function(*args) for _ in range(1)), seconds)
    return result


async def arun_with_timeout(
    function: Callable[..., Awaitable[T]],
    seconds: float | None,
    *args: Any,
    reported: float | None = None,
) -> T:
    """Asynchronous version of ``run_with_timeout``. When the limit expires, the call is canceled.

    Args:
        function: The function to call.
        seconds: The time limit in seconds. If None, the time is not limited.
        *args: The arguments of the function.
        reported: The limit that the error message reports. Defaults to ``seconds``.
    """
    if seconds is None:
        return await function(*args)
    import asyncio  # importing this takes longer than a search

    task = asyncio.ensure_future(function(*args))
    # Unlike ``wait_for``, this distinguishes an expired limit from a timeout of the call itself.
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TimeLimitError(reported or seconds)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


def stream_with_timeout(
    function: Callable[..., Iterator[T]], seconds: float | None, *args: Any
) -> Generator[T, None, None]:
    """Yield the items of an iterator, with one time limit for all of them.

    If a limit is given, the iterator is read in a separate thread. When the limit expires, the
    thread is abandoned and ends as soon as it receives the next item. Items that arrived in time
    are still yielded.

    Args:
        function: A function that returns the iterator.
        seconds: The time limit for all items together, in seconds. If None, the time is not
            limited.
        *args: The arguments of the function.

    Raises:
        TimeLimitError: If the iterator takes longer than the limit.
    """
    if seconds is None:
        yield from function(*args)
        return
    end = time.monotonic() + seconds
    items: queue.SimpleQueue[tuple[list[T], BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        error: BaseException | None = None
        try:
            for item in function(*args):
                if stopped.is_set() or time.monotonic() >= end:
                    return  # the generator is closed when its last reference disappears
                items.put(([item], None))
        except BaseException as raised:
            error = raised
        items.put(([], error))

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(work,), daemon=True, name="nodekin-call").start()
    try:
        while True:
            try:
                received, error = items.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeLimitError(seconds) from None
            if error is not None:
                raise error
            if not received:
                return
            yield received[0]
    finally:
        stopped.set()


async def astream_with_timeout(
    function: Callable[..., AsyncIterator[T]], seconds: float | None, *args: Any
) -> AsyncGenerator[T, None]:
    """Asynchronous version of ``stream_with_timeout``.

    When the limit expires, the request for the next item is canceled.
    """
    end = None if seconds is None else time.monotonic() + seconds
    iterator = aiter(function(*args))
    try:
        while True:
            remaining = None if end is None else max(0.0, end - time.monotonic())
            try:
                item = await arun_with_timeout(iterator.__anext__, remaining, reported=seconds)
            except StopAsyncIteration:
                return
            yield item
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()
