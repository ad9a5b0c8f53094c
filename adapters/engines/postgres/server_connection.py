"""Connections to a PostgreSQL server, with errors that name a remedy."""

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
    """A connection that knows its settings.

    Attributes:
        settings: The last SQL statements that changed settings.
    """

    settings = ""


_OLDEST = 140_000  # the oldest supported version of the server

_CONNECT_TIMEOUT = 10  # seconds

_POOL_TIMEOUT = 1.0  # seconds to wait for a connection of the pool

_MAX_CONNECTIONS = 50  # of a process to a server

_MAX_IDLE = 30.0  # seconds between closings of an unused connection

_MAX_DELAYED = 1_000  # rows of delayed statements

_COPY_TYPES = {int: "int8", float: "float8", str: "text", bytes: "bytea", list: "int4[]"}


class ServerLostError(TransientStoreError):
    """The server is unreachable, a connection was lost, or all connections are in use."""


def connect(address: PostgresAddress) -> ServerConnection:
    """Open a connection that does not belong to a pool.

    Raises:
        ServerLostError: If the server is unreachable or rejects the user. The pool hides the
            reason.
        StoreError: If the server is too old.
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
    # One type for all integers: statements are prepared once per combination of types.
    db.adapters.register_dumper(int, Int8BinaryDumper)


class SharedPool:
    """The connections of this process to a server by one user, shared by all graphs there.

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
            reconnect_timeout=0,  # callers retry
            open=True,
        )

    def borrow(self, address: PostgresAddress) -> ServerConnection:
        """Borrow a connection.

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
    """Return the pool of this process for a server, and register a user of the pool.

    A forked process creates new pools, and never closes the connections of its parent.
    """
    with _pools_lock:
        key = os.getpid(), address.conninfo
        if key not in _pools:
            _pools[key] = SharedPool(address)
        _pools[key].users.add(user)
        return _pools[key]


def leave_pool(address: PostgresAddress, user: object) -> None:
    """Close the pool of a server if no other user is left."""
    with _pools_lock:
        key = os.getpid(), address.conninfo
        if key not in _pools:
            return
        _pools[key].users.discard(user)
        pool = None if _pools[key].users else _pools.pop(key)
    if pool is not None:
        pool.pool.close()


class ServerConnection:
    """A connection whose errors name the graph and a remedy.

    Args:
        db: The connection.
        shown: The address of the graph without the password.
        pool: The pool of the connection. If None, the connection is closed after use.
    """

    def __init__(
        self, db: Connection, shown: str, pool: ConnectionPool[Connection] | None = None
    ) -> None:
        self._db = db
        self._shown = shown
        self._pool = pool
        self._delayed: list[tuple[str, list[Sequence[Any]]]] = []  # statements, their values

    def serve(self, settings: str) -> None:
        """Change the settings of the connection, which another graph may have used.

        Args:
            settings: SQL statements. All graphs change the same settings.
        """
        if self._db.settings != settings:
            self._db.settings = ""
            self.run_script(settings)
            self._db.settings = settings

    def run_script(self, script: str) -> list[Values]:
        """Run statements without values in one round trip, and return the last one's rows."""
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
            # A statement that fails aborts the pipeline, and with it the commit.
            self._execute_delayed()
            self._db.execute("COMMIT", prepare=False)

    def roll_back(self) -> None:
        """Roll back an open transaction. If that fails, close the connection."""
        self._delayed.clear()
        status = self._db.info.transaction_status
        if status == TransactionStatus.IDLE:
            return
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(StoreError):
                self.run_script("ROLLBACK")
                return
        self.close()  # a lost server can leave a statement active, also inside a pipeline

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a statement. Its placeholder is ``%b``."""
        self._send_delayed()
        with self._explained(), self._db.cursor(binary=True) as cursor:
            cursor.execute(statement, values)
            return [] if cursor.description is None else cursor.fetchall()

    def rows_with(self, setting: str, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a statement, which runs in its own transaction, in one round trip.

        Args:
            setting: A setting of the transaction, such as ``"work_mem TO 1000"``.
            statement: The statement. Its placeholder is ``%b``.
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
        """Run a statement once for each row of values, inside a transaction.

        Statements with few rows are sent together, before the next query or with the commit.
        """
        self._delayed.append((statement, list(rows)))
        if sum(len(delayed) for _, delayed in self._delayed) > _MAX_DELAYED:
            self._send_delayed()

    def _send_delayed(self) -> None:
        """Send the delayed statements in one round trip."""
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
        """Wait for the results of all statements of a block when the block ends."""
        return self._db.pipeline() if Pipeline.is_supported() else nullcontext()

    def copy(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows into a table.

        Args:
            table: The table, and the names of the columns in parentheses.
            rows: The rows. All values of a column have the same type, or are None.
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
        """Reset settings and release advisory locks. If that fails, close the connection.

        DISCARD ALL would break prepared statements.
        """
        self.roll_back()
        self._db.settings = ""
        with suppress(StoreError):
            self.run_script("RESET ALL; SELECT pg_advisory_unlock_all()")
            return
        self.close()

    def give_back(self) -> None:
        """End an open transaction, and return the connection to its pool, or close it."""
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
        except BaseException:  # an interrupt: the statement may still run on the server
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
    """Return the type of a column's values on the server."""
    for value in column:
        if value is not None:
            return _COPY_TYPES[type(value)]
    return "bytea"


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
