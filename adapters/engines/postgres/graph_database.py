"""The database of a graph in a schema of a PostgreSQL database."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from ....nodegraph.concurrency import FairLock, hold_over_fork
from ....nodegraph.errors import MissingNodeError, StoreError
from ....nodegraph.hashing import digest
from ....nodegraph.node import ROOT
from ....nodegraph.storage.columns import to_id, to_text
from ....nodegraph.storage.database import FORMAT, TABLES
from .address import PostgresAddress
from .server_connection import (
    BEGIN_READING,
    ServerConnection,
    ServerLostError,
    Values,
    connect,
    leave_pool,
    shared_pool,
)

T = TypeVar("T")

_SERVER_TABLES = """
CREATE TABLE nodekin_graph (format int NOT NULL);

-- The last transaction of each writer. It shows whether a commit happened whose answer was lost.
CREATE TABLE writers (id text PRIMARY KEY, number bigint NOT NULL, seen timestamptz NOT NULL);

-- The tables of vectors, with the kind of the values that record their content.
CREATE TABLE vector_tables (
    name text PRIMARY KEY, grp bytea NOT NULL, kind bytea NOT NULL, seen timestamptz NOT NULL
);
"""

_TABLES = (
    "; ".join(TABLES)
    .format(empty=f"'\\x{to_id('').hex()}'", root=f"'\\x{to_text(ROOT).hex()}'")
    .replace("BLOB", "bytea")
    .replace("INTEGER", "bigint")
    .replace("REAL", "float8")
)

_AS_ID = """CASE
    WHEN {column} ~ '^[0-9a-f]{{24}}$' THEN decode({column}, 'hex')
    WHEN octet_length({column}) = 11 THEN '\\xffff'::bytea || convert_to({column}, 'UTF8')
    ELSE '\\xff'::bytea || convert_to({column}, 'UTF8')
END"""
"""A hash as bytes. See ``to_id``."""

_CONVERT = f"""
ALTER TABLE derivations
    ADD COLUMN text bigint NOT NULL DEFAULT 0,
    ALTER COLUMN source TYPE bytea USING {_AS_ID.format(column="source")},
    ALTER COLUMN rule TYPE bytea USING {_AS_ID.format(column="rule")},
    ALTER COLUMN metadata TYPE bytea USING {_AS_ID.format(column="metadata")};
ALTER TABLE derivations ALTER COLUMN text DROP DEFAULT;
ALTER TABLE nodes ADD COLUMN length bigint, ALTER COLUMN text DROP NOT NULL;
CREATE TABLE blocks (key bigint PRIMARY KEY, text bytea NOT NULL);
DROP INDEX derivations_by_document, nodes_by_parent;
CREATE INDEX nodes_by_parent ON nodes (parent) WHERE parent IS NOT NULL;
INSERT INTO counters (name, value) VALUES ('texts', 0);
ALTER TABLE documents ADD COLUMN fields bytea, ADD COLUMN search_text bytea;
UPDATE documents o SET fields = d.fields, search_text = d.search_text
    FROM derivations d WHERE d.grp = 0 AND d.document = o.key;
UPDATE derivations d SET fields = coalesce(d.fields, ''::bytea)
    FROM documents o WHERE o.key = d.document
    AND (d.fields, d.search_text) IS DISTINCT FROM (o.fields, o.search_text);
UPDATE derivations d SET fields = NULL, search_text = NULL
    FROM documents o WHERE o.key = d.document
    AND (d.fields, d.search_text) IS NOT DISTINCT FROM (o.fields, o.search_text);
