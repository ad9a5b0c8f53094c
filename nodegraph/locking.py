"""Who may read a graph, who may change it, and which state they see."""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from traceback import walk_stack
from types import FrameType
from typing import Any, Protocol, TypeVar

from .errors import TransientStoreError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class StateStore(Protocol):
    """What has states: a store."""

    def snapshot(self) -> AbstractContextManager[int]:
        """Let this thread read one state, whose number the block gets."""

    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing."""

    def made_again(self) -> AbstractContextManager[None]:
        """Let a power cut undo what this thread writes."""

    def transaction(self) -> AbstractContextManager[object]:
        """Take all writes of this thread as one."""

    def in_transaction(self) -> bool:
        """Return whether this thread has a transaction open."""


class _Blocks(threading.local):
    """Hold the blocks that this thread is in and that read a graph."""

    def __init__(self) -> None:
        self.open: set[object] = set()


_thread = _Blocks()


WAIT_LIMIT = 3600.0
"""Seconds after which waiting for another thread or process ends with an error.

A function of the user's own is waited for as long as it takes: no thread can be ended.
"""

_LONG_WAIT = 60.0  # seconds, after which a log says what is waited for

_LOOK_AGAIN = 1.0  # seconds: what an interrupt hit may not have woken those who wait


class HasLocks(Protocol):
    """What another thread may be changing while the process forks."""

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""


_WITH_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()

_MUTEXES: weakref.WeakSet[Any] = weakref.WeakSet()


def release_after_fork(owner: HasLocks) -> None:
    """Have ``after_fork`` called in each process that is forked off."""
    _WITH_LOCKS.add(owner)


def mutex() -> threading.Lock:
    """Return a lock for a few statements that wait for nothing; free after a fork."""
    lock = threading.Lock()
    _MUTEXES.add(lock)
    return lock


FORK_WAIT = 10.0
"""Seconds that a fork waits at most for what other threads do."""


def is_importing() -> bool:
    """Return whether another thread imports a module of ours, or one of others that we need.

    A child that needs it, too, would wait for that thread, which it does not have. With what this
    thread imports a child goes on.
    """
    own = threading.get_ident()
    return any(
        _imports_for_us(frame) for thread, frame in sys._current_frames().items() if thread != own
    )


def _imports_for_us(newest: FrameType) -> bool:
    is_import = False
    for frame, _ in walk_stack(newest):
        name = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "_find_and_load":
            is_import, name = True, str(frame.f_locals.get("name"))
        if is_import and name.partition(".")[0] == "nodekin":
            return True
    return False


def _before_fork() -> None:
    deadline = time.monotonic() + FORK_WAIT
    while is_importing() and time.monotonic() < deadline:
        time.sleep(0.001)


def _after_fork() -> None:
    for lock in list(_MUTEXES):
        if lock.locked():
            lock.release()
    for owner in list(_WITH_LOCKS):
        owner.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


_next_collection = [0.0]


def _end_left_blocks() -> bool:
    """End blocks that an interrupt has left, which may hold a lock.

    Where many threads wait, as for a model, one does it for all: it takes a quarter of a second
    once large libraries are loaded. At most a twentieth of the time goes into it.

    Returns:
        Whether it was done.
    """
    start = time.monotonic()
    if start < _next_collection[0]:
        return False
    _next_collection[0] = start + 10  # where an interrupt comes before the block
    try:
        gc.collect()
    finally:
        now = time.monotonic()
        _next_collection[0] = now + 20 * (now - start)
    return True


def wait_until(
    condition: threading.Condition,
    test: Callable[[], bool],
    what: str,
    limit: float = WAIT_LIMIT,
) -> None:
    """Wait on a condition, which is held, until a test is true.

    Args:
        condition: It is notified of changes.
        test: What has to become true.
        what: What is waited for, for the log and the error.
        limit: Seconds.

    Raises:
        TimeoutError: If it has not become true within the limit.
    """
    start, is_reported, is_collected = time.monotonic(), False, False
    while not test():
        waited = time.monotonic() - start
        if waited >= limit:
            raise TimeoutError(f"waited {limit:g} seconds for {what}; try again when it is done")
        if waited > _LONG_WAIT and not is_reported:
            is_reported = True
            logger.warning("waiting for %s, for %d seconds so far", what, waited)
        if not condition.wait(min(_LOOK_AGAIN, limit - waited)) and not is_collected:
            is_collected = _end_left_blocks()


def awaited(future: Future[T], what: str) -> T:
    """Return the result of a future that another thread gives.

    Raises:
        TimeoutError: If it has not given it within an hour.
    """
    wait([future], WAIT_LIMIT)
    if not future.done():
        raise TimeoutError(f"waited {WAIT_LIMIT:g} seconds for {what}; try again when it is done")
    return future.result()


class Lock:
    """Let one thread at a time do work that may take long, in the order in which they came.

    A thread that takes it again and again keeps no other out. It is free again after an interrupt
    from the keyboard, wherever that comes, and in a process that is forked off while another
    thread holds it.

    Args:
        holder: Who is waited for, for the log and errors: ``"another thread that writes"``.
    """

    def __init__(self, holder: str) -> None:
        self._holder = holder
        self._owner = 0  # the thread that holds it
        self._queue: deque[object] = deque()  # those who wait for it
        self._set_up()
        release_after_fork(self)

    def _set_up(self) -> None:
        self._mutex = threading.RLock()  # quicker to hold than the condition that it belongs to
        self._condition = threading.Condition(self._mutex)

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""
        self._owner = self._owner if self._owner == threading.get_ident() else 0
        self._queue = deque()
        self._set_up()

    def is_mine(self) -> bool:
        """Return whether this thread holds it."""
        return self._owner == threading.get_ident()

    def _is_free(self) -> bool:
        return not self._owner

    @contextmanager
    def held(self, *, wait: bool = True, limit: float = WAIT_LIMIT) -> Iterator[bool]:
        """Hold the lock. The thread that holds it may do so again.

        Args:
            wait: Whether to wait until it is free; else the block gets False.
            limit: Seconds to wait.

        Raises:
            TimeoutError: If it has not become free within the limit.
        """
        thread = threading.get_ident()
        outer = self._owner == thread
        try:
            if not outer:
                with self._mutex:
                    if wait and (self._queue or not self._is_free()):
                        self._wait(self._is_free, self._holder, limit)
                    if self._is_free():
                        self._owner = thread
            yield self._owner == thread and (wait or not outer)
        finally:
            if not outer and self._owner == thread:
                self._owner = 0
                with self._mutex:
                    self._condition.notify_all()

    def _wait(self, is_free: Callable[[], bool], holder: str, limit: float) -> None:
        """Wait in the queue until it is this thread's turn."""
        turn, queue = object(), self._queue

        def is_next() -> bool:
            return is_free() and queue[0] is turn

        try:
            queue.append(turn)
            wait_until(self._condition, is_next, holder, limit)
        finally:
            with suppress(ValueError):
                queue.remove(turn)
            self._condition.notify_all()  # the next one, who may be a reader, too


