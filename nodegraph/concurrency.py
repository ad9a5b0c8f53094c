"""How many things run at once: one limit for all threads and tasks of a call, and processes."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
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
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from .errors import check_integer
from .locking import is_reading_graph, mutex, release_after_fork

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from asyncio import Future as AsyncFuture

T = TypeVar("T")
R = TypeVar("R")

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


async def in_turn(function: Callable[[], T]) -> T:
    """Call a function that computes without blocking the event loop, after those that wait.

    Going to a thread and back takes as long as a short search, so calls that wait share a thread.
    With a thread for each the loop would wait for all of them in turn whenever it goes on.

    For what waits for others, as a model does, choose ``asyncio.to_thread``.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    turns = _turns.get(loop)
    if turns is None:
        turns = _turns[loop] = _Turns()
    result: T = await turns.add(loop, function)
    return result


class _Turns:
    """Call what the tasks of an event loop wait for, in one thread, in more if calls take long."""

    def __init__(self) -> None:
        self._lock = mutex()
        self._waiting: deque[_Turn] = deque()
        self._threads = 0
        self._calls = 0
        self._results: deque[tuple[AsyncFuture[Any], Any, BaseException | None]] = deque()
        self._is_watched = False

    def add(self, loop: AbstractEventLoop, function: Callable[[], Any]) -> AsyncFuture[Any]:
        """Return the future result of a function."""
        future: AsyncFuture[Any] = loop.create_future()
        with self._lock:
            self._waiting.append((future, contextvars.copy_context(), function))
            if not self._threads:  # other tasks may add to it before the thread starts
                self._threads = 1
                loop.call_soon(self._start, loop)
        if not self._is_watched:
            self._is_watched = True
            loop.call_later(_CHECK_TIME, self._watch, loop, self._calls)
        return future

    def _start(self, loop: AbstractEventLoop) -> None:
        try:
            loop.run_in_executor(None, self._work, loop)
        except RuntimeError as error:  # the loop's threads have ended
            with self._lock:
                self._threads -= 1
                futures = [future for future, _, _ in self._waiting if not future.done()]
                self._waiting.clear()
            for future in futures:
                future.set_exception(error)

    def _watch(self, loop: AbstractEventLoop, calls: int) -> None:
        """Start another thread if calls wait and those under way are not short."""
        self._send()
        with self._lock:
            self._is_watched = self._threads > 0
            is_slow = self._waiting and self._calls - calls < _SHORT_CALLS
            starts = bool(is_slow) and self._threads < _MOST_TURNS
            self._threads += starts
        if starts:
            self._start(loop)
        if self._is_watched:
            loop.call_later(_CHECK_TIME, self._watch, loop, self._calls)

    def _work(self, loop: AbstractEventLoop) -> None:
        """Make the calls that wait."""
        sent = time.monotonic()
        while (turn := self._next()) is not None:
            future, context, function = turn
            if not future.cancelled():
                try:
                    self._results.append((future, context.run(function), None))
                except BaseException as error:
                    self._results.append((future, None, error))
            if time.monotonic() - sent > _SEND_TIME:
                self._send_from_thread(loop)
                sent = time.monotonic()
        self._send_from_thread(loop)

    def _next(self) -> _Turn | None:
        """Return the next call. None if no call waits, which ends the thread."""
        with self._lock:
            if not self._waiting:
                self._threads -= 1
                return None
            self._calls += 1
            return self._waiting.popleft()

    def _send_from_thread(self, loop: AbstractEventLoop) -> None:
        if self._results:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._send)

    def _send(self) -> None:
        """Give the tasks their results."""
        while self._results:
            future, result, error = self._results.popleft()
            if future.done():  # cancelled
                continue
            if error is None:
                future.set_result(result)
            elif isinstance(error, StopIteration):  # which a future does not take
                future.set_exception(RuntimeError(f"a call raised {error!r}"))
            else:
                future.set_exception(error)


_Turn = tuple["AsyncFuture[Any]", contextvars.Context, Callable[[], Any]]

_turns: WeakKeyDictionary[AbstractEventLoop, _Turns] = WeakKeyDictionary()

_CHECK_TIME = 0.01  # seconds between checks whether calls take long

_SHORT_CALLS = 5  # in that time: if there are fewer, another thread helps

_MOST_TURNS = 32  # threads

_SEND_TIME = 0.002  # seconds for which results are collected while other calls wait


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
