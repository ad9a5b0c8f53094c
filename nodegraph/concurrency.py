"""Helpers for concurrency: threads, tasks, fork-safe locks, executors and progress bars."""

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

Item = TypeVar("Item")

turns_of_thread = threading.local()
"""Thread-local state. ``depth`` counts the graph locks and transactions that this thread holds."""

_limit: ContextVar[int | None] = ContextVar("concurrency limit", default=None)


@contextmanager
def context_value(variable: ContextVar[T], value: T) -> Iterator[T]:
    """Set a context variable for the duration of a block and for the tasks started in it."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def limit_concurrency(limit: int | None) -> AbstractContextManager[int | None]:
    """Limit the number of concurrent model calls and searches in a block.

    The limit also applies to nested calls in threads and tasks, for example if a fusion of several
    retrievers calls several models. Concurrent branches share the limit: with a limit of 8, two
    branches can make 4 calls each. If limits are nested, the lower limit applies.

    Args:
        limit: The maximum number of concurrent calls. If None, the current limit is not changed.

    Raises:
        TypeError: If the limit is not an integer.
        ValueError: If the limit is less than 1.

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


def run_in_threads(
    function: Callable[[Item], T], items: Sequence[Item], max_workers: int = 8
) -> list[T]:
    """Call a function for each item in parallel threads.

    The limit set by ``limit_concurrency`` is respected. The calling thread makes the calls that no
    other thread has started. If it holds the lock of a graph, it makes all calls itself, because
    waiting for other threads could deadlock.

    Returns:
        The results, in the order of the items. If a call raises an error, the calls that have not
        started are canceled, and the first error is raised after the running calls have finished.
    """
    workers, share = _workers(len(items), max_workers)
    if workers < 2 or is_reading_graph():
        return [function(item) for item in items]
    errors: list[BaseException] = []
    results: dict[int, T] = {}

    def call(at: int, context: contextvars.Context) -> None:
        if not errors:
            try:
                results[at] = context.run(function, items[at])
            except BaseException as error:
                errors.append(error)

    with ThreadPoolExecutor(workers - 1, "nodekin") as pool, context_value(_limit, share):
        calls = [partial(call, at, contextvars.copy_context()) for at in range(len(items))]
        futures = [pool.submit(each) for each in calls]
        try:
            for future, own in zip(futures, calls, strict=True):
                if future.cancel():
                    own()
            wait(futures)
        except BaseException as error:  # Ctrl-C was pressed.
            errors.append(error)
            raise
    if errors:
        raise errors[0]
    return [results[at] for at in range(len(items))]