_RETRY_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # seconds, about


def retried(work: Callable[[], T], patience: float = math.inf) -> T:
    """Return what a call returns, made again where the store failed for now, for some seconds.

    The waits grow, and differ at random, so that many processes don't come back at once. What is
    called again must do the same: documents, nodes and values are known by their ids.

    Args:
        work: What to call.
        patience: Seconds after which it is not called again, for what waits itself.

    Raises:
        TransientStoreError: If the store has not come back; nothing was changed.
    """
    deadline = time.monotonic() + patience
    for seconds in _RETRY_WAITS:
        try:
            return work()
        except TransientStoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(seconds * random.uniform(0.5, 1.5))
    return work()


def is_reading_graph() -> bool:
    """Return whether this thread is reading any graph."""
    return bool(_thread.open)


class State:
    """A state of a graph: of what is stored, and of what is declared.

    Attributes:
        number: That of the store.
        values: What was computed of the state.
        built: The groups, as they were asked for together, that are built in it.
    """

    __slots__ = ("built", "number", "values")

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: dict[object, object] = {}
        self.built: set[tuple[str, ...]] = set()


def end_left_transaction(store: StateStore) -> None:
    """End a transaction of this thread that an interrupt has left: what is written now would go.

    Raises:
        RuntimeError: If it has one that is still open after that.
    """
    if store.in_transaction():
        gc.collect()
    if store.in_transaction():
        raise RuntimeError(
            "this thread has a transaction of the store open, with which all that is written "
            "now would be undone: leave its block before; if an interrupt has left it, forget "
            "the traceback (del sys.last_traceback, sys.last_value), or open the graph anew"
        )


