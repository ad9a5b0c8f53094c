"""Threads and tasks: a shared concurrency limit, progress bars, deduplicated calls."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, Generic, TypeVar

from .errors import check_integer
from .locking import is_reading_graph, mutex, release_after_fork

T = TypeVar("T")

_limit: ContextVar[int | None] = ContextVar("concurrency limit", default=None)


@contextmanager
def context_value(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Set a context variable until the block ends, including in tasks that the block starts."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def limit_concurrency(limit: int | None) -> AbstractContextManager[int | None]:
    """Limit the concurrent model calls, searches and branches of a block.

    The limit includes nested calls in threads and tasks, such as a fusion of strategies with
    several models. Concurrent branches share the limit: with a limit of 8, each of two branches
    has 4. If limits are nested, the lower limit applies.

    Args:
        limit: Maximum number of concurrent calls. None: unchanged.

    Raises:
        TypeError: If the limit is not an integer.
        ValueError: If the limit is below 1.

    Example:
        >>> with limit_concurrency(1):
        ...     run_in_threads([lambda: "one", lambda: "after the other"])
        ['one', 'after the other']
    """
    outer = _limit.get()
    if limit is not None:
        check_integer(limit, "max_concurrency", 1)
        outer = limit if outer is None else min(limit, outer)
    return context_value(_limit, outer)


def run_in_threads(functions: Sequence[Callable[[], T]], max_workers: int = 8) -> list[T]:
    """Call functions in parallel threads, within ``limit_concurrency``.

    If this thread holds the lock of a graph, the functions are called sequentially, since waiting
    for other threads could deadlock.

    Returns:
        The results, in the order of the functions. The first error cancels the functions that
        have not started, and is raised after the running functions have ended.
    """
    workers, share = _workers(len(functions), max_workers)
    if workers < 2 or is_reading_graph():
        return [function() for function in functions]
    calls = [partial(contextvars.copy_context().run, _limited, share, f) for f in functions]
    return _SharedCalls(calls).run(workers)


def _limited(limit: int | None, function: Callable[[], T]) -> T:
    _limit.set(limit)
    return function()


class _SharedCalls:
    """A queue of calls for the calling thread and threads of a common pool.

    The calling thread makes all calls that no thread of the pool has taken. Nested calls therefore
    cannot deadlock if the pool is exhausted.

    Args:
        functions: The functions.
    """

    def __init__(self, functions: Sequence[Callable[[], Any]]) -> None:
        self._waiting = deque(enumerate(functions))
        self._results: list[Any] = [None] * len(functions)
        self._errors: dict[int, BaseException] = {}

    def run(self, workers: int) -> list[Any]:
        """Return the results of the calls; raise the first error after all calls have ended."""
        helpers = [_pool().submit(self._work) for _ in range(workers - 1)]
        try:
            self._work()
        finally:
            self._end(helpers)
        if self._errors:
            raise self._errors[min(self._errors)]
        return self._results

    def _work(self) -> None:
        while self._waiting:
            try:
                number, function = self._waiting.popleft()
            except IndexError:  # another thread took the last call
                return
            try:
                self._results[number] = function()
            except BaseException as error:
                self._errors[number] = error
                self._waiting.clear()

    def _end(self, helpers: Sequence[Future[None]]) -> None:
        self._waiting.clear()
        wait([helper for helper in helpers if not helper.cancel()])


_MOST_THREADS = 256


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, "nodekin")


if hasattr(os, "register_at_fork"):  # a forked process has no threads of the pool
    os.register_at_fork(after_in_child=_pool.cache_clear)


async def run_in_tasks(
    functions: Sequence[Callable[[], Awaitable[T]]], max_tasks: int = 8
) -> list[T]:
    """Await functions in parallel tasks, within ``limit_concurrency``.

    An error cancels the remaining tasks.
    """
    import asyncio

    workers, share = _workers(len(functions), max_tasks)
    gate = asyncio.Semaphore(max(1, workers))

    async def gated(function: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await function()

    with context_value(_limit, share):
        tasks = [asyncio.ensure_future(gated(function)) for function in functions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread, without blocking the event loop."""
    import asyncio

    return await asyncio.to_thread(call, *args)


def _workers(count: int, most: int) -> tuple[int, int | None]:
    """Return the number of concurrent functions, and the concurrency limit inside each function."""
    limit = _limit.get()
    if limit is None:
        return min(count, most), None
    workers = max(1, min(count, most, limit))
    return workers, limit // workers


