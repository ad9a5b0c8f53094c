"""An SQLite database in memory or in a file, with one connection protected by a lock."""

from __future__ import annotations

import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..concurrency import FairLock, hold_over_fork
from ..errors import StoreError
from ..node import ROOT
from .columns import DAMAGED, bound, statements, to_id, to_text
from .database import FORMAT, TABLES, VECTOR_TABLES, Row
from .schema_check import check_schema, protect

logger = logging.getLogger(__name__)

APPLICATION = 0x6E6F6465
"""The ``application_id`` in the header of SQLite files, which spells "node"."""

_CACHE_KB = 32_000

_STREAMING_KB = 2_000  # size of the cache while many values are read or written only once

# number of bytes in a page of a database in memory. Blocks of vectors are written and read faster
# in large pages, and need less memory.
_MEMORY_PAGE = 16_384

_TIMEOUT = 60.0  # number of seconds to wait while another process writes

_LONG_LOG = 1_000_000  # number of bytes; truncating a shorter log is not worth a disk write

_IDS = {"empty": f"X'{to_id('').hex()}'", "root": f"X'{to_text(ROOT).hex()}'"}

_FULL = "nothing was changed; free disk space and retry"

_WRITING = "another process is writing: retry when it has finished"

_READ_ONLY = "nothing was changed: the file or its folder is read-only"

_REMEDIES = {
    "not a database": "the file is not a nodekin graph; choose another path",
    **{"malformed": DAMAGED, "disk image": DAMAGED, "full": _FULL, "disk I/O": _FULL},
    **{"locked": _WRITING, "busy": _WRITING, "readonly": _READ_ONLY, "read-only": _READ_ONLY},
    "unable to open": "the folder is missing, the path is a folder, or the file cannot be opened",
}
"""Advice on how to fix errors, keyed by a part of SQLite's error message."""

_LOGS = ("-wal", "-journal")
"""The suffixes of files that contain pending changes of a database."""


def _page_size(db: sqlite3.Connection) -> int:
    size: int = db.execute("PRAGMA page_size").fetchone()[0]
    return size


# Closing one of these connections in a child process would break its parent.
_inherited: list[sqlite3.Connection] = []


