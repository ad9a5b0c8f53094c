"""The vectors of one group: kept in step with the graph, searched for the nearest nodes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph import Changes, EmbeddingError, Node, NodeGraph
from ...nodegraph.hashing import digest
from ..filters import Condition
from ..results import Hits
from . import array_files
from .nearest_vectors import NearestVectors, Scores, unit
from .node_table import Slots

logger = logging.getLogger(__name__)

Vector = npt.NDArray[np.float32]

Vectors = npt.NDArray[np.float32]

_LONG = 1_000  # nodes whose indexing is worth showing

_GAPS = 1_000  # empty slots beyond which closing the gaps is thought of

# Changes that are not in the file yet: beyond so many, and that share of the nodes, it is
# written at once; with fewer than the last number it is not even when the graph is closed.
_UNSAVED = 1_000

_UNSAVED_SHARE = 8

_WORTH_SAVING = 250


class VectorIndex:
    """Find the nodes of a group whose embedding is nearest to that of a query, by cosine.

    Adding, changing and removing nodes costs what those nodes cost, amortised, and embeds only
    texts that were never embedded. Call ``ready`` before the graph is held, ``sync`` and
    ``search`` while it is (``graph.reading``). How vectors are compared is told in
    ``NearestVectors``: exactly up to 200,000 distinct ones, by HNSW above.

    Where the graph has a place for it (``graph.index_file``) the index is kept in a file, which
    is used when it fits the graph and brought up to date from there, else made again.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.

    Raises:
        LookupError: If the graph has no such embedding.
    """

    def __init__(self, graph: NodeGraph, group: str, key: str) -> None:
        self._graph = graph
        self._group = group
        self._key = key
        self._model = graph.embeddings.embedder(key).name
        self._syncing = threading.Lock()
        self._linking = threading.Lock()
        self._loaded = False
        self._clear()

    def _clear(self) -> None:
        self.slots = Slots()
        self._vectors: NearestVectors | None = None  # None until the dimension is known
        self._map = RowMap()
        self._living: Mask | None = None  # rows that a living slot has, None for all
        self._revision = 0
        self._unsaved = 0

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.slots.living

    def ready(self) -> None:
        """Embed what the group lacks, and link many vectors, before the graph is held.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
            TransformError: If the group has to be built and its transform raises.
        """
        with self._graph.reading(self._group):
            current = self._revision == self._graph.revision(self._group)
            if not current:
                self._load()
                changes = self._graph.changes(self._group, self._revision)
        if not current:
            self._embedded(changes.added)
            with self._graph.reading(self._group):
                self.sync()
        self._link()

    def _link(self) -> None:
        """Go over to a graph of many vectors; others search without it while it is made."""
        vectors = self._vectors
        if vectors is None or not vectors.wants_graph or not self._linking.acquire(blocking=False):
            return
        try:
            with self._syncing:
                copied = vectors.vectors()
            graph = vectors.linked(copied, self._graph.progress)
            with self._syncing:
                vectors.take(graph)
                self._save()  # it took long
        finally:
            self._linking.release()

    def sync(self) -> None:
        """Take in what has changed in the graph since the last time.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        if self._revision == self._graph.revision(self._group):
            return
        self._load()
        with self._syncing:
            if self._revision == self._graph.revision(self._group):
                return
            changes = self._graph.changes(self._group, self._revision)
            vectors = self._embedded(changes.added)
            if not changes.complete and self._other_dimension(vectors):
                changes = self._graph.changes(self._group, 0)
                vectors = self._embedded(changes.added)
            try:
                self._apply(changes, vectors)
            except BaseException:  # Ctrl-C, no memory: nothing half done stays
                self._clear()
                raise
            if self._unsaved > _UNSAVED + self.size // _UNSAVED_SHARE:
                self._save()

    def search(self, query: Vector, limit: int | None, conditions: Mapping[str, Condition]) -> Hits:
        """Return the nearest nodes, ties in document order.

        Args:
            query: The query's vector (dimension,), of any length but 0, which finds nothing.
            limit: How many; None for all.
            conditions: What their metadata must meet; applied before ranking.

        Raises:
            EmbeddingError: If the vector has not the dimension of the nodes' vectors.
        """
        return self.search_many([query], limit, conditions)[0]

    def search_many(
        self, queries: Sequence[Vector], limit: int | None, conditions: Mapping[str, Condition]
    ) -> list[Hits]:
        """Return what ``search`` returns for each query, in one pass over the vectors."""
        if self._vectors is None or not self.size:
            return [Hits([], [])] * len(queries)
        for query in queries:
            self._check_dimension(query, self._vectors.dimension)
        matching = self.slots.matching(conditions)
        if matching is None:
            allowed = None if self.size == len(self.slots) else self.slots.alive
            rows_allowed = self._living
        else:
            allowed = matching & self.slots.alive
            rows_allowed = self._map.having(allowed)
        units = unit(np.stack(queries))
        found = self._vectors.search(units, limit, rows_allowed)
        return [
            self._hits(rows, scores, limit, allowed) if query.any() else Hits([], [])
            for query, (rows, scores) in zip(units, found, strict=True)
        ]

    def save_changes(self) -> None:
        """Write the file, where the graph has a place for it and it would spare much work."""
        with self._syncing:
            if self._unsaved > _WORTH_SAVING:
                self._save()

    def close(self) -> None:
        """Keep what is worth keeping; the index can be used on."""
        self.save_changes()

    def _embedded(self, nodes: Sequence[Node]) -> Vectors:
        texts = [node.text for node in nodes]
        return self._graph.embeddings.vectors(texts, self._key, what=self._group)

    def _other_dimension(self, vectors: Vectors) -> bool:
        if self._vectors is None or not len(vectors):
            return False
        return bool(vectors.shape[1] != self._vectors.dimension)

    def _check_dimension(self, query: Vector, dimension: int) -> None:
        if query.shape != (dimension,):
            numbers = " x ".join(map(str, query.shape))
            raise EmbeddingError(
                f"the query's vector has {numbers} numbers, and those of group {self._group!r} "
                f"have {dimension}: the embedding model {self._model!r} (key {self._key!r}) must "
                "embed queries and passages alike"
            )

    def _hits(self, rows: Numbers, scores: Scores, limit: int | None, allowed: Mask | None) -> Hits:
        """Return the nodes that have the vectors, best first."""
        slots, scores = self._map.slots(rows, scores)
        if allowed is not None:
            kept = allowed[slots]
            slots, scores = slots[kept], scores[kept]
        ranking = np.lexsort((self.slots.orders[slots], -scores))[:limit]
        ids = self.slots.ids
        return Hits([ids[slot] for slot in slots[ranking].tolist()], scores[ranking].tolist())

    def _apply(self, changes: Changes, vectors: Vectors) -> None:
        if changes.complete:
            self._clear()
        self.slots.remove(changes.removed)
        if changes.added:
            show = self._graph.progress if len(changes.added) >= _LONG else False
            if self._vectors is None:
                self._vectors = NearestVectors(vectors.shape[1])
            rows = self._vectors.add(unit(vectors), show)
            self.slots.add(changes.added)
            self._map.extend(rows, len(self._vectors))
        self._close_gaps()
        self._living = self._map.having(self.slots.alive)
        self._revision = changes.revision
        self._unsaved += len(changes.added) + len(changes.removed)

    def _close_gaps(self) -> None:
        """Leave out empty slots, and vectors of none, when they are more than the others."""
        if self._vectors is None or len(self.slots) <= 2 * self.size + _GAPS:
            return
        rows = self._map.rows[self.slots.alive]
        self.slots.compact()
        used = np.unique(rows)
        if len(self._vectors) > 2 * len(used) + _GAPS:
            self._vectors = self._vectors.only(used)
            rows = np.searchsorted(used, rows)
        self._map = RowMap()
        self._map.extend(rows, len(self._vectors))

    # The file

    def _file(self) -> Path | None:
        """Return where the index is kept, None where the graph has no place for it."""
        return self._graph.index_file(f"vectors-{digest(self._group, self._key, self._model)}")

    def _header(self) -> dict[str, Any]:
        """Return what has to be equal for the file to be of use."""
        return {
            "kind": "vectors",
            "group": self._group,
            "key": self._key,
            "model": self._model,
            "dimension": None if self._vectors is None else self._vectors.dimension,
        }

    def _save(self) -> None:
        """Write the file; what prevents it is logged, since the index can be made again."""
        self._unsaved = 0
        try:
            path = self._file()
            if path is not None and self._vectors is not None:
                arrays = {**self.slots.arrays(), **self._vectors.arrays(), "rows": self._map.rows}
                array_files.save(path, {**self._header(), "revision": self._revision}, arrays)
        except TypeError as error:  # metadata that has no form in a file
            logger.debug("the vectors of group %r are not kept: %s", self._group, error)
        except Exception as error:
            logger.warning("the vectors of group %r could not be kept: %s", self._group, error)

    def _load(self) -> None:
        """Become what was kept, the first time and where it fits; else stay empty."""
        with self._syncing:
            if self._loaded:
                return
            self._loaded = True
            path: Path | None = None
            try:
                path = self._file()
                kept = None if path is None else array_files.load(path)
                if kept is not None:
                    self._take(*kept)
            except Exception as error:  # whatever is in the file, the index can be made again
                logger.warning("the index in %s does not fit, and is made again: %s", path, error)
                self._clear()

    def _take(self, header: Mapping[str, Any], arrays: array_files.Arrays) -> None:
        vectors = NearestVectors.from_arrays(arrays)
        expected = {**self._header(), "dimension": vectors.dimension}
        if {name: header.get(name) for name in expected} != expected:
            logger.debug("kept vectors are of %r, not of %r", header, expected)
            return
        slots, rows = Slots.from_arrays(arrays), np.asarray(arrays["rows"], np.int64)
        if rows.shape != (len(slots),):
            raise ValueError(f"it has the rows of {len(rows)} nodes of {len(slots)}")
        self._map.extend(rows, len(vectors))
        self._living = self._map.having(slots.alive)
        self.slots, self._vectors, self._revision = slots, vectors, int(header["revision"])