@contextmanager
def threads(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Provide a thread pool. Calls that have not started when the block ends are canceled."""
    pool = ThreadPoolExecutor(count, name)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def track(
    items: Iterable[T],
    total: int,
    what: str,
    unit: str,
    show: bool | None,
    name: Callable[[T], str] | None = None,
) -> Generator[T, None, None]:
    """Yield items and draw a progress bar on stderr.

    Args:
        items: The items.
        total: The number of items.
        what: The label of the bar.
        unit: The name of an item.
        show: Whether to draw the bar. None: only on a terminal, after two seconds.
        name: Function that returns the label of an item, drawn after the bar.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield from items
        return
    from tqdm import tqdm

    bar = tqdm(items, total=total, desc=what, unit=unit, delay=0 if show else 2.0)
    for item in bar:
        if name is not None:
            bar.set_postfix_str(name(item), refresh=False)
        yield item


@contextmanager
def progress_bar(
    total: int, what: str, unit: str, show: bool | None
) -> Iterator[Callable[[int], object]]:
    """Provide a function that advances a progress bar on stderr by some items.

    Args:
        total: The number of items.
        what: The label of the bar.
        unit: The name of an item.
        show: Whether to draw the bar. None: only on a terminal, after two seconds.
    """
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit=unit, delay=0 if show else 2.0) as bar:
        yield bar.update


K = TypeVar("K", bound=Hashable)

V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """A registry of pending keys that deduplicates concurrent calls.

    The first caller of a key computes the result, and later callers wait for it. Threads wait for
    threads. Tasks wait for threads and for tasks of their event loop. Threads never wait for
    tasks, since the loop of the task could run in the waiting thread. A thread that reads a graph
    never waits, since the other thread could require this graph.
    """

    def __init__(self) -> None:
        self._lock = mutex()
        self._pending: dict[tuple[object, K], tuple[int, Future[V | None]]] = {}
        release_after_fork(self)

    def after_fork(self) -> None:
        """Delete the pending keys of threads that are not in this process."""
        self._pending.clear()

    def claim(
        self, keys: Iterable[K], loop: object = None
    ) -> tuple[list[K], dict[K, Future[V | None]]]:
        """Return the keys to compute, and the future results of other callers' keys.

        The caller computes its keys, then calls ``resolve`` if it succeeds, and ``release`` in
        any case. A result of None: the other caller failed.

        Args:
            keys: The keys.
            loop: The event loop of the caller. None for a thread.
        """
        thread = threading.get_ident()
        waits = loop is not None or not is_reading_graph()
        claimed: list[K] = []
        others: dict[K, Future[V | None]] = {}
        with self._lock:
            for key in dict.fromkeys(keys):
                if waits and (other := self._other(key, loop, thread)) is not None:
                    others[key] = other
                    continue
                claimed.append(key)
                if (loop, key) not in self._pending:
                    future: Future[V | None] = Future()
                    future.set_running_or_notify_cancel()  # waiters cannot cancel the future
                    self._pending[loop, key] = thread, future
        return claimed, others

    def _other(self, key: K, loop: object, thread: int) -> Future[V | None] | None:
        """Return the future result of another caller. A wait for this caller would deadlock."""
        for of in dict.fromkeys((loop, None)):
            owner, future = self._pending.get((of, key), (thread, None))
            if future is not None and (of is not None or owner != thread):
                return future
        return None

    def resolve(self, results: Mapping[K, V | None], loop: object = None) -> None:
        """Pass results to the waiting callers."""
        with self._lock:
            for key, result in results.items():
                future = self._own(key, loop)
                if future is not None and not future.done():
                    future.set_result(result)

    def release(self, keys: Iterable[K], loop: object = None) -> None:
        """Release keys. Callers that still wait receive None."""
        keys = list(keys)
        self.resolve(dict.fromkeys(keys), loop)
        with self._lock:
            for key in keys:
                if self._own(key, loop) is not None:
                    del self._pending[loop, key]

    def _own(self, key: K, loop: object) -> Future[V | None] | None:
        """Return the future result of a key that the caller has claimed."""
        owner, future = self._pending.get((loop, key), (None, None))
        return future if loop is not None or owner == threading.get_ident() else None
