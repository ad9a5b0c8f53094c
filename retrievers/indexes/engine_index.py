"""Indexes that an engine has: bring a table up to date, see what it lacks, search vectors."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...nodegraph.concurrency import track
from ...nodegraph.graph import NodeGraph
from ...nodegraph.locking import mutex
from ...nodegraph.node import Node
from ...nodegraph.search_tables import (
    Nearest,
    TableState,
    ValueMatch,
    VectorRow,
    VectorTable,
    WordTable,
    is_engine_disabled,
)
from ...nodegraph.store import Changes
from ..conditions import MISSING, Condition
from ..filters import Filter
from ..results import Hits
from .nearest_vectors import Floats, cosines, unit
from .vector_index import check_dimension

logger = logging.getLogger(__name__)

_MOST_CONDITIONS = 256  # that are remembered

_BATCH = 1_000  # nodes that are written at once

_UPDATES = 3  # of the table before a search, which compares what others write meanwhile

_LONG = 1_000  # nodes whose indexing is worth a progress bar

Version = tuple[int, tuple[str, ...]]  # a group's revision, and what its search text depends on


TableT = TypeVar("TableT", VectorTable, WordTable)

RecentT = TypeVar("RecentT", bound="Recent")

QueryT = TypeVar("QueryT")

Numbers = npt.NDArray[np.int64]

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Recent:
    """What a table has missed: compared here.

    Attributes:
        removed: Ids of nodes that were removed or have changed, as far as the table has them.
        nodes: New and changed nodes.
        complete: Whether these are all nodes, and the table is not searched.
    """

    removed: frozenset[str]
    nodes: Sequence[Node]
    complete: bool


class Scored(NamedTuple):
    """Nodes with their places in document order and their scores."""

    ids: list[str]
    orders: Numbers
    scores: Scores

    @classmethod
    def of(cls, nodes: Sequence[Node], scores: Scores) -> Scored:
        """Return nodes with their scores."""
        orders = np.array([node.order for node in nodes], np.int64)
        return cls([node.id for node in nodes], orders, scores)


@dataclass(frozen=True, slots=True)
class View(Generic[TableT, RecentT]):
    """What a thread searches.

    Attributes:
        table: The table as the thread's snapshot has it; None where nothing in it is searched.
        state: What it contains.
        recent: What is missing there; None where nothing is.
        removed: The nodes of the table that don't count.
    """

    table: TableT | None
    state: TableState | None
    recent: RecentT | None
    removed: frozenset[str]


class EngineIndex(ABC, Generic[TableT, RecentT, QueryT]):
    """Keep what an engine has of a group up to date with the graph, for all processes; search it.

    What the table has not taken in yet is compared here, so that a search sees the graph as it
    is. Call ``ready`` before the graph is held, which may write; search while it is held.

    Args:
        graph: The node graph.
        group: The group of nodes.
    """

    uses_search_text = True

    what: str
    """What a progress bar calls what is written."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph = graph
        self._group = group
        self._tables: dict[str, TableT] = {}  # by what is searched of a node
        self._lock = mutex()
        self._recent: tuple[object, RecentT] | None = None  # of the latest states
        self._matcher = ValueMatcher(lambda *args: self._table().values(*args))

    # What a subclass implements

    @abstractmethod
    def _make_table(self, text: str) -> TableT | None:
        """Return the table for a kind of search text; None where the engine has none."""

    @abstractmethod
    def _begin(self, table: TableT, ids: Sequence[str]) -> None:
        """Begin to write a whole group."""

    @abstractmethod
    def _write(
        self,
        table: TableT,
        removed: Sequence[str],
        nodes: Sequence[Node],
        state: TableState | None,
        dimension: int,
    ) -> int | None:
        """Write nodes; see ``VectorTable.write``.

        Args:
            table: The table.
            removed: Ids.
            nodes: New and changed nodes.
            state: What the table contains then, except for the dimension.
            dimension: That of the rows that are there.

        Returns:
            The dimension of the rows; None where they don't fit those that are there.
        """

    @abstractmethod
    def _read_recent(self, table: TableT, recent: Recent) -> RecentT:
        """Return what a table has missed, with what is compared of it."""

    @abstractmethod
    def _search_table(
        self,
        view: View[TableT, RecentT],
        table: TableT,
        query: QueryT,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
    ) -> Scored:
        """Return the best rows of a table, or more."""

    @abstractmethod
    def _search_recent(
        self, view: View[TableT, RecentT], recent: RecentT, query: QueryT, rows: Sequence[int]
    ) -> Scored:
        """Return those of the recent nodes, by their places, that match a query."""

    def _check(self, query: QueryT, view: View[TableT, RecentT]) -> None:
        """Raise an error where a query does not fit what is searched; nothing by default."""

    def _state_key(self, table: TableT, state: TableState | None) -> object:
        """Return what tells apart the states of a table."""
        return state

    def _finish(self, table: TableT) -> None:
        """Do what makes a large table quick; nothing by default."""

    # Following the graph

    def ready(self) -> None:
        """Bring the table up to date, before the graph is held.

        Raises:
            EmbeddingError: If the model fails, or returns no usable vectors.
            StoreError: If the engine can't be reached, or can't be written to.
            TransformError: If the group has to be built and its transform raises.
        """
        if is_engine_disabled():
            return
        for _ in range(_UPDATES):
            if (behind := self._behind()) is None:
                break
            table, state = behind
            # What another process is about to write is compared here, unless it is everything.
            with table.updating(wait=state is None) as free:
                if not free:
                    return
                if self._behind() is not None:
                    self._update()
        self._finish(self._table())

    def _table(self) -> TableT:
        """Return the table of what is searched of the group's nodes now."""
        text = self._graph.reader.search_version(self._group)[0]
        tables = self._tables
        if text not in tables:
            if (table := self._make_table(text)) is None:
                raise ValueError(
                    f"{self._graph!r:.80} has no engine that searches {self.what}; open an index "
                    "of this process: TextIndex or VectorIndex"
                )
            tables[text] = table
        return tables[text]

    def _behind(self) -> tuple[TableT, TableState | None] | None:
        """Return the table and its state; None where it has the graph's."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table = self._table()
            state = table.state()
            return None if _is_current(state, self._version()) else (table, state)

    def _version(self) -> Version:
        """Return the state of the group: a table that was written for another one is behind."""
        return self._graph.reader.revision(self._group), self._graph.reader.search_version(
            self._group
        )

    def _update(self) -> None:
        """Write what the table has missed; what is new in the meantime remains."""
        with self._graph.reader.reading(*self._graph.reader.searched_groups(self._group)):
            table, (_, version) = self._table(), self._version()
            state = table.state()
            since = _since(state, version)
            changes = self._graph.reader.changes(self._group, since, stream=True)
            ids = self._graph.reader.ids(self._group) if changes.complete else []
        if changes.complete:
            self._write_all(table, ids, TableState(changes.revision, version, 0, 0))
            return
        dimension = 0 if state is None else state.dimension
        new = TableState(changes.revision, version, 0, dimension)
        if self._write(table, changes.removed, changes.added, new, dimension) is None:
            table.clear()

    def _write_all(self, table: TableT, ids: Sequence[str], state: TableState) -> None:
        """Write all nodes, batch by batch; an interruption costs a batch."""
        self._begin(table, ids)
        batches = range(0, len(ids), _BATCH)
        show = self._graph.progress if len(ids) >= _LONG else False
        dimension = 0
        what = f"{self.what} of {self._group}"
        for start in track(batches, len(batches), what, " batches", show):
            nodes = self._graph.reader.existing_nodes(ids[start : start + _BATCH])
            dimension = self._write(table, [], nodes, None, dimension) or dimension
        self._write(table, [], [], state._replace(dimension=dimension), dimension)

    def close(self) -> None:
        """Let the engine forget what is of no use to another process."""
        for table in self._tables.values():
            table.close()

    def sync(self) -> None:
        """Do nothing: a search finds out what the table has, in the state that it reads."""

    # Searching

    def search(self, query: QueryT, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes, ties in document order; call it while the graph is held.

        Args:
            query: The query, as the similarity prepares it.
            limit: How many; None for all that match.
            filter: What their metadata must meet; applied before ranking.

        Raises:
            StoreError: If the engine fails.
            StaleSnapshotError: If another process has changed the graph since this thread holds it.
        """
        return self.search_many([query], limit, filter)[0]

    def search_many(
        self, queries: Sequence[QueryT], limit: int | None, filter: Filter
    ) -> list[Hits]:
        """Return what ``search`` returns for each query."""
        view = self._view()
        for query in queries:
            self._check(query, view)
        match = None if view.table is None else self._matcher.match(filter)
        return [self._hits(view, query, limit, filter, match) for query in queries]

    def _hits(
        self,
        view: View[TableT, RecentT],
        query: QueryT,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
    ) -> Hits:
        parts: list[Scored] = []
        if view.table is not None:
            parts.append(self._search_table(view, view.table, query, limit, filter, match))
        if view.recent is not None:
            nodes = view.recent.nodes
            rows = [row for row, node in enumerate(nodes) if filter.matches(node)]
            parts.append(self._search_recent(view, view.recent, query, rows))
        if not parts:
            return Hits([], [])
        ids = [node_id for part in parts for node_id in part.ids]
        scores = np.concatenate([part.scores for part in parts])
        ranking = np.lexsort((np.concatenate([part.orders for part in parts]), -scores))[:limit]
        return Hits([ids[row] for row in ranking.tolist()], scores[ranking].tolist())

    def _view(self) -> View[TableT, RecentT]:
        """Return what there is to search in the state that this thread reads."""
        table, version = self._table(), self._version()
        state = table.state()
        recent = None if _is_current(state, version) else self._missed(table, state, version)
        removed = frozenset[str]() if recent is None else recent.removed
        is_empty = state is None or not state.dimension or not state.size
        skipped = is_empty or (recent is not None and recent.complete)
        return View(None if skipped else table, state, recent, removed)

    def _missed(self, table: TableT, state: TableState | None, version: Version) -> RecentT:
        key = (self._state_key(table, state), version)
        with self._lock:
            if self._recent is not None and self._recent[0] == key:
                return self._recent[1]
        changes = self._graph.reader.changes(self._group, _since(state, version[1]))
        recent = self._read_recent(table, _recent_of(changes))
        with self._lock:
            self._recent = key, recent
        return recent