async def run_in_tasks(
    function: Callable[[Item], Awaitable[T]], items: Sequence[Item], max_tasks: int = 8
) -> list[T]:
    """Call an async function for each item in parallel tasks.

    The limit set by ``limit_concurrency`` is respected. If a call raises an error, the other tasks
    are canceled, and the error is raised after all tasks have ended.
    """
    import asyncio

    workers, share = _workers(len(items), max_tasks)
    gate = asyncio.Semaphore(max(1, workers))

    async def gated(item: Item) -> T:
        async with gate:
            return await function(item)

    with context_value(_limit, share):
        tasks = [asyncio.ensure_future(gated(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread without blocking the event loop, and return its result."""
    import asyncio

    return await asyncio.to_thread(call, *args)


def _workers(count: int, most: int) -> tuple[int, int | None]:
    """Determine how many calls run concurrently, and the limit inside each call."""
    limit = _limit.get()
    if limit is None:
        return min(count, most), None
    workers = max(1, min(count, most, limit))
    return workers, limit // workers


# Locks


def is_reading_graph() -> bool:
    """Return whether the current thread holds the lock of a graph."""
    return getattr(turns_of_thread, "depth", 0) > 0


class DeferredWork(Exception):
    """Raised to postpone slow work that must not run while the lock of a graph is held.

    Args:
        work: A function that does the work, for example computing embeddings.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__("vectors are missing; they cannot be computed under the graph's lock")
        self.work = work


def with_deferred_work(call: Callable[[], T]) -> T:
    """Call a function that holds the lock of a graph.

    If the function raises ``DeferredWork``, the postponed work is done without the lock, and the
    function is called again.
    """
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
    _RLock = type(threading.RLock())  # This class has no public name.


_PATIENCE = 0.01


class _Turn(NamedTuple):
    """An entry in the queue of waiting threads.

    It contains a lock that blocks the thread until it is first in the queue, and the time at which
    the thread started to wait.
    """

    lock: threading.Lock
    since: float


class FairLock(_RLock):
    """A reentrant lock that threads acquire in the order in which they started to wait.

    A plain ``RLock`` is not fair: a thread that releases the lock and immediately acquires it again
    usually wins against waiting threads. Here, waiting threads form a queue, and only the first
    thread in the queue waits for the lock itself. After 10 ms, no other thread can overtake it.
    Always handing over the lock would be slow, since each hand-over requires a thread switch. Go's
    ``sync.Mutex`` works in a similar way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forget_waiting()

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self.forget_waiting()

    def forget_waiting(self) -> None:
        """Clear the queue in a forked process, because the waiting threads do not exist there."""
        self._waiting: deque[_Turn] = deque()
        self._is_fair = False  # True if new threads have to join the queue
        self._is_urgent = False  # True if a thread is waiting ahead of the queue
        self._mutex = threading.Lock()  # protects the queue

    @property
    def is_owned(self) -> bool:
        """True if the current thread holds the lock."""
        return self._is_owned()

    @property
    def has_waiting(self) -> bool:
        """True if any threads are waiting for the lock."""
        return bool(self._waiting)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock like ``RLock.acquire``. The timeout is ignored."""
        may_try = not self._is_fair or self._is_owned()
        if may_try and _RLock.acquire(self, False):
            return True
        return blocking and self._wait()

    __enter__ = acquire

    def acquire_soon(self) -> None:
        """Acquire the lock ahead of all waiting threads."""
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
        finally:  # This also runs after an interrupt.
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        """Remove a thread from the queue. If it was the first, wake up the next thread."""
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
    """Create a reentrant lock that is released in forked processes."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def fork_safe_fair_lock() -> FairLock:
    """Create a fair lock that is released in forked processes."""
    lock = FairLock()
    _locks.add(lock)
    return lock


def hold_over_fork(database: Any) -> None:
    """Register a database whose lock is held during each fork, so that the child can use it.

    In the child process, the database's method ``release_in_child`` is called. It releases the lock
    and does not close connections, since they belong to the parent process.
    """
    _databases.add(database)


def lock_order(database: Any) -> int:
    """Return a sort key that defines the order in which databases are locked.

    A thread that locks several databases locks them in this order to avoid deadlocks.
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
        lock._at_fork_reinit()  # The thread that held the lock does not exist in this process.
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
    """Pickle a function or lambda, so that it can be called in a worker process of an executor.

    Args:
        function: The function.
        owner: A description of the object that uses the function, for the error message.

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
    """Unpickle a function and call it with the given values. This runs in a worker process."""
    return _unpickled(function)(*values)


_unpickled = lru_cache(16)(pickle.loads)


def track(
    items: Iterable[T], total: int, what: str, unit: str, show: bool | None
) -> Generator[T, None, None]:
    """Yield the given items, and display a progress bar on stderr.

    Args:
        items: The items.
        total: The number of items.
        what: The label of the progress bar.
        unit: The word for one item, such as ``"document"``.
        show: Whether to display the progress bar. If None, it appears only in a terminal, after two
            seconds.
    """
    with ProgressBar(unit, show) as bar:
        bar.start(total, what)
        for item in items:
            yield item
            bar.advance(1)


class ProgressBar:
    """A single-line progress bar on stderr that can be used for several consecutive tasks.

    Args:
        unit: The word for one item, such as ``"document"``.
        show: Whether to display the bar. If None, it appears only in a terminal, after two seconds.
    """

    def __init__(self, unit: str, show: bool | None) -> None:
        self._unit = unit
        self._show = show
        self._is_drawn = sys.stderr.isatty() if show is None else show
        self._bar: Any = None

    def start(self, total: int, what: str) -> None:
        """Start a task with ``total`` items. The bar is not displayed if ``total`` is 0."""
        if not self._is_drawn or not total:
            return
        if self._bar is not None:
            self._bar.leave = False  # all tasks use the same line
            self._bar.close()
        from tqdm import tqdm

        delay = 0 if self._show else 2.0
        leave = bool(self._show)  # Otherwise, a bar that was never drawn would leave an empty line.
        self._bar = tqdm(total=total, desc=what, unit=self._unit, delay=delay, leave=leave)

    def advance(self, count: int) -> None:
        """Advance the bar by the given number of finished items."""
        if self._bar is not None:
            self._bar.update(count)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
