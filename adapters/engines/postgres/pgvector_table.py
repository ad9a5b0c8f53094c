"""The vectors of a group in a table of their own, searched by pgvector."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from ....nodegraph.errors import StoreError
from ....nodegraph.locking import Lock
from ....nodegraph.storage.rows import from_id, from_text, to_id, to_text
from ....nodegraph.vector_table import Nearest, TableState, ValueMatch, VectorRow
from .graph_database import PostgresDatabase
from .server_connection import (
    BinaryValue,
    ServerConnection,
    ServerLostError,
    Values,
    portions,
)
from .value_numbers import ValueNumbers

if TYPE_CHECKING:
    from ....nodegraph.storage.rows import from_id, from_text, to_id, to_text
from ....nodegraph.vector_table import Vectors

logger = logging.getLogger(__name__)

HNSW_FROM = 10_001
"""Number of vectors from which an HNSW graph is built; fewer are compared in milliseconds."""

# These settings find 0.994 of the ten best of 30,000 Chinese passages with static vectors
# (wordllama). The settings of the index in memory (16, 100, 256) find 0.965.
M = 24

EF_CONSTRUCTION = 200

EF_SEARCH = 400
"""Candidates that a search follows in the graph."""

_FULL = 2_000  # numbers of a vector that an HNSW graph takes

_HALF = 4_000  # and of one of 16-bit numbers

_MAX_DIMENSION = 16_000  # numbers of a vector that pgvector stores

_EF_PER_ROW = 4  # candidates that a search follows for each row that it returns

_MAX_EF_SEARCH = 1_000  # that pgvector allows

_PREFIX = "vectors2_"  # of tables

_MAX_SCANNED = 40_000  # rows that a search with a filter looks at, before all are compared

_GRAPH_BYTES = 2_400  # of a vector's neighbours while the graph is built; pgvector takes 2,050

_BUILD_MEMORY = 1_000_000  # kB for building a graph, at most, unless the server has more

_COLUMNS = {"id": "bytea", "place": "int8", "tags": "int4[]", "vector": "bytea"}


class PostgresVectorTable:
    """Search the vectors of one group by pgvector: by HNSW, or exactly.

    Every process of every machine searches the same table, so that none holds the vectors. A
    table is written in the transactions of the graph's schema, and read in the snapshot of the
    graph: a reader knows which revision it has before it.

    Args:
        database: The database of the graph.
        value_numbers: Numbers the values that metadata has.
        extension: The schema that pgvector is in.
        group: The group.
        name: The table: hexadecimal digits.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        value_numbers: ValueNumbers,
        extension: str,
        group: str,
        name: str,
    ) -> None:
        self._database = database
        self._value_numbers = value_numbers
        self._group = to_text(group)
        self._name = f"{_PREFIX}{name}"
        self._extension = '"' + extension.replace('"', '""') + '"'
        self._updating = Lock("another thread that writes vectors")
        self._writer = ""  # names who is updating
        self._has_hnsw = False

    # What it contains

    def state(self) -> TableState | None:
        """Return what the table contains."""
        query = "SELECT state, size FROM vector_tables WHERE name = %t"
        rows = self._database.rows(query, [self._name])
        if not rows or rows[0][0] is None:
            return None
        revision, version, dimension = json.loads(rows[0][0])
        return TableState(revision, tuple(version), rows[0][1], dimension)

    def ids(self) -> Iterator[str]:
        """Yield the ids of all rows."""
        with self._database.turn():
            if not self.dimension():
                return
            for rows in self._database.stream(f"SELECT id FROM {self._name}"):
                yield from (from_id(i) for (i,) in rows)

    def dimension(self) -> int:
        """Return how many numbers the vectors have; 0 where there is no table."""
        query = (
            "SELECT atttypmod FROM pg_attribute "
            f"WHERE attrelid = to_regclass('{self._name}') AND attname = 'vector'"
        )
        rows = self._database.rows(query)
        return int(rows[0][0]) if rows else 0

    # Writing

    @contextmanager
    def updating(self, *, wait: bool = True) -> Iterator[bool]:
        """Keep others from updating the table, by a lock of the server."""
        with self._exclusive(wait) as connection:
            if connection is None:
                yield False
                return
            self._writer = token_hex(8)
            with self._database.transaction():
            db = self._database
                db.run(
                    "INSERT INTO vector_tables VALUES (%t, %b, %t, NULL, 0, now()) "
                    "ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, seen = now()",
                    [self._name, self._group, self._writer],
                )
            yield True

    @contextmanager
    def _exclusive(self, wait: bool) -> Iterator[ServerConnection | None]:
        """Hold the lock of this process, then that of the server; None where another has it."""
        with self._updating.held(wait=wait) as first:
            if not first:
                yield None
                return
            with self._database.exclusive(self._name, wait=wait) as connection:
                yield connection

    def write(
        self, removed: Collection[str], rows: Sequence[VectorRow], state: TableState | None
    ) -> None:
        """Remove rows, then put rows, all or none.

        Raises:
            StoreError: If a vector is longer than pgvector can store, or another process has
                taken over, as the connection that had the lock was lost.
        """
        value_ids = self._value_numbers.assign(rows)
        with self._database.transaction():
            db = self._database
            query = "SELECT writer, size FROM vector_tables WHERE name = %t"
            writer, size = db.rows(query, [self._name])[0]
            if writer != self._writer:
                raise ServerLostError(
                    f"{self._database.address.shown}: the connection to the server was lost, and "
                    "another process updates the vectors; nothing was changed; try again"
                )
            exists = self.dimension() > 0
            if rows and not exists:
                self._create(len(rows[0].vector))
            new: dict[bytes, Values] = {}
            for row, of_row in zip(rows, value_ids, strict=True):
                key = to_id(row.id)
                new[key] = key, row.order, of_row, _vector(row.vector)
            deleted = [key for i in removed if (key := to_id(i)) not in new]
            if exists:
                query = f"SELECT id, place, tags, vector FROM {self._name} WHERE id = ANY(%b)"
                for batch in portions(list(new)):
                    for stored in db.rows(query, [batch]):  # what is the same stays
                        if stored == new[stored[0]]:
                            del new[stored[0]]
                for batch in portions([*deleted, *new]):
                    query = f"DELETE FROM {self._name} WHERE id = ANY(%b) RETURNING 1"
                    size -= len(db.rows(query, [batch]))
            if new:
                db.copy(self._name, list(_COLUMNS), list(_COLUMNS.values()), new.values())
                size += len(new)
            query = "UPDATE vector_tables SET size = %b, seen = now()"
            if state is None:
                db.run(f"{query} WHERE name = %t", [size, self._name])
            else:
                value = json.dumps([state.revision, state.version, state.dimension]).encode()
                db.run(f"{query}, state = %b WHERE name = %t", [size, value, self._name])

    def _create(self, dimension: int) -> None:
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self._database.address.shown}: pgvector stores vectors of up to "
                f"{_MAX_DIMENSION:,} numbers, and the embedding model makes {dimension:,}; search "
                "them in the memory of the process: add vectors=memory to the address"
            )
        with self._database.transaction():
            db = self._database
            db.run_script(
                f"CREATE TABLE {self._name} (id bytea PRIMARY KEY, place bigint NOT NULL, "
                f"tags int[] NOT NULL, vector {self._extension}.vector({dimension}) NOT NULL); "
                f"CREATE INDEX ON {self._name} USING gin (tags)"
            )

    def clear(self) -> None:
        """Drop the table, and say that it is incomplete."""
        self._has_hnsw = False
        with self._database.transaction():
            db = self._database
            db.run("UPDATE vector_tables SET state = NULL, size = 0 WHERE name = %t", [self._name])
            db.run_script(f"DROP TABLE IF EXISTS {self._name}")

    def build_hnsw(self) -> None:
        """Build the HNSW graph of a large table."""
        state = None if self._has_hnsw else self.state()
        if state is None or state.size < HNSW_FROM or not state.dimension:
            return
        expression, operators = self._operand(state.dimension), self._operators(state.dimension)
        if operators is None:
            return
        index = f"{self._name}_hnsw"
        query = f"SELECT to_regclass('{index}') IS NOT NULL"
        with self._exclusive(wait=False) as connection:
            if connection is None:  # another one builds it; until then all rows are compared
                return
            if not connection.rows(query)[0][0]:
                needed = state.size * (4 * state.dimension + _GRAPH_BYTES) // 1_000
                ((memory,),) = connection.rows(
                    "SELECT setting::int FROM pg_settings WHERE name = 'maintenance_work_mem'"
                )
                passed = max(memory, min(needed, _BUILD_MEMORY))
                if passed < needed:
                    logger.warning(
                        "%s: the graph of %d vectors takes %d MB while it is built, and gets %d; "
                        "the rest is built on the disk, which is slow: raise the server's "
                        "maintenance_work_mem",
                        *(self._database.address.shown, state.size, needed // 1000, passed // 1000),
                    )
                # Not in the graph's own transaction: it may take minutes, and others may write.
                connection.run_script(
                    f"BEGIN; SET LOCAL maintenance_work_mem TO {passed}; "
                    f"CREATE INDEX {index} ON {self._name} USING hnsw "
                    f"(({expression}) {operators}) "
                    f"WITH (m = {M}, ef_construction = {EF_CONSTRUCTION}); "
                    f"ANALYZE {self._name}; COMMIT"
                )
        self._has_hnsw = True

    def _operand(self, dimension: int) -> str:
        """Return the expression that is searched: 16-bit numbers where 32 bits are too many."""
        if dimension <= _FULL:
            return "vector"
        return f"vector::{self._extension}.halfvec({dimension})"

    def _operators(self, dimension: int) -> str | None:
        if dimension > _HALF:
            return None
        kind = "vector" if dimension <= _FULL else "halfvec"
        return f"{self._extension}.{kind}_ip_ops"

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values of a field with their numbers."""
        return self._value_numbers.values(field, after, texts)

    # Searching

    def count(self, match: ValueMatch, most: int) -> int:
        """Return how many rows match."""
        values: list[Any] = []
        condition = _condition(match, values)
        query = f"SELECT FROM {self._name} WHERE {condition} LIMIT {most}"
        return int(self._database.rows(f"SELECT count(*) FROM ({query}) AS selected", values)[0][0])

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
    ) -> Iterator[Nearest]:
        """Yield the rows with the highest product with a query."""
        import numpy as np

        values: list[Any] = []
        conditions = [] if match is None else [_condition(match, values)]
        if without:
            conditions.append("id <> ALL(%b::bytea[])")
            values.append([*map(to_id, without)])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        statement = f"SELECT id, place, vector FROM {self._name}{where}"
        if limit is None:
            with self._database.turn():
                for rows in self._database.stream(statement, values):
                    yield _nearest(rows)
            return
        dimension = len(query)
        kind = "vector" if exact or dimension <= _FULL else "halfvec"
        operand = "vector" if exact else self._operand(dimension)
        product = f"{operand} OPERATOR({self._extension}.<#>) %b::{self._extension}.{kind}"
        if exact:  # no index is of this expression
            order = f"({product}) + 0, place"
        else:
            order = product
            self._widen(_EF_PER_ROW * limit)
        binary = _vector(query) if kind == "vector" else _vector(query.astype(np.float16))
        values.append(BinaryValue(binary))
        rows = self._database.rows(f"{statement} ORDER BY {order} LIMIT {limit}", values)
        if rows:
            yield _nearest(rows)

    def _widen(self, ef_search: int) -> None:
        """Let searches of this snapshot follow more candidates than usual."""
        if ef_search > EF_SEARCH:
            ef_search = min(ef_search, _MAX_EF_SEARCH)
            query = "SELECT set_config('hnsw.ef_search', %t, true)"
            self._database.rows(query, [str(ef_search)])


def find_pgvector(database: PostgresDatabase) -> str | None:
    """Return the schema that pgvector is in, installed if it can be; None where there is none.

    All snapshots then search with the breadth that is needed.
    """
    query = (
        "SELECT n.nspname::bytea, string_to_array(e.extversion, '.')::int[] >= '{0,8}' "
        "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    )
    rows = database.rows(query, latest=True)
    available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    if not rows and database.rows(available, latest=True):
        with suppress(StoreError), database.transaction() as db:  # it may be forbidden
            db.run_script("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        rows = database.rows(query, latest=True)
    if not rows or not rows[0][1]:  # before 0.8 a filter could leave too few results
        return None
    database.snapshot_settings = (
        f"SET LOCAL hnsw.ef_search TO {EF_SEARCH}; "
        f"SET LOCAL hnsw.iterative_scan TO strict_order; "
        f"SET LOCAL hnsw.max_scan_tuples TO {_MAX_SCANNED}; "
    )
    return from_text(rows[0][0])


def drop_outdated(database: PostgresDatabase, revision: Callable[[str], int]) -> None:
    """Drop the tables that no process has updated for a day, and that are behind the graph."""
    with database.transaction() as db:
        query = "SELECT name, grp, state FROM vector_tables WHERE seen < now() - interval '1 day'"
        for name, group, state in db.rows(query):
            if state is None or json.loads(state)[0] != revision(from_text(group)):
                db.run_script(f"DROP TABLE IF EXISTS {name}")
                db.run("DELETE FROM vector_tables WHERE name = %t", [name])


def _condition(match: ValueMatch, values: list[Any]) -> str:
    """Return a condition on rows in SQL; its values are appended."""
    if match.join == "values":
        values.append(list(match.value_ids))
        return "tags && %b::int[]"
    parts = [_condition(part, values) for part in match.parts]
    if match.join == "not":
        return f"NOT ({parts[0]})"
    return "(" + f" {match.join.upper()} ".join(parts) + ")"


def _vector(vector: Any) -> bytes:
    """Write a vector as pgvector sends it: its length, two bytes, numbers with high bytes first."""
    kind = vector.dtype.newbyteorder(">")
    return len(vector).to_text(2, "big") + b"\0\0" + bytes(vector.astype(kind).tobytes())


def _nearest(rows: Iterable[Values]) -> Nearest:
    import numpy as np

    ids, orders, vectors = zip(*rows, strict=True)
    numbers = np.frombuffer(b"".join(vector[4:] for vector in vectors), ">f4")
    return Nearest(
        [from_id(i) for i in ids],
        np.array(orders, np.int64),
        numbers.astype(np.float32).reshape(len(ids), -1),
    )