class SQLiteDatabase:
    """A connection to an SQLite database that implements the interface ``Database``.

    A file is opened read-only if this process cannot write to the file or to its folder. In this
    case, rows that can be computed again are written to a copy of the database in memory.

    Args:
        path: The path of the file, which is created if it is missing. If None, the database is kept
            in memory.

    Raises:
        StoreError: If the file cannot be opened, does not contain a graph, or has a different
            format.
    """

    has_blocks = True

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._set_up()
        self._db()  # so that problems are reported immediately

    def _set_up(self) -> None:
        self.lock = FairLock()
        self.place = ""
        self.index_folder: Path | None = None
        if self.path is not None:
            # computed only once, since each read needs the path
            self.place = str(self.path.resolve())
            self.index_folder = self.path.with_name(f"{self.path.name}-indexes")
        self._is_durable = True
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._stamps: Stamps | None = None  # set if the file is assumed not to change
        self._is_read_only = False
        self._is_copy = False  # True if the connection is a copy of a read-only file in memory
        hold_over_fork(self)

    def __del__(self) -> None:
        """Close the connection if the graph was not closed, because Python 3.13 requires it."""
        connection = getattr(self, "_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

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
        """Copy the database to another file. An existing file is replaced."""
        with self.lock, closing(sqlite3.connect(path)) as target:
            if _page_size(target) != _page_size(self._db()):
                # WAL mode requires pages of equal size.
                target.execute("PRAGMA journal_mode = DELETE")
            self._db().backup(target)

    # Statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a query and return all rows."""
        with self.lock:
            try:
                return self._db().execute(statement, bound(values)).fetchall()
            except (sqlite3.Error, OverflowError) as error:
                raise self._explained(error) from error

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        if rows:
            try:
                for single, values in statements(statement, rows):
                    self._db().executemany(single, values)
            except (sqlite3.Error, OverflowError) as error:
                raise self._explained(error) from error

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Use a small page cache inside the block, which reads or writes many values only once."""
        self.rows(f"PRAGMA cache_size = -{_STREAMING_KB}")
        try:
            yield
        finally:
            self.rows(f"PRAGMA cache_size = -{_CACHE_KB}")
            self.truncate_log()

    # Reads and transactions

    def begin(self, query: str) -> list[Row]:
        """Begin to read a consistent state, and return the rows of the first query."""
        if self.path is not None:
            self._check_file()
            self.rows("BEGIN")
        return self.rows(query)

    def begin_light(self, query: str, expected: list[Row] | None) -> list[Row]:
        """Begin to read a consistent state, and return the rows of the first query."""
        return self.begin(query)

    @property
    def is_remote(self) -> bool:
        """False, since a file is accessed without a server."""
        return False

    @property
    def is_read_only(self) -> bool:
        """True if this process cannot write to the file or to its folder."""
        if self._connection is not None:
            return self._is_read_only
        return self.path is not None and is_read_only(self.path)

    def begin_writing(self, query: str, *, durable: bool, derived: bool = False) -> list[Row]:
        """Begin a transaction, and return the rows of the first query.

        If the file is read-only, the first statement that writes raises an error.
        """
        self._begin_writing(durable=durable, derived=derived)
        return self.rows(query)

    def _begin_writing(self, *, durable: bool, derived: bool) -> None:
        if self.path is not None:
            self._check_file()
            self._db()
            if self._is_read_only:
                if derived:
                    self._copy_into_memory()
                if self._is_copy:
                    self.rows(f"PRAGMA query_only = {'OFF' if derived else 'ON'}")
                self.rows("BEGIN")
                return
            if durable != self._is_durable:
                self.rows(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._is_durable = durable
        self.rows("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """End the current transaction and commit all writes."""
        if self._db().in_transaction:
            self.rows("COMMIT")

    def roll_back(self) -> None:
        """Undo all writes of the current transaction and end it."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    # The connection

    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            self._is_read_only = self.is_read_only
            try:
                if self.path is None:
                    db = _connect(":memory:")
                elif self._is_read_only:
                    db, self._stamps = connect_read_only(self.path)
                else:
                    db = _connect(str(self.path))
                try:
                    self._connection = self._prepared(db)
                except BaseException:
                    db.close()
                    raise
            except sqlite3.Error as error:
                raise self._explained(error) from error
        return self._connection

    def _prepared(self, db: sqlite3.Connection) -> sqlite3.Connection:
        """Set the options of a new connection, check the file format, and create missing tables.

        Returns:
            The connection, or a connection to a converted copy in memory if the file has format 1
            and is read-only.
        """
        protect(db)
        if self.path is None:
            db.execute(f"PRAGMA page_size = {_MEMORY_PAGE}")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._is_durable = True
        # A single statement reads a consistent state. This is necessary because another process may
        # be creating the file.
        application, version, tables = db.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application != APPLICATION and (application or version or tables):
            raise StoreError(
                f"{self.path} is an SQLite file, but not a nodekin graph; choose another path"
            )
        if version not in (0, 1, FORMAT):
            raise StoreError(
                f"{self.path} has format {version}, and this nodekin reads format {FORMAT}; index "
                "the documents again into another file"
            )
        if version == 1 and self._is_read_only:
            db = self._converted_copy(db)
        elif version == 1:
            self._convert(db)
        elif version:
            check_schema(db, self.path or "the graph in memory")
        elif self._is_read_only:
            raise StoreError(f"{self.path} is empty, and {_unwritable(self.path)}")
        if not version:
            with suppress(sqlite3.OperationalError):  # Another process is creating the file.
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables.
            if not db.execute("PRAGMA user_version").fetchone()[0]:
                for statement in (*TABLES, *VECTOR_TABLES):
                    db.execute(statement.format(**_IDS))
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
        if self.path is not None:
            self._inode = os.stat(self.path).st_ino
        return db

    def _converted_copy(self, original: sqlite3.Connection) -> sqlite3.Connection:
        """Copy a read-only file of format 1 into memory, and convert the copy.

        Raises:
            StoreError: If the file is damaged.
        """
        logger.warning(
            "each process converts %s from the outdated format 1 in memory, because %s",
            self.path,
            _unwritable(self.path),
        )
        copy = self._copy_of(original)
        try:
            self._convert(copy)
            copy.execute("PRAGMA query_only = ON")
        except BaseException:
            copy.close()
            raise
        original.close()
        self._is_copy = True
        return copy

    def _copy_of(self, original: sqlite3.Connection) -> sqlite3.Connection:
        """Copy a read-only file into memory, and return the connection to the copy."""
        copy = _connect(":memory:")
        protect(copy)
        self._stamps = stamps_of(self.path)
        original.backup(copy)
        return copy

    def _convert(self, db: sqlite3.Connection) -> None:
        """Convert tables of format 1 to the current format.

        Raises:
            StoreError: If the file is damaged.
        """
        from .format_one import TABLES_OF_FORMAT_1, convert

        db.execute("BEGIN IMMEDIATE")
        # Another process may have converted the file.
        if db.execute("PRAGMA user_version").fetchone()[0] == 1:
            check_schema(db, self.path, TABLES_OF_FORMAT_1)
            logger.info("%s is converted from format 1 to format %d", self.path, FORMAT)
            convert(db, str(self.path))
        db.execute("COMMIT")
        with suppress(sqlite3.Error):  # The file stays larger if the disk is full.
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _copy_into_memory(self) -> None:
        """Replace the connection to a read-only file with a writable copy in memory."""
        if self._is_copy:
            return
        logger.warning(
            "the missing nodes of %s are derived in memory by each process, because %s; or build "
            "the groups before the file becomes read-only",
            self.path,
            _unwritable(self.path),
        )
        original = self._db()
        copy = self._copy_of(original)
        original.close()
        self._connection = copy
        self._is_copy = True

    def _check_file(self) -> None:
        """Check that the open file was not deleted or replaced.

        If another user has changed a read-only file, it is reopened.
        """
        if self._was_moved():
            raise StoreError(
                f"{self.path} was deleted or replaced while the graph was open; restore the file, "
                "or close the graph (graph.close()) to open the new one"
            )
        if self._stamps is not None and self._stamps != stamps_of(self.path):
            self._disconnect()

    def _was_moved(self) -> bool:
        """Return whether the open file was deleted or replaced."""
        try:
            inode = os.stat(str(self.path)).st_ino
        except OSError:
            inode = 0
        return self._connection is not None and inode != self._inode

    def truncate_log(self) -> None:
        """Write a long log into the file and empty it, unless other connections use the log."""
        with self.lock:
            if self.path is None or self._connection is None or self._is_read_only:
                return
            if self._connection.in_transaction or _log_size(self.path) < _LONG_LOG:
                return
            self.rows("PRAGMA busy_timeout = 0")  # Other connections need the log until they end.
            try:
                self._empty_log()
            finally:
                self.rows(f"PRAGMA busy_timeout = {int(_TIMEOUT * 1000)}")

    def compact(self) -> None:
        """Rewrite the file to free the space used by deleted rows.

        The file is rewritten through a separate connection, so that other threads can read it at
        the same time.
        """
        if self.is_read_only:
            raise StoreError(f"{self.path} cannot be compacted: {_unwritable(self.path)}")
        if self.path is None:
            self.rows("VACUUM")
            return
        try:
            with closing(sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)) as db:
                db.execute("VACUUM")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Close the file. A database in memory keeps its data."""
        with self.lock:
            if self.path is not None:
                if self._was_moved() and not self._is_read_only:
                    self._empty_log()  # Otherwise SQLite would apply the log to the new file.
                self._disconnect()

    def _empty_log(self) -> None:
        """Write the log into the file and empty the log.

        If an error occurs, the log is unchanged.
        """
        with suppress(StoreError):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def _disconnect(self) -> None:
        connection = self._connection
        self._forget_connection()
        if connection is not None:
            connection.close()

    def _forget_connection(self) -> None:
        self._connection = None
        self._stamps = None
        self._is_copy = False

    def _explained(self, error: Exception) -> StoreError:
        """Convert an SQLite error to a ``StoreError`` with the path and advice on how to fix it."""
        if "readonly" in str(error) and self.is_read_only:
            return StoreError(f"{self.path} cannot be changed: {_unwritable(self.path)}")
        text, place = str(error), self.path or "the graph in memory"
        remedies = (remedy for word, remedy in _REMEDIES.items() if word in text)
        return StoreError(f"{place}: {text}: {next(remedies, 'nothing was changed')}")

    # Forks

    def release_in_child(self) -> None:
        """Abandon the connection to a file, since it belongs to the parent process."""
        if self.path is not None and self._connection is not None:
            _inherited.append(self._connection)
            self._forget_connection()
        self.lock.release()


def _connect(name: str) -> sqlite3.Connection:
    """Connect to an SQLite file, given its path or a URI."""
    return sqlite3.connect(
        name,
        timeout=_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        uri=name.startswith("file:"),
    )


# Read-only files

Stamps = list[tuple[int, int, int] | None]
"""The inode, size and modification time of a file and each of its logs. A missing file has None."""


def is_read_only(path: Path) -> bool:
    """Return whether an existing file cannot be changed by this process."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _unwritable(path: Path | None) -> str:
    """Explain why a file is read-only and how to make it writable."""
    assert path is not None
    remedy = "copy the file into a folder that can be written to"
    if os.access(path.parent, os.W_OK):
        return f"the file is read-only in the folder {path.parent}; make it writable, or {remedy}"
    return f"the folder {path.parent} is read-only; {remedy}"


