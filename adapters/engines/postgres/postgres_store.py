"""The store of a graph on a PostgreSQL server, shared by processes and machines."""

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
    """The store of a graph in a schema of a PostgreSQL database.

    Commits are as durable as the server makes them. Any number of processes read while one
    writes; each turn reads one state. If the database has pgvector, or its user may install it,
    vectors are searched there. Other indexes are in the memory of each process.

    Args:
        address: ``postgresql://user:password@host/database?schema=name``, with any other
            parameter of libpq. ``schema`` defaults to "nodekin". The schema and its tables are
            created if they are missing. ``vectors=pgvector`` requires pgvector, ``vectors=memory``
            does not use it. ``cache=/var/cache/nodekin`` stores other indexes in a local folder.
        timeout: Seconds to wait while another process writes.

    Raises:
        ImportError: If psycopg is not installed.
        StoreError: If the server cannot be reached, or the tables have another format.
        ValueError: If the address is invalid.

    Example:
        The server ``localhost`` is required:

        >>> from nodekin.nodegraph import NodeGraph
        >>> address = "postgresql://localhost/texts?schema=handbook"
        >>> graph = NodeGraph(store=PostgresStore(address, timeout=600))  # doctest: +SKIP
    """

    database: PostgresDatabase

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        super().__init__(PostgresDatabase(address, timeout))

    def _set_up(self) -> None:
        super()._set_up()
        # The schema of pgvector; empty if the database lacks pgvector.
        self._pgvector: str | None = None

    def compact(self) -> None:
        """Free the space of deleted data, and clear outdated tables of vectors.

        A table is outdated if it lacks changes of its group and was not written for a day.
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
        """Return the index of a group's vectors in the database. None without pgvector.

        Raises:
            StoreError: If the address requires pgvector, which is missing.
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