def _recent_of(changes: Changes) -> Recent:
    nodes = list(changes.added)
    removed = frozenset([*changes.removed, *(node.id for node in nodes)])
    return Recent(removed, nodes, changes.complete)


def _is_current(table: TableState | None, version: Version) -> bool:
    return table is not None and (table.revision, table.version) == version


def _since(state: TableState | None, version: tuple[str, ...]) -> int:
    """Return the revision after which changes count; 0 where everything is to be written."""
    return 0 if state is None or state.version != version else state.revision


class _Decided(NamedTuple):
    """How a condition decided on the values up to a number."""

    last: int
    numbers: tuple[int, ...]  # those that meet it; where a missing value does, those that don't


Values = Callable[[str | None, int, Collection[str] | None], Iterator[tuple[int, Any]]]
"""Yields the values of a field with their numbers; see ``VectorTable.values``."""


class ValueMatcher:
    """Decide conditions on the values that fields have, so that they mean the same everywhere.

    Each value is decided once for a condition, by the condition itself; new values have higher
    numbers. A condition that asks for texts looks at no other values but these and lists.

    Args:
        values: Numbers the values.
    """

    def __init__(self, values: Values) -> None:
        self._all_values = values
        self._decided: OrderedDict[Hashable, _Decided] = OrderedDict()
        self._lock = mutex()
        self._warned: set[str] = set()

    def match(self, filter: Filter) -> ValueMatch | None:
        """Return what a filter selects; None where it has no condition."""
        if filter.condition is not None:
            field = filter.field if filter.join == "field" else None
            return self._values(field, filter.condition)
        parts = tuple(match for part in filter.parts if (match := self.match(part)) is not None)
        if not parts:
            return None
        join: Literal["and", "or", "not"] = "and"
        if filter.join == "or" or filter.join == "not":
            join = filter.join
        return ValueMatch(join, parts)

    def _values(self, field: str | None, condition: Condition) -> ValueMatch:
        meets_missing = condition(MISSING)
        key = field, condition.key
        with self._lock:
            decided = self._decided.get(key, _Decided(0, ()))
        texts = _texts(condition)
        last, new = decided.last, []
        for number, value in self._all_values(field, last, texts):
            last = number
            if condition(value) != meets_missing:
                new.append(number)
        if last != decided.last:
            decided = _Decided(last, (*decided.numbers, *new))
            with self._lock:
                self._decided[key] = decided
                self._decided.move_to_end(key)
                if len(self._decided) > _MOST_CONDITIONS:
                    self._decided.popitem(last=False)
        if not last and texts is None and condition.compares and field is not None:
            self._warn_of(field)
        match = ValueMatch("values", value_ids=decided.numbers)
        return ValueMatch("not", (match,)) if meets_missing else match

    def _warn_of(self, field: str) -> None:
        """Say once that no node has a field: it may be misspelt."""
        if field not in self._warned:
            self._warned.add(field)
            logger.warning(
                "no node has the metadata field %r, which a filter compares; see whether it is "
                "spelt so",
                field,
            )


def _texts(condition: Condition) -> list[str] | None:
    """Return the only texts that meet a condition; None where others may, too."""
    if condition.operator != "in" or condition.reads_dates:
        return None
    values = condition.operand
    return list(values) if all(type(value) is str for value in values) else None


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
