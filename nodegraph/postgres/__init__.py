"""The store that is a schema of a PostgreSQL database."""

from .address import PostgresAddress
from .postgres_store import PostgresStore

__all__ = ["PostgresAddress", "PostgresStore"]
