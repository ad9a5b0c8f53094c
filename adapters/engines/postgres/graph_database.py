"""The database of a graph in a schema of a PostgreSQL server; see ``Database`` for its methods."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from ....nodegraph.errors import StoreError
from ....nodegraph.hashing import digest
from ....nodegraph.locking import turns
from ....nodegraph.node import ROOT
from ....nodegraph.storage.rows import to_id, to_text
from ....nodegraph.storage.schema import FORMAT, TABLES
from .server_connection import (
    PostgresAddress,
    ServerConnection,
    ServerLostError,
    Values,
    idle_connections,
)

if TYPE_CHECKING:
    from ....nodegraph.storage.graph_store import GraphStore
    from .pgvector_table import PostgresVectorTable

T = TypeVar("T")

_SERVER_TABLES = """
-- The last transaction of each writer: after a lost answer to a commit it tells whether the commit
-- happened.
CREATE TABLE writers (id bytea PRIMARY KEY, number bigint NOT NULL, seen timestamptz NOT NULL);

-- The tables of vectors.
CREATE TABLE vector_tables (
    name text PRIMARY KEY, grp bytea NOT NULL, writer text NOT NULL, state bytea,
    size bigint NOT NULL, seen timestamptz NOT NULL
);

CREATE TABLE nodekin_graph (format int NOT NULL);
"""

_CREATED = (
    TABLES.format(empty=f"'\\x{to_id('').hex()}'", root=f"'\\x{to_text(ROOT).hex()}'")
    .replace("BLOB", "bytea")
    .replace("INTEGER", "bigint")
    .replace("REAL", "float8")
)

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_TRY_LOCK = "SELECT pg_try_advisory_lock(%s)"

_PERIOD = 0.05  # seconds between attempts to reach a server, or to get a lock

_PATIENCE = 5.0  # seconds that a transaction waits for a server that restarts

_WAIT_LIMIT = 3600.0  # seconds to wait for another process that works on vectors

_opened: weakref.WeakSet[PostgresDatabase] = weakref.WeakSet()


class PostgresDatabase:
    """A connection to a PostgreSQL server, borrowed for each turn.

    Args:
        address: The server, the database and the schema. The schema and its tables are created
            if they are missing.
        timeout: Seconds to wait for another process that is writing.

    Raises:
        ServerLostError: If the server cannot be reached.
        StoreError: If the tables have another format, or cannot be created.
    """

    def __init__(self, address: str, timeout: float = 60.0) -> None:
        self._url = address
        self.timeout = timeout
        self._set_up()
        with self.lock:
            self._give_back(self._borrowed())  # report problems now

    def _set_up(self) -> None:
        self.address = PostgresAddress.parse(self._url)
        self.lock = threading.RLock()
        self.turn_settings = ""  # statements at the beginning of each turn
        self._pid = os.getpid()
        self._idle = idle_connections(self.address)
        self._connection: ServerConnection | None = None  # of the current turn
        self._depth = 0
        self._writes = False
        self._checked = False
        self._name = token_hex(8)  # of this writer
        self._transactions = 0
        self._pgvector: str | None = None
        self._vector_tables: dict[str, PostgresVectorTable] = {}
        _opened.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"_url": self._url, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    @property
    def place(self) -> str:
        """The address, without the password."""
        return self.address.shown

    @property
    def index_folder(self) -> Path | None:
        """The folder for index files: below ``cache`` of the address."""
        if not self.address.cache:
            return None
        folder = Path(self.address.cache).expanduser() / f"nodekin-{digest(self.address.shown)}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it has words of the texts
        except OSError as error:
            raise StoreError(
                f"the folder {str(folder)!r} for indexes cannot be created: {error}; choose "
                "another cache= in the address, or none"
            ) from error
        return folder

    # Statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a query. Its placeholders are ``?``, or those of psycopg."""
        with self.lock:
            if self._connection is not None:
                return self._connection.rows(statement.replace("?", "%b"), values)
            return self._with_connection(lambda db: db.rows(statement.replace("?", "%b"), values))

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values, inside a transaction."""
        assert self._connection is not None, "statements that write need a transaction"
        self._connection.run_many(statement.replace("?", "%b"), rows)

    # Turns and transactions

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Hold the lock and read one state until the block ends."""
        with self.lock:
            if self._depth == 0:
                script = f"{_BEGIN}; {self.turn_settings}"
                self._start(lambda db: db.run_script(script))
            with self._nested() as outermost:
                yield outermost

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[bool]:
        """Hold the lock and commit all writes of the block, or none if the block raises."""
        with self.lock:
            if self._depth == 0:
                self._transactions += 1
                script = (
                    f"BEGIN; SELECT pg_advisory_xact_lock({self.address.lock('transaction')}); "
                    f"INSERT INTO writers VALUES ('\\x{self._name}', {self._transactions}, now()) "
                    "ON CONFLICT (id) DO UPDATE SET number = excluded.number, seen = excluded.seen"
                )
                self._start(lambda db: db.run_script(script))
                self._writes = True
            elif not self._writes:
                raise RuntimeError(
                    "the graph cannot be changed, and no group built, inside a retrieval of the "
                    "same graph; build the group before (graph.build(name)), or change the graph "
                    "after the retrieval has returned"
                )
            with self._nested() as outermost:
                yield outermost

    def _start(self, begin: Callable[[ServerConnection], object]) -> None:
        """Borrow a connection and begin; a server that restarts is waited for."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            connection = None
            try:
                connection = self._borrowed()
                begin(connection)
                self._connection = connection
                return
            except ServerLostError:
                if connection is not None:
                    self._give_back(connection)
                self._idle.close()  # the others have most likely ended with it
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PERIOD)
            except BaseException:
                if connection is not None:
                    self._give_back(connection)
                raise

    @contextmanager
    def _nested(self) -> Iterator[bool]:
        """Count a block; the outermost one commits, or rolls back if the block raises."""
        self._depth += 1
        turns.depth += 1
        try:
            yield self._depth == 1
            if self._depth == 1 and self._writes:
                self._commit()
        finally:
            self._depth -= 1
            turns.depth -= 1
            if self._depth == 0:
                self._writes = False
                connection, self._connection = self._connection, None
                if connection is not None:
                    self._give_back(connection)

    @property
    def is_held(self) -> bool:
        """Whether this thread is inside a turn or a transaction."""
        if self._depth == 0 or not self.lock.acquire(blocking=False):
            return False
        try:
            return self._depth > 0
        finally:
            self.lock.release()

    def _commit(self) -> None:
        assert self._connection is not None
        try:
            self._connection.run_script("COMMIT")
        except ServerLostError as error:
            if not self._committed(error):
                raise

    def _committed(self, error: ServerLostError) -> bool:
        """Return whether a commit happened whose answer was lost; wait for the server."""
        deadline = time.monotonic() + min(self.timeout, 30.0)
        query = "SELECT 1 FROM writers WHERE id = %s AND number = %s"
        lock = f"SELECT pg_advisory_xact_lock({self.address.lock('transaction')})"
        self._idle.close()
        while True:
            try:
                connection = self._borrowed()
                try:
                    connection.run_script(f"BEGIN; {lock}; COMMIT")  # until the old one has ended
                    values = [bytes.fromhex(self._name), self._transactions]
                    return bool(connection.rows(query, values))
                finally:
                    self._give_back(connection)
            except ServerLostError:
                if time.monotonic() > deadline:
                    raise StoreError(
                        f"{self.place}: the connection was lost during a commit, and the server "
                        "cannot be asked whether the change was written; repeat the change when "
                        "the server runs"
                    ) from error
                time.sleep(_PERIOD)

    # Connections

    def _borrowed(self) -> ServerConnection:
        connection = self._idle.take(self.address.schema)
        if connection is not None:
            try:
                connection.serve(self.address, self.timeout)
            except ServerLostError:
                self._idle.close()
                connection = None
        if connection is None:
            connection = ServerConnection(self.address, self.timeout)
        if not self._checked:
            try:
                self._check_tables(connection)
            except BaseException:
                connection.close()
                raise
            self._checked = True
        return connection

    def _give_back(self, connection: ServerConnection) -> None:
        with suppress(ServerLostError):
            connection.roll_back()
        if not connection.lost:
            self._idle.put(connection)

    def _with_connection(self, work: Callable[[ServerConnection], T]) -> T:
        """Call a function with a connection, outside a turn."""
        connection = self._borrowed()
        try:
            return work(connection)
        except ServerLostError:
            self._idle.close()
            connection = self._borrowed()
            return work(connection)
        finally:
            self._give_back(connection)

    def _check_tables(self, connection: ServerConnection) -> None:
        """Create missing tables.

        Raises:
            StoreError: If the tables have another format.
        """
        exists = "SELECT to_regclass('nodekin_graph') IS NOT NULL"
        schema = self.address.schema.replace('"', '""')
        if not connection.rows(exists)[0][0]:
            lock = f"SELECT pg_advisory_xact_lock({self.address.lock('transaction')})"
            try:
                connection.run_script(f"BEGIN; {lock}")
                if not connection.rows(exists)[0][0]:  # another process may be faster
                    script = f'CREATE SCHEMA IF NOT EXISTS "{schema}"; {_CREATED}; {_SERVER_TABLES}'
                    connection.run_script(script)
                    connection.run_script(f"INSERT INTO nodekin_graph VALUES ({FORMAT})")
                connection.run_script("COMMIT")
            except BaseException:
                connection.roll_back()
                raise
        ((version,),) = connection.rows("SELECT format FROM nodekin_graph")
        if version != FORMAT:
            raise StoreError(
                f"{self.place} has format {version}, and this nodekin reads format {FORMAT}; index "
                "the documents again into another schema"
            )

    def check(self) -> list[str]:
        """Return nothing: PostgreSQL checks its pages itself."""
        return []

    def compact(self) -> None:
        """Drop outdated tables of vectors; the server frees space itself."""
        from .pgvector_table import drop_outdated

        with self.transaction():
            drop_outdated(self)
            self.run_many("DELETE FROM writers WHERE seen < now() - interval '1 day'", [()])

    def close(self) -> None:
        """Close all connections. The next use opens new ones."""
        with self.lock:
            if self._transactions and self._depth == 0:
                with suppress(StoreError):
                    name = bytes.fromhex(self._name)
                    self._with_connection(
                        lambda db: db.run("DELETE FROM writers WHERE id = %s", [name])
                    )
            self._idle.close(self.address.schema)

    # Vectors

    @contextmanager
    def exclusive(self, purpose: str, *, wait: bool) -> Iterator[ServerConnection | None]:
        """Lock a purpose among processes. The lock ends with its connection.

        Args:
            purpose: The purpose.
            wait: Whether to wait for the lock. Otherwise the block gets None if it is taken.
        """
        lock = self.address.lock(purpose)
        deadline = time.monotonic() + _WAIT_LIMIT
        with self.lock:
            connection = self._borrowed()
        free = False
        try:
            while not (free := connection.rows(_TRY_LOCK, [lock])[0][0]) and wait:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{purpose} has been locked for {_WAIT_LIMIT:g} seconds")
                time.sleep(_PERIOD)
            yield connection if free else None
        finally:
            with suppress(ServerLostError):  # the lock has ended with its connection
                connection.roll_back()
                if free:
                    connection.rows("SELECT pg_advisory_unlock(%s)", [lock])
            self._give_back(connection)

    def vector_table(
        self, store: GraphStore, group: str, *names: str
    ) -> PostgresVectorTable | None:
        """Return a table of vectors if the database has pgvector.

        Raises:
            StoreError: If the address demands pgvector, which is missing.
        """
        from .pgvector_table import PostgresVectorTable, find_pgvector
        from .value_numbers import ValueNumbers

        if self.address.vectors == "memory":
            return None
        with self.lock:
            if self._pgvector is None:
                self._pgvector = find_pgvector(self) or ""
            if not self._pgvector and self.address.vectors == "pgvector":
                raise StoreError(
                    f"{self.place} has no pgvector 0.8 or later, and its user may not install it; "
                    "run CREATE EXTENSION vector in the database, or leave out vectors=pgvector"
                )
            if not self._pgvector:
                return None
            name = digest(group, *names)
            if name not in self._vector_tables:
                self._vector_tables[name] = PostgresVectorTable(
                    self, ValueNumbers(store), self._pgvector, group, name
                )
            return self._vector_tables[name]

    # Forks

    def release_in_child(self) -> None:
        """Leave all connections to the parent process."""
        _inherited.append((self._idle, self._connection))
        self._set_up()


_inherited: list[Any] = []  # closing a connection in a child would break its parent

_held: list[PostgresDatabase] = []


def _before_fork() -> None:
    for database in sorted(_opened, key=id):
        database.lock.acquire()
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    while _held:
        _held.pop().release_in_child()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
