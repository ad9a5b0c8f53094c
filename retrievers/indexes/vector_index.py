"""The vector index of a group: search for the nodes nearest to a query."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from ...nodegraph.errors import VectorLengthError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.locking import mutex, with_deferred_work
from ...nodegraph.node import Node
from ..filters import Filter
from ..results import Hits
from .array_files import Arrays
from .nearest_vectors import AllowedVectors, Floats, NearestVectors, Numbers, Scores, unit
from .node_table import Mask, NodeTable
from .synced_index import SyncedIndex, portions

_LONG = 1_000  # nodes whose indexing is worth a progress bar

_BATCH_NODES = 50_000  # nodes that are held at a time

_GAPS = 1_000  # unused vectors up to which they are never worth dropping

_NONE = -1


class VectorIndex(SyncedIndex):
    """Search the nodes of a group whose embedding is nearest to that of a query, by cosine.

    Adding, changing and removing nodes costs what those nodes cost, amortised, and embeds only
    texts that were never embedded. Call ``ready`` before the graph is held, ``sync`` and
    ``search`` while it is (``graph.reading``). ``NearestVectors`` compares the vectors: exactly
    up to 200,000 distinct ones, a million of 64 numbers, by HNSW above.

    Where the graph has a folder for it (``graph.index_file``) the index is stored in a file.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.

    Raises:
        LookupError: If the graph has no such embedding.
    """

    uses_search_text = True
    streams = True
    maps_file = True

    def __init__(self, graph: NodeGraph, group: str, key: str) -> None:
        self._key = key
        self._model = graph.embeddings.embedder(key).name
        self._building_hnsw = mutex()
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything."""
        self.table = NodeTable()
        self._vectors: NearestVectors | None = None  # None until the dimension is known
        self._vector_rows = VectorRows()
        self._selections: dict[Hashable, tuple[Mask | None, AllowedVectors | None]] = {}

    @property
    def exact(self) -> bool:
        """Whether every search compares all vectors."""
        return self._vectors is None or self._vectors.exact

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.table.living

    def ready(self) -> None:
        """Embed nodes that have no vector yet, and link many vectors, before the graph is held.

        Raises:
            EmbeddingError: If the model fails, or returns no usable vectors.
            TransformError: If the group has to be built and its transform raises.
        """
        texts = self._missed_texts()
        if texts is not None:
            for start in range(0, len(texts), _BATCH_NODES):
                self._vectors_of(texts[start : start + _BATCH_NODES])
            with_deferred_work(self._sync_held)
        self._build_hnsw()

    def _sync_held(self) -> None:
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            self.sync()

    def _missed_texts(self) -> list[str] | None:
        """Return the texts of the nodes that the index has missed, None where it is current."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            if self.is_current():
                return None
            with self._lock.held():
                self._load()
                since = self._since(self._current_search_version())
            new = self._graph.reader.changes(self._group, since, stream=True).added
            return [
                text
                for batch in portions(new, _BATCH_NODES)
                for text in self._graph.reader.searched_texts(batch)
            ]

    def _build_hnsw(self) -> None:
        """Switch to a graph of many vectors; others search without it while it is built."""
        vectors = self._vectors
        if (
            vectors is None
            or not vectors.wants_hnsw
            or not self._building_hnsw.acquire(blocking=False)
        ):
            return
        try:
            with self._lock.held():
                copied = vectors.vectors()
            graph = vectors.build_hnsw(copied, self._graph.progress)
            with self._lock.held():
                vectors.use_hnsw(graph)
                self.save()  # it took long
        finally:
            self._building_hnsw.release()

    def search(self, query: Floats, limit: int | None, filter: Filter) -> Hits:
        """Return the nearest nodes, ties in document order.

        Args:
            query: The query's vector (dimension,), of any length but 0, which matches nothing.
            limit: How many; None for all.
            filter: What their metadata must meet; applied before ranking.

        Raises:
            VectorLengthError: If the vector has not the dimension of the nodes' vectors.
        """
        return self.search_many([query], limit, filter)[0]

    def search_many(
        self, queries: Sequence[Floats], limit: int | None, filter: Filter
    ) -> list[Hits]:
        """Return what ``search`` returns for each query, in one pass over the vectors."""
        if self._vectors is None or not self.size:
            return [Hits([], [])] * len(queries)
        for query in queries:
            check_dimension(query, self._vectors.dimension, self._group, self._model, self._key)
        allowed, allowed_vectors = self._selection(filter)
        units = unit(queries[0][np.newaxis] if len(queries) == 1 else np.array(queries))
        nearest = self._vectors.search(units, limit, allowed_vectors)
        return [
            self._hits(vectors, scores, limit, allowed) if query.dot(query) else Hits([], [])
            for query, (vectors, scores) in zip(units, nearest, strict=True)
        ]

    def _selection(self, filter: Filter) -> tuple[Mask | None, AllowedVectors | None]:
        """Return which nodes meet a filter, and which vectors they have, None for all.

        It is remembered for the next query, until nodes change.
        """
        selection = self._selections.get(filter.key)
        if selection is None:
            if len(self._selections) >= self.table.most_masks:
                self._selections = {}
            nodes = self.table.allowed(filter)
            used = self._vector_rows.used_by(self.table.alive if nodes is None else nodes)
            selection = nodes, None if used is None else AllowedVectors(used)
            self._selections[filter.key] = selection
        return selection

    def _hits(
        self, vectors: Numbers, scores: Scores, limit: int | None, allowed: Mask | None
    ) -> Hits:
        """Return the nodes that have the vectors, best first."""
        rows, scores = self._vector_rows.node_rows(vectors, scores)
        if allowed is not None and self._vector_rows.has_copies:
            selected = allowed[rows]
            rows, scores = rows[selected], scores[selected]
        ranking = np.lexsort((self.table.orders.take(rows), -scores))[:limit]
        return Hits(self.table.ids.take(rows.take(ranking)), scores.take(ranking).tolist())

    # Following the graph

    def prepare(self, nodes: Sequence[Node]) -> Floats | None:
        """Return the vectors of nodes; None of those that are read as they are iterated.

        Raises:
            EmbeddingError: If the model fails, or returns no usable vectors.
        """
        return self._embedded(nodes) if isinstance(nodes, list) else None

    def _embedded(self, nodes: Sequence[Node]) -> Floats:
        return self._vectors_of(self._graph.reader.searched_texts(nodes))

    def _vectors_of(self, texts: Sequence[str]) -> Floats:
        return self._graph.embeddings.vectors(texts, self._key, what=self._group)

    def accepts(self, prepared: Floats | None) -> bool:
        """Return whether the vectors have the dimension of those in the index."""
        if self._vectors is None or prepared is None or not len(prepared):
            return True
        return bool(prepared.shape[1] == self._vectors.dimension)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes; their vectors stay until gaps are closed."""
        self.table.remove(ids)

    def add(self, nodes: Sequence[Node], prepared: Floats | None) -> None:
        """Add nodes and their vectors, except nodes with a vector of zeros."""
        show = self._graph.progress if len(nodes) >= _LONG else False
        for batch in [nodes] if prepared is not None else portions(nodes, _BATCH_NODES):
            new = self._embedded(batch) if prepared is None else prepared
            if self._vectors is None:
                self._vectors = NearestVectors(new.shape[1])
            usable = np.asarray(new.any(axis=1))
            if not usable.all():
                batch = list(compress(batch, usable.tolist()))
                new = new[usable]
            vectors = self._vectors.add(unit(new), show)
            self.table.add(batch)
            self._vector_rows.extend(vectors, len(self._vectors))

    def finish(self) -> None:
        """Close gaps, and note which vectors a node has."""
        if self._vectors is not None and self.table.sparse:
            vectors = self._vector_rows.vectors[self.table.alive]
            self.table.compact()
            used = np.unique(vectors)
            if len(self._vectors) > 2 * len(used) + _GAPS:
                self._vectors = self._vectors.select(used)
                vectors = np.searchsorted(used, vectors)
            self._vector_rows = VectorRows()
            self._vector_rows.extend(vectors, len(self._vectors))
        self._selections = {}

    # The file

    def file_name(self) -> str:
        """Return the file's name, one for each key and model."""
        return f"vectors-{digest(self._key, self._model)}"

    def header(self) -> dict[str, Any]:
        """Return the settings that a stored index must have been built with."""
        return {"kind": "vectors", "key": self._key, "model": self._model}

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        if self._vectors is None:
            return {}
        return {
            **self.table.arrays(),
            **self._vectors.arrays(),
            "rows": self._vector_rows.vectors,
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to what ``arrays`` returned."""
        vectors = NearestVectors.from_arrays(arrays)
        table, rows = NodeTable.from_arrays(arrays), np.asarray(arrays["rows"], np.int64)
        if rows.shape != (len(table),):
            raise ValueError(f"it has the vectors of {len(rows)} nodes of {len(table)}")
        vector_rows = VectorRows()
        vector_rows.extend(rows, len(vectors))
        self.table, self._vectors, self._vector_rows = table, vectors, vector_rows
        self._selections = {}

    def _map(self) -> None:
        """Use the file just written, where vectors can stay there: FAISS reads a graph of them."""
        if self._vectors is not None and self._vectors.exact:
            super()._map()


def check_dimension(query: Floats, dimension: int, group: str, model: str, key: str) -> None:
    """Check that a query's vector is as long as those of the nodes; 0 where there are none.

    Raises:
        VectorLengthError: If it is not.
    """
    if dimension and query.shape != (dimension,):
        numbers = " x ".join(map(str, query.shape))
        raise VectorLengthError(
            f"the query's vector has {numbers} numbers, and those of group {group!r} have "
            f"{dimension}: the embedding model {model!r} (key {key!r}) must embed queries and "
            "passages alike"
        )


class VectorRows:
    """Map rows of nodes to rows of distinct vectors, and back: equal vectors share a row.

    Attributes:
        vectors: Row of the vector, by row of the node.
    """

    def __init__(self) -> None:
        self.vectors: Numbers = np.zeros(0, np.int64)
        self._first: list[int] = []  # the first node of a vector, where there is one
        self._all: dict[int, list[int]] = {}  # all nodes of a vector that has several

    def extend(self, vectors: Numbers, size: int) -> None:
        """Append the vectors of the next nodes; there are ``size`` vectors now.

        Raises:
            ValueError: If there is no such vector.
        """
        if len(vectors) and not 0 <= vectors.min() <= vectors.max() < size:
            raise ValueError(f"nodes have the vectors {vectors.min()} to {vectors.max()} of {size}")
        self._first += [_NONE] * (size - len(self._first))
        for row, vector in enumerate(vectors.tolist(), len(self.vectors)):
            if self._first[vector] == _NONE:
                self._first[vector] = row
            else:
                self._all.setdefault(vector, [self._first[vector]]).append(row)
        self.vectors = np.concatenate([self.vectors, vectors])

    @property
    def has_copies(self) -> bool:
        """Whether several nodes have the same vector."""
        return bool(self._all)

    def used_by(self, nodes: Mask) -> Mask | None:
        """Return which vectors any of these nodes has, None for all vectors."""
        used = np.zeros(len(self._first), np.bool_)
        used[self.vectors[nodes]] = True
        return None if used.all() else used

    def node_rows(self, vectors: Numbers, scores: Scores) -> tuple[Numbers, Scores]:
        """Return all nodes of vectors that have any, and the scores of their vectors."""
        if not self._all:
            return np.array([self._first[vector] for vector in vectors.tolist()], np.int64), scores
        rows = [self._all.get(vector) or [self._first[vector]] for vector in vectors.tolist()]
        flat = np.array([row for copies in rows for row in copies], np.int64)
        return flat, np.repeat(scores, [len(copies) for copies in rows])
