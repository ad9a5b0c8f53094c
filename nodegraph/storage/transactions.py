"""Turns and transactions of a store."""

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

_LONGEST_PAUSE = 0.25  # seconds between changes of documents while searches wait

_STATE = "SELECT value FROM counters WHERE name = 'state'"

_ALL_COUNTERS = "SELECT name, value FROM counters"

_COUNTERS = {"state", "documents", "node_groups", "derivations", "nodes", "links", "texts"}


class Transactions:
    """The turns and transactions of a store.

    Args:
        database: The database.

    Attributes:
        database: The database, whose lock guards the graph.
        has_changed: Whether the transaction has changed nodes or links.
        on_forget: Functions that clear caches. These may be outdated or hold rows that were rolled
            back.
        on_commit: Functions that write delayed changes before a commit.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.has_changed = False
        self.on_forget: list[Callable[[], None]] = []
        self.on_commit: list[Callable[[], None]] = []
        self._writing = fork_safe_fair_lock()  # acquired before the lock of the graph
        self._next_change = 0.0  # time before which documents do not change again
        self._depth = 0  # number of nested turns, including the transaction
        self._writes = False
        self._state = -1  # the state number of the last turn; -1 during a transaction
        self._calls: dict[int, int | None] = {}  # states that calls have read, by thread
        self._counters: dict[str, int] = {}

    def forget(self) -> None:
        """Clear all caches."""
        self._state = -1
        for forget in self.on_forget:
            forget()

    # Turns

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        return self._depth > 0 and self.database.lock.is_owned

    def turn(self) -> Transactions:
        """Hold the lock and read one state until the block ends.

        The block gets the state number, which changes whenever any process changes nodes or links.
        Inside a transaction, the number is -1.
        """
        return self

    def call(self) -> AbstractContextManager[None]:
        """Let the light turns of this thread read the state only once until the block ends."""
        if not self.database.is_remote or threading.get_ident() in self._calls:
            return nullcontext()
        return self._call()

    @contextmanager
    def _call(self) -> Iterator[None]:
        thread = threading.get_ident()
        self._calls[thread] = None
        try:
            yield
        finally:
            self._calls.pop(thread, None)  # missing in a forked process

    def light_turn(self, is_new: bool = False) -> AbstractContextManager[int]:
        """Hold the lock like ``turn``, but without a transaction on a server.

        Args:
            is_new: Whether the state is read again, even if the ``call`` of this thread has read
                the state before.

        Raises:
            MissingNodeError: If a query of the block reads a later state.
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
        """Call a function that reads in one state, and return its result.

        Args:
            work: The function. It is called again if the state has changed in between.
        """
        with suppress(MissingNodeError), self.light_turn():
            return work()
        with self.turn():
            return work()

    def __enter__(self) -> int:
        self.database.lock.acquire()
        if self._depth:
            self._depth += 1
            return self._state
        try:
            self._begin()
            if self.database.place or self._state < 0:  # only this process changes memory
                self._check_state(self.database.begin(_STATE))
        except BaseException:
            self._end()
            self.database.lock.release()
            raise
        return self._state

    def __exit__(self, *error: object) -> None:
        try:
            if self._depth > 1:
                self._depth -= 1
            else:
                self._end()
        finally:
            self.database.lock.release()

    def _check_state(self, states: list[Row]) -> None:
        """Check the state number. If it has changed, clear the caches."""
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
        """Change documents in a transaction, and hold another lock until it ends.

        A thread that changes documents continuously leaves half of the time to waiting searches.
        """
        with self._spread(change_lock), self.transaction():
            yield

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for transactions, and delay new transactions until the block ends.

        The block does not hold the graph's lock, so other threads can read.

        Raises:
            RuntimeError: If the thread is inside a turn or a transaction.
        """
        if self.is_held:
            raise RuntimeError("a graph cannot be compacted inside a retrieval or a change of it")
        with self._spread(nullcontext()):
            yield

    @contextmanager
    def _spread(self, lock: AbstractContextManager[object]) -> Iterator[None]:
        """Hold the writers' lock. The next such block may have to wait as long as this one took.

        It waits only if other threads waited for this block.
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
        """Hold the lock and commit all writes of the block, or none if the block raises.

        Args:
            durable: Whether the commit survives a power failure.
            derived: Whether all writes can be derived again. A read-only store keeps them in
                memory, and rejects other writes.

        Raises:
            RuntimeError: If the thread is inside a turn.
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
        """Return the counters before the transaction."""
        self._writes = True
        self._counters = self._checked_counters(counters)
        if self._counters["state"] != self._state:
            self.forget()
        self._state = -1
        self.has_changed = False
        return dict(self._counters)

    def _commit(self, before: dict[str, int]) -> None:
        """Write the delayed changes and the counters, and commit."""
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
        """End the turn, or the transaction. Writes that are not committed are undone."""
        try:
            self.database.roll_back()
        finally:
            self._depth = 0
            self._writes = False
            turns_of_thread.depth -= 1

    # Counters

    def _checked_counters(self, rows: list[Row]) -> dict[str, int]:
        """Return the counters of the store by name.

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
        """Assign keys to new rows of a table, inside a transaction. Return the first key."""
        first = self._counters[table] + 1
        self._counters[table] += count
        return first


def random_step() -> int:
    """Return the difference between a revision or state and the next.

    The steps are random, so that the numbers in a restored backup or a recreated file differ from
    those in the replaced store. They do not depend on ``random.seed`` and do not affect the
    program's random numbers.
    """
    return 1 + secrets.randbits(20)
