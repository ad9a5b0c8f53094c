"""The private protocol between a graph's store and its SQL database."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

Row = tuple[Any, ...]


class Database(Protocol):
    """A connection to an SQL database, guarded by one lock. The store holds the lock.

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

    def begin(self) -> None:
        """Begin to read one state."""

    def begin_writing(self, *, durable: bool) -> None:
        """Begin a transaction, after other writing processes have finished theirs.

        Args:
            durable: Whether the commit survives a power failure. Otherwise a power failure may
                undo the commit, but never a part of it.

        Raises:
            StoreError: If the database cannot be written to.
        """

    def commit(self) -> None:
        """End the current state or transaction, and commit its writes."""

    def roll_back(self) -> None:
        """End the current state or transaction, if any, and undo its writes."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values, inside a transaction."""

    def compact(self) -> None:
        """Free the disk space of deleted rows."""

    def close(self) -> None:
        """Close the connection. The next use opens a new one."""
