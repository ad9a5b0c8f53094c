"""A record of the vectors in a vector store, saved in the graph."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ..nodegraph.graph import NodeGraph
from ..nodegraph.hashing import digest

_NAMES = ("collection_name", "_collection_name", "index_name", "_index_name", "table_name")

_PLACES = ("uri", "_uri", "url", "persist_directory", "_persist_directory", "_connection_args")


class StoreState(NamedTuple):
    """The state of a group in a store.

    Attributes:
        revision: The revision of the group.
        version: The search version of the group, and the model.
    """

    revision: int
    version: tuple[str, ...]


class StoreRecord:
    """The fingerprints of the vectors in a store, by node id.

    If later processes can recognize the store, the record is saved in the graph, so that no process
    has to look up all vectors. Otherwise, the record is in memory.

    Args:
        graph: The node graph.
        identity: The store's identity. None: not recognizable.
        names: The group and the key of the embedding.
    """

    def __init__(self, graph: NodeGraph, identity: str | None, *names: str) -> None:
        self._reader = graph.reader
        self._kind = None if identity is None else f"vector store {digest(identity, *names)}"
        self._rows: dict[str, str] = {}  # used without an identity
        self._state_kind = f"{self._kind} state"

    def state(self) -> tuple[StoreState | None, int]:
        """Return the recorded state of the store, and its number of rows. None: never complete."""
        value = None if self._kind is None else self._reader.values(self._state_kind).get("")
        if value is None:
            return None, 0
        revision, version, size = json.loads(value)
        return StoreState(revision, tuple(version)), size

    def write_state(self, state: StoreState, size: int) -> None:
        """Record the state of the store, and its number of rows."""
        if self._kind is not None:
            self._reader.save(self._state_kind, {"": json.dumps([*state, size]).encode()})

    def read(self, ids: Collection[str] | None = None) -> dict[str, str]:
        """Return the fingerprints of written nodes. An empty str: the write may have failed.

        Args:
            ids: The nodes. None: all nodes.
        """
        if self._kind is not None:
            values = self._reader.values(self._kind, ids)
            return {node_id: value.decode() for node_id, value in values.items()}
        if ids is None:
            return dict(self._rows)
        return {node_id: self._rows[node_id] for node_id in ids if node_id in self._rows}

    def write(self, fingerprints: Mapping[str, str]) -> None:
        """Record fingerprints by node id."""
        if self._kind is None:
            self._rows.update(fingerprints)
        else:
            self._reader.save(self._kind, {i: value.encode() for i, value in fingerprints.items()})

    def delete(self, ids: Collection[str]) -> None:
        """Delete nodes from the record."""
        if self._kind is not None:
            self._reader.delete_values(self._kind, ids)
        for node_id in ids:
            self._rows.pop(node_id, None)


def store_identity(store: object) -> str | None:
    """Return a hash of a store's class, name and address.

    Returns:
        The hash. None: the store has no name, so it may be in memory.
    """
    collection = getattr(store, "_collection", None)  # Chroma
    names = [getattr(store, name, None) for name in _NAMES]
    names.append(getattr(collection, "id", None))
    if not any(names):
        return None
    places = [getattr(store, name, None) for name in _PLACES]
    kind = type(store)
    return digest(kind.__module__, kind.__qualname__, *map(str, [*names, *places]))


class StoreBackend:
    """The operations of an index on a vector store of any framework.

    Args:
        store: The vector store.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self.name = type(store).__name__
        self.identity = store_identity(store)

    def count(self) -> int | None:
        """Return the number of rows of a Chroma collection. None: another store."""
        count = getattr(getattr(self._store, "_collection", None), "count", None)
        return int(count()) if callable(count) else None
