"""Turns and transactions: short times in which a thread holds the lock of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..locking import turns as turns_of_thread
from .database import Database
from .groups import Groups, random_step


class Turns:
    """The turns and transactions of a store, its groups, and the keys of its rows.

    ``with turns as state`` holds the lock and reads one state until the block ends. The number of
    the state changes with every change of nodes and links, by any process. Inside a transaction it
    is -1.

    Args:
        database: The database.
        forget: Clears other caches of the state.

    Attributes:
        groups: The groups, cached until the state changes.
        state: The number of the last state that was read or written. -1: unknown, since a
            transaction is running or was rolled back.
        has_changed: Whether the current transaction has changed nodes or links.
    """

    def __init__(self, database: Database, forget: Callable[[], None]) -> None:
        self._db = database
        self._forget = forget
        self.groups = Groups(database, self.next_key)
        self.state = -1
        self.has_changed = False
        self._depth = 0  # number of nested turns, including the transaction
        self._writes = False
        self._counters: dict[str, int] = {}

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        if not self._depth or not self._db.lock.acquire(blocking=False):
            return False
        try:
            return self._depth > 0
        finally:
            self._db.lock.release()

    def __enter__(self) -> int:
        self._db.lock.acquire()
        if self._depth:
            self._depth += 1
            return self.state
        try:
            self._begin(self._db.begin)
            if self._db.place or self.state < 0:  # no other process changes the memory
                ((state,),) = self._db.rows("SELECT value FROM counters WHERE name = 'state'")
                if state != self.state:
                    self.forget()
                    self.state = state
        except BaseException:
            self._end(commit=False)
            self._db.lock.release()
            raise
        return self.state

    def __exit__(self, error: object, *_: object) -> None:
        try:
            if self._depth > 1:
                self._depth -= 1
            else:
                self._end(error is None)
        finally:
            self._db.lock.release()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[int]:
        """Hold the lock and commit all writes of the block, or none if the block raises.

        The block gets the number of the state before its writes; inside another transaction -1.

        Args:
            durable: Whether the commit survives a power failure.

        Raises:
            RuntimeError: If the thread is inside a turn.
            StoreError: If the store cannot be written to.
        """
        with self._db.lock:
            if self._depth:
                if not self._writes:
                    raise RuntimeError(
                        "the graph cannot be changed, and no group built, inside a retrieval of "
                        "the same graph; build the group before (graph.build(name)), or change "
                        "the graph after the retrieval has returned"
                    )
                yield -1
                return
            try:
                self._begin(lambda: self._db.begin_writing(durable=durable))
                self._writes = True
                if self._db.place or not self._counters:
                    self._counters = dict(self._db.rows("SELECT name, value FROM counters"))
                before = dict(self._counters)
                if before["state"] != self.state:
                    self.forget()
                self.state, self.has_changed = -1, False
                yield before["state"]
                if self.has_changed:
                    self._counters["state"] += random_step()
                self.groups.flush()
                changed = self._counters.items() - before.items()
                self._db.run_many(
                    "UPDATE counters SET value = ? WHERE name = ?",
                    [(value, name) for name, value in changed],
                )
                self._end(commit=True)
            except BaseException:
                if self._depth:
                    self._end(commit=False)
                self.forget()
                self._counters = {}
                raise
            self.state = self._counters["state"]

    def _begin(self, begin: Callable[[], None]) -> None:
        self._depth = 1
        turns_of_thread.depth += 1
        begin()

    def _end(self, commit: bool) -> None:
        try:
            if commit:
                self._db.commit()
        except BaseException:
            commit = False
            raise
        finally:
            if not commit:
                self._db.roll_back()
            self._depth, self._writes = 0, False
            turns_of_thread.depth -= 1

    def forget(self) -> None:
        """Clear the caches, which may be outdated, or hold rows that were rolled back."""
        self.state = -1
        self.groups.forget()
        self._forget()

    def next_key(self, table: str, count: int) -> int:
        """Assign keys to new rows of a table; return the last one. Inside a transaction."""
        self._counters[table] += count
        return self._counters[table]
