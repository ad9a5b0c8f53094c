"""Speed up long builds by distributing work to processes on the other CPU cores of this machine."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..concurrency import fork_safe_lock

if TYPE_CHECKING:
    from .queue_process import QueueProcess

T = TypeVar("T")
R = TypeVar("R")

WORTH_STARTING = 1_000_000
"""The minimum amount of work, as returned by ``work_of``, for which starting processes is
worthwhile. A process takes about 0.2 s to start."""

_BEYOND_ASCII = 3  # work per character; Chinese texts contain three times as many terms

_MOST = 7  # maximum number of processes

_AHEAD = 2  # number of items that are assigned to a process at the same time

_MOST_WAITING = 32  # maximum number of items without a result

_END = object()

_IDLE_SECONDS = 10.0  # time after which idle processes end

_VARIABLE = "NODEKIN_PROCESSES"

_CPU_LIMIT = "/sys/fs/cgroup/cpu.max"  # the CPU limit of a container, in microseconds per period


def work_of(texts: Iterable[str]) -> int:
    """Estimate the work for splitting or analyzing texts, as a number of ASCII characters."""
    return sum([len(text) if text.isascii() else _BEYOND_ASCII * len(text) for text in texts])


def processors() -> int:
    """Return the number of CPU cores that a build may use. The result is at least 1.

    A different number can be set with the environment variable ``NODEKIN_PROCESSES``.

    Raises:
        ValueError: If the value of the variable is not a number.
    """
    given = os.environ.get(_VARIABLE, "")
    if given:
        if not given.isdecimal():
            raise ValueError(
                f"{_VARIABLE} must be the number of processes of a build, got {given!r:.40}; 1 "
                "starts no other process"
            )
        return max(1, int(given))
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # This function is missing on macOS and Windows.
        count = len(os.sched_getaffinity(0))
    try:
        with open(_CPU_LIMIT) as file:
            quota, period = file.read().split()
        count = min(count, int(quota) // int(period))
    except (OSError, ValueError):  # The container has no limit.
        pass
    return max(1, count)


def shared_map(
    function: Callable[[T], R], items: Iterable[T], is_worth: Callable[[T], bool]
) -> Iterator[R]:
    """Apply a function to items on all CPU cores, and yield the results in the order of the items.

    See ``SharedWork.results``.
    """
    return SharedWork(function).results(items, is_worth)


class SharedWork(Generic[T, R]):
    """Distributes calls of a function between this process and other processes.

    Args:
        function: A function of nodekin, or a partial of such a function. The function and the items
            must support pickling, and the results must be plain data: strings, bytes, numbers,
            lists or tuples.
    """

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function
        self._workers: Workers | None = None
        self._lock = fork_safe_lock()
        self._early: deque[_Result] = deque()  # started items that ``results`` has not reached
        self._unsent: deque[_Result] = deque()  # items that no process is working on yet

    def start(self, item: T) -> None:
        """Start the work on an item before ``results`` reaches it.

        The work is done in another process, so this method returns immediately. Without other
        processes, the method does nothing.
        """
        workers = running_workers()
        if workers is None:
            return
        self._workers = workers
        result = _Result(item)
        with self._lock:
            self._early.append(result)
        self._add(result)
        workers.end_when_idle()

    def forget(self) -> None:
        """Stop the work on all items that no process is working on."""
        with self._lock:
            self._early.clear()
            self._unsent.clear()

    def results(self, items: Iterable[T], is_worth: Callable[[T], bool]) -> Iterator[R]:
        """Yield the results in the order of the items.

        Items that were started before must be the first items, in the same order. Otherwise, their
        results are discarded. If no items were started, the current process handles the first item.
        It also handles an item if all other processes are busy, or if the item cannot be pickled.
        Other processes are not used if the machine has a single core, in ``multiprocessing``
        workers, in forked processes, and if starting a process fails.

        Args:
            items: The items to process, which must not be None.
            is_worth: A function that takes the first item and returns whether there is enough work
                to start processes.

        Raises:
            Exception: Any error that the function raises.
        """
        iterator = iter(items)
        first = next(iterator, None)
        if first is None:
            return
        has_started = bool(self._early)
        workers = running_workers() if has_started or is_worth(first) else None
        if workers is None:
            self.forget()
            for item in chain([first], iterator):
                yield self._function(item)
            return
        self._workers = workers
        try:
            if has_started:
                iterator = chain([first], iterator)
            else:
                yield self._function(first)
            yield from self._shared_results(iterator)
        finally:
            self.forget()
            workers.end_when_idle()

    def _shared_results(self, items: Iterator[T]) -> Iterator[R]:
        """Yield the results in the order of the items.

        The main tasks of this process are to read items and to yield results. It computes a result
        itself only if it would otherwise have to wait.
        """
        waiting: deque[_Result] = deque()  # sorted in the order of the items
        is_at_end = False
        while waiting or not is_at_end:
            if waiting and waiting[0].is_done:
                yield self._value(waiting.popleft())
            elif not is_at_end and len(waiting) < _MOST_WAITING:
                item = next(items, _END)
                is_at_end = item is _END
                if not is_at_end:
                    waiting.append(self._result_of(item))
            elif not self._compute_one():
                yield self._value(waiting.popleft())

    def _result_of(self, item: Any) -> _Result:
        """Return the result for an item, which is started unless it was started before."""
        with self._lock:
            if self._early and self._early[0].item == item:
                return self._early.popleft()
            # The items differ from the started items, so the early results are discarded.
            for unneeded in self._early:
                if unneeded in self._unsent:
                    self._unsent.remove(unneeded)
            self._early.clear()
        result = _Result(item)
        self._add(result)
        return result

    def _add(self, result: _Result) -> None:
        with self._lock:
            self._unsent.append(result)
        self._send()

    def _send(self) -> None:
        """Send items to free processes.

        After each result, this method is called in a different thread.
        """
        workers = self._workers
        while workers is not None:
            with self._lock:
                if not self._unsent:
                    return
                result = self._unsent[0]
                reply = workers.submit(self._function, result.item)
                if reply is None:
                    return
                # If Ctrl-C interrupts the code between these two lines, the item is computed twice.
                result.reply = reply
                self._unsent.popleft()
            # The lock is not held here: if the result has already arrived, the callback is called
            # immediately in this thread.
            reply.add_done_callback(self._send_next)

    def _send_next(self, _: Future[Any]) -> None:
        self._send()

    def _compute_one(self) -> bool:
        """Compute the result for one item that no process is working on.

        Return False if all items are taken.
        """
        with self._lock:
            if not self._unsent:
                return False
            result = self._unsent.popleft()
        reply: Future[Any] = Future()
        reply.set_result(self._function(result.item))
        result.reply = reply
        return True

    def _value(self, result: _Result) -> Any:
        """Wait for the result of an item and return it.

        If no process received the item, or if the process failed, the result is computed in this
        process. Errors are then raised with their original type.
        """
        if result.reply is not None:
            with contextlib.suppress(ChildProcessError, RuntimeError):
                return result.reply.result()
        return self._function(result.item)


class _Result:
    """One item with its result, which may still be missing.

    Attributes:
        item: The item.
        reply: The future result, or None if no process is working on the item.
    """

    def __init__(self, item: Any) -> None:
        self.item = item
        self.reply: Future[Any] | None = None

    @property
    def is_done(self) -> bool:
        return self.reply is not None and self.reply.done()


class Workers:
    """A pool of processes that is shared by all builds in this process.

    The processes are started when they are needed. They end after being idle for ten seconds, or
    together with this process.

    Args:
        count: The maximum number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[QueueProcess] = []
        self._lock = threading.Lock()
        self._last_use = 0.0
        self._timer: threading.Timer | None = None
        self._is_closed = False

    @property
    def num_running(self) -> int:
        """The number of processes that are currently running."""
        return sum([process.is_running for process in self._processes])

    def submit(self, function: Callable[[Any], Any], item: Any) -> Future[Any] | None:
        """Call a function in one of the processes.

        Return None if all processes have enough work, if no process can be started, or if the item
        cannot be pickled.
        """
        with self._lock:
            self._last_use = time.monotonic()
            try:
                process = self._free_process()
                return None if process is None else process.submit(function, item)
            except (OSError, pickle.PicklingError):
                # The process cannot start or has ended, or the item cannot be sent to it.
                return None

    def _free_process(self) -> QueueProcess | None:
        self._processes = [process for process in self._processes if process.is_running]
        if self._is_closed:
            return None
        if len(self._processes) < self._count:
            from .queue_process import QueueProcess  # This module imports subprocess.

            self._processes.append(QueueProcess())
            return self._processes[-1]
        process = min(self._processes, key=lambda process: process.num_waiting)
        return process if process.num_waiting < _AHEAD else None

    def end_when_idle(self) -> None:
        """Stop the processes after they have been idle for a while.

        They are started again when needed.
        """
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(_IDLE_SECONDS, self._end_if_idle)
                self._timer.daemon = True
                self._timer.start()

    def _end_if_idle(self) -> None:
        self._timer = None
        is_busy = any([process.num_waiting for process in self._processes])
        if is_busy or time.monotonic() - self._last_use < _IDLE_SECONDS:
            self.end_when_idle()
        else:
            self._stop()

    def close(self) -> None:
        """Stop all processes permanently."""
        self._is_closed = True
        self._stop()

    def leave_to_parent(self) -> None:
        """Give up the processes in a forked child, since they belong to the parent process."""
        self._lock = threading.Lock()  # A thread of the parent process may hold the old lock.
        self._is_closed = True
        for process in self._processes:
            process.leave_to_parent()
        self._processes = []

    def _stop(self) -> None:
        with self._lock:
            for process in self._processes:
                process.close()
            self._processes = []


_workers: Workers | None = None

_is_forked = False

_lock = threading.Lock()


def running_workers() -> Workers | None:
    """Return the pool of worker processes, or None if this process should not start any."""
    global _workers
    can_start = sys.executable and not getattr(sys, "frozen", False)
    multiprocessing = sys.modules.get("multiprocessing.process")
    is_worker = multiprocessing is not None and multiprocessing.parent_process() is not None
    count = min(_MOST, processors() - 1)
    if not can_start or is_worker or _is_forked or count < 1:
        return None
    with _lock:
        if _workers is None:
            _workers = Workers(count)
            atexit.register(_workers.close)
        return _workers


def _after_fork_in_child() -> None:
    """Give up the worker processes in a forked child, since they belong to the parent process."""
    global _is_forked
    _is_forked = True
    if _workers is not None:
        atexit.unregister(_workers.close)
        _workers.leave_to_parent()


if hasattr(os, "register_at_fork"):  # Windows does not support fork.
    os.register_at_fork(after_in_child=_after_fork_in_child)
