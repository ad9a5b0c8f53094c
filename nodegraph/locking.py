"""Locks of threads, which a forked process releases."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


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


_LOCKS: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A reentrant lock that is free in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)

    @contextmanager
    def held(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock. Without ``wait`` the block gets False if another thread holds it."""
        lock = self._lock
        acquired = lock.acquire(blocking=wait)
        try:
            yield acquired
        finally:
            if acquired:
                lock.release()


class Forking(Protocol):
    """A database whose lock is held over a fork, so that the child can use it."""

    lock: threading.RLock

    def release_in_child(self) -> None:
        """Leave open connections to the parent process, and release the lock."""


_DATABASES: weakref.WeakSet[Forking] = weakref.WeakSet()

_held: list[Forking] = []  # during a fork


def hold_over_fork(database: Forking) -> None:
    """Hold the lock of a database during each fork."""
    _DATABASES.add(database)


def _before_fork() -> None:
    for database in sorted(_DATABASES, key=id):
        database.lock.acquire()
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    turns.depth = 0
    for lock in list(_LOCKS):
        lock._lock = threading.RLock()  # the thread that held it is not in this process
    while _held:
        _held.pop().release_in_child()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
