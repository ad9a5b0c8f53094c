"""The vectors of a group in a table that pgvector searches."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ....nodegraph.concurrency import is_reading_graph
from ....nodegraph.errors import StoreError
from ....nodegraph.storage.columns import from_id, from_text, portions, to_id, to_text
from .graph_database import BEGIN_TURN, PostgresDatabase
from .server_connection import ServerConnection, ServerLostError, Values
from .value_numbers import ValueMatch, ValueNumbers, VectorRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    Batch = tuple[list[str], npt.NDArray[np.int64], Vectors]

logger = logging.getLogger(__name__)

T = TypeVar("T")

Rows = Callable[..., list[Values]]
"""A function from an SQL query and its values to its rows."""

HNSW_FROM = 10_001
"""Number of vectors from which an HNSW graph is built. Fewer are compared in milliseconds."""

# With these settings, HNSW finds 0.994 of the ten best of 30,000 Chinese passages with static
# vectors (wordllama). With (16, 100, 256) it finds 0.965.
_M = 24

_EF_CONSTRUCTION = 200

_EF_SEARCH = 400  # candidates of a search

_EF_PER_ROW = 4  # candidates of a search for each row that it returns

_MAX_EF_SEARCH = 1_000  # pgvector's limit

_FULL = 2_000  # the longest vectors that HNSW searches with 32 bits per number

_HALF = 4_000  # the longest vectors of HNSW with 16 bits per number

_MAX_DIMENSION = 16_000  # pgvector's limit

_MAX_SCANNED = 40_000  # rows that a filtered search reads before all rows are compared

_GRAPH_BYTES = 2_400  # for a vector's neighbors while the graph is built; pgvector takes 2,050

_BUILD_MEMORY = 1_000_000  # kB for building a graph, unless the server allows more

_BATCH = 1_000  # rows

_PAGE = 2_000  # vectors that are read together


class TableState(NamedTuple):
    """The content of a table.

    Attributes:
        revision: The revision of the group.
        version: The search version of the group: see ``GraphReader.search_version``.
        size: Number of rows.
        dimension: Length of the vectors; 0 if no row has been written.
    """

    revision: int
    version: tuple[str, ...]
    size: int
    dimension: int


class PostgresVectorTable:
    """The vectors of one group, which pgvector searches by HNSW or exactly.

    All processes search the same table. It is written in the graph's transactions, and read in
    the graph's turns.

    Args:
        database: The database of the graph.
        transaction: Starts a transaction of the graph.
        extension: The schema of pgvector.
        group: The group.
        name: The name of the table: hexadecimal digits.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        transaction: Callable[[], AbstractContextManager[object]],
        extension: str,
        group: str,
        name: str,
    ) -> None:
        self._db = database
        self._transaction = transaction
        self.numbers = ValueNumbers(database, transaction)
        self._group = to_text(group)
        self._name = f"vectors_{name}"
        self._extension = '"' + extension.replace('"', '""') + '"'
        self._updates = threading.local()  # the token of the update that a thread is in
        self._has_hnsw = False

    # Content

    def state(self, rows: Rows | None = None) -> TableState | None:
        """Return the content of the table; None until it is complete for the first time."""
        query = "SELECT state, size FROM vector_tables WHERE name = ?"
        found = (rows or self._db.rows)(query, [self._name])
        if not found or found[0][0] is None:
            return None
        revision, version, dimension = json.loads(found[0][0])
        return TableState(revision, tuple(version), found[0][1], dimension)

    def read(self, state: TableState | None, work: Callable[[Rows], T]) -> T:
        """Read the table in the turn of this thread, else on another connection without the lock.

        Args:
            state: The expected content of the table.
            work: A function that gets a function for queries.

        Raises:
            LookupError: If the content has changed.
        """

        if is_reading_graph():
            return work(self._db.rows)

        def in_turn(connection: ServerConnection) -> T:
            connection.run_script(BEGIN_TURN + self._db.turn_settings)

            def rows(statement: str, values: Sequence[Any] = ()) -> list[Values]:
                return connection.rows(statement.replace("?", "%b"), values)

            if self.state(rows) != state:
                raise LookupError(f"the vectors in {self._name} have changed")
            return work(rows)

        return self._db.call(in_turn)

    def ids(self) -> list[str]:
        """Return the ids of all rows."""
        if not self.dimension():
            return []
        return [from_id(i) for (i,) in self._db.rows(f"SELECT id FROM {self._name}")]

    def dimension(self) -> int:
        """Return the length of the vectors. 0: the table does not exist."""
        rows = self._db.rows(
            "SELECT atttypmod FROM pg_attribute "
            f"WHERE attrelid = to_regclass('{self._name}') AND attname = 'vector'"
        )
        return int(rows[0][0]) if rows else 0

    # Writing

    @contextmanager
    def updating(self, *, wait: bool = True) -> Iterator[bool]:
        """Lock the table against updates by other threads and processes until the block ends.

        Args:
            wait: Whether to wait for the lock. If False and the lock is taken, the block gets
                False and must not write.
        """
        with self._db.exclusive(self._name, wait=wait) as connection:
            if connection is None:
                yield False
                return
            self._updates.token = token_hex(8)
            with self._transaction():
                self._db.writing.rows(
                    "INSERT INTO vector_tables VALUES (%b, %b, %b, NULL, 0, now()) "
                    "ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, seen = now()",
                    [self._name, self._group, self._updates.token],
                )
            yield True

    def write(
        self, removed: Collection[str], rows: Sequence[VectorRow], state: TableState | None
    ) -> None:
        """Remove rows, then insert or replace rows, all or none, inside ``updating``.

        Args:
            removed: Ids. Unknown ids are ignored.
            rows: Rows to insert or replace.
            state: The new content, except for the size, which is counted. None: more rows follow.

        Raises:
            ServerLostError: If another process updates the table, because the connection with
                the lock was lost.
            StoreError: If a vector is too long for pgvector.
        """
        numbers = self.numbers.assign(rows)
        with self._transaction():
            query = "SELECT writer, size FROM vector_tables WHERE name = ?"
            writer, size = self._db.rows(query, [self._name])[0]
            if writer != getattr(self._updates, "token", ""):
                raise ServerLostError(
                    f"{self._db.place}: the connection to the server was lost, and another "
                    "process updates the vectors; nothing was changed; retry"
                )
            exists = self.dimension() > 0
            if rows and not exists:
                self._create(len(rows[0].vector))
            new: dict[bytes, Values] = {}
            for row, of_row in zip(rows, numbers, strict=True):
                key = to_id(row.id)
                new[key] = key, row.order, of_row, _vector(row.vector)
            deleted = [key for i in removed if (key := to_id(i)) not in new]
            if exists:
                query = f"SELECT id, place, tags, vector FROM {self._name} WHERE id = ANY(?)"
                for batch in portions(list(new), _BATCH):
                    for stored in self._db.rows(query, [batch]):
                        if stored == new[stored[0]]:
                            del new[stored[0]]
                query = f"DELETE FROM {self._name} WHERE id = ANY(?) RETURNING 1"
                for batch in portions([*deleted, *new], _BATCH):
                    size -= len(self._db.rows(query, [batch]))
            if new:
                self._db.writing.copy(f"{self._name} (id, place, tags, vector)", [*new.values()])
                size += len(new)
            query = "UPDATE vector_tables SET size = ?, seen = now()"
            if state is None:
                self._db.rows(f"{query} WHERE name = ?", [size, self._name])
            else:
                value = json.dumps([state.revision, state.version, state.dimension]).encode()
                self._db.rows(f"{query}, state = ? WHERE name = ?", [size, value, self._name])

    def _create(self, dimension: int) -> None:
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self._db.place}: pgvector stores vectors of up to {_MAX_DIMENSION:,} numbers, "
                f"and the embedding model returns {dimension:,}; search them in memory: add "
                "vectors=memory to the address"
            )
        self._db.writing.run_script(
            f"CREATE TABLE {self._name} (id bytea PRIMARY KEY, place bigint NOT NULL, "
            f"tags int[] NOT NULL, vector {self._extension}.vector({dimension}) NOT NULL); "
            f"CREATE INDEX ON {self._name} USING gin (tags)"
        )

    def clear(self) -> None:
        """Drop the table. Vectors of another length follow."""
        self._has_hnsw = False
        with self._transaction():
            query = "UPDATE vector_tables SET state = NULL, size = 0 WHERE name = ?"
            self._db.rows(query, [self._name])
            self._db.writing.run_script(f"DROP TABLE IF EXISTS {self._name}")

    def build_hnsw(self) -> None:
        """Build the HNSW graph of a large table if it is missing. It may take minutes."""
        state = None if self._has_hnsw else self.state()
        if state is None or state.size < HNSW_FROM or not 0 < state.dimension <= _HALF:
            return
        index = f"{self._name}_hnsw"
        query = f"SELECT to_regclass('{index}') IS NOT NULL"
        with self._db.exclusive(self._name, wait=False) as connection:
            if connection is None:  # another thread builds it; until then all rows are compared
                return
            if not connection.rows(query)[0][0]:
                needed = state.size * (4 * state.dimension + _GRAPH_BYTES) // 1_000
                ((memory,),) = connection.rows(
                    "SELECT setting::int FROM pg_settings WHERE name = 'maintenance_work_mem'"
                )
                allowed = max(memory, min(needed, _BUILD_MEMORY))
                if allowed < needed:
                    logger.warning(
                        "%s: building the graph of %d vectors needs %d kB of memory, and %d kB are "
                        "allowed; "
                        "the rest is built on disk, which is slow: raise the server's "
                        "maintenance_work_mem",
                        *(self._db.place, state.size, needed, allowed),
                    )
                kind = "vector" if state.dimension <= _FULL else "halfvec"
                # Outside the graph's transactions, since it may take minutes.
                connection.run_script(
                    f"BEGIN; SET LOCAL maintenance_work_mem TO {allowed}; "
                    f"CREATE INDEX {index} ON {self._name} USING hnsw "
                    f"(({self._operand(state.dimension)}) {self._extension}.{kind}_ip_ops) "
                    f"WITH (m = {_M}, ef_construction = {_EF_CONSTRUCTION}); "
                    f"ANALYZE {self._name}; COMMIT"
                )
        self._has_hnsw = True

    def _operand(self, dimension: int) -> str:
        """Return the expression that HNSW searches."""
        if dimension <= _FULL:
            return "vector"
        return f"vector::{self._extension}.halfvec({dimension})"

    # Searching

    def count(self, match: ValueMatch, most: int) -> int:
        """Return the number of matching rows, counted up to ``most``."""
        values: list[Any] = []
        condition = _condition(match, values)
        query = f"SELECT FROM {self._name} WHERE {condition} LIMIT {most}"
        return int(self._db.rows(f"SELECT count(*) FROM ({query}) AS selected", values)[0][0])

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
        rows: Rows,
    ) -> Iterator[Batch]:
        """Yield the rows with the highest dot product with a query, in batches.

        A batch has the ids, their positions in document order, and their unit vectors.

        Args:
            query: A unit vector, (dimension,).
            limit: Maximum number of rows. None: all rows, in any order.
            match: The rows to search. None: all rows.
            without: Ids of rows to leave out.
            exact: Whether to compare all rows. If False, a few of the nearest may be missing.
            rows: A function that returns the rows of a query.
        """
        values: list[Any] = []
        conditions = [] if match is None else [_condition(match, values)]
        if without:
            conditions.append("id <> ALL(?::bytea[])")
            values.append([*map(to_id, without)])
        statement = f"SELECT id, place, vector FROM {self._name} WHERE "
        if limit is None:
            page = f"{statement}{' AND '.join([*conditions, 'id > ?'])} ORDER BY id LIMIT {_PAGE}"
            found = rows(page, [*values, b""])
            while found:
                yield _nearest(found)
                last = found[-1][0]
                found = rows(page, [*values, last]) if len(found) == _PAGE else []
            return
        dimension = len(query)
        is_half = dimension > _FULL and not exact
        kind = "halfvec" if is_half else "vector"
        operand = "vector" if exact else self._operand(dimension)
        product = f"{operand} OPERATOR({self._extension}.<#>) ?::{self._extension}.{kind}"
        if exact:  # the HNSW index does not cover this expression
            order = f"({product}) + 0, place"
        else:
            order = product
            if (ef_search := _EF_PER_ROW * limit) > _EF_SEARCH:  # valid until the turn ends
                widen = "SELECT set_config('hnsw.ef_search', ?, true)"
                rows(widen, [str(min(ef_search, _MAX_EF_SEARCH))])
        values.append(str(query.tolist()))
        where = " AND ".join(conditions or ["true"])
        if found := rows(f"{statement}{where} ORDER BY {order} LIMIT {limit}", values):
            yield _nearest(found)


