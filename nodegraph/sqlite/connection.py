"""A connection to a graph's file, which makes its tables and says in words what went wrong."""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any

from ..errors import DiskFullError, StoreError

APPLICATION = 0x6E6F6465
"""What SQLite's ``application_id`` says of a file of ours: "node"."""

_TABLES = """
-- Counts every write, so that a process knows whether another has written.
CREATE TABLE state (number INTEGER NOT NULL);
INSERT INTO state VALUES (0);

-- Keys grow in the order of arrival and are never used again. Document 0 stands for the corpus:
-- what was made from a whole group belongs to it.
CREATE TABLE documents (key INTEGER PRIMARY KEY AUTOINCREMENT, id NOT NULL UNIQUE);
INSERT INTO documents VALUES (0, '');

-- What documents held, unchangeable; kept as long as something that was made from it is.
CREATE TABLE versions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    metadata,
    search_text INTEGER
);
-- Their texts in pages, so that to cut a node out of a long one reads little of it.
CREATE TABLE pages (key INTEGER PRIMARY KEY, text NOT NULL);

-- sequence and token name the group's revision; rules and built_for the last whole build.
CREATE TABLE groups (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL DEFAULT 0,
    sequence INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    journaled INTEGER NOT NULL DEFAULT 0,
    rules TEXT,
    built_for INTEGER NOT NULL DEFAULT 0
);
INSERT INTO groups (key, name) VALUES (0, 'ROOT');
CREATE TABLE journal (
    grp INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    token INTEGER NOT NULL,
    size INTEGER NOT NULL,
    removed NOT NULL,
    PRIMARY KEY (grp, sequence)
) WITHOUT ROWID;

-- One group's share of one document; see Stamp for source, rule and metadata.
CREATE TABLE derivations (
    key INTEGER PRIMARY KEY,
    grp INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    version INTEGER REFERENCES versions,
    source TEXT NOT NULL,
    rule TEXT NOT NULL,
    metadata TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    UNIQUE (grp, document)
);
CREATE INDEX derivations_of_document ON derivations (document);
CREATE INDEX derivations_since ON derivations (grp, sequence);
CREATE INDEX derivations_of_version ON derivations (version);

-- Where text is null it is the document's from begin, size characters long; where content is
-- null it is the text; inherited is what the parent's metadata has beyond the document's.
CREATE TABLE nodes (
    key INTEGER PRIMARY KEY,
    id NOT NULL UNIQUE,
    derivation INTEGER NOT NULL REFERENCES derivations ON DELETE CASCADE,
    place INTEGER NOT NULL,
    parent,
    text,
    content,
    begin INTEGER,
    size INTEGER,
    shift INTEGER,
    metadata,
    inherited,
    sequence INTEGER NOT NULL,
    search_text INTEGER,
    inherited_search_text INTEGER
);
CREATE INDEX nodes_of_parent ON nodes (derivation, parent);

-- What of the metadata is searched with a text: of a document, of a node's own, of its parent's
-- if it differs from the document's (0 for none). Nothing is deleted: there are few.
CREATE TABLE search_texts (key INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);

-- A link leads to a node's id. A link that a transform derived belongs to what it derived: it stays
-- while its target is away. Other links go with their target.
CREATE TABLE links (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target NOT NULL,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    derived INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX links_to ON links (target);
CREATE TRIGGER links_go AFTER DELETE ON nodes BEGIN
    DELETE FROM links WHERE target = OLD.id AND derived = 0;
END;

-- Vectors, answers of models, source files: whatever is kept by kind and key.
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE memory (
    kind INTEGER NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (kind, key)
);
"""

FORMAT = 1
"""The format of the file, in SQLite's ``user_version``."""

Row = tuple[Any, ...]

opening = threading.Lock()
"""Held while a connection is opened, or the process forks."""

_ATTEMPT = 0.01  # seconds

_FETCHED = 256  # rows that a stream reads at a time

_FAILURES = (sqlite3.Error, UnicodeDecodeError)  # the second for an error message that is damaged


