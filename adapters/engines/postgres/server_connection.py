"""A connection to a PostgreSQL server that says in words what went wrong, and its columns.

Ids, texts and metadata are in columns of ``bytea``: PostgreSQL's ``text`` can hold neither a NUL
nor half a character, and depends on the encoding of the database; bytes come back as what they
were.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit
from weakref import WeakValueDictionary

from ....nodegraph.codec import decode, encode
from ....nodegraph.errors import StoreError, TransientStoreError
from ....nodegraph.node import NO_METADATA, Link, Node
from ....nodegraph.search_text import SearchText

if TYPE_CHECKING:
    import psycopg


SCHEMES = ("postgresql", "postgres")

_DEFAULT_SCHEMA = "nodekin"

_PARAMETERS = ("schema", "vectors", "cache")

VECTORS = ("auto", "pgvector", "memory")

_MAX_NAME_BYTES = 63  # bytes of a name, above which PostgreSQL cuts it off without an error


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Name a server, a database on it, and the schema that holds one graph.

    Attributes:
        conninfo: What libpq takes: a URI, with a password if there was one.
        schema: The schema.
        shown: The address without the password, for error messages.
        vectors: Where vectors are searched: in the database, by ``"pgvector"``; in the
            ``"memory"`` of each process; or ``"auto"``: in the database where it has pgvector.
        cache: A folder of this machine for other indexes; empty for none.
    """

    conninfo: str
    schema: str
    shown: str
    vectors: str = "auto"
    cache: str = ""

    @classmethod
    def parse(cls, address: str) -> PostgresAddress:
        """Read ``postgresql://user:password@host:port/database?schema=name``.

        ``vectors`` says where vectors are searched, ``cache`` where other indexes are stored.
        All other parameters are libpq's: ``sslmode``, ``host`` (of a socket), ``options``.

        Raises:
            ValueError: If it is no such address, or the schema is no name.
        """
        parts = urlsplit(address)
        if parts.scheme not in SCHEMES:  # a password is never in a message
            kind = address.partition(":")[0]
            raise ValueError(
                f"'{kind:.40}:...' is no address of a PostgreSQL server; write "
                "'postgresql://user@host/database?schema=name'"
            )
        behind = parts.path + parts.fragment + parts.query.partition("=")[0]
        if "@" in behind and "@" not in parts.netloc and ":" in parts.netloc:
            raise ValueError(
                "the password of the address has one of the characters / ? #; write them as %2F, "
                "%3F, %23"
            )
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        schema = _parameter(pairs, "schema", _DEFAULT_SCHEMA)
        if not schema or "\0" in schema or schema.startswith("pg_"):
            raise ValueError(
                f"schema={schema!r:.80} names no schema for a graph; give one name that doesn't "
                'begin with "pg_"'
            )
        if len(schema.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
            raise ValueError(
                f"schema={schema!r:.80} is longer than {_MAX_NAME_BYTES} bytes, which "
                "PostgreSQL cuts off; give a shorter name"
            )
        vectors = _parameter(pairs, "vectors", "auto")
        if vectors not in VECTORS:
            raise ValueError(
                f"vectors={vectors!r:.80} says not where vectors are searched; write one of "
                f"{', '.join(VECTORS)}"
            )
        cache = _parameter(pairs, "cache", "")
        if "\0" in cache:
            raise ValueError(f"cache={cache!r:.80} is no folder; give one path")
        others = urlencode([(k, v) for k, v in pairs if k not in _PARAMETERS], quote_via=quote)
        conninfo = f"postgresql://{parts.netloc}{parts.path}" + (f"?{others}" if others else "")
        user, _, server = parts.netloc.rpartition("@")
        user = unquote(user.partition(":")[0])
        host = server or dict(pairs).get("host", "")
        where = f"{user}@{host}" if user else host
        displayed = f"postgresql://{where}{parts.path}?schema={schema}"
        return cls(conninfo, schema, displayed, vectors, cache)

    def lock(self, purpose: str) -> int:
        """Return the number of this graph's advisory lock for a purpose."""
        digest = sha256(f"nodekin {purpose} {self.schema}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def _parameter(pairs: Sequence[tuple[str, str]], name: str, default: str) -> str:
    """Return a parameter; several values with a NUL between, which no value may have."""
    values = [value for key, value in pairs if key == name]
    return "\0".join(values) if values else default


Values = tuple[Any, ...]

Portions = Generator[list[Values], None, None]

_FETCHED = 2_000  # rows that a stream has in memory

_OLDEST = 140_000

_CONNECT_TIMEOUT = 10  # seconds


class BinaryValue(bytes):
    """A value in the server's binary form, of the type that the statement says."""

    __slots__ = ()


class ServerLostError(TransientStoreError):
    """The server can't be reached, or a connection to it has ended."""


class ServerConnection:
    """Run statements in the schema of a graph.

    Args:
        address: Where the graph is.
        timeout: Seconds to wait for another process that is writing.

    Raises:
        ImportError: If psycopg is not installed; it names the extra.
        ServerLostError: If the server can't be reached, or lets nobody in.
    """

    _streams = itertools.count()

    def __init__(self, address: PostgresAddress, timeout: float) -> None:
        try:
            import psycopg
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
                f"{address.shown} can't be reached: {_line(error)}; see whether the server runs, "
                "and whether the address, user and password are right"
            ) from error
        self._db.adapters.register_dumper(BinaryValue, _binary_dumper())
        if self._db.info.server_version < _OLDEST:
            version = self._db.info.server_version / 10_000
            self.close()
            raise StoreError(
                f"{address.shown} is PostgreSQL {version:.0f}; a graph needs "
                f"{_OLDEST // 10_000} or later: upgrade the server, or give another one"
            )
        self._serves: tuple[str, float] | None = None
        self.serve(address, timeout)

    @property
    def schema(self) -> str:
        """The schema that statements are about."""
        return self._address.schema

    def serve(self, address: PostgresAddress, timeout: float) -> None:
        """Run the next statements in the schema of a graph on the same server.

        Nothing that was set or locked for another one is kept; what was prepared is parsed anew by
        the server, for the new ``search_path`` (see its documentation of PREPARE).

        Raises:
            ServerLostError: If the connection has ended.
        """
        if self._serves == (address.schema, timeout):
            return
        self._address = address
        schema = address.schema.replace('"', '""')
        wait = int(timeout * 1000)
        clean = "" if self._serves is None else "RESET ALL; SELECT pg_advisory_unlock_all(); "
        try:
            self.run_script(
                f"{clean}SET search_path TO \"{schema}\"; SET lock_timeout TO '{wait}ms'"
            )
        except BaseException:
            self.close()
            raise
        self._serves = address.schema, timeout

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._db.closed

    def run_script(self, script: str) -> list[Values]:
        """Run statements without values in one request; return the rows of the last that has any.

        Their values are texts.
        """
        with self._explained():
            cursor = self._db.execute(script, prepare=False)
            rows: list[Values] = []
            while True:
                if cursor.description is not None:
                    rows = cursor.fetchall()
                if not cursor.nextset():
                    return rows

    def run(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        with self._explained():
            self._db.execute(statement, values)

    def run_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row of values."""
        with self._explained(), self._db.cursor() as cursor:
            cursor.executemany(statement, rows)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Values]:
        """Return all rows of a statement."""
        with self._explained(), self._db.cursor(binary=True) as cursor:
            return cursor.execute(statement, values).fetchall()

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Portions:
        """Yield the rows of a query in portions, inside a transaction."""
        name = f"stream_{next(self._streams)}"
        with self._explained():
            cursor = self._db.cursor(name, binary=True)
        try:
            with self._explained():
                cursor.execute(statement, values)
            while True:
                with self._explained():
                    rows = cursor.fetchmany(_FETCHED)
                if not rows:
                    return
                yield rows
        finally:  # also where the server is lost: then nothing is sent the second time
            try:
                cursor.close()
            except self._psycopg.Error:
                cursor.close()

    def copy(
        self, table: str, columns: Sequence[str], types: Sequence[str], rows: Iterable[Values]
    ) -> None:
        """Write rows into a table, in the quickest way there is."""
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with (
            self._explained(),
            self._db.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def roll_back(self) -> None:
        """Undo an open transaction, if the server has not done so."""
        if not self.lost and self._db.info.transaction_status != 0:
            self.run_script("ROLLBACK")

    def close(self) -> None:
        """End the connection."""
        self._db.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            raise self._explanation(error) from error
        except Exception:
            raise
        except BaseException:  # an interrupt: nobody knows what the server does, and has locked
            self.close()
            raise

    def _explanation(self, error: psycopg.Error) -> StoreError:
        where, errors = self._address.shown, self._psycopg.errors
        if self._db.closed or isinstance(error, errors.AdminShutdown | errors.CrashShutdown):
            return ServerLostError(
                f"{where}: the connection to the server was lost: {_line(error)}; nothing was "
                "changed; try again when the server runs"
            )
        if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
            return TransientStoreError(
                f"{where}: {_line(error)}: another process was in the way; nothing was changed; "
                "try again"
            )
        remedies = {
            errors.LockNotAvailable: "another process has been writing for too long; wait for it, "
            "or allow more time: PostgresStore(address, timeout=...)",
            errors.QueryCanceled: "nothing was changed; the server was too slow, or somebody "
            "cancelled the statement: see its load, or raise its statement_timeout (in the "
            "address: options=-c%20statement_timeout%3D60s)",
            errors.OutOfMemory: "nothing was changed; the server has too little memory, see its "
            "work_mem",
            errors.DiskFull: "nothing was changed; make room on the server's disk and try again",
            errors.InsufficientPrivilege: "nothing was changed; the user of this address lacks "
            "the right to do so",
            errors.ReadOnlySqlTransaction: "nothing was changed; this server can only be read, "
            "write to its primary",
        }
        remedy = remedies.get(type(error), "nothing was changed")
        return StoreError(f"{where}: {_line(error)}: {remedy}")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@cache
def _binary_dumper() -> Any:
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class BinaryDumper(Dumper):
        """Send bytes as they are."""

        format = Format.BINARY
        oid = 0  # the server knows

        def dump(self, obj: bytes) -> bytes:
            return bytes(obj)

    return BinaryDumper


_IDLE = 8  # connections that wait, at most


class IdleConnections:
    """Hold connections that nobody uses, of all graphs with the same address but for the schema.

    Fifty graphs on one server need not have fifty connections. One that comes from another graph
    is as new: see ``ServerConnection.serve``.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._connections: list[ServerConnection] = []

    def __len__(self) -> int:
        return len(self._connections)

    def __del__(self) -> None:
        if self._pid == os.getpid():  # others belong to the process that opened them
            self.close()

    def take(self, schema: str) -> ServerConnection | None:
        """Return a connection, rather one that this schema has used; None where there is none."""
        with self._lock:
            connections = self._connections
            for at in range(len(connections) - 1, -1, -1):
                if connections[at].schema == schema:
                    return connections.pop(at)
            return connections.pop(0) if connections else None

    def put(self, connection: ServerConnection) -> None:
        """Let a connection wait; close the one that has waited longest where there are many."""
        with self._lock:
            self._connections.append(connection)
            surplus = self._connections[:-_IDLE]
            del self._connections[:-_IDLE]
        for other in surplus:
            other.close()

    def close(self, schema: str | None = None) -> None:
        """Close the connections that a schema has used, or all."""
        with self._lock:
            closing = [c for c in self._connections if schema in (None, c.schema)]
            self._connections = [c for c in self._connections if c not in closing]
        for connection in closing:
            connection.close()


_OF_SERVERS: WeakValueDictionary[tuple[int, str], IdleConnections] = WeakValueDictionary()


def idle_connections(address: PostgresAddress) -> IdleConnections:
    """Return the idle connections of this process to a server, by the same user."""
    key = os.getpid(), address.conninfo
    idle = _OF_SERVERS.get(key)
    return _OF_SERVERS.setdefault(key, IdleConnections()) if idle is None else idle


T = TypeVar("T")

_PORTION_ROWS = 5_000

_PORTION_BYTES = 16_000_000


def portions(values: Iterable[T], size: int = _PORTION_ROWS) -> Iterator[list[T]]:
    """Cut values, or rows with bytes, into lists that one statement can have."""
    batch: list[T] = []
    length = 0
    for value in values:
        batch.append(value)
        parts = value if isinstance(value, tuple) else (value,)
        length += sum(len(part) for part in parts if isinstance(part, bytes))
        if len(batch) == size or length > _PORTION_BYTES:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch
