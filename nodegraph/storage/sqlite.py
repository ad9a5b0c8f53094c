"""An SQLite database in memory or in a file: one connection behind one lock."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..concurrency import hold_over_fork
from ..errors import DiskFullError, StoreError
from ..node import ROOT
from .columns import to_id, to_text
from .database import FORMAT, TABLES, Row, statements

APPLICATION = 0x6E6F6465
"""The ``application_id`` of our files: "node"."""

_CACHE_KB = 32_000

_TIMEOUT = 60.0  # seconds to wait while another process writes

_CREATED = TABLES.format(empty=f"X'{to_id('').hex()}'", root=f"X'{to_text(ROOT).hex()}'")

_inherited: list[sqlite3.Connection] = []  # closing one in a child would break its parent


class SQLiteDatabase:
    """A connection to an SQLite database; see ``Database`` for its methods.

    Args:
        path: The file. Created if it is missing. None for a database in memory.

    Raises:
        StoreError: If the file cannot be opened, is not a nodekin graph, or has another format.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._set_up()
        if path is None:
            self._create(self._db())
        else:
            self._db()  # report problems now

    def _set_up(self) -> None:
        self.lock = threading.RLock()
        self._is_durable = True
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        hold_over_fork(self)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"path": self.path}
        if self.path is None:
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, "copy")
                self.copy_to(copy)
                state["content"] = copy.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._set_up()
        if self.path is None:
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, "copy")
                copy.write_bytes(state["content"])
                with closing(sqlite3.connect(copy)) as source:
                    source.backup(self._db())

    def copy_to(self, path: Path) -> None:
        """Replace the content of another file with a copy of the database."""
        with self.lock, closing(sqlite3.connect(path)) as target:
            self._db().backup(target)

    @property
    def place(self) -> str:
        """The path of the file, with symbolic links resolved."""
        return "" if self.path is None else str(self.path.resolve())

    @property
    def index_folder(self) -> Path | None:
        """The folder ``<file>-indexes``."""
        return None if self.path is None else self.path.with_name(self.path.name + "-indexes")

    # Statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.lock:
            try:
                return self._db().execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise self._explained(error) from error

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        if not rows:
            return
        try:
            self._db().executemany(statement, rows)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _run(self, statement: str) -> None:
        try:
            self._db().execute(statement)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    # Turns and transactions

    def begin(self) -> None:
        """Begin to read one state."""
        if self.path is not None:
            self._check_file()
            self._run("BEGIN")

    def begin_writing(self, *, durable: bool) -> None:
        """Begin a transaction."""
        if self.path is not None:
            self._check_file()
            if durable != self._is_durable:
                self._run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._is_durable = durable
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the current state or transaction, and commit its writes."""
        if self._db().in_transaction:
            self._run("COMMIT")

    def roll_back(self) -> None:
        """End the current state or transaction, if any, and undo its writes."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    # The connection

    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._connect()
            if self.path is not None:
                try:
                    self._check_format(connection)
                except BaseException:
                    connection.close()
                    raise
            self._connection = connection
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        name = ":memory:" if self.path is None else str(self.path)
        try:
            db = sqlite3.connect(name, _TIMEOUT, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._explained(error) from error
        return db

    def _check_format(self, db: sqlite3.Connection) -> None:
        assert self.path is not None
        try:
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self._is_durable = True
            if self._format(db) == 0:
                with suppress(sqlite3.OperationalError):  # another process creates the file
                    db.execute("PRAGMA journal_mode = WAL")
                self._create(db)
            self._inode = os.stat(self.path).st_ino
        except sqlite3.Error as error:
            raise self._explained(error) from error
        if (version := self._format(db)) != FORMAT:
            raise StoreError(
                f"{self.path} has format {version}, and this nodekin reads format {FORMAT}; index "
                "the documents again into another file"
            )

    def _format(self, db: sqlite3.Connection) -> int:
        """Return the format of the file; 0 if the file is empty."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        tables = db.execute("SELECT 1 FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or version or tables):
            raise StoreError(
                f"{self.path} is an SQLite file, but not a nodekin graph; choose another path"
            )
        return int(version)

    def _create(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("PRAGMA user_version").fetchone()[0]:  # another process may be faster
            for statement in statements(_CREATED):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("COMMIT")

    def _check_file(self) -> None:
        """Raise an error if the open file was deleted or replaced."""
        if self.path is None or self._connection is None:
            return
        try:
            inode = os.stat(self.path).st_ino
        except OSError:
            inode = 0
        if inode != self._inode:
            raise StoreError(
                f"{self.path} was deleted or replaced while the graph was open; restore the file, "
                "or close the graph (graph.close()) to open the new one"
            )

    def compact(self) -> None:
        """Rewrite the file without the space of deleted rows."""
        with self.lock:
            self._run("VACUUM")
            if self.path is not None:
                self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file. A database in memory keeps its data."""
        with self.lock:
            if self.path is not None and self._connection is not None:
                self._connection.close()
                self._connection = None

    def _explained(self, error: sqlite3.Error) -> StoreError:
        text, place = str(error), self.path or "the graph in memory"
        if "not a database" in text:
            return StoreError(f"{place} is not a nodekin graph; choose another path")
        if "malformed" in text or "disk image" in text:
            remedy = "the file is damaged: restore a backup, or index the documents again"
        elif "full" in text or "disk I/O" in text:
            return DiskFullError(f"{place}: {text}: nothing was changed; free disk space and retry")
        elif "locked" in text or "busy" in text:
            remedy = "another process is writing: retry when it has finished"
        elif "readonly" in text or "read-only" in text:
            remedy = "nothing was changed: the file or its folder is read-only"
        elif "unable to open" in text:
            remedy = "the folder is missing, or the file cannot be opened"
        else:
            remedy = "nothing was changed"
        return StoreError(f"{place}: {text}: {remedy}")

    # Forks

    def release_in_child(self) -> None:
        """Leave the connection of a file to the parent process."""
        if self.path is not None and self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None
        self.lock.release()


def faults_of(path: Path) -> list[str]:
    """Return at most ten integrity errors of a file, over a separate connection."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db:
            faults = [str(text) for (text,) in db.execute("PRAGMA integrity_check(10)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return [str(error) or "an error whose text is damaged"]
    return [fault for fault in faults if fault != "ok"]
