"""Use a vector store of a framework as the index of a graph's embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..nodegraph.graph import NodeGraph
from ..nodegraph.hashing import digest
from ..nodegraph.node import Node
from ..nodegraph.store import Changes
from ..retrievers.filters import Filter
from ..retrievers.indexes.nearest_vectors import unit
from ..retrievers.indexes.node_table import FilterIndex
from ..retrievers.protocols import Similarity
from ..retrievers.results import Hits
from ..retrievers.similarities.registry import Cosine, with_index

logger = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]

Rows = npt.NDArray[np.int64]

ItemT = TypeVar("ItemT")

_BATCH = 500  # nodes that are written to the store in one call

_MAX_REQUESTED = 4_096  # nodes that the store is searched for at most

_DECIMALS = 6


class VectorBackend(Protocol):
    """What a vector store has to do to be an index. Each framework's adapter has one."""

    name: str
    """The store's name in messages."""

    def nearest_ids(self, vector: Vectors, count: int) -> list[str]:
        """Return the ids of so many nodes, nearest by cosine. Ids of other graphs do no harm."""

    def stored(self, ids: Sequence[str]) -> dict[str, str]:
        """Return which of these nodes the store has from earlier, with their fingerprints."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes, all of which the store has."""

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes, none of which the store has.

        The vectors are of unit length: by any measure (cosine, inner product, L2) the nearest to
        a query of unit length are the same.
        """


@dataclass(frozen=True, slots=True)
class EmbeddedNode:
    """Hold a node and what a vector store has of it.

    Attributes:
        node: The node.
        text: The text that was embedded: see ``NodeGraph.searched_texts``.
        vector: Its vector of unit length, (dimension,).
        fingerprint: Hash of the model and the text.
    """

    node: Node
    text: str
    vector: Vectors
    fingerprint: str


def store_indexes(
    store: object,
    framework: str,
    kind: type[Any],
    arguments: Callable[[NodeGraph, str, str], tuple[Any, ...]],
    backend: Callable[[Any], VectorBackend],
) -> StoreIndexes:
    """Return what ``as_index`` of a framework returns for a store, or a function that makes stores.

    Args:
        store: A vector store of the framework, shared by all groups, or a function that makes one
            for a group.
        framework: Its name, for messages.
        kind: Its class of vector stores.
        arguments: Returns the arguments of that function for a graph, a group and a key.
        backend: Returns the backend of a store.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(store, kind):
        single = backend(store)
        return StoreIndexes(store, lambda graph, group, key: single, is_shared=True)
    if not callable(store) or isinstance(store, type):
        raise TypeError(
            f"as_index takes a {framework} vector store, or a function that makes one for a group, "
            f"not {store!r:.80}"
        )

    def create(graph: NodeGraph, group: str, key: str) -> VectorBackend:
        created = store(*arguments(graph, group, key))
        if not isinstance(created, kind):
            raise TypeError(
                f"as_index got a function that made {created!r:.80} for the group {group!r}, which "
                f"is no {framework} vector store"
            )
        return backend(created)

    return StoreIndexes(store, create, is_shared=False)


@dataclass(frozen=True, slots=True, eq=False)
class StoreIndexes:
    """Make the index of a graph's group in a vector store. The same store makes equal objects.

    Attributes:
        store: The vector store, or the function that makes one for a group.
        backend: Returns the backend for a graph, a group and a key.
        is_shared: Whether all groups share one store, which has room for one embedding only.
    """

    store: object
    backend: Callable[[NodeGraph, str, str], VectorBackend]
    is_shared: bool
    _keys: dict[int, str] = field(default_factory=dict, repr=False)

    @property
    def cosine(self) -> Similarity:
        """The similarity that searches in the store: for what takes no ``index=``.

        ``RecursiveRetriever(graph, groups, target, as_index(...).cosine)``
        """
        return with_index(Cosine(), self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreIndexes) and self.store is other.store

    def __hash__(self) -> int:
        return hash((StoreIndexes, id(self.store)))

    def __call__(
        self, graph: NodeGraph, group: str, key: str | None, similarity: Similarity
    ) -> StoreIndex:
        """Return the index of a group's embeddings of one key.

        Raises:
            TypeError: If the similarity is not the cosine, or no vector store was made.
            ValueError: If the store has vectors of another of the graph's embeddings.
        """
        if key is None or not isinstance(similarity, Cosine):
            raise TypeError(
                f"a vector store is an index for the similarity 'cosine', not for "
                f"{similarity.name!r}"
            )
        if self.is_shared and (first := self._keys.setdefault(id(graph), key)) != key:
            raise ValueError(
                f"the vector store has vectors of the embedding {first!r}, and can't have those "
                f"of {key!r} too; search one (embed_keys=[...]), or give as_index a function that "
                "makes a store for each"
            )
        return StoreIndex(graph, group, key, self.backend(graph, group, key))


