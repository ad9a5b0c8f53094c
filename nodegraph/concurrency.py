"""Threads and tasks, locks that survive forks, calls in executors, and progress bars."""

from __future__ import annotations

import contextvars
import os
import pickle
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .errors import check_integer

T = TypeVar("T")

turns_of_thread = threading.local()
"""``depth``: the number of turns and transactions of graphs that this thread is in."""

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
    """Limit the concurrent model calls, searches and branches in a block.

    The limit includes nested calls in threads and tasks, such as a fusion of strategies with
    several models. Concurrent branches share the limit: with a limit of 8, each of two branches
    gets 4. If limits are nested, the lower limit applies.

    Args:
        limit: Maximum number of concurrent calls. If None, the limit stays as it is.

    Raises:
        TypeError: If the limit is not an integer.
        ValueError: If the limit is below 1.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea is steamed.")
        >>> with limit_concurrency(1):
        ...     [result.text for result in graph.search("tea")]
        ['Green tea is steamed.']
    """
    outer = _limit.get()
    if limit is not None:
        check_integer(limit, "max_concurrency", 1)
        if outer is None or limit < outer:
            outer = limit
    return context_value(_limit, outer)


def run_in_threads(functions: Sequence[Callable[[], T]], max_workers: int = 8) -> list[T]:
    """Call functions in parallel threads, within ``limit_concurrency``.

    This thread calls the functions that no other thread has begun. If it holds the lock of a graph,
    it calls all functions, since waiting for other threads could deadlock.

    Returns:
        The results, in the order of the functions. The first error cancels the functions that
        have not started, and is raised after the running functions have ended.
    """
    workers, share = _workers(len(functions), max_workers)
    if workers < 2 or is_reading_graph():
        return [function() for function in functions]
    errors: list[BaseException] = []
    results: dict[int, T] = {}

    def call(at: int, context: contextvars.Context) -> None:
        if not errors:
            try:
                results[at] = context.run(functions[at])
            except BaseException as error:
                errors.append(error)

    with ThreadPoolExecutor(workers - 1, "nodekin") as pool, context_value(_limit, share):
        calls = [partial(call, at, contextvars.copy_context()) for at in range(len(functions))]
        futures = [pool.submit(each) for each in calls]
        try:
            for future, own in zip(futures, calls, strict=True):
                if future.cancel():
                    own()
            wait(futures)
        except BaseException as error:  # Ctrl-C
            errors.append(error)
            raise
    if errors:
        raise errors[0]
    return [results[at] for at in range(len(functions))]


async def run_in_tasks(
    functions: Sequence[Callable[[], Awaitable[T]]], max_tasks: int = 8
) -> list[T]:
    """Await functions in parallel tasks, within ``limit_concurrency``.

    An error cancels the other tasks, and is raised after all of them have ended.
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
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread, without blocking the event loop."""
    import asyncio

    return await asyncio.to_thread(call, *args)


def _workers(count: int, most: int) -> tuple[int, int | None]:
    """Return the number of concurrent functions, and the concurrency limit within each function."""
    limit = _limit.get()
    if limit is None:
        return min(count, most), None
    workers = max(1, min(count, most, limit))
    return workers, limit // workers


# Locks


def is_reading_graph() -> bool:
    """Return whether this thread holds the lock of a graph."""
    return getattr(turns_of_thread, "depth", 0) > 0


class DeferredWork(Exception):
    """An exception for slow work that is found under a graph's lock but must run without it.

    Args:
        work: A function that embeds texts or writes to an engine.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__("vectors are missing; they cannot be computed under the graph's lock")
        self.work = work


def with_deferred_work(call: Callable[[], T]) -> T:
    """Call a function that holds a graph's lock. After deferred work, call it again."""
    while True:
        try:
            return call()
        except DeferredWork as deferred:
            deferred.work()


_locks: weakref.WeakSet[Any] = weakref.WeakSet()
if TYPE_CHECKING:

    class _RLock:
        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
        def release(self) -> None: ...
        def __enter__(self) -> bool: ...
        def __exit__(self, *error: object) -> None: ...
        def _is_owned(self) -> bool: ...
        def _at_fork_reinit(self) -> None: ...

else:
    _RLock = type(threading.RLock())  # the class, which has no public name


_PATIENCE = 0.01


class _Turn(NamedTuple):
    """A waiting thread's turn: a lock that is held until it is first, and the start time."""

    lock: threading.Lock
    since: float


