"""The vector index of a group in a table of the store, which the store searches (pgvector)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....nodegraph.concurrency import is_reading_graph, track
from ....nodegraph.graph import NodeGraph
from ....nodegraph.node import Node
from ....retrievers.filters import Filter
from ....retrievers.indexes.nearest_vectors import Floats, cosines, unit
from ....retrievers.indexes.vector_index import check_dimension
from ....retrievers.protocols import Snapshot
from ....retrievers.results import Hits
from .pgvector_table import PostgresVectorTable, Rows, TableState
from .value_numbers import ValueMatch, ValueMatcher, VectorRow

_BATCH = 1_000  # nodes per write

_MAX_UPDATES = 3  # updates per search; later changes are compared in memory

_LONG = 1_000  # minimum number of nodes for a progress bar

_FEW = 10_000  # maximum matching rows of a full comparison

_MANY = 1_000  # maximum requested rows of an HNSW search

_MARGIN = 2e-6  # bound of the difference between 32-bit dot products and rounded scores

_RECOUNT = 1.1  # growth of a table after which a filter's rows are counted again

_MAX_COUNTS = 256

Version = tuple[int, tuple[str, ...]]  # a group's revision and its search version

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]


class TableVectorIndex:
    """A vector index of a group in a table of the store, searched by cosine.

    Results equal the results of ``VectorIndex``: scores are computed again from the vectors, ties
    are in document order. They are exact up to 10,000 nodes, and if a filter leaves at most 10,000;
    above, HNSW may miss a node. Nodes that the table lacks are compared in memory, so that a
    search includes all changes of the graph.

    Call ``ready`` before locking the graph: it embeds new nodes and updates the table, for all
    processes. Call ``snapshot`` while the graph is locked.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: The key of the embedding.
        vector_table: A function that returns the table of a group, a model and a search text.

    Raises:
        LookupError: If the graph has no embedding ``key``.
        ValueError: If the store does not search vectors.
    """

    uses_search_text = True

    def __init__(
        self,
        graph: NodeGraph,
        group: str,
        key: str,
        vector_table: Callable[..., PostgresVectorTable | None],
    ) -> None:
        self._graph = graph
        self._vector_table = vector_table
        self._group = group
        self._key = key
        self._model = graph.embeddings.embedder(key).name
        self._tables: dict[str, PostgresVectorTable] = {}  # by search text
        self._latest: tuple[object, _View] = None, _View(None, None, 0, [], _NONE)
        self._counts: dict[Hashable, tuple[int, int]] = {}  # by filter: table size, row count
        self._matcher = ValueMatcher(lambda *args: self._table().numbers.values(*args))
        self._table()

    # Following the graph

    def ready(self) -> None:
        """Update the table, before the graph is held.

        Raises:
            EmbeddingError: If the model fails, or returns no usable vectors.
            StoreError: If the store can't be reached or written to.
            TransformError: If the group has to be built and its transform raises.
        """
        if is_reading_graph():  # waiting for the table's lock could be a deadlock
            return
        for _ in range(_MAX_UPDATES):
            if (outdated := self._outdated()) is None:
                break
            table, state = outdated
            # Rows that another process is writing are compared here, unless the table is empty.
            with table.updating(wait=state is None) as acquired:
                if not acquired:
                    break
                if self._outdated() is not None:
                    self._update()
        self._embed_missing()
        self._table().build_hnsw()

    def _embed_missing(self) -> None:
        """Embed the nodes that are not in the table, for the comparison during a search."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            state, version = self._table().state(), self._version()
            if _is_current(state, version):
                return
            nodes = list(self._graph.reader.changes(self._group, _since(state, version[1])).added)
        self._vectors(nodes)

    def sync(self) -> None:
        """Do nothing: a search reads the state of the table itself."""

    def _table(self) -> PostgresVectorTable:
        """Return the table of the group's current search text."""
        text = self._graph.reader.search_version(self._group)[0]
        if text not in self._tables:
            table = self._vector_table(self._group, self._model, text)
            if table is None:
                raise ValueError(f"the store of {self._graph!r:.80} does not search vectors")
            self._tables[text] = table
        return self._tables[text]

    def _outdated(self) -> tuple[PostgresVectorTable, TableState | None] | None:
        """Return the table and its state; None if it is up to date."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table = self._table()
            state = table.state()
            return None if _is_current(state, self._version()) else (table, state)

    def _version(self) -> Version:
        reader = self._graph.reader
        return reader.revision(self._group), reader.search_version(self._group)

    def _update(self) -> None:
        """Write the changes since the table's revision."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table, (_, version) = self._table(), self._version()
            state = table.state()
            changes = self._graph.reader.changes(self._group, _since(state, version))
            ids = self._graph.reader.ids(self._group) if changes.complete else []
        if changes.complete:
            self._write_all(table, ids, TableState(changes.revision, version, 0, 0))
            return
        dimension = 0 if state is None else state.dimension
        new = TableState(changes.revision, version, 0, dimension)
        rows = self._rows(changes.added)
        if rows and len(rows[0].vector) != dimension:
            table.clear()
        else:
            table.write(changes.removed, rows, new)

    def _write_all(self, table: PostgresVectorTable, ids: Sequence[str], state: TableState) -> None:
        """Write all nodes in batches; an interruption costs one batch."""
        existing = set(ids)
        if others := [i for i in table.ids() if i not in existing]:
            table.write(others, [], None)
        batches = range(0, len(ids), _BATCH)
        show = self._graph.progress if len(ids) >= _LONG else False
        dimension = 0
        for start in track(batches, len(batches), f"vectors of {self._group}", " batches", show):
            nodes = self._graph.reader.existing_nodes(ids[start : start + _BATCH])
            rows = self._rows(nodes)
            unusable = {node.id for node in nodes} - {row.id for row in rows}
            if rows and not dimension:
                dimension = len(rows[0].vector)
                if table.dimension() not in (0, dimension):
                    table.clear()
            table.write([*unusable], rows, None)
        table.write([], [], state._replace(dimension=dimension))

    def _rows(self, nodes: Sequence[Node]) -> list[VectorRow]:
        """Return the rows of nodes with a usable vector."""
        return [
            VectorRow(node.id, node.order, node.document_id, node.metadata, vector)
            for node, vector in zip(nodes, self._vectors(nodes), strict=True)
            if vector.any()
        ]

    def _vectors(self, nodes: Sequence[Node]) -> Floats:
        """Return the unit vectors of nodes, (nodes, dimension)."""
        texts = self._graph.reader.searched_texts(nodes)
        return unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))

    # Searching

    def search(self, query: Floats, limit: int | None, filter: Filter) -> Hits:
        """Return the nearest nodes, ties in document order; call it while the graph is held.

        Args:
            query: The query's vector, (dimension,). A zero vector matches nothing.
            limit: Maximum number of nodes; None for all.
            filter: The filter, applied before ranking.

        Raises:
            StoreError: If the store fails.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[Floats], filter: Filter) -> Snapshot:
        """Return the search for queries, which asks the server without the lock of the graph.

        If the table has changed before the search, the search raises LookupError, and is repeated
        under the lock.
        """
        view = self._view()
        for query in queries:
            check_dimension(query, view.dimension, self._group, self._model, self._key)
        match, exact = None, False
        if view.table is not None and (match := self._matcher.match(filter)) is not None:
            exact = self._leaves_few(view, view.table, filter, match)

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            def find(rows: Rows) -> list[Hits]:
                options = limit, filter, match, exact, rows
                return [self._hits(view, queries[number], *options) for number in numbers]

            if view.table is None:
                return find(lambda *_: [])
            return view.table.read(view.state, find)

        return Snapshot(search, self._graph.reader.parent_ids)

    def _hits(
        self,
        view: _View,
        query: Floats,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
        exact: bool,
        rows_of: Rows,
    ) -> Hits:
        if not query.any():
            return Hits([], [])
        query = unit(query)
        kept = [row for row, node in enumerate(view.nodes) if filter.matches(node)]
        ids = [view.nodes[row].id for row in kept]
        orders = np.array([view.nodes[row].order for row in kept], np.int64)
        scores = cosines(view.vectors, np.array(kept, np.int64), query) if kept else np.zeros(0)
        if view.table is not None:
            found = _nearest(view.table, query, limit, match, view.removed, exact, rows_of)
            ids = found[0] + ids
            orders, scores = np.append(found[1], orders), np.append(found[2], scores)
        ranking = np.lexsort((orders, -scores))[:limit]
        return Hits([ids[row] for row in ranking.tolist()], scores[ranking].tolist())

    def _view(self) -> _View:
        """Return the searched rows and nodes for the snapshot of this thread."""
        table, version = self._table(), self._version()
        state = table.state()
        key, view = self._latest
        if key != (state, version):
            view = self._read_view(table, state, version)
            self._latest = (state, version), view
        return view

    def _read_view(
        self, table: PostgresVectorTable, state: TableState | None, version: Version
    ) -> _View:
        size, dimension = (state.size, state.dimension) if state else (0, 0)
        if _is_current(state, version):
            return _View(table if size and dimension else None, state, dimension, [], _NONE)
        changes = self._graph.reader.changes(self._group, _since(state, version[1]))
        vectors = self._vectors(changes.added)
        usable = np.asarray(vectors.any(axis=1))
        nodes = list(compress(changes.added, usable.tolist()))
        is_searched = bool(size and dimension) and not changes.complete
        dimension = vectors.shape[1] if nodes else dimension if is_searched else 0
        removed = frozenset([*changes.removed, *(node.id for node in changes.added)])
        searched = table if is_searched else None
        return _View(searched, state, dimension, nodes, vectors[usable], removed)

    def _leaves_few(
        self, view: _View, table: PostgresVectorTable, filter: Filter, match: ValueMatch
    ) -> bool:
        """Return whether a filter leaves so few rows that comparing all of them is fast."""
        size, count = self._counts.get(filter.key, (0, 0))
        now = 0 if view.state is None else view.state.size
        if not size or not 1 / _RECOUNT < now / size < _RECOUNT:
            if len(self._counts) >= _MAX_COUNTS:
                self._counts = {}
            count = table.count(match, _FEW + 1)
            self._counts[filter.key] = now, count
        return count <= _FEW


_NONE = np.zeros((0, 0), np.float32)


class _View(NamedTuple):
    """The searched rows, and the nodes that are not in the table yet.

    Attributes:
        table: The table. None: the table is empty or completely outdated.
        state: The content of the table.
        dimension: The length of the vectors. 0: no vectors.
        nodes: New and changed nodes.
        vectors: The unit vectors of the nodes, (nodes, dimension).
        removed: Ids of removed and changed nodes, whose rows are skipped.
    """

    table: PostgresVectorTable | None
    state: TableState | None
    dimension: int
    nodes: Sequence[Node]
    vectors: Floats
    removed: frozenset[str] = frozenset()


def _is_current(state: TableState | None, version: Version) -> bool:
    return state is not None and (state.revision, state.version) == version


def _since(state: TableState | None, version: tuple[str, ...]) -> int:
    """Return the revision after which changes count; 0 if everything has to be written."""
    return 0 if state is None or state.version != version else state.revision


def _nearest(
    table: PostgresVectorTable,
    query: Floats,
    limit: int | None,
    match: ValueMatch | None,
    removed: frozenset[str],
    exact: bool,
    rows: Rows,
) -> tuple[list[str], Numbers, Scores]:
    """Return the nearest rows of a table, including all ties with the last row.

    Returns:
        The ids, the positions in document order, and the scores.
    """
    requested = None if limit is None else limit + limit // 4 + 4
    while True:
        exact = exact or (requested is not None and requested > _MANY)
        ids: list[str] = []
        orders, scores = np.zeros(0, np.int64), np.zeros(0)
        for batch in table.nearest(query, requested, match, removed, exact, rows):
            ids += batch[0]
            orders = np.append(orders, batch[1])
            scores = np.append(scores, cosines(batch[2], np.arange(len(batch[0])), query))
        if requested is None or limit is None or (exact and len(ids) < requested):
            return ids, orders, scores
        if len(ids) < requested:
            exact = True  # HNSW found too few
        elif scores.min() < np.partition(scores, -limit)[-limit] - _MARGIN:
            return ids, orders, scores
        else:  # more rows may tie with the last
            requested *= 4
