"""The store of a graph on a PostgreSQL server, shared by processes and machines."""

from __future__ import annotations

from ....nodegraph.storage.graph_store import GraphStore
from .graph_database import PostgresDatabase


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

    def __init__(self, address: str, *, timeout: float = 60.0) -> None:
        super().__init__(PostgresDatabase(address, timeout))
