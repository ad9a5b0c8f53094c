"""The private protocol between a graph's store and its SQL database."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

Row = tuple[Any, ...]


class Database(Protocol):
    """A connection to an SQL database, guarded by one lock.

    Statements use ``?`` as the placeholder. Ids, names, texts and JSON are bytes.

    Attributes:
        lock: The lock of the graph. It guards the connection and the indexes. No thread may
            hold it while it waits for another thread, a model or a transform.
    """

    lock: threading.RLock

    @property
    def place(self) -> str:
        """The path or address of the database. Empty for a database in memory."""

    @property
    def index_folder(self) -> Path | None:
        """The folder for index files. None if indexes stay in memory."""

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""

    def turn(self) -> AbstractContextManager[bool]:
        """Hold the lock and read one state until the block ends.

        The block gets True if this turn is the outermost one. Turns can be nested.
        """

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[bool]:
        """Hold the lock and commit all writes of the block, or none if the block raises.

        The block gets True if this transaction is the outermost one. Transactions can be nested.

        Args:
            durable: Whether the commit survives a power failure. Otherwise a power failure may
                undo the commit, but never a part of it.

        Raises:
            RuntimeError: If the thread is inside a turn.
            StoreError: If the database cannot be written to.
        """

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""

    def compact(self) -> None:
        """Free the disk space of deleted rows."""

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
