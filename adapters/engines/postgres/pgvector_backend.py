"""The vectors of a group in a table that pgvector searches."""

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
"""Number of vectors from which an HNSW graph pays. Fewer are compared in milliseconds."""

# With these settings, HNSW finds 0.994 of the ten best of 30,000 Chinese passages with static
# vectors (wordllama). With (16, 100, 256) it finds 0.965.
_M = 24

_EF_CONSTRUCTION = 200

_EF_PER_ROW = 4  # candidates of a search for each row that it returns

_MAX_EF_SEARCH = 1_000  # pgvector's limit

_MANY = 1_000  # rows from which all vectors are compared

_FULL = 2_000  # the longest vectors that HNSW searches with 32 bits per number

_HALF = 4_000  # the longest vectors of HNSW with 16 bits per number

_MAX_DIMENSION = 16_000  # pgvector's limit

_GRAPH_BYTES = 2_400  # for a vector's neighbors while the graph is built; pgvector takes 2,050

_POLL = 1.0  # seconds between updates of the progress bar

_BUILD_MEMORY = 1_000_000  # kB for building a graph, unless the server allows more


class PgvectorBackend(VectorBackend):
    """The vectors of one group in a table, which pgvector searches by HNSW or exactly.

    All processes search the same table. It is written in the graph's transactions.

    Args:
        database: The database of the graph.
        transaction: Starts a transaction of the graph.
        extension: The schema of pgvector.
        group: The group.
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
        """Start a transaction of the graph, in which the table is written."""
        return self._transaction()

    def stored(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints of existing nodes."""
        query = f"SELECT id, fingerprint FROM {self._table} WHERE id = ANY(?)"
        return {from_id(i): f for i, f in self._db.rows(query, [to_ids(ids)])}

    def count(self) -> None:
        """Return None: rows are written with their record, so none is lost."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes. Unknown ids are ignored."""
        self._db.rows(f"DELETE FROM {self._table} WHERE id = ANY(?)", [to_ids(ids)])
        self._db.rows("UPDATE vector_tables SET seen = now() WHERE name = ?", [self._table])

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Insert or replace nodes.

        Raises:
            StoreError: If a vector is too long for pgvector.
        """
        dimension = len(nodes[0].vector)
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self._db.place}: pgvector stores vectors of up to {_MAX_DIMENSION:,} numbers, "
                f"and the embedding model returns {dimension:,}; search them in memory: add "
                "vectors=memory to the address"
            )
        self.delete([row.node.id for row in nodes])  # another process may have added them
        rows = [(to_id(n.node.id), n.fingerprint, Vector(n.vector).to_binary()) for n in nodes]
        self._db.writing.copy(f"{self._table} (id, fingerprint, vector)", rows)

    @contextmanager
    def updating(self, *, wait: bool) -> Iterator[bool]:
        """Prevent updates by other processes; the block gets False if one is running."""
        with self._db.exclusive(self._table, wait=wait) as connection:
            yield connection is not None

    def finish(self) -> None:
        """Log once that a large table has no HNSW graph."""
        if self._is_slow_logged or not self._lacks_hnsw():
            return
        self._is_slow_logged = True
        logger.warning(
            "%s: the vectors of %r are compared one by one; graph.build(%r, embed=True) builds "
            "their graph of neighbors for faster searches",
            self._db.place,
            self._names[0],
            self._names[0],
        )

    def link(self, show: bool | None) -> None:
        """Build the HNSW graph of a large table if it is missing. It may take minutes.

        Args:
            show: Whether to draw a progress bar. If None, it is drawn on terminals only.
        """
        if not self._lacks_hnsw():
            return
        with self._db.exclusive(self._index, wait=False) as connection:
            if connection is None:  # another thread builds it; until then all rows are compared
                return
            if self._is_valid(connection):
                return
            ((size,),) = connection.rows(f"SELECT count(*) FROM {self._table}")
            self._set_memory(connection, size)
            connection.run_script(f"DROP INDEX IF EXISTS {self._index}")  # of a stopped process
            with self._progress(connection, size, show):
                # Writers do not wait for it.
                connection.run_script(
                    f"CREATE INDEX CONCURRENTLY {self._index} ON {self._table} USING hnsw "
                    f"(({self._operand()}) {self._extension}.{self._kind()}_ip_ops) "
                    f"WITH (m = {_M}, ef_construction = {_EF_CONSTRUCTION})"
                )
            connection.run_script(f"ANALYZE {self._table}")
        self._has_hnsw = True

    def _lacks_hnsw(self) -> bool:
        """Return whether the table is large and has no complete HNSW graph."""
        if self._has_hnsw:
            return False
        query = f"SELECT FROM {self._table} LIMIT {HNSW_FROM}"
        ((size,),) = self._db.rows(f"SELECT count(*) FROM ({query}) AS rows")
        if size < HNSW_FROM or not 0 < self._stored_dimension() <= _HALF:
            return False
        self._has_hnsw = self._db.call(self._is_valid)
        return not self._has_hnsw

    def _is_valid(self, connection: ServerConnection) -> bool:
        """Return whether the HNSW graph exists and is complete."""
        query = f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{self._index}')"
        return connection.rows(query) == [(True,)]

    @contextmanager
    def _progress(
        self, connection: ServerConnection, size: int, show: bool | None
    ) -> Iterator[None]:
        """Draw the progress of a statement that builds the HNSW graph, until the block ends."""
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
        """Return the length of the stored vectors, or 0 if there are none."""
        if not self._dimension:
            query = f"SELECT {self._extension}.vector_dims(vector) FROM {self._table} LIMIT 1"
            self._dimension = max((size for (size,) in self._db.rows(query)), default=0)
        return self._dimension

    def _kind(self) -> str:
        return "vector" if self._dimension <= _FULL else "halfvec"

    def _operand(self) -> str:
        """Return the expression that HNSW searches."""
        return f"vector::{self._extension}.{self._kind()}({self._dimension})"

    # Searching

    def nearest(
        self, vector: Vectors, count: int, selected: Sequence[str] | None = None
    ) -> NearestNodes:
        """Return the nearest nodes by cosine, with their vectors.

        Args:
            vector: A unit vector, (dimension,).
            count: Maximum number of nodes.
            selected: Ids of the nodes to compare. None means all nodes; HNSW may miss some of them.

        Raises:
            VectorLengthError: If the length of the vector differs from those of the nodes.
        """
        group, model, key = self._names
        check_dimension(vector, self._stored_dimension(), group, model, key)
        found: list[Values] = []
        if selected is None and count <= _MANY and 0 < self._dimension <= _HALF:
            found = self._ranked(self._operand(), self._kind(), vector, count)
        if len(found) < count and self._dimension:  # HNSW may find too few
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
        """Return the ids and vectors of the nearest rows."""
        extension = self._extension
        order = f"{operand} OPERATOR({extension}.<#>) ?::{extension}.{kind}"
        if operand == "vector":  # HNSW does not cover this expression
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
    """Return the schema of pgvector, which is installed if possible; empty if it is missing."""
    available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
    installed = (
        "SELECT n.nspname::bytea, string_to_array(e.extversion, '.')::int[] >= '{0,8}' "
        "FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    )
    if not database.rows(installed) and database.rows(available):
        create = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
        with suppress(StoreError):  # the user may lack the permission
            database.call(lambda connection: connection.run_script(create))
    rows = database.rows(installed)
    return from_text(rows[0][0]) if rows and rows[0][1] else ""
