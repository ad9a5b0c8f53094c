"""Conversion of a path or an address to a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import nearest_names
from .graph_store import GraphStore
from .sqlite import SQLiteDatabase


def as_store(store: object) -> GraphStore:
    """Return the store for a path or an address. None: a new store in memory.

    Raises:
        TypeError: If ``store`` has an unsupported type.
        ValueError: If no installed package has stores for the scheme of the address.
        StoreError: If the store cannot be opened.
    """
    if store is None:
        return GraphStore(SQLiteDatabase(None), keeps_objects=True)
    if isinstance(store, GraphStore):
        return store
    if not isinstance(store, str | Path):
        raise TypeError(
            "store must be the path of a file, the address of a PostgreSQL server, or None for "
            f'memory, got {store!r:.80}; write NodeGraph(store="graph.db")'
        )
    scheme, separator, _ = store.partition("://") if isinstance(store, str) else ("", "", "")
    if separator:
        return _opened_by_plugin(scheme, str(store))
    return GraphStore(SQLiteDatabase(Path(store).expanduser().absolute()))


def _opened_by_plugin(scheme: str, address: str) -> GraphStore:
    from ..plugins import STORES, load_plugin, plugins  # most graphs are in files

    if scheme not in plugins(STORES):
        raise ValueError(
            f"the scheme of a store must be one of {nearest_names(scheme, plugins(STORES))}, got "
            f"{scheme!r:.80}; write 'postgresql://user@host/database?schema=name', or the path of "
            "a file"
        )
    store: Any = load_plugin(STORES, scheme)(address)
    opened: GraphStore = store
    return opened
