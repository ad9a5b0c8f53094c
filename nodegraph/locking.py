"""Who may read a graph, who may change it, and which state they see."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from .store import NodeStore, retried


class Holdable(Protocol):
    """What can be held in one state: a graph."""

    def reading(self, *groups: str) -> AbstractContextManager[None]:
        """Hold one state in which the groups are built."""
        ...


class OutsideHoldError(BaseException):
    """A graph or group is read that is not held; not for an ``except Exception`` on the way."""


class Observation:
    """Tell whether all that is read in a block is of one state of each graph.

    The first state that is read of a graph is noted. If it is still the newest at the end, no
    other one has been read (the rule of a sequence lock). What the block itself builds changes
    nothing that it has read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the block may read in several threads
        self._states: dict[Access, int] = {}
        self._groups: dict[Holdable, set[str]] = {}
        self._holds = False

    def note(self, access: Access, state: int) -> None:
        """Note that a state of a graph is read."""
        with self._lock:
            self._states.setdefault(access, state)

    def note_groups(self, graph: Holdable, *groups: str) -> None:
        """Note that groups of a graph are read.

        Raises:
            OutsideHoldError: If they had to be held with the others, and are not.
        """
        with self._lock:
            existing = self._groups.get(graph)
            new = self._holds and (existing is None or not existing.issuperset(groups))
            self._groups.setdefault(graph, set()).update(groups)
        if new:
            raise OutsideHoldError

    def advance(self, access: Access, before: int, after: int) -> None:
        """Go on from the state that a build in the block has made of the one that was read."""
        with self._lock:
            if self._states.get(access) == before:
                self._states[access] = after

    def is_current(self) -> bool:
        """Return whether the states that were read are the newest."""
        return all(access.newest() == state for access, state in list(self._states.items()))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold all graphs that were read, with their groups built; nobody writes meanwhile."""
        groups = {graph: tuple(names) for graph, names in self._groups.items()}
        graphs = sorted(groups, key=id)  # in one order: two threads can't wait for each other
        for graph in graphs:  # built before any is held
            with graph.reading(*groups[graph]):
                pass
        with ExitStack() as lease:
            for graph in graphs:
                lease.enter_context(graph.reading(*groups[graph]))
            self._holds = True
            try:
                yield
            finally:
                self._holds = False


current_observation: ContextVar[Observation | None] = ContextVar("observation", default=None)
"""What notes the states that are read now; None where nothing does."""


@contextmanager
def observing(observation: Observation | None = None) -> Iterator[Observation]:
    """Note what is read in the block, also in the threads and tasks that are started in it.

    Args:
        observation: What notes it; None for a new one.
    """
    observation = observation or Observation()
    token = current_observation.set(observation)
    try:
        yield observation
    finally:
        current_observation.reset(token)


T = TypeVar("T")


class _Depth(threading.local):
    """Count how often this thread has begun to read and not ended."""

    depth = 0


_thread = _Depth()


class HasLocks(Protocol):
    """What has locks that a thread may hold while another thread forks the process."""

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""
        ...


_WITH_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()


def release_after_fork(owner: HasLocks) -> None:
    """Have ``after_fork`` called in each process that is forked off."""
    _WITH_LOCKS.add(owner)


def _after_fork() -> None:
    for owner in list(_WITH_LOCKS):
        owner.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)


def unheld(lock: threading.RLock) -> threading.RLock:
    """Return a lock, or a new one where another thread holds it, which is not in this process."""
    if not lock.acquire(blocking=False):
        return threading.RLock()
    lock.release()
    return lock


def is_reading_graph() -> bool:
    """Return whether this thread is reading any graph."""
    return _thread.depth > 0


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


class Access:
    """Let many threads read one state, or one thread write.

    All that read at a time read the same state, also where another process writes to the store
    meanwhile: indexes are brought up to date for one state, and shared. Its writes are seen once
    those who are reading have finished.

    Attributes:
        state: What this process sees; another object after every change.
    """

    def __init__(self, store: NodeStore) -> None:
        self._store = store
        self._lock = ReadWriteLock()
        self.state = State(-1)
        self.change_lock = threading.RLock()  # held to change documents, or to keep them
        release_after_fork(self)

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""
        self.change_lock = unheld(self.change_lock)
        self._lock.after_fork()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one state until the block ends."""
        while True:
            with self._lock.read(), self._store.snapshot() as state:
                if state == self.state.number:
                    if (observation := current_observation.get()) is not None:
                        observation.note(self, state)
                    _thread.depth += 1
                    try:
                        yield
                    finally:
                        _thread.depth -= 1
                    return
            with self._lock.write(), self._store.snapshot() as newest:
                self._see(newest)

    def newest(self) -> int:
        """Return the number of the newest state; wait for who is writing."""
        with self._lock.read(), self._store.snapshot() as state:
            return state

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
    def writing(self, *, builds: bool = True) -> Iterator[None]:
        """Change the store while nobody else reads or writes; all or nothing.

        Args:
            builds: Whether only derived data is written, so that current readers stay valid.

        Raises:
            RuntimeError: If this thread is reading.
            StoreError: If the store can't be written to.
        """
        self.check_write()
        with self._store.writing(), self._lock.write():
            observation = current_observation.get() if builds else None
            before = -1
            if observation is not None:
                with self._store.snapshot() as before:
                    pass
            try:
                with self._store.transaction():
                    yield
            finally:
                with self._store.snapshot() as state:
                    self._see(state)
                if observation is not None:
                    observation.advance(self, before, state)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Like ``writing``, for documents and links; wait for ``change_lock``.

        Builds write without it: a thread that keeps others from changing documents may wait for
        a build.
        """
        self.check_write()
        with self.change_lock, self.writing(builds=False):
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

    def check_write(self) -> None:
        """Raise what ``writing`` would if this thread is reading."""
        self._lock.check_write()


class ReadWriteLock:
    """Let many threads read at once, or one write; a waiting writer goes before new readers.

    Reading again while reading is allowed. Writing while the same thread reads would wait for
    itself, so it is an error.
    """

    def __init__(self) -> None:
        self._thread = _Depth()
        self._set_up()

    def _set_up(self) -> None:
        self._mutex = threading.RLock()  # quicker to hold than the condition that it belongs to
        self._condition = threading.Condition(self._mutex)
        self._readers = 0
        self._writing = False
        self._writer = 0  # the thread that wrote last
        self._waiting = 0

    def after_fork(self) -> None:
        """Release what only threads hold that are not in this process."""
        writing, writer = self._writing, self._writer
        self._set_up()
        self._readers = int(self.is_reading())
        self._writing = writing and writer == threading.get_ident()
        self._writer = writer

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        thread = self._thread
        if thread.depth == 0:
            with self._mutex:
                while self._writing or self._waiting:
                    self._condition.wait()
                self._readers += 1
        thread.depth += 1
        try:
            yield
        finally:
            thread.depth -= 1
            if thread.depth == 0:
                with self._mutex:
                    self._readers -= 1
                    if self._waiting and not self._readers:  # nobody waits for some of the readers
                        self._condition.notify_all()

    def is_reading(self) -> bool:
        """Return whether this thread reads."""
        return self._thread.depth > 0

    @contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock alone.

        Raises:
            RuntimeError: If this thread is reading.
        """
        self.check_write()
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._writing and not self._readers)
                self._writing, self._writer = True, threading.get_ident()
            finally:
                self._waiting -= 1
                if not self._writing:  # interrupted: let those pass who waited for this one
                    self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()

    def check_write(self) -> None:
        """Raise what ``write`` would.

        Raises:
            RuntimeError: If this thread is reading.
        """
        if self.is_reading():
            raise RuntimeError(
                "the graph can't be changed, nor a group built, from inside a retrieval of the "
                "same graph; build the group before (graph.build(name)), or change the graph "
                "after the retrieval has returned"
            )
