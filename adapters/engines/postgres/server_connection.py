"""Connections to a PostgreSQL server whose errors explain what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakSet

from ....nodegraph.concurrency import fork_safe_lock
from ....nodegraph.errors import StoreError, TransientStoreError
from .address import PostgresAddress

try:
    import psycopg
    from psycopg import Pipeline
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import Int8BinaryDumper
    from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout
except ImportError as error:
    raise ImportError(
        f"a graph on PostgreSQL needs psycopg and psycopg_pool ({error}): "
        'pip install "nodekin[postgres]"'
    ) from error

Values = tuple[Any, ...]


class Connection(psycopg.Connection[Values]):
    """A database connection that remembers which settings were applied to it.

    Attributes:
        settings: The SQL statements with which the settings were last changed.
    """

    settings = ""


_OLDEST = 140_000  # the oldest supported server version

_CONNECT_TIMEOUT = 10  # seconds

_POOL_TIMEOUT = 1.0  # seconds to wait for a free connection in the pool

_MAX_CONNECTIONS = 50  # maximum number of connections from a process to a server

_MAX_IDLE = 30.0  # seconds after which an unused connection is closed

_MAX_DELAYED = 1_000  # maximum number of rows in delayed statements

BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""The statement that begins to read one state."""

_COPY_TYPES = {int: "int8", float: "float8", str: "text", bytes: "bytea", list: "int4[]"}


class ServerLostError(TransientStoreError):
    """Raised if the server is unreachable, a connection is lost, or all connections are in use."""


def connect(address: PostgresAddress) -> ServerConnection:
    """Open a connection that does not belong to a pool.

    Raises:
        ServerLostError: If the server is unreachable or rejects the user. In contrast to an error
            of the pool, the message contains the reason.
        StoreError: If the server version is not supported.
    """
    try:
        db = Connection.connect(address.conninfo, **_SETTINGS)
    except psycopg.Error as error:
        raise ServerLostError(
            f"{address.shown} cannot be reached: {_line(error)}; check that the server runs, "
            "and that the address, user and password are right"
        ) from error
    _configure(db)
    if db.info.server_version < _OLDEST:
        version = db.info.server_version / 10_000
        db.close()
        raise StoreError(
            f"{address.shown} is PostgreSQL {version:.0f}; a graph needs "
            f"{_OLDEST // 10_000} or later: upgrade the server, or use another one"
        )
    return ServerConnection(db, address.shown)


_SETTINGS: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": _CONNECT_TIMEOUT,
    "application_name": "nodekin",
    "client_encoding": "utf8",
}


def _configure(db: Connection) -> None:
    # All integers have the same type, because a statement is prepared once for each combination of
    # types.
    db.adapters.register_dumper(int, Int8BinaryDumper)