class StoreIndex(FilterIndex):
    """Index a group's embeddings of one key in a vector store.

    The store proposes candidates. This class decides which are answers. It requests more of them
    as long as filters or ties leave too few, and computes their cosines from the graph's own
    vectors. Where the store returns fewer than there are, all nodes are compared, so that none is
    missing.

    Writes go to the store before the graph is held, so that a slow store keeps nobody from
    changing the graph. After a failure everything is compared with the store again.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.
        backend: The vector store.

    Raises:
        LookupError: If the graph has no such embedding.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, key: str, backend: VectorBackend) -> None:
        self._key = key
        self._backend = backend
        self._model = graph.embeddings.embedder(key).name
        self._stored: dict[str, str] = {}  # what the store has: fingerprint by node id
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything, but nothing from the store."""
        super().clear()
        self._stored_is_complete = False  # else the store may have more of this group

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self._table.living

    def ready(self) -> None:
        """Embed new nodes and bring the store up to date, before the graph is held.

        Raises:
            EmbeddingError: If the model fails.
        """
        if (pending := self.pending()) is None:
            return
        self._vectors(pending.changes.added)
        with self._lock.held():  # while the graph is not held: another thread may wait for both
            if self._revision == pending.revision:
                self.apply(pending.changes, None, pending.search_version)

    def search(self, query: Vectors, limit: int | None, filter: Filter) -> Hits:
        """Return the nodes that are nearest to a vector, ties in document order.

        Args:
            query: The query's vector (dimension,). One of zeros matches nothing.
            limit: How many. None for all.
            filter: What their metadata must meet.
        """
        table = self._table
        direction = unit(query[np.newaxis])[0]
        matching = table.matching(filter)
        allowed = table.alive if matching is None else matching & table.alive
        count = int(allowed.sum())
        if not count or not direction.any():
            return Hits([], [])
        rows = self._candidates(direction, limit, allowed, count)
        scores = self._cosines(rows, direction)
        rows, scores = rows[scores > -np.inf], scores[scores > -np.inf]
        ranking = np.lexsort((table.orders[rows], -scores))[:limit]
        return Hits([table.ids[row] for row in rows[ranking].tolist()], scores[ranking].tolist())

    def _candidates(
        self, query: Vectors, limit: int | None, allowed: npt.NDArray[np.bool_], count: int
    ) -> Rows:
        """Search the store. Return all allowed nodes where they are better compared."""
        every: Rows = np.flatnonzero(allowed)
        if limit is None or limit >= count:
            return every
        row_by_id = self._table.rows()
        requested = (limit + limit // 4 + 4) * self._table.living // count
        while requested <= _MAX_REQUESTED:
            ids = self._backend.nearest_ids(query, requested)
            nearest = dict.fromkeys(row_by_id.get(node_id, -1) for node_id in ids)
            rows = np.array([row for row in nearest if row >= 0 and allowed[row]], np.int64)
            exhausted = len(ids) < requested
            if len(rows) >= limit:
                scores = np.sort(self._cosines(rows, query))[::-1]
                # The last place is certain where the candidates after it score less.
                if exhausted or scores[limit - 1] > scores[-1]:
                    return rows
            if exhausted:
                logger.warning(
                    "the vector store %s gave %s of %s nodes of the group %r; all are compared "
                    "one by one instead",
                    *(self._backend.name, len(rows), count, self._group),
                )
                break
            requested *= 4
        return every

    def _cosines(self, rows: Rows, query: Vectors) -> npt.NDArray[np.float64]:
        """Return the same cosines as the built-in index, -inf without a usable vector."""
        ids = [self._table.ids[row] for row in rows.tolist()]
        units = unit(self._vectors(self._graph.reader.nodes_by_id(ids)))
        cosines = (units * query.astype(np.float64)).sum(axis=1)
        scores: npt.NDArray[np.float64] = np.clip(np.round(cosines, _DECIMALS), -1, 1) + 0.0
        scores[~units.any(axis=1)] = -np.inf
        return scores

    def _vectors(self, nodes: Sequence[Node]) -> Vectors:
        texts = self._graph.reader.searched_texts(nodes)
        return self._graph.embeddings.vectors(texts, self._key, what=self._group)

    # Following the graph

    def apply(self, changes: Changes, prepared: None, search_version: tuple[str, ...] = ()) -> None:
        """Change the store, then the index. The caller has the lock."""
        try:
            self._change_store(changes)
        except BaseException:  # what was written is unknown: compare everything next time
            self._reset()
            raise
        super().apply(changes, prepared, search_version)
        self._stored_is_complete = True

    def _change_store(self, changes: Changes) -> None:
        texts = self._graph.reader.searched_texts(changes.added)
        new = {
            node.id: digest("unit", self._model, text)
            for node, text in zip(changes.added, texts, strict=True)
        }
        if not self._stored_is_complete:
            stored = map(self._backend.stored, _batches([*self._stored, *new]))
            self._stored = {i: fingerprint for rows in stored for i, fingerprint in rows.items()}
        old = dict.fromkeys(self._stored if changes.complete else [*changes.removed, *new])
        # Delete before adding again: some stores refuse an id that exists, or keep the old one.
        self._delete([i for i in old if i in self._stored and self._stored[i] != new.get(i)])
        self._add([node for node in changes.added if node.id not in self._stored], new)

    def _delete(self, ids: Sequence[str]) -> None:
        for batch in _batches(ids):
            self._backend.delete(batch)
            for node_id in batch:
                del self._stored[node_id]

    def _add(self, nodes: Sequence[Node], fingerprints: Mapping[str, str]) -> None:
        for batch in _batches(nodes):
            texts = self._graph.reader.searched_texts(batch)
            vectors = unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))
            self._stored.update((node.id, "") for node in batch)  # perhaps, if it fails
            added = {node.id: fingerprints[node.id] for node in batch}
            rows = zip(batch, texts, vectors, added.values(), strict=True)
            usable = [EmbeddedNode(*row) for row in rows if row[2].any()]
            if usable:
                self._backend.add(usable)
            self._stored.update(added)


def _batches(items: Iterable[ItemT]) -> Iterator[list[ItemT]]:
    distinct = list(dict.fromkeys(items))
    for start in range(0, len(distinct), _BATCH):
        yield distinct[start : start + _BATCH]
