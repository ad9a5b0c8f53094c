"""The index of vectors that are searched by the store's engine: no process holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.search_tables import Nearest, TableState, ValueMatch, VectorRow, VectorTable
from ..filters import Filter
from .engine_index import EngineIndex, Recent, Scored, View
from .nearest_vectors import Floats, cosines, unit
from .vector_index import check_dimension

_FEW = 10_000  # rows that are compared one by one, where a filter leaves no more

_MANY = 1_000  # requested hits above which all rows are compared

_MARGIN = 2e-6  # products of 32-bit numbers, and six decimals, differ by less

_RECOUNT = 1.1  # how much a table grows or shrinks before it is counted anew what a filter leaves

_MOST_COUNTS = 256


@dataclass(frozen=True, slots=True)
class _Recent(Recent):
    """What a table has missed, with the unit vectors of the nodes, (nodes, dimension)."""

    vectors: Floats


class EngineVectorIndex(EngineIndex[VectorTable, _Recent, Floats]):
    """Search the nodes of a group whose embedding is nearest to that of a query, in an engine.

    Results are those of ``VectorIndex``: a score is computed anew from the vector, and ties are in
    document order. Up to 10,000 nodes, and where a filter leaves no more, they are exact; above,
    the engine's HNSW may miss a node (``benchmarks/stores.py`` measures how many it finds). What
    the table has not taken in yet is compared here, so that a search sees the graph as it is.

    Call ``ready`` before the graph is held: it embeds what is new and updates the table, for all
    processes; ``search`` while it is held.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which of the graph's embeddings.

    Raises:
        LookupError: If the graph has no such embedding.
        ValueError: If the graph has no engine that searches vectors.
    """

    what = "vectors"

    def __init__(self, graph: NodeGraph, group: str, key: str) -> None:
        super().__init__(graph, group)
        self._key = key
        self._model = graph.embeddings.embedder(key).name
        self._counts: dict[Hashable, tuple[int, int]] = {}  # by filter: size of the table, count
        self._table()

    # Following the graph

    def _make_table(self, text: str) -> VectorTable | None:
        return self._graph.reader.vector_table(self._group, self._model, text)

    def _begin(self, table: VectorTable, ids: Sequence[str]) -> None:
        """Remove what is no longer there; what an interruption has left is written over."""
        existing = set(ids)
        if others := [i for i in table.ids() if i not in existing]:
            table.write(others, [], None)

    def _write(
        self,
        table: VectorTable,
        removed: Sequence[str],
        nodes: Sequence[Node],
        state: TableState | None,
        dimension: int,
    ) -> int | None:
        rows = self._rows(nodes)
        own = len(rows[0].vector) if rows else dimension
        if own != dimension:
            if state is not None:
                return None
            if not dimension and table.dimension() not in (0, own):
                table.clear()
        table.write(removed, rows, state)
        return own

    def _finish(self, table: VectorTable) -> None:
        table.build_hnsw()

    def _rows(self, nodes: Sequence[Node]) -> list[VectorRow]:
        return [
            VectorRow(node.id, node.order, node.document_id, node.metadata, vector)
            for node, vector in zip(nodes, self._vectors(nodes), strict=True)
        ]

    def _vectors(self, nodes: Sequence[Node]) -> Floats:
        """Return the unit vectors of nodes, (nodes, dimension)."""
        texts = self._graph.reader.searched_texts(nodes)
        return unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))

    def _read_recent(self, table: VectorTable, recent: Recent) -> _Recent:
        return _Recent(recent.removed, recent.nodes, recent.complete, self._vectors(recent.nodes))

    # Searching

    def _check(self, query: Floats, view: _View) -> None:
        dimension = 0 if view.table is None or view.state is None else view.state.dimension
        if view.recent is not None and view.recent.nodes:
            dimension = view.recent.vectors.shape[1]
        check_dimension(query, dimension, self._group, self._model, self._key)

    def _search_table(
        self,
        view: _View,
        table: VectorTable,
        query: Floats,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
    ) -> Scored:
        if not query.any():
            return Scored([], np.zeros(0, np.int64), np.zeros(0))
        exact = match is not None and self._leaves_few(view, table, filter, match)
        return _nearest(table, unit(query), limit, match, view.removed, exact)

    def _search_recent(
        self, view: _View, recent: _Recent, query: Floats, rows: Sequence[int]
    ) -> Scored:
        part = np.array(rows if query.any() else [], np.intp)
        scores = cosines(recent.vectors, part, unit(query))
        return Scored.of([recent.nodes[row] for row in part.tolist()], scores)

    def _leaves_few(
        self, view: _View, table: VectorTable, filter: Filter, match: ValueMatch
    ) -> bool:
        """Return whether a filter leaves so few rows that comparing them is exact and quick."""
        now = 0 if view.state is None else view.state.size
        size, count = self._counts.get(filter.key, (0, 0))
        if not size or not 1 / _RECOUNT < now / size < _RECOUNT:
            if len(self._counts) >= _MOST_COUNTS:
                self._counts = {}
            count = table.count(match, _FEW + 1)
            self._counts[filter.key] = now, count
        return count <= _FEW


_View = View[VectorTable, _Recent]


def _nearest(
    table: VectorTable,
    query: Floats,
    limit: int | None,
    match: ValueMatch | None,
    removed: frozenset[str],
    exact: bool,
) -> Scored:
    """Return the nearest rows of a table, with all that tie with the last of them."""
    requested = None if limit is None else limit + limit // 4 + 4
    while True:
        exact = exact or (requested is not None and requested > _MANY)
        matches = _collected(table.nearest(query, requested, match, removed, exact), query)
        if requested is None or limit is None:
            return matches
        if len(matches.ids) < requested:
            if exact:
                return matches
            exact = True  # the engine's graph led to too few
        elif matches.scores.min() < np.partition(matches.scores, -limit)[-limit] - _MARGIN:
            return matches
        else:  # more may tie with the last
            requested *= 4


def _collected(batches: Iterator[Nearest], query: Floats) -> Scored:
    """Return the rows that come in batches."""
    ids: list[str] = []
    orders, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for batch in batches:
        ids += batch.ids
        orders.append(batch.orders)
        scores.append(cosines(batch.vectors, np.arange(len(batch.ids)), query))
    return Scored(ids, np.concatenate(orders), np.concatenate(scores))
