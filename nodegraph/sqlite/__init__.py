"""The store that is one SQLite file."""

from .sqlite_store import SQLiteStore

__all__ = ["SQLiteStore"]