class SharedPool:
    """A connection pool for one server and one user, shared by all graphs of this process.

    Args:
        address: The address of a graph on the server.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self.users: WeakSet[object] = WeakSet()
        self.pool = ConnectionPool[Connection](
            address.conninfo,
            connection_class=Connection,
            kwargs=_SETTINGS,
            configure=_configure,
            min_size=0,
            max_size=_MAX_CONNECTIONS,
            max_idle=_MAX_IDLE,
            reconnect_timeout=0,  # the callers retry instead
            open=True,
        )

    def borrow(self, address: PostgresAddress) -> ServerConnection:
        """Borrow a connection from the pool.

        Raises:
            ServerLostError: If the server is unreachable, or all connections are in use.
        """
        try:
            return ServerConnection(self.pool.getconn(_POOL_TIMEOUT), address.shown, self.pool)
        except PoolClosed as error:
            raise ServerLostError(f"{address.shown}: the graph was closed: retry") from error
        except PoolTimeout as error:
            connect(address).close()
            raise ServerLostError(
                f"{address.shown}: all {_MAX_CONNECTIONS} connections of this process are in use: "
                "retry, or search in fewer threads"
            ) from error


_pools: dict[tuple[int, str], SharedPool] = {}
_pools_lock = fork_safe_lock()


def shared_pool(address: PostgresAddress, user: object) -> SharedPool:
    """Return the connection pool of this process for a server, and register a user of the pool.

    A forked process creates its own pools, and never closes the connections of its parent process.
    """
    with _pools_lock:
        key = os.getpid(), address.conninfo
        if key not in _pools:
            _pools[key] = SharedPool(address)
        _pools[key].users.add(user)
        return _pools[key]


def leave_pool(address: PostgresAddress, user: object) -> None:
    """Unregister a user of a connection pool. If no other users remain, the pool is closed."""
    with _pools_lock:
        key = os.getpid(), address.conninfo
        if key not in _pools:
            return
        _pools[key].users.discard(user)
        pool = None if _pools[key].users else _pools.pop(key)
    if pool is not None:
        pool.pool.close()


class ServerConnection:
    """A connection whose error messages contain the address of the graph and suggest a solution.

    Args:
        db: The database connection.
        shown: The address of the graph, without the password.
        pool: The pool to which the connection belongs. If None, the connection is closed after use.
    """

    def __init__(
        self, db: Connection, shown: str, pool: ConnectionPool[Connection] | None = None
    ) -> None:
        self._db = db
        self._shown = shown
        self._pool = pool
        # pairs of statements and rows of values
        self._delayed: list[tuple[str, list[Sequence[Any]]]] = []

    def serve(self, settings: str) -> None:
        """Apply the settings of a graph to the connection if they have not been applied yet.

        Args:
            settings: SQL statements that change the settings. All graphs must change the same
                settings.
        """
        if self._db.settings != settings:
            self._db.settings = ""
            self.run_script(settings)
            self._db.settings = settings

    def run_script(self, script: str) -> list[Values]:
        """Run several statements in one round trip, and return the rows of the last statement."""
        self._send_delayed()
        with self._explained(), self._db.execute(script, prepare=False) as cursor:
            while cursor.nextset():
                pass
            return [] if cursor.description is None else cursor.fetchall()

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            StoreError: If a statement of the transaction has failed.
        """
        if self._db.info.transaction_status == TransactionStatus.INERROR:
            raise StoreError(
                f"{self._shown}: nothing was changed, because a statement of the "
                "transaction failed; repeat the change"
            )
        with self._explained(), self._pipeline():
            # A failing statement aborts the whole pipeline, including the commit.
            self._execute_delayed()
            self._db.execute("COMMIT", prepare=False)

    def roll_back(self) -> None:
        """Roll back an open transaction. If this fails, the connection is closed."""
        self._delayed.clear()
        status = self._db.info.transaction_status
        if status == TransactionStatus.IDLE:
            return
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(StoreError):
                self.run_script("ROLLBACK")
                return
        self.close()  # if the server was lost, a statement may still be active, even in a pipeline

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Run a statement and return its rows. Placeholders are written as ``%b``."""
        self._send_delayed()
        with self._explained(), self._db.cursor(binary=True) as cursor:
            cursor.execute(statement, values)
            return [] if cursor.description is None else cursor.fetchall()

    def rows_after(
        self, first: str, statement: str, values: Sequence[Any] = ()
    ) -> tuple[list[Values], list[Values]]:
        """Return the rows of two statements in one state, in one round trip.

        Args:
            first: A statement without placeholders.
            statement: The second statement. Its placeholder is ``%b``.
            values: The values of the placeholders.
        """
        with self._explained(), self._db.cursor() as before, self._db.cursor(binary=True) as cursor:
            with self._pipeline():
                self._db.execute(BEGIN_READING, prepare=False)
                before.execute(first)
                cursor.execute(statement, values)
                self._db.execute("COMMIT", prepare=False)
            return before.fetchall(), cursor.fetchall()

    def rows_with(self, setting: str, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Run a statement with a special setting in its own transaction, and return its rows.

        All of this takes one round trip.

        Args:
            setting: A setting for the transaction, such as ``"work_mem TO 1000"``.
            statement: The statement. Placeholders are written as ``%b``.
            values: The values of the placeholders.
        """
        with self._explained(), self._db.cursor(binary=True) as cursor:
            with self._pipeline():
                self._db.execute("BEGIN", prepare=False)
                self._db.execute(f"SET LOCAL {setting}", prepare=False)
                cursor.execute(statement, values)
                self._db.execute("COMMIT", prepare=False)
            return cursor.fetchall()

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each row of values, as part of the current transaction.

        Statements with few rows are collected and sent together with the next query or the commit.
        """
        self._delayed.append((statement, list(rows)))
        if sum(len(delayed) for _, delayed in self._delayed) > _MAX_DELAYED:
            self._send_delayed()

    def _send_delayed(self) -> None:
        """Send all delayed statements in one round trip."""
        if self._delayed:
            with self._explained(), self._pipeline():
                self._execute_delayed()

    def _execute_delayed(self) -> None:
        delayed = self._delayed
        self._delayed = []
        for statement, rows in delayed:
            with self._db.cursor() as cursor:
                cursor.executemany(statement, rows)

    def _pipeline(self) -> AbstractContextManager[object]:
        """Send the statements of a ``with`` block without waiting for each result."""
        return self._db.pipeline() if Pipeline.is_supported() else nullcontext()

    def copy(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows into a table.

        Args:
            table: The name of the table, followed by the column names in parentheses.
            rows: The rows. In each column, all values other than None must have the same type.
        """
        self._send_delayed()
        types = [_copy_type(column) for column in zip(*rows, strict=True)]
        statement = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._explained(), self._db.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def reset(self) -> None:
        """Reset all settings and release advisory locks. If this fails, the connection is closed.

        DISCARD ALL is not used because it would break prepared statements.
        """
        self.roll_back()
        self._db.settings = ""
        with suppress(StoreError):
            self.run_script("RESET ALL; SELECT pg_advisory_unlock_all()")
            return
        self.close()

    def give_back(self) -> None:
        """Roll back an open transaction, and return the connection to its pool.

        If the connection does not belong to a pool, it is closed.
        """
        self.roll_back()
        if self._pool is None:
            self.close()
        else:
            self._pool.putconn(self._db)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._explanation(error) from error
        except Exception:
            raise
        # after an interrupt, the statement may still be running on the server
        except BaseException:
            self.close()
            raise

    def _explanation(self, error: psycopg.Error) -> StoreError:
        where = self._shown
        errors = psycopg.errors
        if self._db.closed or isinstance(error, errors.AdminShutdown | errors.CrashShutdown):
            return ServerLostError(
                f"{where}: the connection to the server was lost: {_line(error)}; nothing was "
                "changed; retry when the server runs"
            )
        if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
            return TransientStoreError(
                f"{where}: {_line(error)}: lost a conflict with another process; nothing was "
                "changed; retry"
            )
        remedies: dict[type[psycopg.Error], str] = {
            errors.LockNotAvailable: "another process has been writing for too long; wait for the "
            "process, or allow more time: PostgresStore(address, timeout=...)",
            errors.QueryCanceled: "nothing was changed; the server is too slow, or the statement "
            "was canceled: raise the server's statement_timeout (in the address: "
            "options=-c%20statement_timeout%3D60s)",
            errors.OutOfMemory: "nothing was changed; the server has too little memory, see its "
            "work_mem",
            errors.DiskFull: "nothing was changed; free space on the server's disk and retry",
            errors.InsufficientPrivilege: "nothing was changed; the user of the address has no "
            "permission",
            errors.ReadOnlySqlTransaction: "nothing was changed; the server is read-only: write "
            "to its primary",
        }
        remedy = remedies.get(type(error), "nothing was changed")
        return StoreError(f"{where}: {_line(error)}: {remedy}")


def _copy_type(column: Iterable[Any]) -> str:
    """Return the PostgreSQL type of the values in a column."""
    for value in column:
        if value is not None:
            return _COPY_TYPES[type(value)]
    return "bytea"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
