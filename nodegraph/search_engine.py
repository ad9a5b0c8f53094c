"""The contract of an engine that has the vectors and words of groups, beside the store or in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .errors import nearest_names
from .store import NodeStore

if TYPE_CHECKING:
    from .search_tables import VectorTable, WordTable


class SearchEngine(Protocol):
    """Tables of vectors and words; can be pickled, connects when it is first used.

    ``IndexEngine`` in ``nodekin.adapters.engines`` is a base class that gives the tables to an
    engine which does no more than store and compare rows.
    """

    def vector_table(self, store: NodeStore, group: str, *names: str) -> VectorTable | None:
        """Return the table of the vectors of a group; None where each process searches them.

        Args:
            store: The graph's store.
            group: The group.
            names: What tells apart the tables of a group.
        """
        ...

    def word_table(self, store: NodeStore, group: str, *names: str) -> WordTable | None:
        """Return the table of the words of a group; None where each process searches them.

        Raises:
            TransientStoreError: If the engine has to be asked, and can't be reached.
        """
        ...

    def compact(self, store: NodeStore) -> None:
        """Free the space of tables that nobody uses any more."""
        ...

    def close(self) -> None:
        """Close connections; the next use opens them again."""
        ...


class StoreEngine:
    """What a graph without an engine of its own has: the tables of its store."""

    def vector_table(self, store: NodeStore, group: str, *names: str) -> VectorTable | None:
        """Return the store's table."""
        return store.vector_table(group, *names)

    def word_table(self, store: NodeStore, group: str, *names: str) -> WordTable | None:
        """Return None: each process searches words."""
        return None

    def compact(self, store: NodeStore) -> None:
        """Do nothing: the store is compacted by itself."""

    def close(self) -> None:
        """Do nothing."""


def as_engine(index: Any) -> SearchEngine:
    """Take an engine, or its address, for one; None for the tables of the store.

    Engines are found by the scheme of the address among the entry points ``nodekin.engines``.

    Raises:
        ImportError: If the engine's client is not installed.
        TypeError: If it is neither.
        ValueError: If no engine is registered for the scheme, or it can't read the address.
    """
    if index is None:
        return StoreEngine()
    if isinstance(index, str):
        from .plugins import ENGINES, load_plugin, plugins  # most graphs have no engine

        scheme, colon, _ = index.partition(":")
        if not colon or scheme not in plugins(ENGINES):
            raise ValueError(
                f"index={scheme!r:.40} names no engine that searches vectors; write an address "
                f"that begins with one of {nearest_names(scheme, plugins(ENGINES))}, like "
                "'milvus://host:19530'"
            )
        engine: SearchEngine = load_plugin(ENGINES, scheme)(index)
        return engine
    if not callable(getattr(index, "vector_table", None)) or isinstance(index, type):
        raise TypeError(
            "index is the address of an engine that searches vectors, a SearchEngine, or None for "
            f"none beside the store, not {index!r:.80}; write "
            'NodeGraph(store="graph.db", index="milvus://host:19530")'
        )
    checked: SearchEngine = index
    return checked
