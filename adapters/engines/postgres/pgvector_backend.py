"""Store the vectors of a group in a table that pgvector searches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from ....nodegraph.concurrency import ProgressBar, is_reading_graph
from ....nodegraph.errors import StoreError
from ....nodegraph.hashing import digest
from ....nodegraph.storage.columns import from_id, from_text, to_id, to_ids, to_text
from ....retrievers.indexes.vector_index import check_dimension
from ...vector_store_index import EmbeddedNode, NearestNodes, VectorBackend, Vectors, record_kind
from .graph_database import EF_SEARCH, PostgresDatabase
from .server_connection import ServerConnection, Values

try:
    from pgvector import Vector
except ImportError as error:
    raise ImportError(
        f'a search with pgvector needs its package ({error}): pip install "nodekin[postgres]"'
    ) from error

logger = logging.getLogger(__name__)

HNSW_FROM = 10_001
"""The number of vectors from which an HNSW index is worthwhile.

Fewer vectors are compared exactly within milliseconds.
"""

# With these settings, the HNSW index returns 99.4 % of the ten nearest of 30,000 Chinese passages
# with static vectors (wordllama). With (16, 100, 256), it returns 96.5 %.
_M = 24

_EF_CONSTRUCTION = 200

_EF_PER_ROW = 4  # number of candidates that a search considers for each returned row

_MAX_EF_SEARCH = 1_000  # pgvector's limit

_MANY = 1_000  # maximum number of requested rows for which the HNSW index is used

_FULL = 2_000  # maximum dimension of vectors that HNSW can index with 32 bits per number

_HALF = 4_000  # maximum dimension of vectors that HNSW can index with 16 bits per number

_MAX_DIMENSION = 16_000  # pgvector's limit

# memory for the neighbors of a vector during the build; pgvector needs 2,050 bytes
_GRAPH_BYTES = 2_400

_POLL = 1.0  # seconds between updates of the progress bar

_BUILD_MEMORY = 1_000_000  # memory in kB for building an HNSW index, unless the server allows more


class PgvectorBackend(VectorBackend):
    """A vector table for one group that pgvector searches with HNSW or exactly.

    All processes search the same table. It is changed in the same transactions as the graph.

    Args:
        database: The database of the graph.
        transaction: A function that starts a transaction of the graph.
        extension: The name of the schema in which pgvector is installed.
        group: The name of the group.
        key: The key of the embedding.
        model: The name of the embedding model.
    """

    is_atomic = True
    max_selected = 10_000
    max_requested = None

    def __init__(
        self,
        database: PostgresDatabase,
        transaction: Callable[[], AbstractContextManager[object]],
        extension: str,
        group: str,
        key: str,
        model: str,
    ) -> None:
        self._db = database
        self._transaction = transaction
        self.name = "pgvector"
        self.identity = digest(group, model)
        self._table = f"vectors_{self.identity}"
        self._index = f"{self._table}_hnsw"
        self._extension = '"' + extension.replace('"', '""') + '"'
        self._names = group, model, key
        self._record = record_kind(self.identity, group, key)
        self._dimension = 0  # 0 means unknown
        self._has_hnsw = False
        self._is_slow_logged = False
        database.call(self._create)

    def _create(self, connection: ServerConnection) -> None:
        query = f"SELECT to_regclass('{self._table}') IS NOT NULL"
        if connection.rows(query)[0][0]:
            return
        connection.run_script(f"BEGIN; {self._db.lock_writers}")
        connection.run_script(
            f"CREATE TABLE IF NOT EXISTS {self._table} (id bytea PRIMARY KEY, "
            f"fingerprint text NOT NULL, vector {self._extension}.vector NOT NULL)"
        )
        connection.rows(
            "INSERT INTO vector_tables VALUES (%b, %b, %b, now()) ON CONFLICT DO NOTHING",
            [self._table, to_text(self._names[0]), to_text(self._record)],
        )
        connection.commit()

    # Writing

    def transaction(self) -> AbstractContextManager[object]:
        """Start a transaction of the graph, which also covers changes to this table."""
        return self._transaction()

    def stored(self, ids: Sequence[str]) -> dict[str, str]:
        """Return a dictionary from the ids of stored nodes to their fingerprints."""
        query = f"SELECT id, fingerprint FROM {self._table} WHERE id = ANY(?)"
        return {from_id(i): f for i, f in self._db.rows(query, [to_ids(ids)])}

    def count(self) -> None:
        """Return None, because counting is not necessary.

        Rows cannot be lost, because they are written in the same transaction as their record.
        """

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes from the table. Unknown ids are ignored."""
        self._db.rows(f"DELETE FROM {self._table} WHERE id = ANY(?)", [to_ids(ids)])
        self._db.rows("UPDATE vector_tables SET seen = now() WHERE name = ?", [self._table])

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Insert nodes into the table, and replace nodes that already exist.

        Raises:
            StoreError: If the vectors have more dimensions than pgvector supports.
        """
        dimension = len(nodes[0].vector)
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self._db.place}: pgvector stores vectors of up to {_MAX_DIMENSION:,} numbers, "
                f"and the embedding model returns {dimension:,}; search them in memory: add "
                "vectors=memory to the address"
            )
        self.delete([row.node.id for row in nodes])  # another process may have added these nodes
        rows = [(to_id(n.node.id), n.fingerprint, Vector(n.vector).to_binary()) for n in nodes]
        self._db.writing.copy(f"{self._table} (id, fingerprint, vector)", rows)

    @contextmanager
    def updating(self, *, wait: bool) -> Iterator[bool]:
        """Prevent updates by other processes, and yield False if another update is running."""
        with self._db.exclusive(self._table, wait=wait) as connection:
            yield connection is not None

    def finish(self) -> None:
        """Log a warning once if a large table has no HNSW index."""
        if self._is_slow_logged or not self._lacks_hnsw():
            return
        self._is_slow_logged = True
        logger.warning(
            "%s: searches compare all vectors of %r; graph.build(%r, embed=True) builds an HNSW "
            "index, which makes them faster",
            self._db.place,
            self._names[0],
            self._names[0],
        )

    def link(self, show: bool | None) -> None:
        """Build the HNSW index of a large table if it does not exist. This may take minutes.

        Args:
            show: Whether to show a progress bar. If None, it is shown only on terminals.
        """
        if not self._lacks_hnsw():
            return
        with self._db.exclusive(self._index, wait=False) as connection:
            if connection is None:  # another thread or process is building the index
                return
            if self._is_valid(connection):
                return
            self._build_hnsw(connection, show)
        self._has_hnsw = True

    def _build_hnsw(self, connection: ServerConnection, show: bool | None) -> None:
        """Build the HNSW index, and replace an index that an interrupted process left incomplete.

        Args:
            connection: A connection that holds the lock on the index.
            show: Whether to show a progress bar. If None, it is shown only on terminals.
        """
        ((size,),) = connection.rows(f"SELECT count(*) FROM {self._table}")
        self._set_memory(connection, size)
        connection.run_script(f"DROP INDEX IF EXISTS {self._index}")
        vectors = f"({self._operand()}) {self._extension}.{self._kind()}_ip_ops"
        settings = f"m = {_M}, ef_construction = {_EF_CONSTRUCTION}"
        with self._progress(connection, size, show):
            connection.run_script(  # CONCURRENTLY lets writers continue during the build
                f"CREATE INDEX CONCURRENTLY {self._index} ON {self._table} "
                f"USING hnsw ({vectors}) WITH ({settings})"
            )
        connection.run_script(f"ANALYZE {self._table}")

    def _lacks_hnsw(self) -> bool:
        """Return whether the table is large but has no complete HNSW index."""
        if self._has_hnsw:
            return False
        query = f"SELECT FROM {self._table} LIMIT {HNSW_FROM}"
        ((size,),) = self._db.rows(f"SELECT count(*) FROM ({query}) AS rows")
        if size < HNSW_FROM or not 0 < self._stored_dimension() <= _HALF:
            return False
        self._has_hnsw = self._db.call(self._is_valid)
        return not self._has_hnsw

    def _is_valid(self, connection: ServerConnection) -> bool:
        """Return whether the HNSW index exists and is complete."""
        query = f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{self._index}')"
        return connection.rows(query) == [(True,)]

    @contextmanager
    def _progress(
        self, connection: ServerConnection, size: int, show: bool | None
    ) -> Iterator[None]:
        """Show the progress of building the HNSW index until the end of the ``with`` block."""
        ((process,),) = connection.rows("SELECT pg_backend_pid()")
        query = "SELECT tuples_done FROM pg_stat_progress_create_index WHERE pid = %b"
        is_finished = threading.Event()
        with ProgressBar(" vectors", show) as bar:
            bar.start(size, f"linking vectors of {self._names[0]}")

            def watch() -> None:
                seen = 0
                with suppress(StoreError):
                    while not is_finished.wait(_POLL):
                        for (done,) in self._db.call(lambda db: db.rows(query, [process])):
                            bar.advance(max(0, done - seen))
                            seen = max(seen, done)

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                is_finished.set()
                watcher.join()

    def _set_memory(self, connection: ServerConnection, size: int) -> None:
        needed = size * (4 * self._dimension + _GRAPH_BYTES) // 1_000
        query = "SELECT setting::int FROM pg_settings WHERE name = 'maintenance_work_mem'"
        ((memory,),) = connection.rows(query)
        allowed = max(memory, min(needed, _BUILD_MEMORY))
        if allowed < needed:
            logger.warning(
                "%s: building the graph of %d vectors needs %d kB of memory, and %d kB are "
                "allowed; the rest is built on disk, which is slow: raise the server's "
                "maintenance_work_mem",
                self._db.place,
                size,
                needed,
                allowed,
            )
        connection.run_script(f"SET maintenance_work_mem TO {allowed}")

    def _stored_dimension(self) -> int:
        """Return the dimension of the stored vectors, or 0 if the table is empty."""
        if not self._dimension:
            query = f"SELECT {self._extension}.vector_dims(vector) FROM {self._table} LIMIT 1"
            self._dimension = max((size for (size,) in self._db.rows(query)), default=0)
        return self._dimension

    def _kind(self) -> str:
        return "vector" if self._dimension <= _FULL else "halfvec"

    def _operand(self) -> str:
        """Return the SQL expression that the HNSW index covers."""
        return f"vector::{self._extension}.{self._kind()}({self._dimension})"

    # Searching

    def nearest(
        self, vector: Vectors, count: int, selected: Sequence[str] | None = None
    ) -> NearestNodes:
        """Return the nodes with the highest cosine similarity, and their vectors.

        Args:
            vector: A unit vector of shape (dimension,).
            count: The maximum number of nodes.
            selected: The ids of the nodes to compare. If None, all nodes are searched. In this
                case, HNSW may miss some of the nearest nodes.

        Raises:
            VectorLengthError: If the dimension of the vector differs from the dimension of the
                stored vectors.
        """
        group, model, key = self._names
        check_dimension(vector, self._stored_dimension(), group, model, key)
        found: list[Values] = []
        if selected is None and count <= _MANY and 0 < self._dimension <= _HALF:
            found = self._ranked(self._operand(), self._kind(), vector, count)
        if len(found) < count and self._dimension:  # HNSW may return too few nodes
            found = self._ranked("vector", "vector", vector, count, selected)
        ids = [from_id(row[0]) for row in found]
        return ids, [Vector.from_binary(row[1]).to_numpy() for row in found]

    def _ranked(
        self,
        operand: str,
        kind: str,
        vector: Vectors,
        count: int,
        selected: Sequence[str] | None = None,
    ) -> list[Values]:
        """Return the ids and vectors of the rows that are nearest to a vector."""
        extension = self._extension
        order = f"{operand} OPERATOR({extension}.<#>) ?::{extension}.{kind}"
        if operand == "vector":  # the HNSW index does not cover this expression
            order = f"({order}) + 0"
        condition = "" if selected is None else "WHERE id = ANY(?)"
        query = f"SELECT id, vector FROM {self._table} {condition} ORDER BY {order} LIMIT {count}"
        values: list[Any] = [] if selected is None else [to_ids(selected)]
        values.append(Vector(vector).to_text())
        width = min(_EF_PER_ROW * count, _MAX_EF_SEARCH)
        if is_reading_graph():
            self._db.rows(f"SELECT set_config('hnsw.ef_search', '{max(width, EF_SEARCH)}', true)")
            return self._db.rows(query, values)

        def read(connection: ServerConnection) -> list[Values]:
            statement = query.replace("?", "%b")
            if width > EF_SEARCH:
                setting = f"hnsw.ef_search TO {width}"
                return connection.rows_with(setting, statement, values)
            return connection.rows(statement, values)

        return self._db.call(read)


def find_pgvector(database: PostgresDatabase) -> str:
    """Return the name of the schema in which pgvector is installed.

    If pgvector is missing, it is installed if possible. Otherwise, an empty string is returned.
    """
    available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    installed = (
        "SELECT n.nspname::bytea, string_to_array(e.extversion, '.')::int[] >= '{0,8}' "
        "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    )
    if not database.rows(installed) and database.rows(available):
        create = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
        with suppress(StoreError):  # the user may not have the required permission
            database.call(lambda connection: connection.run_script(create))
    rows = database.rows(installed)
    return from_text(rows[0][0]) if rows and rows[0][1] else ""
