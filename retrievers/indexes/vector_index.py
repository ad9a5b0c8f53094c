"""An index of the vectors of a group, which finds the nodes that are nearest to a query."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from ...nodegraph.concurrency import fork_safe_lock, with_deferred_work
from ...nodegraph.errors import VectorLengthError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import portions
from ..filters import Filter
from ..protocols import Snapshot
from ..results import Hits
from .array_files import Arrays, checked, grown
from .filter_index import FilterIndex
from .hnsw_builder import BackgroundBuild, HnswBuilder
from .nearest_vectors import Floats, Hnsw, has_faiss, nearest, unit, wants_codes, wants_hnsw
from .node_table import NodeTable
from .synced_index import Version
from .vector_codes import VectorCodes

logger = logging.getLogger(__name__)

_PORTION = 2_048  # the number of nodes in memory per step

_CODES_PAY = 32  # the number of searches from which computing codes is worthwhile

_EMBEDDED_TEXTS = 16_384  # the number of texts per call of the embedding models


class VectorIndex(FilterIndex):
    """An index of the vectors of a group's nodes for one embedding, compared by cosine similarity.

    A search compares all vectors. If there are more than 200,000, FAISS (extra ``faiss``) searches
    an HNSW graph as soon as ``link`` or a background thread has built it. If there are more than
    8,000 vectors, a process that searches often first compares 8-bit codes. This changes the
    results only if rounding errors are larger than six standard deviations.

    Args:
        graph: The graph.
        group: The name of the group.
        key: The name of the embedding.

    Raises:
        LookupError: If the graph has no embedding with this name.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, key: str) -> None:
        self._key = key
        self._model = graph.embeddings.embedder(key).name
        # Held while the HNSW graph is built, but never by searches.
        self._linking = fork_safe_lock()
        self._background: BackgroundBuild | None = None
        self._is_slow_logged = False
        self._coding = fork_safe_lock()  # held while codes are computed
        self._compared = 0  # the number of searches that compared all vectors
        self._counted: Version = 0, ()  # the version of ``_lacking``
        self._lacking: dict[str, str] = {}  # the digests of texts without a vector, by node id
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove all nodes from the index."""
        super().clear()
        self._vectors: Floats | None = None  # None until the first vector is added
        # The memory for ``_vectors`` and for vectors that are added later.
        self._room: Floats | None = None
        self._hnsw: Hnsw | None = None
        self._codes: VectorCodes | None = None

    def ready(self) -> None:
        """Embed the nodes that do not have a vector, before the graph is locked.

        If an HNSW graph is missing, a background thread starts to build it.

        Raises:
            EmbeddingError: If the model fails or returns unusable vectors.
            TransformError: If the group must be built and its transform raises an error.
        """
        reader = self._graph.reader
        texts: list[str] = []
        with reader.reading(light=True):
            has_new_state = reader.held_state() is not self._seen_state
            vectors = self._vectors
            table = self.table
            hnsw = self._hnsw
        if has_new_state:
            with reader.reading(*reader.searched_groups(self._group)):
                added = [] if self.is_current() else self._missed().added
                for nodes in portions(added, _PORTION):
                    texts += self._lacking_texts(nodes)
        for part in portions(texts, _EMBEDDED_TEXTS):
            self._graph.embeddings.embed(part, self._key, self._group)
        if vectors is None:
            return
        if wants_hnsw(len(vectors), hnsw):
            self._link_in_background(vectors, table)
        codes_pay = hnsw is None and self._compared >= _CODES_PAY
        if codes_pay and wants_codes(len(vectors), self._codes) and has_faiss():
            self._make_codes(vectors, table)

    def count_missing(self, limit: int) -> int:
        """Return the number of vectors that a search would have to compute.

        Args:
            limit: The number up to which the count is exact. A higher count is the number of nodes
                without a vector, some of which can have equal texts.
        """
        reader = self._graph.reader
        if reader.held_state() is self._seen_state:
            return 0
        with reader.reading(*reader.searched_groups(self._group)):
            if self.is_current():
                return 0
            self._update_lacking()
            # Any process may have stored some of these vectors since the last count.
            counted: set[str] = set()
            stored: set[str] = set()
            for keys in portions(self._lacking.values(), limit + 1):
                counted |= self._graph.embeddings.missing(keys, self._key)
                stored |= {*keys} - counted
                if len(counted) > limit:
                    break
            if stored:
                remaining = self._lacking.items()
                self._lacking = {node: key for node, key in remaining if key not in stored}
            return len(counted) if len(counted) <= limit else len(self._lacking)

    def _update_lacking(self) -> None:
        """Add changed nodes without a vector to ``_lacking``.

        The lock of the graph must be held.
        """
        reader = self._graph.reader
        changes = self._missed(self._counted)
        lacking = self._lacking
        if changes.complete or self._counted < self._synced:
            lacking.clear()
        for node_id in changes.removed:
            lacking.pop(node_id, None)
        for nodes in portions(changes.added, _PORTION):
            digests = [digest(text) for text in reader.searched_texts(nodes)]
            missing = self._graph.embeddings.missing(digests, self._key)
            pairs = zip(nodes, digests, strict=True)
            lacking |= {node.id: key for node, key in pairs if key in missing}
        self._counted = self._version()

    def link(self) -> None:
        """Build an HNSW graph of many vectors, and display a progress bar. This may take minutes.

        Raises:
            EmbeddingError: If the model fails.
            TransformError: If the group must be built and its transform raises an error.
        """
        if not wants_hnsw(self._graph.reader.count(self._group), None) or not has_faiss():
            return
        with self._linking:
            vectors, table, hnsw = with_deferred_work(self._state)
            if vectors is None or not wants_hnsw(len(vectors), hnsw):
                return
            builder: HnswBuilder | None = None
            background = self._background
            if background is not None:
                unfinished = background.stop()
                if background.owner is table:
                    builder = unfinished
            if builder is None:
                builder = HnswBuilder(vectors)
            label = f"linking vectors of {self._group}"
            self._install(builder.run(label, self._graph.progress), table)

    def _state(self) -> tuple[Floats | None, NodeTable, Hnsw | None]:
        """Return the current vectors with their table, and the HNSW graph."""
        with self.current():
            return self._vectors, self.table, self._hnsw

    def _link_in_background(self, vectors: Floats, table: NodeTable) -> None:
        """Start to build the HNSW graph in a thread, unless this is already in progress.

        Until it is complete, searches compare all vectors.
        """
        remedy = "FAISS is faster: pip install 'nodekin[faiss]'"
        if has_faiss():
            remedy = (
                "a thread builds an HNSW index, which makes searches faster; "
                "graph.build(embed=True) builds it before the first search"
            )
        if not self._is_slow_logged:
            self._is_slow_logged = True
            logger.warning(
                "%s vectors of %r are compared one by one; %s", len(vectors), self._group, remedy
            )
        if not has_faiss() or not self._linking.acquire(blocking=False):
            return
        try:
            background = self._background
            if background is not None and background.owner is table:
                if background.is_alive() or background.has_failed:
                    return
            elif background is not None:
                background.cancel()
            install = weakref.WeakMethod(self._install)
            self._background = BackgroundBuild(vectors, table, install)
        finally:
            self._linking.release()

    def _make_codes(self, vectors: Floats, table: NodeTable) -> None:
        """Compute the codes of all vectors, unless another thread does.

        This takes less than a second.
        """
        if not self._coding.acquire(blocking=False):
            return
        try:
            codes = VectorCodes(vectors)
            with self._graph.reader.reading():
                if self.table is table:  # the table has not been compacted in the meantime
                    self._codes = codes
                    self._compared = 0
        finally:
            self._coding.release()

    def _install(self, hnsw: Hnsw, table: NodeTable) -> None:
        """Use a new HNSW graph, and store it in the index file."""
        with self._graph.reader.reading():
            if self.table is not table:  # the table was compacted in the meantime
                return
            self._hnsw = hnsw
            self._codes = None
            content = None if self._graph.reader.is_read_only else self._file_content()
        self._write_file(content)

    def close(self) -> None:
        """Store the index if enough has changed. The index can still be used afterward."""
        if self._background is not None:
            self._background.stop()
        super().close()

    def search(self, query: Floats, limit: int | None, filter: Filter) -> Hits:
        """Return the nearest nodes. Nodes with equal scores are in document order.

        Args:
            query: The vector of the query, with shape (dimension,). A vector of zeros has no
                results.
            limit: The maximum number of nodes. If None, all nodes are returned.
            filter: The filter that nodes must match.

        Raises:
            VectorLengthError: If the dimension differs from the dimension of the nodes' vectors.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[Floats], filter: Filter) -> Snapshot:
        """Return a search for queries that is not affected by later changes of the index."""
        vectors = self._vectors
        hnsw = self._hnsw
        codes = self._codes
        if hnsw is None:
            self._compared += 1
        if vectors is not None and self.size:
            for query in queries:
                check_dimension(query, vectors.shape[1], self._group, self._model, self._key)
        table = self.table.snapshot(filter)
        allowed = self.table.allowed(filter)
        units = [unit(query) for query in queries]

        def hits(rows: Any, scores: Any, limit: int | None) -> Hits:
            ranking = np.lexsort((table.orders.take(rows), -scores))[:limit]
            return Hits(table.ids_of(rows.take(ranking)), scores.take(ranking).tolist())

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            wanted = [units[number] for number in numbers]
            if vectors is None or not allowed.any():
                return [Hits([], [])] * len(wanted)
            found = nearest(vectors, np.array(wanted), limit, allowed, hnsw, codes)
            return [
                hits(rows, scores, limit) if query.any() else Hits([], [])
                for query, (rows, scores) in zip(wanted, found, strict=True)
            ]

        return Snapshot(search, table.parents_of, inherits=table.inherit)

    # Following the graph

    def _lacking_texts(self, nodes: Sequence[Node]) -> list[str]:
        """Return the searched texts of nodes that do not have a vector yet."""
        texts = {digest(text): text for text in self._graph.reader.searched_texts(nodes)}
        return [texts[key] for key in self._graph.embeddings.missing(texts, self._key)]

    def prepare(self, nodes: Sequence[Node]) -> None:
        """Embed the nodes that do not have a vector."""
        self._graph.embeddings.embed(self._lacking_texts(nodes), self._key, self._group)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes and their vectors, except for nodes whose vector consists of zeros."""
        most = len(self.table) + len(nodes)
        for batch in portions(nodes, _PORTION):
            texts = self._graph.reader.searched_texts(batch)
            new = self._graph.embeddings.vectors(texts, self._key, what=self._group)
            usable = np.asarray(new.any(axis=1))
            if not usable.all():
                batch = [*compress(batch, usable.tolist())]
                new = new[usable]
            self.table.add(batch)
            if self._vectors is None or self._room is None:
                self._vectors = self._room = np.zeros((0, new.shape[1]), np.float32)
            first = len(self._vectors)
            count = first + len(new)
            # Reserve space for all rows, because growing copies them.
            self._room = grown(self._room, most)
            self._room[first:count] = unit(new)
            self._vectors = self._room[:count]

    def compact(self) -> None:
        """Remove the empty rows of the index."""
        if self._vectors is not None:
            self._vectors = self._room = self._vectors.take(np.flatnonzero(self.table.alive), 0)
        self._hnsw = None
        self._codes = None
        super().compact()

    # The file

    def file_name(self) -> str:
        """Return the name of the index file, which is different for each embedding and model."""
        return f"vectors-{digest(self._key, self._model)}"

    def header(self) -> dict[str, Any]:
        """Return the settings with which a stored index must have been built."""
        return {"kind": "vectors", "key": self._key, "model": self._model}

    def arrays(self) -> Arrays:
        """Return the arrays to store in the index file."""
        if self._vectors is None:
            return {}
        hnsw = {} if self._hnsw is None else self._hnsw.arrays()
        return {**self.table.arrays(), "vectors": self._vectors, **hnsw}

    def restore(self, arrays: Arrays) -> None:
        """Restore the index from the result of ``arrays``.

        Raises:
            ValueError: If the arrays are not valid.
        """
        table = NodeTable.from_arrays(arrays)
        vectors = checked(arrays, "vectors", np.float32, len(table), None)
        flat = vectors.reshape(-1)
        # Checks all numbers without a copy.
        if not vectors.shape[1] or not np.isfinite(np.dot(flat, flat)):
            raise ValueError("vectors must have finite numbers")
        self._hnsw = Hnsw.from_arrays(arrays, vectors)
        self.table = table
        self._vectors = self._room = vectors

    def verify(self) -> None:
        """Verify that the index does not contain more nodes than the graph.

        It can contain fewer nodes, because nodes with a vector of zeros have no row.

        Raises:
            ValueError: If the index contains too many nodes.
        """
        count = self._graph.reader.count(self._group)
        if self.size > count:
            raise ValueError(f"it must have at most {count:,} nodes, got {self.size:,}")


def check_dimension(query: Floats, dimension: int, group: str, model: str, key: str) -> None:
    """Check the dimension of a query's vector.

    Args:
        query: The vector of the query.
        dimension: The dimension of the nodes' vectors. If it is 0, the group has no vectors.
        group: The name of the group, for the error message.
        model: The name of the model, for the error message.
        key: The name of the embedding, for the error message.

    Raises:
        VectorLengthError: If the dimensions differ.
    """
    if dimension and query.shape != (dimension,):
        numbers = " x ".join([str(length) for length in query.shape])
        raise VectorLengthError(
            f"the query's vector has {numbers} numbers, and those of group {group!r} have "
            f"{dimension}: the embedding model {model!r} (key {key!r}) must embed queries and "
            "passages alike"
        )