class Connection:
    """Run statements on one file; close it when nobody holds it any more.

    One thread runs statements. Any thread may retire the connection, and whatever touches SQLite
    takes the lock: SQLite crashes where a connection is closed that runs a statement.

    Args:
        path: The file; made where it is missing and ``write`` is given.
        write: Whether this connection may change it.
        timeout: Seconds to wait for another process that is writing.
        opened: Gets the connection before it is used.

    Raises:
        StoreError: If it can't be opened.

    Attributes:
        retired: Whether it is to be closed, and replaced, once no transaction is open.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool,
        timeout: float,
        opened: weakref.WeakSet[Connection] | None = None,
    ) -> None:
        self._path = path
        self._write = write
        self._timeout = timeout
        self._lock = threading.RLock()  # held while a statement runs
        self.retired = False
        self._waits = True  # for the disk when a transaction is committed
        self._opened = opened
        self._db_now: sqlite3.Connection | None = None
        self._closing: sqlite3.Connection | None = None
        self._open()

    def _open(self) -> sqlite3.Connection:
        with opening:  # all of it: who forks has to know of each connection that is open
            db = self._db_now = self._set_up()
            if self._opened is not None:
                self._opened.add(self)
        return db

    def _set_up(self) -> sqlite3.Connection:
        try:
            db = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode={'rwc' if self._write else 'rw'}",
                uri=True,
                timeout=self._timeout,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} can't be opened: {error}") from error
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA foreign_keys = ON")
            # What was acknowledged is on the disk, whatever stops the machine.
            db.execute("PRAGMA synchronous = FULL")
            self._waits = True
            # Pages that get free are not overwritten with zeros, as some systems' SQLite does: a
            # removal would need as much room as what it removes, which a full disk has not.
            db.execute("PRAGMA secure_delete = FAST")
            if not self._write:
                db.execute("PRAGMA query_only = ON")
        except BaseException as error:
            db.close()
            if isinstance(error, _FAILURES):
                raise self._explained(error) from error
            raise
        return db

    @property
    def _db(self) -> sqlite3.Connection:
        """The open file; opened again where another thread closed it before a statement."""
        return self._open() if self._db_now is None else self._db_now

    def __del__(self) -> None:
        if getattr(self, "_db_now", None) is not None:
            self.close()

    @property
    def is_open(self) -> bool:
        """Whether the file is open, or still being closed."""
        return self._db_now is not None or self._closing is not None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        with self._lock:
            return self._db_now is not None and self._db_now.in_transaction

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the key of the row it inserted last."""
        try:
            with self._lock:
                return self._db.execute(statement, values).lastrowid or 0
        except _FAILURES as error:
            raise self._explained(error) from error

    def wait_for_disk(self, waits: bool) -> None:
        """Say whether the next transactions are on the disk when they are committed."""
        if self._waits != waits:
            self.run(f"PRAGMA synchronous = {'FULL' if waits else 'NORMAL'}")
            self._waits = waits

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""
        try:
            with self._lock:
                self._db.executemany(statement, rows)
        except _FAILURES as error:
            raise self._explained(error) from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        try:
            with self._lock:
                return self._db.execute(statement, values).fetchall()
        except _FAILURES as error:
            raise self._explained(error) from error

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query, None where there is none."""
        try:
            with self._lock:
                row: Row | None = self._db.execute(statement, values).fetchone()
        except _FAILURES as error:
            raise self._explained(error) from error
        return row

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Yield the rows of a query without holding all of them, inside a transaction."""
        try:
            with self._lock:
                cursor = self._db.execute(statement, values)
            while True:
                with self._lock:
                    rows = cursor.fetchmany(_FETCHED)
                if not rows:
                    return
                yield from rows
        except _FAILURES as error:
            raise self._explained(error) from error

    def check_format(self) -> bool:
        """Return whether the file has tables.

        Raises:
            StoreError: If the file belongs to another program, is damaged, or has another format.
        """
        (application,) = self.row("PRAGMA application_id") or (0,)
        (version,) = self.row("PRAGMA user_version") or (0,)
        if application != APPLICATION and (application or version or self._has_tables()):
            raise StoreError(
                f"{self._path} is an SQLite file, but not a nodekin graph; give the graph a path "
                "of its own"
            )
        if version not in (0, FORMAT):
            raise StoreError(
                f"{self._path} has format {version}, but this nodekin reads only format {FORMAT}; "
                "index the documents again, into another file"
            )
        return bool(version)

    def create_tables(self) -> None:
        """Create the tables of an empty file.

        Raises:
            StoreError: If the file belongs to another program, is damaged, or has another format.
        """
        if self.check_format():
            return
        self.run("BEGIN IMMEDIATE")
        try:
            if not self.check_format():  # another process may have been faster
                for statement in _statements(_TABLES):
                    self.run(statement)
                self.run(f"PRAGMA application_id = {APPLICATION}")
                self.run(f"PRAGMA user_version = {FORMAT}")
            self.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def _has_tables(self) -> bool:
        return self.row("SELECT 1 FROM sqlite_master") is not None

    def roll_back(self) -> None:
        """Undo an open transaction; a full disk may have undone it already."""
        with self._lock:
            if self.in_transaction:
                self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file, once a statement that runs has ended; the next one opens it again."""
        with self._lock:
            if self._db_now is not None:
                self._closing, self._db_now = self._db_now, None
                try:
                    self._closing.close()  # which may write the log into the file, and take long
                finally:
                    self._closing = None

    def retire(self, deadline: float = inf) -> None:
        """Close the file now, or when the transaction that is open has ended.

        A statement that runs is waited for until a time.
        """
        self.retired = True
        while self.is_open:  # else it may wait to be opened, for whom this thread must not wait
            if self._lock.acquire(timeout=_ATTEMPT):
                try:
                    if not self.in_transaction:
                        self.close()
                finally:
                    self._lock.release()
                return
            if time.monotonic() > deadline:
                return

    def damaged(self, why: str) -> StoreError:
        """Return the error for a damaged file."""
        return StoreError(f"{self._path} is damaged, since {why}; {DAMAGE_REMEDY}")

    def _explained(self, error: Exception) -> StoreError:
        text = str(error) or "an error whose text is damaged"
        if "not a database" in text:
            remedy = "it is no nodekin graph; give the graph a path of its own"
        elif _is_damage(error):
            remedy = f"the file is damaged; {DAMAGE_REMEDY}"
        elif "full" in text or "disk I/O" in text:
            remedy = "nothing was changed; make room on the disk and try again"
            return DiskFullError(f"{self._path}: {text}: {remedy}")
        elif "locked" in text or "busy" in text:
            remedy = "another process is writing to it; try again when it is done"
        elif "readonly" in text or "read-only" in text:
            remedy = "nothing was changed; the file or its folder can't be written to"
        else:
            remedy = "nothing was changed"
        return StoreError(f"{self._path}: {text}: {remedy}")


DAMAGE_REMEDY = "restore a backup, or delete it and build the graph again from its sources"


def integrity_faults(path: Path) -> list[str]:
    """Return at most ten faults that SQLite's ``PRAGMA integrity_check`` finds in a file."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db:
            faults = [text for (text,) in db.execute("PRAGMA integrity_check(10)")]
            faults += [
                f"row {row} of {table!r} belongs to no row of {owner!r}"
                for table, row, owner, _ in db.execute("PRAGMA foreign_key_check").fetchmany(10)
            ]
    except _FAILURES as error:
        return [str(error) or "an error whose text is damaged"]
    return [str(fault) for fault in faults if fault != "ok"]


_DAMAGE = ("malformed", "disk image", "decode")


def _is_damage(error: BaseException) -> bool:
    """Tell whether SQLite finds its file damaged; what it quotes may be no text any more."""
    if isinstance(error, UnicodeDecodeError) or not str(error):  # of Python 3.10
        return isinstance(error, _FAILURES)
    return any(word in str(error) for word in _DAMAGE)


def _statements(script: str) -> Iterator[str]:
    """Split a script, which ``executescript`` would run outside the transaction."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