def connect_read_only(path: Path) -> tuple[sqlite3.Connection, Stamps | None]:
    """Connect to a file that this process cannot write to.

    A file without logs is assumed not to change, because SQLite would otherwise have to create a
    log. If a log exists, another process may be writing or may have been killed, so the log is read
    as well.

    Returns:
        The connection and, if the file is assumed not to change, its inode, size and modification
        time.

    Raises:
        StoreError: If the file has a log that cannot be read.
    """
    stamps = stamps_of(path)
    address = path.absolute().as_uri()
    if stamps[1:] == [None] * len(_LOGS):
        return _connect(f"{address}?mode=ro&immutable=1"), stamps
    db = _connect(f"{address}?mode=ro")
    try:
        db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        db.close()
        if full := [log for log in _logs(path) if log.exists() and log.stat().st_size]:
            raise StoreError(
                f"{path} was not closed: {full[0].name} holds changes that cannot be read, because "
                f"{_unwritable(path)} together with {full[0].name}, open the copy and close it "
                "(graph.close())"
            ) from error
        return _connect(f"{address}?mode=ro&immutable=1"), stamps
    return db, None


def _logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{suffix}") for suffix in _LOGS]


def _log_size(path: Path) -> int:
    """Return the size of a file's write-ahead log in bytes, or 0 if no log exists."""
    log, _ = _logs(path)
    try:
        return log.stat().st_size
    except OSError:
        return 0


def stamps_of(path: Path | None) -> Stamps:
    """Return the inode, size and modification time of a file and its logs."""
    assert path is not None
    stamps: Stamps = []
    for file in (path, *_logs(path)):
        try:
            status = file.stat()
        except OSError:
            stamps.append(None)
        else:
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return stamps


def faults_of(path: Path) -> list[str]:
    """Check the integrity of a file through a separate connection, and return up to ten errors."""
    try:
        if is_read_only(path):
            db, _ = connect_read_only(path)
        else:
            db = _connect(f"{path.absolute().as_uri()}?mode=rw")
        with closing(db):
            faults = [str(text) for (text,) in db.execute("PRAGMA integrity_check(10)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return [str(error) or "an error whose text is damaged"]
    return [fault for fault in faults if fault != "ok"]
