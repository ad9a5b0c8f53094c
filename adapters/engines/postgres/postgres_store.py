"""The store of a graph on a PostgreSQL server, shared by processes and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....nodegraph.errors import StoreError
from ....nodegraph.hashing import digest
from ....nodegraph.storage.graph_store import GraphStore
from .graph_database import PostgresDatabase
from .pgvector_table import PostgresVectorTable, drop_outdated, find_pgvector, turn_settings

if TYPE_CHECKING:
    from ....nodegraph.graph import NodeGraph
    from .table_vector_index import TableVectorIndex


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
    """

    database: PostgresDatabase

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        super().__init__(PostgresDatabase(address, timeout))

    def _set_up(self) -> None:
        super()._set_up()
        # The schema of pgvector; empty if the database lacks pgvector.
        self._pgvector: str | None = None
        self._vector_tables: dict[str, PostgresVectorTable] = {}

    def compact(self) -> None:
        """Free the space of deleted data, and drop outdated tables of vectors."""
        with self.transaction():
            drop_outdated(self.database)
        super().compact()

    def vector_index(self, graph: NodeGraph, group: str, key: str) -> TableVectorIndex | None:
        """Return the index of a group's vectors in the database. None without pgvector."""
        from .table_vector_index import TableVectorIndex

        if self.vector_table(group, key) is None:
            return None
        return TableVectorIndex(graph, group, key, self.vector_table)

    def vector_table(self, group: str, *names: str) -> PostgresVectorTable | None:
        """Return the table of a group's vectors. None if the database has no pgvector.

        Raises:
            StoreError: If the address requires pgvector, which is missing.
        """
        address = self.database.address
        if address.vectors == "memory":
            return None
        with self.database.lock:
            if self._pgvector is None:
                self._pgvector = self.database.call(find_pgvector)
                if self._pgvector:
                    self.database.add_turn_settings(turn_settings())
            if not self._pgvector and address.vectors == "pgvector":
                raise StoreError(
                    f"{self.place} has no pgvector 0.8 or later, and its user may not install it; "
                    "run CREATE EXTENSION vector in the database, or omit vectors=pgvector"
                )
            if not self._pgvector:
                return None
            name = digest(group, *names)
            if name not in self._vector_tables:
                self._vector_tables[name] = PostgresVectorTable(
                    self.database, self.transaction, self._pgvector, group, name
                )
            return self._vector_tables[name]