Mask = npt.NDArray[np.bool_]

Numbers = npt.NDArray[np.int64]

_NONE = -1


class RowMap:
    """Tell each slot's row among distinct vectors, and each row's slots.

    Attributes:
        rows: Row by slot.
    """

    def __init__(self) -> None:
        self.rows: Numbers = np.zeros(0, np.int64)
        self._first: list[int] = []  # a row's first slot, where it has one
        self._copies: dict[int, list[int]] = {}  # all slots of a row that has several

    def extend(self, rows: Numbers, size: int) -> None:
        """Note the rows of the next slots; there are ``size`` rows now.

        Raises:
            ValueError: If there is no such row.
        """
        if len(rows) and not 0 <= rows.min() <= rows.max() < size:
            raise ValueError(f"slots have the rows {rows.min()} to {rows.max()} of {size}")
        self._first += [_NONE] * (size - len(self._first))
        for slot, row in enumerate(rows.tolist(), len(self.rows)):
            if self._first[row] == _NONE:
                self._first[row] = slot
            else:
                self._copies.setdefault(row, [self._first[row]]).append(slot)
        self.rows = np.concatenate([self.rows, rows])

    def having(self, slots: Mask) -> Mask | None:
        """Return which rows any of these slots has, None for all."""
        mask = np.zeros(len(self._first), np.bool_)
        mask[self.rows[slots]] = True
        return None if mask.all() else mask

    def slots(
        self, rows: Numbers, scores: npt.NDArray[np.float64]
    ) -> tuple[Numbers, npt.NDArray[np.float64]]:
        """Return all slots of rows that have any, and the scores of their rows."""
        if not self._copies:
            return np.array([self._first[row] for row in rows.tolist()], np.int64), scores
        slots = [self._copies.get(row) or [self._first[row]] for row in rows.tolist()]
        every = np.array([slot for each in slots for slot in each], np.int64)
        return every, np.repeat(scores, [len(each) for each in slots])
