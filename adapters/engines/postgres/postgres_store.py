"""A graph store on a PostgreSQL server that several processes and machines can share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ....nodegraph.errors import StoreError
from ....nodegraph.storage.columns import from_text
from ....nodegraph.storage.graph_store import GraphStore
from .graph_database import PostgresDatabase

if TYPE_CHECKING:
    from ....nodegraph.graph import NodeGraph
    from ...vector_store_index import StoreIndex


class PostgresStore(GraphStore):
    """A graph store that uses a schema of a PostgreSQL database.

    Any number of processes can read while one process writes, and each of them reads a consistent
    snapshot. The settings of the server determine how durable commits are. If pgvector is
    installed, or if the user is allowed to install it, vectors are searched in the database. All
    other indexes are kept in the memory of each process.

    Args:
        address: An address such as ``postgresql://user:password@host/database?schema=name``, which
            may contain all parameters of libpq. ``schema`` defaults to "nodekin". The schema and
            its tables are created if they do not exist. ``vectors=pgvector`` requires pgvector, and
            ``vectors=memory`` disables it. ``cache=/var/cache/nodekin`` saves other indexes in a
            local folder.
        timeout: The number of seconds to wait while another process is writing.

    Raises:
        ImportError: If psycopg is not installed.
        StoreError: If the server cannot be reached, or the tables have a different format.
        ValueError: If the address is invalid.

    Example:
        This example requires a server on ``localhost``:

        >>> from nodekin.nodegraph import NodeGraph
        >>> address = "postgresql://localhost/texts?schema=handbook"
        >>> graph = NodeGraph(store=PostgresStore(address, timeout=600))  # doctest: +SKIP
    """

    database: PostgresDatabase

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        super().__init__(PostgresDatabase(address, timeout))

    def _set_up(self) -> None:
        super()._set_up()
        # The schema in which pgvector is installed, or an empty string.
        self._pgvector: str | None = None

    def compact(self) -> None:
        """Free the space of deleted data, and clear outdated vector tables.

        A vector table is outdated if it does not contain the latest changes of its group and has
        not been written to for a day.
        """
        query = "SELECT name, grp, kind FROM vector_tables WHERE seen < now() - interval '1 day'"
        with self.transactions.transaction():
            for name, group, kind in self.database.rows(query):
                record = from_text(kind)
                state = self.values.get(record, [""]).get("")
                if state is None or json.loads(state)[0] != self.groups.revision(from_text(group)):
                    self.database.writing.run_script(f"TRUNCATE {name}")
                    self.values.delete(record)
        super().compact()

    def vector_index(self, graph: NodeGraph, group: str, key: str) -> StoreIndex | None:
        """Return the index of a group's vectors in the database.

        Return None if pgvector is not installed.

        Raises:
            StoreError: If the address requires pgvector, but it is not installed.
        """
        address = self.database.address
        if address.vectors == "memory":
            return None
        from ...vector_store_index import StoreIndex
        from .pgvector_backend import PgvectorBackend, find_pgvector

        if self._pgvector is None:
            self._pgvector = find_pgvector(self.database)
        if not self._pgvector and address.vectors == "pgvector":
            raise StoreError(
                f"{self.place} has no pgvector 0.8 or later, and its user may not install it; "
                "run CREATE EXTENSION vector in the database, or omit vectors=pgvector"
            )
        if not self._pgvector:
            return None
        names = group, key, graph.embeddings.embedder(key).name
        backend = PgvectorBackend(
            self.database, self.transactions.transaction, self._pgvector, *names
        )
        return StoreIndex(graph, group, key, backend)