class FairLock(_RLock):
    """A reentrant lock that waiting threads acquire in the order of their arrival.

    A plain ``RLock`` is not fair: a thread that releases it and acquires it again usually wins
    against waiting threads. Here, waiting threads form a queue. Only the first thread in the queue
    waits for the lock itself. After 10 ms, no other thread can overtake it. To hand over the lock
    every time would be slow, since each hand-over switches threads. Go's ``sync.Mutex`` works in a
    similar way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget_waiting()

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self.forget_waiting()

    def forget_waiting(self) -> None:
        """Forget the waiting threads. In a forked process, they do not exist."""
        self._waiting: deque[_Turn] = deque()
        self._is_fair = False  # whether new threads have to queue
        self._is_urgent = False  # whether a thread waits before the queue
        self._mutex = threading.Lock()  # guards changes of the queue

    @property
    def has_waiting(self) -> bool:
        """Whether threads wait for the lock."""
        return bool(self._waiting)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, as with ``RLock``. A timeout is not supported."""
        may_try = not self._is_fair or self._is_owned()
        if may_try and _RLock.acquire(self, False):
            return True
        return blocking and self._wait()

    __enter__ = acquire

    def acquire_soon(self) -> None:
        """Acquire the lock before the waiting threads."""
        self._is_urgent = True
        self._is_fair = True
        try:
            super().acquire()
        finally:
            with self._mutex:
                self._is_urgent = False
                self._is_fair = bool(self._waiting)

    def _wait(self) -> bool:
        turn = _Turn(threading.Lock(), time.monotonic())
        turn.lock.acquire()
        with self._mutex:
            self._waiting.append(turn)
            is_first = self._waiting[0] is turn
        try:
            if not is_first:
                turn.lock.acquire()
            rest = turn.since + _PATIENCE - time.monotonic()
            if rest > 0 and super().acquire(timeout=rest):
                return True
            self._is_fair = True
            return super().acquire()
        finally:  # even after an interrupt
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        """Leave the queue. If this thread was first, the next thread becomes the first."""
        with self._mutex:
            was_first = self._waiting[0] is turn
            self._waiting.remove(turn)
            first = self._waiting[0] if self._waiting else None
            is_late = first is not None and time.monotonic() - first.since > _PATIENCE
            self._is_fair = is_late or self._is_urgent
            if was_first and first is not None:
                first.lock.release()


_databases: weakref.WeakSet[Any] = weakref.WeakSet()
_held: list[Any] = []  # databases whose locks are held during a fork


def fork_safe_lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked process."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def fork_safe_fair_lock() -> FairLock:
    """Return a fair lock that is free in a forked process."""
    lock = FairLock()
    _locks.add(lock)
    return lock


def hold_over_fork(database: Any) -> None:
    """Hold a database's lock during each fork, so that the child can use the database.

    The database's method ``release_in_child`` leaves open connections to the parent process and
    releases the lock.
    """
    _databases.add(database)


def lock_order(database: Any) -> int:
    """Return the position of a database in the locking order.

    A thread that locks several databases locks them in this order, to avoid deadlocks.
    """
    return id(database)


def _before_fork() -> None:
    for database in sorted(_databases, key=lock_order):
        database.lock.acquire_soon()
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    turns_of_thread.depth = 0
    for lock in list(_locks):
        lock._at_fork_reinit()  # the thread that held it does not exist in this process
    while _held:
        database = _held.pop()
        database.lock.forget_waiting()
        database.release_in_child()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


# Executors and progress


def pickled(function: Callable[..., Any], owner: str) -> bytes:
    """Pickle a function or lambda for the workers of an executor.

    Args:
        function: The function.
        owner: The owner of the function, for the error message.

    Raises:
        TypeError: If the function cannot be pickled.
    """
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as error:
        raise TypeError(
            f"{owner} cannot be pickled for the executor ({type(error).__name__}: {error}); build "
            "without an executor"
        ) from error


def call_pickled(function: bytes, *values: Any) -> Any:
    """Call a pickled function, in a worker process."""
    return _unpickled(function)(*values)


_unpickled = lru_cache(16)(pickle.loads)


def track(
    items: Iterable[T], total: int, what: str, unit: str, show: bool | None
) -> Generator[T, None, None]:
    """Yield items and draw a progress bar on stderr.

    Args:
        items: The items.
        total: The number of items.
        what: The label of the bar.
        unit: The name of an item.
        show: Whether to draw the bar. If None, it is drawn only on a terminal, after two seconds.
    """
    with ProgressBar(unit, show) as bar:
        bar.start(total, what)
        for item in items:
            yield item
            bar.advance(1)


class ProgressBar:
    """A progress bar on stderr, in one line, for one or several tasks.

    Args:
        unit: The name of an item.
        show: Whether to draw the bar. If None, it is drawn only on a terminal, after two seconds.
    """

    def __init__(self, unit: str, show: bool | None) -> None:
        self._unit = unit
        self._show = show
        self._is_drawn = sys.stderr.isatty() if show is None else show
        self._bar: Any = None

    def start(self, total: int, what: str) -> None:
        """Start a task with some items. The bar is drawn if there are any items."""
        if not self._is_drawn or not total:
            return
        if self._bar is not None:
            self._bar.leave = False  # one line for all tasks
            self._bar.close()
        from tqdm import tqdm

        delay = 0 if self._show else 2.0
        leave = bool(self._show)  # otherwise, a bar that was never drawn leaves an empty line
        self._bar = tqdm(total=total, desc=what, unit=self._unit, delay=delay, leave=leave)

    def advance(self, count: int) -> None:
        """Count finished items."""
        if self._bar is not None:
            self._bar.update(count)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
