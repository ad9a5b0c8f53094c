"""Manage read and write transactions on a store."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TypeVar

from ..concurrency import fork_safe_fair_lock, turns_of_thread
from ..errors import MissingNodeError, StoreError
from .columns import DAMAGED, check_numbers, reading_rows
from .database import Database, Row

T = TypeVar("T")

# maximum number of seconds between changes of documents while searches are waiting
_LONGEST_PAUSE = 0.25

_STATE = "SELECT value FROM counters WHERE name = 'state'"

_ALL_COUNTERS = "SELECT name, value FROM counters"

_COUNTERS = {"state", "documents", "node_groups", "derivations", "nodes", "links", "texts"}


class Transactions:
    """Manages read and write transactions on a store.

    Args:
        database: The database of the store.

    Attributes:
        database: The database, whose lock protects the graph.
        has_changed: Whether the current transaction has changed nodes or links.
        on_forget: Functions that clear caches, which may be outdated or contain rows that were
            rolled back.
        on_commit: Functions that write postponed changes before a commit.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.has_changed = False
        self.on_forget: list[Callable[[], None]] = []
        self.on_commit: list[Callable[[], None]] = []
        self._writing = fork_safe_fair_lock()  # This lock is acquired before the lock of the graph.
        self._next_change = 0.0  # the earliest time of the next change of documents
        self._depth = 0  # number of nested reads, including the transaction
        self._writes = False
        self._state = -1  # state number of the last read, or -1 during a transaction
        self._calls: dict[int, int | None] = {}  # the state that each thread's call has read
        self._counters: dict[str, int] = {}

    def forget(self) -> None:
        """Clear all caches of rows."""
        self._state = -1
        for forget in self.on_forget:
            forget()

    # Reads

    @property
    def is_held(self) -> bool:
        """True if the current thread is inside a read or write transaction."""
        return self._depth > 0 and self.database.lock.is_owned

    @property
    def state(self) -> int:
        """The number of the state in the current turn, or -1 inside a write transaction."""
        return self._state

    def turn(self) -> Transactions:
        """Run a block in a read transaction, while holding the graph's lock.

        The block receives the number of the state, which changes whenever any process changes nodes
        or links. Inside a write transaction, the number is -1.
        """
        return self

    def call(self, state: int | None = None) -> AbstractContextManager[None]:
        """Return a context in which light transactions of this thread read the state only once.

        Args:
            state: The state that an earlier part of the same question has read, or None. It is read
                again if this process has read a later state.
        """
        if not self.database.is_remote or threading.get_ident() in self._calls:
            return nullcontext()
        return self._call(state)

    @property
    def state_of_call(self) -> int | None:
        """The state that the current ``call`` of this thread has read, or None."""
        return self._calls.get(threading.get_ident())

    @contextmanager
    def _call(self, state: int | None) -> Iterator[None]:
        thread = threading.get_ident()
        self._calls[thread] = state
        try:
            yield
        finally:
            self._calls.pop(thread, None)  # The entry is missing in a forked process.

    def light_turn(self, is_new: bool = False) -> AbstractContextManager[int]:
        """Read a consistent state like ``turn``, but without opening a transaction on a server.

        Args:
            is_new: Whether to read the state again, even if it was already read during the ``call``
                of this thread.

        Raises:
            MissingNodeError: If a query in the block reads a later state.
        """
        if not self.database.is_remote or self.is_held:
            return self.turn()
        return self._light_turn(is_new)

    @contextmanager
    def _light_turn(self, is_new: bool) -> Iterator[int]:
        thread = threading.get_ident()
        with self.database.lock:
            try:
                self._begin()
                recent = None if is_new else self._calls.get(thread)
                is_recent = recent is not None and recent == self._state
                expected = [(recent,)] if is_recent else None
                self._check_state(self.database.begin_light(_STATE, expected))
                if thread in self._calls:
                    self._calls[thread] = self._state
                yield self._state
            finally:
                self._end()

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads a consistent state, and return its result.

        Args:
            work: The function to call. It is called again if the state has changed in between.
        """
        with suppress(MissingNodeError), self.light_turn():
            return work()
        with self.turn():
            return work()

    def __enter__(self) -> int:
        if self.is_held:  # a nested turn does not acquire the lock again, which saves much time
            self._depth += 1
            return self._state
        self.database.lock.acquire()
        try:
            self._begin()
            # A database in memory is changed only by this process.
            if self.database.place or self._state < 0:
                self._check_state(self.database.begin(_STATE))
        except BaseException:
            self._end()
            self.database.lock.release()
            raise
        return self._state

    def __exit__(self, *error: object) -> None:
        if self._depth > 1:
            self._depth -= 1
            return
        try:
            self._end()
        finally:
            self.database.lock.release()

    def _check_state(self, states: list[Row]) -> None:
        """Check the number of the current state. If it has changed, clear all caches."""
        if not states:
            raise StoreError(f"{self.database.place}: {DAMAGED}")
        state = states[0][0]
        if state != self._state:
            with reading_rows(self.database.place):
                check_numbers(state)
            self.forget()
            self._state = state

    # Transactions

    @contextmanager
    def changing(self, change_lock: AbstractContextManager[object]) -> Iterator[None]:
        """Run a block that changes documents in a transaction, while holding another lock.

        If a thread changes documents continuously, it pauses for half of the time to let waiting
        searches run.
        """
        with self._spread(change_lock), self.transaction():
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for running transactions, and delay new transactions until the end of a block.

        The graph's lock is not held, so other threads can read.

        Raises:
            RuntimeError: If the current thread is inside a read or write transaction.
        """
        if self.is_held:
            raise RuntimeError("a graph cannot be compacted inside a retrieval or a change of it")
        with self._spread(nullcontext()):
            yield

    @contextmanager
    def _spread(self, lock: AbstractContextManager[object]) -> Iterator[None]:
        """Hold the writers' lock for the duration of a block.

        If other threads had to wait for this block, the next such block is delayed by the time that
        this block took.
        """
        if self.is_held:
            yield
            return
        pause = self._next_change - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        with lock, self._writing:
            start = time.monotonic()
            try:
                yield
            finally:
                if self._writing.has_waiting or self.database.lock.has_waiting:
                    end = time.monotonic()
                    self._next_change = end + min(_LONGEST_PAUSE, end - start)

    @contextmanager
    def transaction(self, *, durable: bool = True, derived: bool = False) -> Iterator[None]:
        """Run a block in a write transaction. If the block raises an error, all writes are undone.

        Args:
            durable: Whether the commit must survive a power failure.
            derived: Whether all written rows can be computed again. A read-only store keeps such
                rows in memory and rejects all others.

        Raises:
            RuntimeError: If the current thread is inside a read transaction.
            StoreError: If the store cannot be written to.
        """
        with nullcontext() if self.is_held else self._writing, self.database.lock:
            if self._writes:
                yield
                return
            if self._depth:
                raise RuntimeError(
                    "the graph cannot be changed, and no group built, inside a retrieval of "
                    "the same graph; build the group before (graph.build(name)), or change "
                    "the graph after the retrieval has returned"
                )
            try:
                self._begin()
                counters = self.database.begin_writing(
                    _ALL_COUNTERS, durable=durable, derived=derived
                )
                before = self._begin_writing(counters)
                yield
                self._commit(before)
            except BaseException:
                self.forget()
                self._counters = {}
                raise
            finally:
                self._end()

    def _begin(self) -> None:
        self._depth = 1
        turns_of_thread.depth = getattr(turns_of_thread, "depth", 0) + 1

    def _begin_writing(self, counters: list[Row]) -> dict[str, int]:
        """Prepare the counters for a transaction, and return their previous values."""
        self._writes = True
        self._counters = self._checked_counters(counters)
        if self._counters["state"] != self._state:
            self.forget()
        self._state = -1
        self.has_changed = False
        return dict(self._counters)

    def _commit(self, before: dict[str, int]) -> None:
        """Write postponed changes and counters, and commit the transaction."""
        for write in self.on_commit:
            write()
        if self.has_changed:
            self._counters["state"] += random_step()
        self.database.run_many(
            "UPDATE counters SET value = ? WHERE name = ?",
            [(value, name) for name, value in self._counters.items() - before.items()],
        )
        self.database.commit()
        self._state = self._counters["state"]

    def _end(self) -> None:
        """End the current transaction. Writes that were not committed are undone."""
        try:
            self.database.roll_back()
        finally:
            self._depth = 0
            self._writes = False
            turns_of_thread.depth -= 1

    # Counters

    def _checked_counters(self, rows: list[Row]) -> dict[str, int]:
        """Return the counters of the store, keyed by name.

        Raises:
            StoreError: If a counter is missing or invalid.
        """
        counters: dict[str, int] = dict(rows)
        with reading_rows(self.database.place):
            check_numbers(*counters.values())
            if counters.keys() != _COUNTERS:
                raise ValueError(f"the counters must be {', '.join(sorted(_COUNTERS))}")
        return counters

    def next_key(self, table: str, count: int) -> int:
        """Reserve database keys for new rows of a table, and return the first key.

        This must be called inside a transaction.
        """
        first = self._counters[table] + 1
        self._counters[table] += count
        return first


def random_step() -> int:
    """Return a random increment for revision and state numbers.

    Increments are random so that the numbers in a restored backup or a recreated file differ from
    the numbers in the store that it replaces. They do not depend on ``random.seed`` and do not
    affect the random numbers of the program.
    """
    return 1 + secrets.randbits(20)
