"""Threads and tasks: one limit for all calls of a block, progress bars, shared calls."""

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
    """Let a context variable have a value in the block, and in what the block starts."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def limit_concurrency(limit: int | None) -> AbstractContextManager[int | None]:
    """Let at most so many model calls, searches and branches of the block run at the same time.

    The limit holds for all of them together, however deep they are nested (a fusion of strategies
    that ask several models), in threads and in tasks. What runs at once shares it: of 8 for two
    branches each has 4. Within another limit the lower one holds.

    Args:
        limit: How many; None changes nothing.

    Raises:
        TypeError: If it is no whole number.
        ValueError: If it is below 1.

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
    """Call functions in parallel threads, as far as ``limit_concurrency`` lets.

    They are called one by one where this thread holds a graph's lock: waiting for other threads
    could then be waiting for itself.
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
    """Call functions in this thread and in others, which stay for the calls to come.

    A call that no other thread has begun is made in this one, so that calls may call others in
    turn, however few threads there are.

    Args:
        functions: The functions.
    """

    def __init__(self, functions: Sequence[Callable[[], Any]]) -> None:
        self._waiting = deque(enumerate(functions))
        self._results: list[Any] = [None] * len(functions)
        self._errors: dict[int, BaseException] = {}

    def run(self, workers: int) -> list[Any]:
        """Return the results in so many threads; raise the first error when all have ended."""
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
            except IndexError:  # another thread was quicker
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


if hasattr(os, "register_at_fork"):  # threads are not in the child
    os.register_at_fork(after_in_child=_pool.cache_clear)


async def run_in_tasks(
    functions: Sequence[Callable[[], Awaitable[T]]], max_tasks: int = 8
) -> list[T]:
    """Await functions in parallel tasks, as far as ``limit_concurrency`` lets.

    If one fails the others are cancelled.
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
    """Return how many of some functions run at once, and the limit for what each of them runs."""
    limit = _limit.get()
    if limit is None:
        return min(count, most), None
    workers = max(1, min(count, most, limit))
    return workers, limit // workers


@contextmanager
def threads(count: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Provide a thread pool. If the block is left early, calls that have not begun are canceled."""
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
    """Pass items through, drawing a bar on stderr once it has taken two seconds.

    Args:
        items: What to pass through.
        total: How many there are.
        what: What is being done, shown beside the bar.
        unit: What one item is, in a word.
        show: True draws it in any case, False never, None where a person can see it.
        name: Names an item, to be shown behind the bar.
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
        what: The work, shown beside the bar.
        unit: The name of an item.
        show: Whether the bar is shown. None: only on a terminal.
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
    """Let the first caller of a key work, and the others wait for its result.

    Threads wait for threads. Tasks wait for threads and for tasks of their own event loop: a
    thread that waited for a task could be the one that the task's loop runs in. A thread that
    reads a graph waits for nobody, as the other one may need that graph.
    """

    def __init__(self) -> None:
        self._lock = mutex()
        self._pending: dict[tuple[object, K], tuple[int, Future[V | None]]] = {}
        release_after_fork(self)

    def after_fork(self) -> None:
        """Forget what threads work on that are not in this process."""
        self._pending.clear()

    def claim(
        self, keys: Iterable[K], loop: object = None
    ) -> tuple[list[K], dict[K, Future[V | None]]]:
        """Return the keys that the caller is to work on, and the results of others to wait for.

        The caller calls ``resolve``, and ``release`` in any case. A result of None says that the
        other caller failed.

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
                    future.set_running_or_notify_cancel()  # who stops waiting cancels no other
                    self._pending[loop, key] = thread, future
        return claimed, others

    def _other(self, key: K, loop: object, thread: int) -> Future[V | None] | None:
        """Return the result of another caller: waiting for oneself would not end."""
        for of in dict.fromkeys((loop, None)):
            owner, future = self._pending.get((of, key), (thread, None))
            if future is not None and (of is not None or owner != thread):
                return future
        return None

    def resolve(self, results: Mapping[K, V | None], loop: object = None) -> None:
        """Pass results to those who wait for them."""
        with self._lock:
            for key, result in results.items():
                future = self._own(key, loop)
                if future is not None and not future.done():
                    future.set_result(result)

    def release(self, keys: Iterable[K], loop: object = None) -> None:
        """Give up keys. Those who still wait for one get None."""
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
