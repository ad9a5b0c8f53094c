"""The database of a graph: who reads it, and who writes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, TypeVar

from ....nodegraph.database import Database, StateCache
from ....nodegraph.errors import StoreError
from ....nodegraph.locking import WAIT_LIMIT
from .server_connection import (
    NodeContext,
    Portions,
    PostgresAddress,
    ServerConnection,
    ServerLostError,
    Values,
    idle_connections,
)

_TABLES = """
-- One row. number counts all writes, so that a process knows whether another has written.
CREATE TABLE nodekin_graph (format int NOT NULL, number bigint NOT NULL);
INSERT INTO nodekin_graph VALUES (1, 0);

-- The last transaction of each writer, by which it learns whether a commit whose answer was lost
-- has happened.
CREATE TABLE writers (id bytea PRIMARY KEY, number bigint NOT NULL, seen timestamptz NOT NULL);

-- What one group has from one document; see Stamp for source, rule and metadata. place orders
-- documents.
CREATE TABLE derivations (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    grp bytea NOT NULL,
    document bytea NOT NULL,
    place bigint NOT NULL,
    source bytea NOT NULL,
    rule bytea NOT NULL,
    metadata bytea NOT NULL,
    UNIQUE (grp, document)
);
CREATE INDEX ON derivations (grp, place);

-- What nodes share: inherited metadata and which of it is searched, by its hash.
CREATE TABLE contexts (hash bytea PRIMARY KEY, value bytea NOT NULL);

-- Where content is null it is the text. position orders the nodes of a group.
CREATE TABLE nodes (
    id bytea PRIMARY KEY,
    derivation bigint NOT NULL,
    position bigint NOT NULL,
    parent bytea,
    text bytea NOT NULL,
    content bytea,
    start bigint,
    shift bigint,
    metadata bytea,
    context bytea
);
CREATE INDEX ON nodes (derivation, position);
CREATE INDEX ON nodes (derivation, parent);

CREATE TABLE links (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source bytea NOT NULL,
    target bytea NOT NULL,
    type bytea NOT NULL,
    weight float8 NOT NULL,
    metadata bytea,
    derived boolean NOT NULL,
    UNIQUE (source, target, type)
);
CREATE INDEX ON links (target);

-- Vectors, answers of models, source files: whatever is stored by kind and key.
CREATE TABLE kinds (key int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea UNIQUE NOT NULL);
CREATE TABLE memory (
    kind int NOT NULL REFERENCES kinds ON DELETE CASCADE,
    key bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (kind, key)
);

-- Revisions of groups and their latest changes, which a reader sees as of its snapshot.
CREATE TABLE journal (
    kind bytea NOT NULL, key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, key)
);

