"""A connection to a graph's file, which makes its tables and says in words what went wrong."""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from math import inf
from pathlib import Path
from typing import Any
from zlib import crc32

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
CREATE TABLE versions (key INTEGER PRIMARY KEY AUTOINCREMENT, metadata);
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
    sequence INTEGER NOT NULL
);
CREATE INDEX nodes_of_parent ON nodes (derivation, parent);

CREATE TABLE links (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    made INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX links_to ON links (target);

-- Vectors, answers of models, source files: whatever is kept by kind and key.
CREATE TABLE kinds (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE memory (
    kind INTEGER NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (kind, key)
);
"""

_LINKS_TO_IDS = """
-- A link leads to a node's id. One that a transform derived belongs to what it derived: it stays
-- while its target is away. Others go with their target.
CREATE TABLE newer_links (
    key INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target NOT NULL,
    type TEXT NOT NULL,
    weight REAL NOT NULL,
    metadata,
    derived INTEGER NOT NULL,
    UNIQUE (source, target, type)
);
INSERT INTO newer_links
    SELECT links.key, links.source, nodes.id, links.type, links.weight, links.metadata, links.made
    FROM links JOIN nodes ON nodes.key = links.target;
DROP TABLE links;
ALTER TABLE newer_links RENAME TO links;
CREATE INDEX links_to ON links (target);
CREATE TRIGGER links_go AFTER DELETE ON nodes BEGIN
    DELETE FROM links WHERE target = OLD.id AND derived = 0;
END;
"""

_SEARCH_TEXTS = """
-- What of the metadata is searched with a text: of a document, of a node's own, of its parent's
-- where that is not the document's (0 for none). Nothing is deleted: there are few.
CREATE TABLE search_texts (key INTEGER PRIMARY KEY, value TEXT NOT NULL UNIQUE);
ALTER TABLE versions ADD COLUMN search_text INTEGER;
ALTER TABLE nodes ADD COLUMN search_text INTEGER;
ALTER TABLE nodes ADD COLUMN inherited_search_text INTEGER;
"""

_CHECKSUMS = """
-- CRC-32 of the text and of the metadata; null where they were written before there were any.
ALTER TABLE pages ADD COLUMN checksum INTEGER;
ALTER TABLE versions ADD COLUMN checksum INTEGER;
"""

_COMPARE_LINKS = """
-- Where processes built in turns, links could be lost, or stay for good. What was made of a whole
-- group, and has links, counts as out of date: the next build compares all of it.
UPDATE derivations SET source = '' WHERE document = 0 AND EXISTS (
    SELECT 1 FROM nodes JOIN links ON links.source = nodes.key
    WHERE nodes.derivation = derivations.key AND links.derived = 1
);
UPDATE groups SET built_for = 0 WHERE key IN (
    SELECT grp FROM derivations WHERE document = 0 AND source = ''
);
"""

_ROW_CHECKSUMS = """
-- CRC-32 of what is read of a node, with its document and group, and of a link; null where they
-- were written before there were any.
ALTER TABLE nodes ADD COLUMN checksum INTEGER;
ALTER TABLE links ADD COLUMN checksum INTEGER;
"""

_CHECKSUM_OF_EVERY_ROW = """
-- From here on no checksum is null, and each includes what the row is found by. Search texts and
-- values have one, too. Those that don't fit stay as they are: they are of damaged rows.
ALTER TABLE search_texts ADD COLUMN checksum INTEGER;
ALTER TABLE memory ADD COLUMN checksum INTEGER;
UPDATE search_texts SET checksum = checksum(value, key);
UPDATE memory SET checksum = checksum(value, checksum(key, 0));
UPDATE pages SET checksum = checksum(text, key) WHERE checksum IS NULL
    OR checksum = checksum(text, CASE typeof(text) WHEN 'text' THEN 0 ELSE -1 END);
UPDATE versions SET checksum = row_checksum(key, metadata, search_text) WHERE checksum IS NULL
    OR checksum = checksum(metadata, CASE typeof(metadata) WHEN 'text' THEN 0 ELSE -1 END);
UPDATE nodes SET checksum = (
    SELECT row_checksum(nodes.id, nodes.text, nodes.content, nodes.begin, nodes.size, nodes.shift,
        nodes.metadata, nodes.inherited, nodes.parent, nodes.place, d.version, d.document, docs.id,
        groups.name, nodes.search_text, nodes.inherited_search_text)
    FROM derivations d JOIN documents docs ON docs.key = d.document
    JOIN groups ON groups.key = d.grp WHERE d.key = nodes.derivation
) WHERE checksum IS NULL;
UPDATE links SET checksum = (
    SELECT row_checksum(s.id, links.target, links.type, links.weight, links.metadata, links.derived)
    FROM nodes s WHERE s.key = links.source
) WHERE checksum IS NULL;
"""

MIGRATIONS = [
    *(_TABLES, _LINKS_TO_IDS, _SEARCH_TEXTS, _CHECKSUMS, _COMPARE_LINKS, _ROW_CHECKSUMS),
    _CHECKSUM_OF_EVERY_ROW,
]
"""What makes a file of version n from one of version n - 1; its length is today's version."""


_STRUCTURE = """
    SELECT m.type, m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
    FROM sqlite_master m LEFT JOIN pragma_table_xinfo(m.name) c
    WHERE m.name NOT LIKE 'sqlite_%' ORDER BY m.type, m.name, c.cid
"""

Row = tuple[Any, ...]

_Stamps = list[tuple[int, int] | None]


def checksum(value: Any, key: int) -> int:
    """Return a number by which a damaged value is recognised: its CRC-32, from its key's on.

    Bytes have another one than the text that they spell: one bit of a row tells them apart.
    Numbers are never written: they are damage, whose checksum is some other one.
    """
    if isinstance(value, str):
        return crc32(value.encode(), key & 0xFFFFFFFF)
    if isinstance(value, int | float):
        value = str(value).encode()
    return crc32(value or b"", ~key & 0xFFFFFFFF)


def row_checksum(*values: Any) -> int:
    """Return a number by which a damaged row is recognised: the CRC-32 of its values."""
    form = str if _SIMPLE.issuperset(map(type, values)) else _stored
    return crc32("\0".join(map(form, values)).encode())


def is_intact(row: Row) -> bool:
    """Tell whether a row is as it was written, by its checksum, which is its last value."""
    values, written = row[:-1], row[-1]
    # What ``row_checksum`` is but for some numbers, in half the time: each row read pays for it.
    quick = crc32((_FORMS[len(values)] % values).encode())
    return bool(quick == written or row_checksum(*values) == written)


_FORMS = ["\0".join(["%s"] * size) for size in range(20)]

_SIMPLE = frozenset({str, int, bytes, type(None)})  # SQLite returns these as they were given


def _stored(value: Any) -> str:
    """Return a value as SQLite returns it: enums as what they are, -0.0 as 0, 1 as 1.0."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else float.__repr__(value)
    return str(int(value)) if isinstance(value, int) else str(value)


def _add_functions(db: sqlite3.Connection) -> None:
    """Let migrations compute checksums."""
    db.create_function("checksum", 2, checksum)
    db.create_function("row_checksum", -1, row_checksum)


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
        frozen: Whether this user can't write to the folder.
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
        frozen: bool = False,
        opened: weakref.WeakSet[Connection] | None = None,
    ) -> None:
        self._path = path
        self._write = write
        self._timeout = timeout
        self._frozen = frozen
        self._log = path.with_name(f"{path.name}-wal")
        self._fixed: _Stamps | None = None  # of a file that was taken for unchanging
        self._is_malformed: bool | None = None  # None until something asks
        self._lock = threading.RLock()  # held while a statement runs
        self.retired = False
        self._waits = True  # for the disk when a transaction is committed
        self._opened = opened
        self._db_now: sqlite3.Connection | None = None
        self._closing: sqlite3.Connection | None = None
        self._open()

    @property
    def is_outdated(self) -> bool:
        """Whether somebody has written to a file that was taken for unchanging, or may soon."""
        return self._fixed is not None and self._fixed != self._stamps()

    def _stamps(self) -> _Stamps:
        """Return when the file and its log were written to, and their sizes."""
        return [_stamp(self._path), _stamp(self._log)]

    def _connected(self) -> tuple[sqlite3.Connection, _Stamps | None]:
        """Open the file; what can't be written to with its log, or as one that nobody changes.

        The stamps of the second are returned, too.
        """
        if not self._frozen:
            return self._opened_as("rwc" if self._write else "rw"), None
        stamps = self._stamps()
        if self._log.exists():
            db = self._opened_as("ro")
            try:
                db.execute("PRAGMA schema_version").fetchone()
            except sqlite3.Error:  # nobody has it open, and a log is there all the same
                db.close()
            else:
                return db, None
        return self._opened_as("ro&immutable=1"), stamps

    def _opened_as(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )

    def _open(self) -> sqlite3.Connection:
        with opening:  # all of it: who forks has to know of each connection that is open
            db = self._db_now = self._set_up()
            if self._opened is not None:
                self._opened.add(self)
        return db

    def _set_up(self) -> sqlite3.Connection:
        try:
            db, self._fixed = self._connected()
        except sqlite3.Error as error:
            raise StoreError(f"{self._path} can't be opened: {error}") from error
        try:
            if not self._frozen:
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

    def version(self) -> int:
        """Return the version of the file's tables, 0 where there are none.

        Raises:
            StoreError: If the file is another program's, damaged, or of a newer version.
        """
        (application,) = self.row("PRAGMA application_id") or (0,)
        (version,) = self.row("PRAGMA user_version") or (0,)
        if application != APPLICATION and (application or version or self._has_tables()):
            raise StoreError(
                f"{self._path} is an SQLite file, but not a nodekin graph; give the graph a path "
                "of its own"
            )
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{self._path} was written by a newer nodekin (format {version}, this one reads up "
                f"to {len(MIGRATIONS)}); upgrade nodekin, or give another path"
            )
        return int(version)

    def migrate(self) -> None:
        """Make the tables of today's version, in one piece.

        Raises:
            StoreError: If the file is another program's, damaged, or of a newer version.
        """
        if self.version() == len(MIGRATIONS):
            return
        with self._lock:
            _add_functions(self._db)
        self.run("BEGIN IMMEDIATE")
        try:
            for script in MIGRATIONS[self.version() :]:  # another may have been quicker
                for statement in _statements(script):
                    self.run(statement)
            self.run(f"PRAGMA application_id = {APPLICATION}")
            self.run(f"PRAGMA user_version = {len(MIGRATIONS)}")
            self.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    @contextmanager
    def lenient(self) -> Iterator[None]:
        """Return texts that are not UTF-8 as bytes, in a transaction that looks for damage."""
        self._db.text_factory = _text_or_bytes
        try:
            yield
        finally:
            self._db.text_factory = str

    def faults(self) -> list[str]:
        """Let SQLite compare the file's tables and indexes; return what is wrong."""
        faults = [text for (text,) in self.rows("PRAGMA integrity_check(10)") if text != "ok"]
        with closing(sqlite3.connect(":memory:")) as new:
            _add_functions(new)
            new.executescript("".join(MIGRATIONS))
            if new.execute(_STRUCTURE).fetchall() != self.rows(_STRUCTURE):
                faults.append("the tables are not those that were made")
        return [f"SQLite: {fault}" for fault in faults]

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
        """Return the error that says how the file is damaged, and what to do."""
        return StoreError(f"{self._path} is damaged, since {why}; {self._remedy_of_damage()}")

    def _remedy_of_damage(self) -> str:
        """Advise to delete the file only where SQLite itself finds it damaged."""
        if self._is_malformed is None:  # which takes long in a large file: once is enough
            try:
                with closing(self._connected()[0]) as db:
                    row = db.execute("PRAGMA integrity_check(1)").fetchone()
                self._is_malformed = row != ("ok",)
            except _FAILURES as error:
                self._is_malformed = _is_damage(error)
        if self._is_malformed:
            return "restore a backup, or delete it and build the graph again from its sources"
        return (
            "SQLite finds its file intact, so don't delete it; try again, then let nodekin doctor, "
            "or graph.reader.verify(), find what is damaged, and update those documents from their "
            "sources, or restore a backup"
        )

    def _explained(self, error: Exception) -> StoreError:
        text = str(error) or "an error whose text is damaged"
        if "not a database" in text:
            remedy = "it is no nodekin graph; give the graph a path of its own"
        elif _is_damage(error):
            remedy = f"the file is damaged; {self._remedy_of_damage()}"
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


_DAMAGE = ("malformed", "disk image", "decode", "user-defined function")  # of a migration


def _is_damage(error: BaseException) -> bool:
    """Tell whether SQLite finds its file damaged; what it quotes may be no text any more."""
    if isinstance(error, UnicodeDecodeError) or not str(error):  # of Python 3.10
        return isinstance(error, _FAILURES)
    return any(word in str(error) for word in _DAMAGE)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _statements(script: str) -> Iterator[str]:
    """Split a script, which ``executescript`` would run outside the transaction."""
    statement = ""
    for line in script.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
