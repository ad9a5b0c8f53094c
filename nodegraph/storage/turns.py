"""Turns and transactions: short times in which a thread holds the lock of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..locking import turns as turns_of_thread
from .database import Database
from .groups import Groups, random_step


class Turns:
    """The turns and transactions of a store, its groups, and the keys of its rows.

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
        self._is_open = False  # whether a turn or a transaction is running
        self._writes = False
        self._counters: dict[str, int] = {}

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        if not self._is_open or not self._db.lock.acquire(blocking=False):
            return False
        try:
            return self._is_open
        finally:
            self._db.lock.release()

    @contextmanager
    def turn(self) -> Iterator[int]:
        """Hold the lock and read one state until the block ends. The block gets its number.

        The number changes with every change of nodes and links, by any process. Inside a
        transaction it is -1.
        """
        with self._db.lock:
            if self._is_open:
                yield self.state
                return
            with self._outermost(self._db.begin):
                if self._db.place or self.state < 0:  # no other process changes the memory
                    ((state,),) = self._db.rows("SELECT value FROM counters WHERE name = 'state'")
                    if state != self.state:
                        self.forget()
                        self.state = state
                yield self.state

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
            if self._is_open:
                if not self._writes:
                    raise RuntimeError(
                        "the graph cannot be changed, and no group built, inside a retrieval of "
                        "the same graph; build the group before (graph.build(name)), or change "
                        "the graph after the retrieval has returned"
                    )
                yield -1
                return
            try:
                with self._outermost(lambda: self._db.begin_writing(durable=durable)):
                    self._writes = True
                    before: dict[str, int] = dict(self._db.rows("SELECT name, value FROM counters"))
                    if before["state"] != self.state:
                        self.forget()
                    self.state, self.has_changed, self._counters = -1, False, dict(before)
                    yield before["state"]
                    if self.has_changed:
                        self._counters["state"] += random_step()
                    self.groups.flush()
                    changed = self._counters.items() - before.items()
                    self._db.run_many(
                        "UPDATE counters SET value = ? WHERE name = ?",
                        [(value, name) for name, value in changed],
                    )
                self.state = self._counters["state"]
            except BaseException:
                self.forget()
                raise

    @contextmanager
    def _outermost(self, begin: Callable[[], None]) -> Iterator[None]:
        self._is_open = True
        turns_of_thread.depth += 1
        try:
            begin()
            yield
            self._db.commit()
        except BaseException:
            self._db.roll_back()
            raise
        finally:
            self._is_open = self._writes = False
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
