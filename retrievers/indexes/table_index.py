"""The index of vectors that are searched by the store's engine: no process holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from ...nodegraph.errors import EmbeddingError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.vector_table import Nearest, TableState, ValueMatch, VectorRow, VectorTable
from ..filters import Filter
from ..results import Hits
from .nearest_vectors import Floats, Numbers, Scores, cosines, unit
from .synced_table import SyncedTable
from .value_matching import ValueMatcher

_FEW = 10_000  # rows that are compared one by one, where a filter leaves no more

_MANY = 1_000  # requested hits above which all rows are compared

_MARGIN = 2e-6  # products of 32-bit numbers, and six decimals, differ by less

_RECOUNT = 1.1  # how much a table grows or shrinks before it is counted anew what a filter leaves

_MOST_COUNTS = 256


@dataclass(frozen=True, slots=True)
class _Recent:
    """What a table has missed: compared exactly, beside it.

    Attributes:
        removed: Ids of nodes that are gone or have changed, as far as the table has them.
        nodes: New and changed nodes.
        orders: Their places in document order, (nodes,).
        vectors: Their unit vectors, (nodes, dimension).
        complete: Whether that is all there is, and the table has to be passed over.
    """

    removed: frozenset[str]
    nodes: Sequence[Node]
    orders: Numbers
    vectors: Floats
    complete: bool


@dataclass(frozen=True, slots=True)
class _View:
    """What a thread searches: a table as its snapshot has it, and what is missing there."""

    table: VectorTable
    state: TableState | None
    recent: _Recent | None


class TableIndex(SyncedTable[VectorTable, _Recent]):
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
        self._matcher = ValueMatcher(self._table())
        self._counts: dict[Hashable, tuple[int, int]] = {}  # by filter: size of the table, count

    # Following the graph

    def _make_table(self, text: str) -> VectorTable:
        table = self._graph.reader.vector_table(self._group, self._model, text)
        if table is None:
            raise ValueError(
                f"{self._graph!r:.80} has no engine that searches vectors; open a VectorIndex"
            )
        return table

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
        table.link()

    def _rows(self, nodes: Sequence[Node]) -> list[VectorRow]:
        return [
            VectorRow(node.id, node.order, node.document_id, node.metadata, vector)
            for node, vector in zip(nodes, self._vectors(nodes), strict=True)
        ]

    def _vectors(self, nodes: Sequence[Node]) -> Floats:
        """Return the unit vectors of nodes, (nodes, dimension)."""
        texts = self._graph.reader.searched_texts(nodes)
        return unit(self._graph.embeddings.vectors(texts, self._key, what=self._group))

    def _compared(
        self, table: VectorTable, removed: Sequence[str], nodes: Sequence[Node], complete: bool
    ) -> _Recent:
        orders = np.array([node.order for node in nodes], np.int64)
        gone = frozenset([*removed, *(node.id for node in nodes)])
        return _Recent(gone, nodes, orders, self._vectors(nodes), complete)

    # Searching

    def search(self, query: Floats, limit: int | None, filter: Filter) -> Hits:
        """Return the nearest nodes, ties in document order.

        Args:
            query: The query's vector (dimension,), of any length but 0, which matches nothing.
            limit: How many; None for all.
            filter: What their metadata must meet; applied before ranking.

        Raises:
            EmbeddingError: If the vector has not the dimension of the nodes' vectors.
            StoreError: If the engine fails.
            TableAheadError: If another process has changed the graph since this thread holds it.
        """
        return self.search_many([query], limit, filter)[0]

    def search_many(
        self, queries: Sequence[Floats], limit: int | None, filter: Filter
    ) -> list[Hits]:
        """Return what ``search`` returns for each query."""
        view = _View(*self._view())
        for query in queries:
            self._check_dimension(query, view)
        passed_over = view.recent is not None and view.recent.complete
        match = None
        if view.state is None or not view.state.size or passed_over:
            view = replace(view, state=None)
        else:
            match = self._matcher.match(filter)
        return [
            self._hits(unit(query), limit, filter, match, view) if query.any() else Hits([], [])
            for query in queries
        ]

    def _check_dimension(self, query: Floats, view: _View) -> None:
        dimension = 0 if view.state is None else view.state.dimension
        if view.recent is not None and view.recent.nodes:
            dimension = view.recent.vectors.shape[1]
        if dimension and query.shape != (dimension,):
            numbers = " x ".join(map(str, query.shape))
            raise EmbeddingError(
                f"the query's vector has {numbers} numbers, and those of group {self._group!r} "
                f"have {dimension}: the embedding model {self._model!r} (key {self._key!r}) must "
                "embed queries and passages alike"
            )

    def _hits(
        self,
        query: Floats,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
        view: _View,
    ) -> Hits:
        ids: list[str] = []
        orders, scores = np.zeros(0, np.int64), np.zeros(0)
        recent = view.recent
        if view.state is not None:
            exact = match is not None and self._leaves_few(filter, match, view)
            ids, orders, scores = self._nearest(query, limit, match, view, exact)
        if recent is not None and recent.nodes:
            rows = np.array([r for r, n in enumerate(recent.nodes) if filter.matches(n)], np.intp)
            ids = [*ids, *(recent.nodes[row].id for row in rows)]
            orders = np.concatenate([orders, recent.orders[rows]])
            scores = np.concatenate([scores, cosines(recent.vectors, rows, query)])
        ranking = np.lexsort((orders, -scores))[:limit]
        return Hits([ids[row] for row in ranking.tolist()], scores[ranking].tolist())

    def _leaves_few(self, filter: Filter, match: ValueMatch, view: _View) -> bool:
        """Return whether a filter leaves so few rows that comparing them is exact and quick."""
        now = 0 if view.state is None else view.state.size
        size, count = self._counts.get(filter.key, (0, 0))
        if not size or not 1 / _RECOUNT < now / size < _RECOUNT:
            if len(self._counts) >= _MOST_COUNTS:
                self._counts = {}
            count = view.table.count(match, _FEW + 1)
            self._counts[filter.key] = now, count
        return count <= _FEW

    def _nearest(
        self, query: Floats, limit: int | None, match: ValueMatch | None, view: _View, exact: bool
    ) -> tuple[list[str], Numbers, Scores]:
        """Return the nearest rows of the table, with all that tie with the last of them."""
        removed = () if view.recent is None else view.recent.removed
        requested = None if limit is None else limit + limit // 4 + 4
        while True:
            if requested is not None and requested > _MANY:
                exact = True
            ids, orders, scores = _collected(
                view.table.nearest(query, requested, match, removed, exact), query
            )
            if requested is None or limit is None:
                return ids, orders, scores
            if len(ids) < requested:
                if exact:
                    return ids, orders, scores
                exact = True  # the engine's graph led to too few
            elif scores.min() < np.partition(scores, -limit)[-limit] - _MARGIN:
                return ids, orders, scores
            else:  # more may tie with the last
                requested *= 4


def _collected(portions: Iterator[Nearest], query: Floats) -> tuple[list[str], Numbers, Scores]:
    """Return ids, orders and scores of rows that come in portions."""
    ids: list[list[str]] = []
    orders, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for portion in portions:
        ids.append(portion.ids)
        orders.append(portion.orders)
        scores.append(cosines(portion.vectors, np.arange(len(portion.ids)), query))
    return list(chain.from_iterable(ids)), np.concatenate(orders), np.concatenate(scores)