-- The tables of vectors: what they contain, and who has written them last.
CREATE TABLE vector_tables (
    name text PRIMARY KEY, grp bytea NOT NULL, writer text NOT NULL, state bytea,
    size bigint NOT NULL, seen timestamptz NOT NULL
);
"""

FORMAT = 1

_PERIOD = 0.02  # seconds between attempts to get the lock, or to reach a server that restarts

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_LONG_PERIOD = 0.2  # seconds between attempts to get a lock that another may have for minutes

_HAS_TABLES = "SELECT to_regclass('nodekin_graph') IS NOT NULL"

_NUMBER = "SELECT number FROM nodekin_graph"

_TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"

T = TypeVar("T")


class GraphDatabase(Database[ServerConnection]):
    """Give each reading thread a connection, and one thread at a time the one to write by.

    Connections that nobody uses wait for the next reader. One whose server has been restarted is
    replaced, except within a snapshot or a transaction, which end with ``ServerLostError``.

    Args:
        address: Where the graph is; its schema and tables are made where they are missing.
        timeout: Seconds to wait for another process that is writing.

    Raises:
        ServerLostError: If the server can't be reached.
        StoreError: If the tables have another format, or can't be created.
    """

    def __init__(self, address: PostgresAddress, timeout: float) -> None:
        self.address = address
        self.contexts: dict[bytes, NodeContext] = {}  # by their hash: they never change
        self.snapshot_settings = ""  # statements with which every snapshot begins
        self._timeout = timeout
        super().__init__()
        self._give_back(self._opened())  # so that what is wrong is said now

    def _set_up(self) -> None:
        super()._set_up()
        self._pid = os.getpid()
        self._idle = idle_connections(self.address)
        self._generation = 0  # counts how often all was closed
        self._name = token_hex(8)
        self._transactions = 0
        # Threads that keep other processes from writing, each with how many blocks it is in.
        self._holders: Counter[int] = Counter()
        self._locked: ServerConnection | None = None  # the connection that has the lock for them

    def __del__(self) -> None:
        if getattr(self, "_pid", None) == os.getpid():
            self._idle.close(self.address.schema)
            if self._writer is not None:
                self._writer.close()

    # Connections

    def _opened(self) -> ServerConnection:
        connection = ServerConnection(self.address, self._timeout)
        connection.generation = self._generation
        try:
            self._check_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_tables(self, connection: ServerConnection) -> None:
        """Create the tables if there are none.

        Raises:
            StoreError: If the tables have another format.
        """
        if self._check_format(connection):
            return
        schema = self.address.schema.replace('"', '""')
        lock = f"SELECT pg_advisory_xact_lock({self.address.lock('transaction')})"
        try:
            connection.run_script(f"BEGIN; {lock}")
            if not self._check_format(connection):  # another process may have been faster
                name = [f'"{schema}"']
                ((exists,),) = connection.rows("SELECT to_regnamespace(%s) IS NOT NULL", name)
                if not exists:
                    connection.run_script(f'CREATE SCHEMA "{schema}"')
                connection.run_script(_TABLES)
            connection.run_script("COMMIT")
        except BaseException:
            connection.roll_back()
            raise

    def _check_format(self, connection: ServerConnection) -> bool:
        """Return whether there are tables.

        Raises:
            StoreError: If the tables have another format.
        """
        if not connection.rows(_HAS_TABLES)[0][0]:
            return False
        ((version,),) = connection.rows("SELECT format FROM nodekin_graph")
        if version != FORMAT:
            raise StoreError(
                f"{self.address.shown} has format {version}, but this nodekin reads only format "
                f"{FORMAT}; index the documents again, into another schema"
            )
        return True

    def _borrowed(self) -> tuple[ServerConnection, bool]:
        """Return a connection, and whether it is a new one."""
        connection = self._idle.take(self.address.schema)
        if connection is not None:
            try:
                connection.serve(self.address, self._timeout)
            except ServerLostError:
                self._idle.close()  # the others have most likely ended with it
            else:
                connection.generation = self._generation
                return connection, False
        return self._opened(), True

    def _give_back(self, connection: ServerConnection) -> None:
        if connection.lost:
            self._idle.close()
            self._cache = StateCache()
        elif connection.generation == self._generation:
            self._idle.put(connection)
        else:
            connection.close()

    def _run(self, work: Callable[[ServerConnection], T]) -> tuple[ServerConnection, T]:
        """Return what a call returns, and the connection, which is to be given back.

        Where the server has ended an idle connection, the call is made by another one.
        """
        while True:
            connection, new = self._borrowed()
            try:
                return connection, work(connection)
            except BaseException as error:
                self._stop_reading(connection)
                if new or not isinstance(error, ServerLostError):
                    raise

    def _writing_connection(self) -> ServerConnection:
        with self._mutex.held():
            if self._writer is not None and self._writer.lost:
                self._idle.close()
                self._writer = None
            if self._writer is None:
                self._writer, _ = self._borrowed()
            return self._writer

    def _stop_writing(self) -> None:
        writer = self._writer
        if writer is not None and not self._owner and not self._holders:
            self._writer = None
            writer.generation = self._generation
            self._give_back(writer)

    # Reading

    def rows(self, query: str, values: Sequence[Any] = (), *, latest: bool = False) -> list[Values]:
        """Return the rows of a query, in the state that this thread reads.

        Args:
            query: The query.
            values: Its values.
            latest: Whether to see what came since this thread's snapshot, too.
        """
        pinned = self._pinned(latest)
        if pinned is not None:
            return pinned.rows(query, values)
        connection, rows = self._run(lambda connection: connection.rows(query, values))
        self._give_back(connection)
        return rows

    def stream(self, query: str, values: Sequence[Any] = ()) -> Portions:
        """Yield the rows of a query in portions, inside a snapshot or a transaction."""
        pinned = self._pinned()
        assert pinned is not None, "a stream is read inside a snapshot"
        return pinned.stream(query, values)

    def _pinned(self, latest: bool = False) -> ServerConnection | None:
        """Return the connection of this thread's transaction or snapshot, None outside of both."""
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer
        snapshot = None if latest else self._snapshots.get(threading.current_thread())
        return None if snapshot is None else snapshot.connection

    def _start_reading(self) -> tuple[ServerConnection, int]:
        def start(connection: ServerConnection) -> int:
            script = f"{_BEGIN}; {self.snapshot_settings}{_NUMBER}"
            return int(connection.run_script(script)[0][0])

        return self._run(start)

    def _stop_reading(self, connection: ServerConnection) -> None:
        with suppress(ServerLostError):  # who was reading has read
            connection.roll_back()
        self._give_back(connection)

    def _state(self, connection: ServerConnection) -> int:
        return int(connection.rows(_NUMBER)[0][0])

    # Writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing, by a lock that ends with the connection."""
        thread = threading.get_ident()
        outer = self._holders[thread]
        try:
            try:
                self._acquire(thread, outer)
                yield
            finally:
                self._leave(thread, outer)
        finally:  # again, since an interrupt may have hit the first
            self._leave(thread, outer)

    def _leave(self, thread: int, outer: int) -> None:
        """Let other processes write if no thread keeps them from it any more."""
        with self._mutex.held():
            self._holders[thread] = outer
            self._holders += Counter()  # drops what has come to zero
            if not self._holders:
                self._locked = None
                if self._writer is not None and not self._writer.lost:
                    with suppress(ServerLostError):  # the lock has ended with it
                        self._writer.run("SELECT pg_advisory_unlock_all()")
                self._stop_writing()

    @property
    def _lock(self) -> int:
        return self.address.lock("writing")

    def _acquire(self, thread: int, outer: int) -> None:
        """Keep other processes from writing, for one more block of a thread."""
        deadline = time.monotonic() + self._timeout
        while True:
            with self._mutex.held():
                if self._holders:
                    self._check_held()  # else those who come would hold a lost lock for ever
                    self._holders[thread] = outer + 1
                    return
                writer, rows = self._on_writer(lambda db: db.rows(_TRY_LOCK, [self._lock]))
                if rows[0][0]:
                    self._locked, self._holders[thread] = writer, 1
                    return
            if time.monotonic() > deadline:
                raise StoreError(
                    f"another process has been writing to {self.address.shown} for "
                    f"{self._timeout:g} seconds; wait for it, or allow more time: "
                    "PostgresStore(address, timeout=...)"
                )
            time.sleep(_PERIOD)

    @contextmanager
    def exclusive(self, purpose: str, *, wait: bool) -> Iterator[ServerConnection | None]:
        """Hold a lock for what is made of the graph, which ends with its connection.

        Args:
            purpose: What it is for.
            wait: Whether to wait until the lock is free; else the block gets None.
        """
        lock = self.address.lock(purpose)
        deadline = time.monotonic() + WAIT_LIMIT

        def acquire(connection: ServerConnection) -> bool:
            while not connection.rows(_TRY_LOCK, [lock])[0][0]:
                if not wait:
                    return False
                if time.monotonic() > deadline:
                    raise TimeoutError(f"waited {WAIT_LIMIT:g} seconds for who works on {purpose}")
                time.sleep(_LONG_PERIOD)
            return True

        connection, free = self._run(acquire)
        try:
            yield connection if free else None
        finally:
            if free:
                with suppress(ServerLostError):  # the lock has ended with it
                    connection.roll_back()
                    connection.rows("SELECT pg_advisory_unlock(%s)", [lock])
            self._give_back(connection)

    def _start_writing(self) -> ServerConnection:
        self._transactions += 1
        script = (
            f"BEGIN; SELECT pg_advisory_xact_lock({self.address.lock('transaction')}); "
            f"INSERT INTO writers VALUES ('\\x{self._name}', {self._transactions}, now()) "
            "ON CONFLICT (id) DO UPDATE SET number = excluded.number, seen = excluded.seen; "
            "SELECT format FROM nodekin_graph"
        )
        writer, rows = self._on_writer(lambda db: db.run_script(script))
        if int(rows[0][0]) != FORMAT:  # another process has changed the tables
            writer.roll_back()
            self._check_format(writer)
        return writer

    def _on_writer(self, work: Callable[[ServerConnection], T]) -> tuple[ServerConnection, T]:
        """Return the connection to write by, and what a call returns; again if it had ended."""
        self._check_lock()
        writer = self._writing_connection()
        try:
            return writer, work(writer)
        except ServerLostError:
            self._check_lock()
            writer = self._writing_connection()
            return writer, work(writer)

    def is_writing(self) -> bool:
        """Return whether this thread has begun to write, and what it reads has to stay true."""
        thread = threading.get_ident()
        return self._owner == thread or bool(self._holders[thread])

    def _check_lock(self) -> None:
        """Refuse to write what was read under a lock that has been lost."""
        if self._holders[threading.get_ident()]:
            self._check_held()

    def _check_held(self) -> None:
        if self._locked is None or self._locked.lost:
            raise ServerLostError(
                f"{self.address.shown}: the connection to the server was lost, and others may have "
                "written meanwhile; nothing was changed; try again"
            )

    def _commit(self, connection: ServerConnection, touched: bool) -> None:
        touch = "UPDATE nodekin_graph SET number = number + 1; " if touched else ""
        try:
            connection.run_script(f"{touch}COMMIT")
        except ServerLostError as error:
            if not self._committed(error):
                raise

    def _undo(self) -> None:
        if self._writer is not None:
            with suppress(ServerLostError):
                self._writer.roll_back()

    def _committed(self, error: ServerLostError) -> bool:
        """Ask, once the server is back, whether a commit happened whose answer was lost."""
        deadline = time.monotonic() + min(self._timeout, 30.0)
        query = "SELECT 1 FROM writers WHERE id = %s AND number = %s"
        lock = f"SELECT pg_advisory_xact_lock({self.address.lock('transaction')})"
        while True:
            try:
                writer = self._writing_connection()
                writer.run_script(f"BEGIN; {lock}; COMMIT")  # until the old connection has ended
                return bool(writer.rows(query, [bytes.fromhex(self._name), self._transactions]))
            except ServerLostError:
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"{self.address.shown}: the connection was lost while a change was "
                        "committed, and the server has not come back to say whether it was "
                        "written; repeat the change when the server runs"
                    ) from error
                time.sleep(_PERIOD)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._mutex.held():
            self._generation += 1
            self._cache = StateCache()
            if self._transactions and not self._owner and not self._holders:
                self._forget_writer()
            self._idle.close(self.address.schema)

    def _forget_writer(self) -> None:
        """Delete the note of this writer's last transaction, if that costs no new connection."""
        connection = self._idle.take(self.address.schema)
        if connection is not None and connection.schema == self.address.schema:
            with suppress(StoreError):
                connection.run("DELETE FROM writers WHERE id = %s", [bytes.fromhex(self._name)])
        if connection is not None and not connection.lost:
            self._idle.put(connection)