def find_pgvector(connection: ServerConnection) -> str:
    """Return the schema of pgvector, which is installed if possible; empty if it is missing."""
    query = (
        "SELECT n.nspname::bytea, string_to_array(e.extversion, '.')::int[] >= '{0,8}' "
        "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    )
    rows = connection.rows(query)
    if not rows and connection.rows("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        with suppress(StoreError):  # the user may lack the permission
            connection.run_script("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        rows = connection.rows(query)
    # Before 0.8, a search with a filter could return too few rows.
    return from_text(rows[0][0]) if rows and rows[0][1] else ""


def turn_settings() -> str:
    """Return the settings of searches."""
    return (
        f"SET LOCAL hnsw.ef_search TO {_EF_SEARCH}; "
        "SET LOCAL hnsw.iterative_scan TO strict_order; "
        f"SET LOCAL hnsw.max_scan_tuples TO {_MAX_SCANNED}; "
    )


def drop_outdated(database: PostgresDatabase) -> None:
    """Drop outdated tables that no process has updated for a day; inside a transaction."""
    rows = database.rows(
        "SELECT v.name, v.state, g.revision FROM vector_tables v "
        "LEFT JOIN node_groups g ON g.name = v.grp WHERE v.seen < now() - interval '1 day'"
    )
    for name, state, revision in rows:
        if state is None or json.loads(state)[0] != revision:
            database.writing.run_script(f"DROP TABLE IF EXISTS {name}")
            database.rows("DELETE FROM vector_tables WHERE name = ?", [name])


def _condition(match: ValueMatch, values: list[Any]) -> str:
    """Return the SQL condition of a match. Append its values."""
    if match.join == "values":
        values.append(list(match.value_ids))
        return "tags && ?::int[]"
    parts = [_condition(part, values) for part in match.parts]
    if match.join == "not":
        return f"NOT ({parts[0]})"
    return "(" + f" {match.join.upper()} ".join(parts) + ")"


def _vector(vector: Any) -> bytes:
    """Convert a vector to pgvector's binary format: length, two bytes, big-endian numbers."""
    kind = vector.dtype.newbyteorder(">")
    return len(vector).to_bytes(2, "big") + b"\0\0" + bytes(vector.astype(kind).tobytes())


def _nearest(rows: Iterable[Values]) -> Batch:
    import numpy as np

    ids, orders, vectors = zip(*rows, strict=True)
    numbers = np.frombuffer(b"".join(vector[4:] for vector in vectors), ">f4")
    unit_vectors = numbers.astype(np.float32).reshape(len(ids), -1)
    return [from_id(i) for i in ids], np.array(orders, np.int64), unit_vectors