UPDATE nodekin_graph SET format = {FORMAT};
"""
"""The statements that convert the tables of format 1."""

_PLAIN_INSERT = re.compile(r"INSERT INTO (\w+(?: \([\w, ]+\))?) VALUES \([?, ]+\)")

EF_SEARCH = 400
"""The default number of candidates that HNSW searches consider."""

_COPIED = 50  # minimum number of rows for which COPY is faster than INSERT

_PERIOD = 0.05  # seconds between attempts to reach a server, or to acquire a lock

_PATIENCE = 5.0  # seconds to wait for a server that is restarting

_COMMIT_PATIENCE = 30.0  # seconds to wait for the result of a commit after a lost connection


class PostgresDatabase:
    """The database of a graph on a PostgreSQL server. See ``Database`` for its methods.

    Each read or transaction borrows a connection from a pool that is shared by all graphs on the
    server. Every transaction acquires an advisory lock, so that only one process writes at a time.

    Args:
        address: The address of the graph. The schema and its tables are created if they do not
            exist.
        timeout: The number of seconds to wait while another process is writing.

    Raises:
        ServerLostError: If the server cannot be reached.
        StoreError: If the tables have a different format, or cannot be created.
    """

    is_read_only = False
    is_remote = True

    has_blocks = False  # reading blocks would take another round trip

    def __init__(self, address: str, timeout: float = 60.0) -> None:
        self._url = address
        self.timeout = timeout
        self._set_up()
        self._check()

    def _set_up(self) -> None:
        self.address = PostgresAddress.parse(self._url)
        self.index_folder = self._cache_folder()
        self.lock = FairLock()
        self._settings = (
            f"SET search_path TO {self.address.quoted_schema}; "
            f"SET lock_timeout TO '{int(self.timeout * 1000)}ms'; "
            f"SET hnsw.ef_search TO {EF_SEARCH}"
        )
        self._forget()
        hold_over_fork(self)

    def _forget(self) -> None:
        """Drop all references to connections without closing them."""
        # the connection of the current read or transaction
        self._connection: ServerConnection | None = None
        self._light: tuple[str, list[Values]] | None = None  # the first query of a light turn
        self._writes = False
        self._is_checked = False
        self._writer = token_hex(8)
        self._transactions = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"_url": self._url, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    @property
    def place(self) -> str:
        """The address of the graph, without the password."""
        return self.address.shown

    def _cache_folder(self) -> Path | None:
        """Create the folder for index files inside the ``cache`` folder of the address."""
        if not self.address.cache:
            return None
        folder = Path(self.address.cache).expanduser() / f"nodekin-{digest(self.address.shown)}"
        try:
            # the folder is private because indexes contain words of the texts
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {str(folder)!r} for indexes cannot be created: {error}; choose "
                "another cache= in the address, or none"
            ) from error
        return folder

    # Statements

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a query."""
        query = statement.replace("?", "%b")
        with self.lock:
            if self._light is not None:
                return self._rows_in_state(*self._light, query, values)
            if self._connection is not None:
                return self._connection.rows(query, values)
            return self.call(lambda db: db.rows(query, values))

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values, as part of the current transaction.

        If there are only a few rows, the statement is sent together with the next query or the
        commit.
        """
        insert = _PLAIN_INSERT.fullmatch(statement) if len(rows) >= _COPIED else None
        if insert is not None:
            self.writing.copy(insert[1], rows)
        elif rows:
            self.writing.run_many(statement.replace("?", "%b"), rows)

    @property
    def writing(self) -> ServerConnection:
        """The connection of the current transaction."""
        if self._connection is None or not self._writes:
            raise RuntimeError("statements that write need a transaction")
        return self._connection

    # Turns and transactions

    def begin(self, query: str) -> list[Values]:
        """Start to read from a consistent snapshot, and return the rows of the first query."""
        return self._begin(f"{BEGIN_READING}; {query}")

    def begin_light(self, query: str, expected: list[Values] | None) -> list[Values]:
        """Begin a turn without a transaction, and return the rows of its first query."""
        if expected is None:
            expected = self.call(lambda db: db.run_script(query))
        self._light = query, expected
        return expected

    def _rows_in_state(
        self, first: str, expected: list[Values], query: str, values: Sequence[Any]
    ) -> list[Values]:
        """Return the rows of a query in a light turn.

        Raises:
            MissingNodeError: If the rows of the turn's first query have changed.
        """
        found, rows = self.call(lambda db: db.rows_after(first, query, values))
        if found != expected:
            raise MissingNodeError("the graph was changed")
        return rows

    def begin_writing(self, query: str, *, durable: bool, derived: bool = False) -> list[Values]:
        """Start a transaction, and return the rows of its first query.

        The arguments ``durable`` and ``derived`` have no effect, because the server determines how
        durable all commits are.
        """
        number = self._transactions + 1
        rows = self._begin(
            f"BEGIN; {self.lock_writers}; "
            f"INSERT INTO writers VALUES ('{self._writer}', {number}, now()) "
            "ON CONFLICT (id) DO UPDATE SET number = excluded.number, seen = excluded.seen; "
            f"{query}"
        )
        self._writes = True
        self._transactions = number
        return rows

    @property
    def lock_writers(self) -> str:
        """The SQL statement that locks out other writers until the end of the transaction."""
        return f"SELECT pg_advisory_xact_lock({self.address.lock('transaction')})"

    def _begin(self, script: str) -> list[Values]:
        """Run several statements in one round trip, and return the rows of the last statement."""
        self._connection, rows = self._borrowed_for(lambda db: db.run_script(script))
        return rows

    def commit(self) -> None:
        """End the current read or transaction, and commit all changes."""
        if self._writes:
            self._commit()
        self.roll_back()

    def roll_back(self) -> None:
        """End the current read or transaction, if there is one, and discard all changes."""
        connection = self._connection
        self._connection = None
        self._light = None
        self._writes = False
        if connection is not None:
            connection.give_back()

    def _commit(self) -> None:
        """Commit the transaction.

        If the connection is lost, find out whether the commit was completed.
        """
        try:
            self.writing.commit()
        except ServerLostError as error:
            query = "SELECT 1 FROM writers WHERE id = %b AND number = %b"

            def look_up(db: ServerConnection) -> list[Values]:
                # The lock can be acquired as soon as the server has ended the lost transaction.
                db.run_script(f"BEGIN; {self.lock_writers}; COMMIT")
                return db.rows(query, [self._writer, self._transactions])

            try:
                connection, found = self._borrowed_for(look_up, _COMMIT_PATIENCE)
            except ServerLostError:
                raise StoreError(
                    f"{self.place}: the connection was lost during a commit, and the server "
                    "cannot tell whether the change was written; repeat the change when the "
                    "server runs"
                ) from error
            connection.give_back()
            if not found:
                raise

    # Connections

    def _borrowed_for(
        self, work: Callable[[ServerConnection], T], patience: float = 0
    ) -> tuple[ServerConnection, T]:
        """Borrow a connection, call a function with it, and return the connection and the result.

        If the connection is lost, the function is called again with a new connection as soon as the
        server accepts connections.

        Args:
            work: The function. Because it may be called again, it must not make permanent changes.
            patience: The number of seconds to wait for the server. If 0, the default of five
                seconds is used.
        """
        deadline = time.monotonic() + (patience or _PATIENCE)
        while True:
            connection = None
            pool = shared_pool(self.address, self)
            try:
                if not self._is_checked:
                    self._check()
                connection = pool.borrow(self.address)
                connection.serve(self._settings)
                return connection, work(connection)
            except BaseException as error:
                if connection is not None:
                    connection.give_back()
                if not isinstance(error, ServerLostError) or time.monotonic() > deadline:
                    raise
            pool.pool.check()  # most likely, all connections of the pool were lost
            time.sleep(_PERIOD)

    def _check(self) -> None:
        """Create the tables that do not exist yet.

        Raises:
            ServerLostError: If the server cannot be reached.
            StoreError: If the tables have a different format.
        """
        # to_regclass is not used, because its cache may not contain tables that another session
        # just created.
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %b AND tablename = 'nodekin_graph'"
        schema = [self.address.schema]
        with closing(connect(self.address)) as connection:
            connection.serve(self._settings)
            connection.run_script("BEGIN")
            if not connection.rows(query, schema):
                connection.run_script(self.lock_writers)
                # another process may have created the tables
                if not connection.rows(query, schema):
                    connection.run_script(
                        f"CREATE SCHEMA IF NOT EXISTS {self.address.quoted_schema}; {_TABLES}; "
                        f"{_SERVER_TABLES}; INSERT INTO nodekin_graph VALUES ({FORMAT})"
                    )
            version = self._version(connection)
            if version == 1:
                connection.run_script(self.lock_writers)
                version = self._version(connection)
                if version == 1:  # another process may be faster
                    connection.run_script(_CONVERT)
                    version = FORMAT
            connection.commit()
        if version != FORMAT:
            raise StoreError(
                f"{self.place} has format {version}, and this nodekin reads format {FORMAT}; index "
                "the documents again into another schema"
            )
        self._is_checked = True

    def _version(self, connection: ServerConnection) -> int:
        ((version,),) = connection.rows("SELECT format FROM nodekin_graph")
        found: int = version
        return found

    def streaming(self) -> AbstractContextManager[None]:
        """Do nothing, because the server manages its own cache."""
        return nullcontext()

    def truncate_log(self) -> None:
        """Do nothing, because the server manages its own log."""

    def compact(self) -> None:
        """Delete the records of former writers.

        The server itself frees the space of deleted rows.
        """
        script = "DELETE FROM writers WHERE seen < now() - interval '1 day'"
        self.call(lambda db: db.run_script(script))

    def close(self) -> None:
        """Stop using the connection pool, which is closed when no graph uses it any more.

        The database can still be used after that, and then opens new connections.
        """
        if self._transactions and self._connection is None:
            self._transactions = 0
            with suppress(StoreError):
                self.rows("DELETE FROM writers WHERE id = ?", [self._writer])
        self._is_checked = False
        leave_pool(self.address, self)

    def call(self, work: Callable[[ServerConnection], T]) -> T:
        """Call a function with a separate connection, outside the current transaction.

        Args:
            work: The function, which is called again if the connection is lost.
        """
        connection, result = self._borrowed_for(work)
        connection.give_back()
        return result

    @contextmanager
    def exclusive(self, purpose: str, *, wait: bool) -> Iterator[ServerConnection | None]:
        """Hold an advisory lock with a separate connection, independently of transactions.

        If the connection is lost, the server releases the lock.

        Args:
            purpose: The name of the lock.
            wait: Whether to wait for the lock. If False and the lock is held elsewhere, the context
                manager yields None.
        """
        lock = self.address.lock(purpose)
        function = "pg_advisory_lock" if wait else "pg_try_advisory_lock"

        def acquire(connection: ServerConnection) -> bool:
            connection.run_script("SET lock_timeout TO 0")
            return connection.rows(f"SELECT {function}(%b)", [lock]) != [(False,)]

        connection, is_free = self._borrowed_for(acquire)
        try:
            yield connection if is_free else None
        finally:
            connection.reset()
            connection.give_back()

    # Forks

    def release_in_child(self) -> None:
        """Drop all connections after a fork, because they belong to the parent process."""
        _inherited.append(self._connection)
        self._forget()
        self.lock.release()


# closing an inherited connection would break the connection of the parent process
_inherited: list[Any] = []
