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
from ..errors import StoreError
from ..node import ROOT
from .columns import DAMAGED, to_id, to_text
from .database import FORMAT, TABLES, Row
from .schema_check import check_schema, protect

APPLICATION = 0x6E6F6465
"""The ``application_id`` of our files: "node"."""

_CACHE_KB = 32_000

_TIMEOUT = 60.0  # seconds to wait while another process writes

_IDS = {"empty": f"X'{to_id('').hex()}'", "root": f"X'{to_text(ROOT).hex()}'"}

_FULL = "nothing was changed; free disk space and retry"

_WRITING = "another process is writing: retry when it has finished"

_READ_ONLY = "nothing was changed: the file or its folder is read-only"

_REMEDIES = {
    "not a database": "the file is not a nodekin graph; choose another path",
    **{"malformed": DAMAGED, "disk image": DAMAGED, "full": _FULL, "disk I/O": _FULL},
    **{"locked": _WRITING, "busy": _WRITING, "readonly": _READ_ONLY, "read-only": _READ_ONLY},
    "unable to open": "the folder is missing, or the file cannot be opened",
}
"""Remedies of errors, by a part of SQLite's message."""

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
        self._db()  # report problems now

    def _set_up(self) -> None:
        self.lock = threading.RLock()
        self.place = ""
        self.index_folder: Path | None = None
        if self.path is not None:
            self.place = str(self.path.resolve())  # once, since each turn reads the place
            self.index_folder = self.path.with_name(f"{self.path.name}-indexes")
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

    # Statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a statement."""
        with self.lock:
            try:
                return self._db().execute(statement, values).fetchall()
            except (sqlite3.Error, OverflowError) as error:
                raise self._explained(error) from error

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        if rows:
            try:
                self._db().executemany(statement, rows)
            except (sqlite3.Error, OverflowError) as error:
                raise self._explained(error) from error

    # Turns and transactions

    def begin(self) -> None:
        """Begin to read one state."""
        if self.path is not None:
            self._check_file()
            self.rows("BEGIN")

    def begin_writing(self, *, durable: bool) -> None:
        """Begin a transaction."""
        if self.path is not None:
            self._check_file()
            if durable != self._is_durable:
                self.rows(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._is_durable = durable
        self.rows("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the current state or transaction, and commit its writes."""
        if self._db().in_transaction:
            self.rows("COMMIT")

    def roll_back(self) -> None:
        """End the current state or transaction, if any, and undo its writes."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    # The connection

    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            name = ":memory:" if self.path is None else str(self.path)
            try:
                db = sqlite3.connect(name, _TIMEOUT, isolation_level=None, check_same_thread=False)
                try:
                    self._prepare(db)
                except BaseException:
                    db.close()
                    raise
            except sqlite3.Error as error:
                raise self._explained(error) from error
            self._connection = db
        return self._connection

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Set the options of a new connection, check the format, and create missing tables."""
        protect(db)
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._is_durable = True
        # One statement reads one state: another process may be creating the file.
        application, version, tables = db.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application != APPLICATION and (application or version or tables):
            raise StoreError(
                f"{self.path} is an SQLite file, but not a nodekin graph; choose another path"
            )
        if version not in (0, FORMAT):
            raise StoreError(
                f"{self.path} has format {version}, and this nodekin reads format {FORMAT}; index "
                "the documents again into another file"
            )
        if version:
            check_schema(db, self.path or "the graph in memory")
        if not version:
            with suppress(sqlite3.OperationalError):  # another process creates the file
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables.
            if not db.execute("PRAGMA user_version").fetchone()[0]:
                for statement in TABLES:
                    db.execute(statement.format(**_IDS))
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
        if self.path is not None:
            self._inode = os.stat(self.path).st_ino

    def _check_file(self) -> None:
        """Raise an error if the open file was deleted or replaced."""
        try:
            inode = os.stat(str(self.path)).st_ino
        except OSError:
            inode = 0
        if self._connection is not None and inode != self._inode:
            raise StoreError(
                f"{self.path} was deleted or replaced while the graph was open; restore the file, "
                "or close the graph (graph.close()) to open the new one"
            )

    def compact(self) -> None:
        """Rewrite the file without the space of deleted rows."""
        with self.lock:
            self.rows("VACUUM")
            if self.path is not None:
                self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file. A database in memory keeps its data."""
        with self.lock:
            if self.path is not None and self._connection is not None:
                self._connection.close()
                self._connection = None

    def _explained(self, error: Exception) -> StoreError:
        """Return an error of SQLite with the place and a remedy."""
        text, place = str(error), self.path or "the graph in memory"
        remedies = (remedy for word, remedy in _REMEDIES.items() if word in text)
        return StoreError(f"{place}: {text}: {next(remedies, 'nothing was changed')}")

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
