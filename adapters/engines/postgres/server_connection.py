"""A connection to a PostgreSQL server, with errors that name a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ....nodegraph.errors import StoreError, TransientStoreError
from .address import PostgresAddress

if TYPE_CHECKING:
    import psycopg

Values = tuple[Any, ...]

_OLDEST = 140_000  # the oldest supported version of the server

_CONNECT_TIMEOUT = 10  # seconds

_MAX_IDLE = 8  # connections

_COPY_TYPES = {int: "int8", float: "float8", str: "text", bytes: "bytea", list: "int4[]"}


class ServerLostError(TransientStoreError):
    """The server is unreachable, or a connection was lost."""


class ServerConnection:
    """A connection that runs statements in the schema of a graph.

    Args:
        address: The address of the graph.
        timeout: Seconds to wait while another process writes.

    Raises:
        ImportError: If psycopg is not installed.
        ServerLostError: If the server is unreachable or rejects the user.
    """

    def __init__(self, address: PostgresAddress, timeout: float) -> None:
        try:
            import psycopg
            from psycopg.types.numeric import Int8BinaryDumper
        except ImportError as error:
            raise ImportError(
                'a graph on PostgreSQL needs psycopg: pip install "nodekin[postgres]"'
            ) from error
        self._address = address
        self._psycopg = psycopg
        try:
            self._db: psycopg.Connection[Values] = psycopg.connect(
                address.conninfo,
                autocommit=True,
                connect_timeout=_CONNECT_TIMEOUT,
                application_name="nodekin",
                client_encoding="utf8",
            )
        except psycopg.Error as error:
            raise ServerLostError(
                f"{address.shown} cannot be reached: {_line(error)}; check that the server runs, "
                "and that the address, user and password are right"
            ) from error
        # One type for all integers: statements are prepared once per combination of types.
        self._db.adapters.register_dumper(int, Int8BinaryDumper)
        if self._db.info.server_version < _OLDEST:
            version = self._db.info.server_version / 10_000
            self.close()
            raise StoreError(
                f"{address.shown} is PostgreSQL {version:.0f}; a graph needs "
                f"{_OLDEST // 10_000} or later: upgrade the server, or use another one"
            )
        self._serves: tuple[str, float] | None = None
        self.serve(address, timeout)

    @property
    def schema(self) -> str:
        """The schema that statements run in."""
        return self._address.schema

    def serve(self, address: PostgresAddress, timeout: float) -> None:
        """Switch to the schema of a graph on the same server, and reset settings and locks.

        Raises:
            ServerLostError: If the connection was lost.
        """
        if self._serves == (address.schema, timeout):
            return
        self._address = address
        clean = "" if self._serves is None else "RESET ALL; SELECT pg_advisory_unlock_all(); "
        try:
            self.run_script(
                f"{clean}SET search_path TO {address.quoted_schema}; "
                f"SET lock_timeout TO '{int(timeout * 1000)}ms'"
            )
        except BaseException:
            self.close()
            raise
        self._serves = address.schema, timeout

    @property
    def is_lost(self) -> bool:
        """Whether the connection was lost or closed."""
        return self._db.closed

    def run_script(self, script: str) -> None:
        """Run statements without values in one round trip."""
        with self._explained():
            self._db.execute(script, prepare=False)

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            StoreError: If a statement of the transaction has failed.
        """
        if self._db.info.transaction_status == self._psycopg.pq.TransactionStatus.INERROR:
            raise StoreError(
                f"{self._address.shown}: nothing was changed, because a statement of the "
                "transaction failed; repeat the change"
            )
        self.run_script("COMMIT")

    def roll_back(self) -> None:
        """Roll back an open transaction. If that fails, close the connection."""
        possible = self._psycopg.pq.TransactionStatus
        status = self._db.info.transaction_status
        if status == possible.IDLE:
            return
        if status in (possible.INTRANS, possible.INERROR):
            with suppress(StoreError):
                self.run_script("ROLLBACK")
                return
        self.close()  # a lost server can leave a statement active, also inside a pipeline

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a statement. Its placeholder is ``%b``."""
        with self._explained(), self._db.cursor(binary=True) as cursor:
            cursor.execute(statement, values)
            return [] if cursor.description is None else cursor.fetchall()

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        with self._explained(), self._db.cursor() as cursor:
            cursor.executemany(statement, rows)

    def copy(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows into a table.

        Args:
            table: The table, and the names of the columns in parentheses.
            rows: The rows. All values of a column have the same type, or are None.
        """
        types = [
            next((_COPY_TYPES[type(value)] for value in column if value is not None), "bytea")
            for column in zip(*rows, strict=True)
        ]
        statement = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._explained(), self._db.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            raise self._explanation(error) from error
        except Exception:
            raise
        except BaseException:  # an interrupt: the statement may still run on the server
            self.close()
            raise

    def _explanation(self, error: psycopg.Error) -> StoreError:
        where, errors = self._address.shown, self._psycopg.errors
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
        remedies = {
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


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


_idle: dict[tuple[int, str], list[ServerConnection]] = {}


def idle_connections(address: PostgresAddress) -> list[ServerConnection]:
    """Return the idle connections of this process to a server, by the same user, at most eight.

    All graphs on the server share them. A forked process never closes those of its parent.
    """
    return _idle.setdefault((os.getpid(), address.conninfo), [])


def take_idle(idle: list[ServerConnection], schema: str) -> ServerConnection | None:
    """Remove and return an idle connection, preferably of this schema; None if all are in use."""
    for connection in sorted(idle, key=lambda connection: connection.schema != schema):
        with suppress(ValueError):  # another thread has taken it
            idle.remove(connection)
            return connection
    return None


def put_idle(idle: list[ServerConnection], connection: ServerConnection) -> None:
    """Add an idle connection, and close the oldest connections above the maximum of eight."""
    idle.append(connection)
    close_idle(idle, idle[:-_MAX_IDLE])


def close_idle(idle: list[ServerConnection], connections: Sequence[ServerConnection]) -> None:
    """Close idle connections, except those that other threads have taken."""
    for connection in connections:
        with suppress(ValueError):
            idle.remove(connection)
            connection.close()