class Access:
    """Let many threads read one state, or one thread write.

    All that read at a time read the same state, also where another process writes to the store
    meanwhile: indexes are brought up to date for one state, and shared. Its writes are seen once
    those who are reading have finished.

    Attributes:
        state: What this process sees; another object after every change.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._lock = ReadWriteLock()
        self.state = State(-1)
        # Held to change documents, or to keep them.
        self.change_lock = Lock("another thread that changes documents")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one state until the block ends."""
        while True:
            with self._lock.read(), self._store.snapshot() as state:
                if state == self.state.number:
                    blocks, block = _thread.open, object()
                    try:
                        blocks.add(block)
                        yield
                    finally:
                        blocks.discard(block)
                    return
            with self._lock.write(), self._store.snapshot() as newest:
                self._see(newest)

    def cached(self, key: object, compute: Callable[[], T]) -> T:
        """Return what a function of the state returns, called once for the state being read."""
        return (
            self.of_state(self.state.number, key, compute) if self._lock.is_reading() else compute()
        )

    def of_state(self, number: int, key: object, compute: Callable[[], T]) -> T:
        """Like ``cached``, for a state by its number; computed again if the state has moved on."""
        state = self.state
        if number != state.number:
            return compute()
        values = state.values
        if key not in values:
            values[key] = compute()
        return values[key]  # type: ignore[return-value]

    def _see(self, number: int) -> None:
        if number != self.state.number:
            self.state = State(number)

    def forget(self) -> None:
        """Take what is read next as another state, since more than the store may have changed."""
        self.state = State(self.state.number)

    @contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[None]:
        """Change the store while nobody else reads or writes; all or nothing.

        Args:
            lasting: Whether it survives a power cut; what does not is to be made again at once.

        Raises:
            RuntimeError: If this thread is reading, or has a transaction open.
            StoreError: If the store can't be written to.
        """
        self.check_write()
        end_left_transaction(self._store)
        with (
            nullcontext() if lasting else self._store.made_again(),
            self._store.writing(),
            self._lock.write(),
        ):
            try:
                with self._store.transaction():
                    yield
            finally:
                self._look_again()

    def _look_again(self) -> None:
        """See the state after a transaction. If that fails, what was written stays written."""
        try:
            with self._store.snapshot() as state:
                self._see(state)
        except TransientStoreError:  # the next reader looks, or is told
            self.forget()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Like ``writing``, for documents and links; wait for ``change_lock``.

        Builds write without it: a thread that keeps others from changing documents may wait for
        a build.
        """
        self.check_write()
        with self.change_lock.held(), self.writing():
            yield

    def change(self, work: Callable[[], T]) -> T:
        """Return what a call returns that changes documents or links, within ``changing``.

        It is made again where the store fails for now.
        """

        def once() -> T:
            with self.changing():
                return work()

        return retried(once)

    @contextmanager
    def writing_registry(self) -> Iterator[None]:
        """Change the declarations of groups, which only this process has."""
        with self._lock.write():
            yield
            self.forget()

    def can_write(self) -> bool:
        """Return whether ``writing`` would begin: not while an interrupt has left a block open."""
        return not (self._lock.is_reading() or self._store.in_transaction())

    def check_write(self) -> None:
        """Raise what ``writing`` would if this thread is reading."""
        self._lock.check_write()


class ReadWriteLock(Lock):
    """Let many threads read at once, or one write; a waiting writer goes before new readers.

    Reading again while reading is allowed. Writing while the same thread reads would wait for
    itself, so it is an error.
    """

    def __init__(self) -> None:
        self._readers: dict[int, set[object]] = {}  # by thread, the blocks that it is in
        super().__init__("other threads that read or write the graph")

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""
        thread = threading.get_ident()
        self._readers = {reader: b for reader, b in self._readers.items() if reader == thread}
        super().after_fork()

    def _is_free(self) -> bool:
        return not self._owner and not any(list(self._readers.values()))

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock together with other readers.

        Blocks of one thread may end in any order, as those of tasks do.

        Raises:
            TimeoutError: If another thread has been writing for an hour.
        """
        thread, block = threading.get_ident(), object()
        blocks = self._readers.setdefault(thread, set())  # stays there: an empty one is no reader
        try:
            if blocks:
                blocks.add(block)
            else:
                with self._mutex:
                    if self._owner != thread and (self._owner or self._queue):
                        holder = "another thread that writes to the graph"
                        self._wait(lambda: not self._owner, holder, WAIT_LIMIT)
                    blocks.add(block)
            yield
        finally:
            blocks.discard(block)  # first, in one step: what follows may be interrupted
            if not blocks and self._queue:
                with self._mutex:
                    self._condition.notify_all()

    def is_reading(self) -> bool:
        """Return whether this thread reads."""
        return bool(self._readers.get(threading.get_ident()))

    @contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            RuntimeError: If this thread is reading.
            TimeoutError: If other threads have been reading or writing for an hour.
        """
        self.check_write()
        with self.held():
            yield

    def check_write(self) -> None:
        """Raise what ``write`` would.

        Raises:
            RuntimeError: If this thread is reading.
        """
        if self.is_reading():
            gc.collect()  # ends blocks that an interrupt has left
        if self.is_reading():
            raise RuntimeError(
                "the graph can't be changed, nor a group built, from inside a retrieval of the "
                "same graph; build the group before (graph.build(name)), or change the graph "
                "after the retrieval has returned"
            )
