"""Locks of one process, and what a forked process must forget."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

mutex = threading.Lock


class _Depth(threading.local):
    depth = 0


turns = _Depth()
"""``depth``: how many turns and transactions of graphs this thread is in."""


def is_reading_graph() -> bool:
    """Return whether this thread holds the lock of a graph."""
    return turns.depth > 0


class DeferredWork(Exception):
    """Raised under the lock of a graph for slow work that must run without the lock.

    Args:
        work: Embeds texts, or writes to an engine.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__("vectors are missing; they cannot be computed under the graph's lock")
        self.work = work


def with_deferred_work(call: Callable[[], T]) -> T:
    """Call a function that holds the lock of a graph; run deferred work, and call it again."""
    while True:
        try:
            return call()
        except DeferredWork as deferred:
            deferred.work()


class HasLocks(Protocol):
    """An object with state of threads that a forked process does not have."""

    def after_fork(self) -> None:
        """Forget the state of other threads."""


_WITH_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def release_after_fork(owner: HasLocks) -> None:
    """Call ``after_fork`` in each forked process."""
    _WITH_LOCKS.add(owner)


class Lock:
    """A reentrant lock that is free in a forked process."""

    def __init__(self) -> None:
        self.after_fork()
        release_after_fork(self)

    def after_fork(self) -> None:
        """Replace the lock: the thread that held it is not in this process."""
        self._lock = threading.RLock()

    @contextmanager
    def held(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock; without ``wait`` the block gets False if another thread holds it."""
        lock = self._lock
        acquired = lock.acquire(blocking=wait)
        try:
            yield acquired
        finally:
            if acquired:
                lock.release()


def _after_fork() -> None:
    turns.depth = 0
    for owner in list(_WITH_LOCKS):
        owner.after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
