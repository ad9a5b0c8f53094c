"""The store that is one SQLite file."""

from .store import SQLiteStore

__all__ = ["SQLiteStore"]
