"""The index of words that an engine beside the store searches: no process holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import Node
from ...nodegraph.search_tables import (
    NodeTerms,
    TableState,
    TermFrequency,
    ValueMatch,
    WordedNode,
    WordTable,
)
from ..analysis.text_analyzer import Analyzer
from ..filters import Filter
from .bm25_scores import Floats, Meets, Saturation, TermWeights
from .engine_index import EngineIndex, Recent, Scored, Version, View
from .text_index import analysis_version, batches, inverted

Numbers = npt.NDArray[np.int64]

_SAMPLE = 1_000  # nodes by which the average length is estimated

_MARGIN = 1 + 1e-5  # sums of 32-bit numbers differ by less

_MAX_TERMS = 100_000  # terms that are remembered


@dataclass(frozen=True, slots=True)
class _RecentWords(Recent):
    """What a table has missed, with its words.

    Attributes:
        old: Those of the removed nodes that the table has.
        uses: In how many of these each term is, by number.
        terms: How often each of the nodes has which term.
        frequencies: In how many of them a term is.
        lengths: How many words each has, (nodes,).
    """

    old: Sequence[NodeTerms]
    uses: Mapping[int, int]
    terms: Sequence[Mapping[object, int]]
    frequencies: Mapping[object, int]
    lengths: Numbers

    def counts(self, rows: Sequence[int], terms: Sequence[str]) -> Numbers:
        """Return how often some nodes have some terms, (nodes, terms)."""
        counts = [[self.terms[row].get(term, 0) for term in terms] for row in rows]
        return np.array(counts, np.int64).reshape(len(rows), len(terms))


class TableStatistics:
    """Tell what a query is weighed by, for one state of a group that an engine has.

    Args:
        table: The table; None where it is passed over.
        recent: What it has missed.

    Attributes:
        size: How many nodes there are.
        total_length: How long they are together.
    """

    def __init__(self, table: WordTable | None, recent: _RecentWords | None) -> None:
        self._table = table
        self._recent = recent
        self._terms: dict[object, TermFrequency] = {}
        self.size = self.total_length = 0
        if table is not None:
            totals = table.totals()
            self.size, self.total_length = totals.nodes, totals.length
        if recent is not None:
            self.size += len(recent.nodes) - len(recent.old)
            self.total_length += int(recent.lengths.sum())
            self.total_length -= sum(node.length for node in recent.old)

    def read(self, terms: Collection[object]) -> dict[object, int]:
        """Return the number of each term in the table, 0 where it has none."""
        existing = self._terms
        missing = [term for term in terms if term not in existing]
        if missing:
            if len(existing) > _MAX_TERMS:
                existing = self._terms = {}
            nothing = dict.fromkeys(terms, TermFrequency(0, 0))
            existing.update(nothing if self._table is None else self._table.frequencies(terms))
        return {term: existing[term].id for term in terms}

    def mean_inverse_frequency(self) -> float:
        """Raise ``TypeError``: no process has the frequencies of all terms."""
        raise TypeError('method="okapi" needs an index in this process: open it by open_postings')

    def frequency(self, term: str) -> int:
        """Return in how many nodes a term is."""
        self.read([term])
        number, nodes = self._terms[term]
        if self._recent is not None:
            nodes += self._recent.frequencies.get(term, 0) - self._recent.uses.get(number, 0)
        return nodes


class EngineTextIndex(EngineIndex[WordTable, _RecentWords, TermWeights]):
    """Search the nodes of a group that share terms with a query, in an engine beside the store.

    Results are those of ``TextIndex``: terms are ours, document frequencies are counted in the
    store, and scores are computed from the terms of the engine's candidates. More candidates are
    read until no other node can be among the best, up to as many as the engine returns at once;
    only where so many tie, the last of them may be others.

    Call ``ready`` before the graph is held: it updates the table, for all processes; ``search``
    while it is held.

    Args:
        graph: The node graph.
        group: The group of nodes.
        analyzer: Turns texts into terms.

    Raises:
        ValueError: If the graph has no engine that searches words.
    """

    what = "words"

    def __init__(self, graph: NodeGraph, group: str, analyzer: Analyzer) -> None:
        super().__init__(graph, group)
        self._analyzer = analyzer
        self._analyzed_by = fingerprint(analyzer), str(analysis_version())
        self._statistics: tuple[object, TableStatistics] | None = None  # of the latest state
        self._table()

    # Following the graph

    def _make_table(self, text: str) -> WordTable | None:
        return self._graph.reader.word_table(self._group, "words", self._analyzed_by[0], text)

    def _version(self) -> Version:
        revision, version = super()._version()
        return revision, (*version, self._analyzed_by[1])

    def _state_key(self, table: WordTable, state: TableState | None) -> object:
        return state, table.written()  # numbers of terms are those of a collection

    def _begin(self, table: WordTable, ids: Sequence[str]) -> None:
        step = max(1, len(ids) // _SAMPLE)
        sample = self._rows(self._graph.reader.existing_nodes(ids[::step]))
        table.start(sum(row.length for row in sample) / max(1, len(sample)))

    def _write(
        self,
        table: WordTable,
        removed: Sequence[str],
        nodes: Sequence[Node],
        state: TableState | None,
        dimension: int,
    ) -> int | None:
        rows = self._rows(nodes)
        if rows and state is not None and not dimension:
            return None
        table.write(removed, rows, state)
        return 1 if rows else dimension

    def _rows(self, nodes: Sequence[Node]) -> list[WordedNode]:
        """Return nodes with their terms."""
        nodes = list(nodes)
        rows: list[WordedNode] = []
        for texts in batches(self._graph.reader.searched_texts(nodes)):
            postings = inverted(self._analyzer, texts)
            by_text = np.argsort(postings.rows, kind="stable")
            terms = np.repeat(np.arange(len(postings.terms)), postings.sizes)[by_text].tolist()
            counts = postings.counts[by_text].astype(np.int64)
            ends = np.searchsorted(postings.rows[by_text], np.arange(len(texts)), "right").tolist()
            start = 0
            for end, length in zip(ends, postings.lengths.tolist(), strict=True):
                node = nodes[len(rows)]
                of_node = [postings.terms[term] for term in terms[start:end]]
                about = node.id, node.order, node.document_id, node.metadata
                rows.append(WordedNode(*about, of_node, counts[start:end], length))
                start = end
        return rows

    def _read_recent(self, table: WordTable, recent: Recent) -> _RecentWords:
        removed, nodes, complete = recent.removed, recent.nodes, recent.complete
        old = [] if complete or not removed else table.nodes(removed)
        rows = self._rows(nodes)
        return _RecentWords(
            *(removed, nodes, complete, old),
            Counter(number for node in old for number in node.term_ids.tolist()),
            [dict(zip(row.terms, row.counts.tolist(), strict=True)) for row in rows],
            Counter(term for row in rows for term in row.terms),
            np.array([row.length for row in rows], np.int64),
        )

    # Searching

    @property
    def size(self) -> int:
        """How many nodes there were when a query was last weighed."""
        latest = self._statistics
        return 0 if latest is None else latest[1].size

    def statistics(self, query: str) -> TableStatistics:
        """Return what a query is weighed by, in the state that this thread reads.

        Args:
            query: The query: the frequencies of its terms are read at once.
        """
        statistics = self._statistics_of(self._view())
        statistics.read(inverted(self._analyzer, [query]).terms)
        return statistics

    def _statistics_of(self, view: _View) -> TableStatistics:
        key = (self._state_key(self._table(), view.state), self._version())
        latest = self._statistics
        if latest is None or latest[0] != key:
            latest = self._statistics = key, TableStatistics(view.table, view.recent)
        return latest[1]

    def _search_table(
        self,
        view: _View,
        table: WordTable,
        query: TermWeights,
        limit: int | None,
        filter: Filter,
        match: ValueMatch | None,
    ) -> Scored:
        statistics, terms = self._statistics_of(view), query.heaviest_first()
        ids, weights = statistics.read(terms), query.weights
        in_table = {ids[term]: weights[term] for term in terms if ids[term] and weights[term]}
        if not in_table:
            return Scored([], np.zeros(0, np.int64), np.zeros(0))
        nodes, scores = _best(table, in_table, query.saturation, limit, match, view.removed)
        orders = np.array([node.order for node in nodes], np.int64)
        return Scored([node.id for node in nodes], orders, scores)

    def _search_recent(
        self, view: _View, recent: _RecentWords, query: TermWeights, rows: Sequence[int]
    ) -> Scored:
        terms = query.heaviest_first()
        rows = [row for row in rows if not recent.terms[row].keys().isdisjoint(terms)]
        counts = recent.counts(rows, terms)
        weights = np.array([query.weights[term] for term in terms])
        scores = _scores(counts, recent.lengths[rows], weights, query.saturation)
        return Scored.of([recent.nodes[row] for row in rows], scores)

    def passages(self) -> _EnginePassages:
        """Return what looks nodes up for one query; see ``Passages``."""
        return _EnginePassages(self._graph, self._group, self)

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        """Return what each term of a query adds to the scores of some nodes.

        Args:
            ids: The nodes, each once; they are in the group.
            query: From ``Bm25.prepare``, for this index among others.

        Returns:
            An array (nodes, terms), terms in the order of ``query.weights``.

        Raises:
            StoreError: If the engine fails.
            StaleSnapshotError: If another process has changed the graph since this thread holds it.
        """
        view, terms = self._view(), list(query.weights)
        counts = np.zeros((len(ids), len(terms)), np.int64)
        lengths = np.zeros(len(ids), np.int64)
        at = {node_id: position for position, node_id in enumerate(ids)}
        if view.recent is not None:
            for row, node in enumerate(view.recent.nodes):
                if (position := at.pop(node.id, None)) is not None:
                    counts[position] = view.recent.counts([row], terms)[0]
                    lengths[position] = view.recent.lengths[row]
        if view.table is not None and terms and at:
            numbers = np.array([*self._statistics_of(view).read(terms).values()], np.int64)
            nodes = [node for node in view.table.nodes(at) if node.length]
            rows = [at[node.id] for node in nodes]
            counts[rows] = _counts(nodes, numbers)
            lengths[rows] = [node.length for node in nodes]
        scores = _impacts(counts, lengths, query.saturation)
        scores *= np.array([*query.weights.values()])
        return scores


_View = View[WordTable, _RecentWords]


class _EnginePassages:
    """Nodes whose words an engine searches: they and their terms are read from the store."""

    def __init__(self, graph: NodeGraph, group: str, index: EngineTextIndex) -> None:
        self._graph = graph
        self._group = group
        self._index = index
        self._nodes: dict[str, Node | None] = {}  # None where it is in another group
        self._scores: dict[str, Floats] = {}  # by the terms of the query
        self._query: TermWeights | None = None

    def known(self, ids: Iterable[str]) -> Container[str]:
        wanted = dict.fromkeys(ids)
        if new := [node_id for node_id in wanted if node_id not in self._nodes]:
            self._nodes.update(dict.fromkeys(new))
            for node in self._graph.reader.existing_nodes(new):
                if node.group == self._group:
                    self._nodes[node.id] = node
        return {node_id for node_id in wanted if self._nodes[node_id] is not None}

    def meeting(self, filter: Filter) -> Meets | None:
        return (lambda passage: self._matches(filter, passage)) if filter else None

    def _matches(self, filter: Filter, passage: str) -> bool:
        node = self._nodes[passage]
        return node is not None and filter.matches(node)

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        if query is not self._query:
            self._query, self._scores = query, {}
        if new := [passage for passage in dict.fromkeys(ids) if passage not in self._scores]:
            scores = self._index.term_scores(new, query)
            self._scores.update(zip(new, scores, strict=True))
        if not ids:
            return np.zeros((0, len(query.weights)))
        return np.array([self._scores[passage] for passage in ids])


def _best(
    table: WordTable,
    query: Mapping[int, float],
    saturation: Saturation,
    limit: int | None,
    match: ValueMatch | None,
    removed: Collection[str],
) -> tuple[Sequence[NodeTerms], Floats]:
    """Return the candidates, among which the best are, with their scores."""
    numbers, weights = np.array([*query], np.int64), np.array([*query.values()])
    requested = None if limit is None else limit + limit // 4 + 4
    while True:
        matches = table.search(query, requested, match, removed)
        counts = _counts(matches.nodes, numbers)
        lengths = np.array([node.length for node in matches.nodes], np.int64)
        scores = _scores(counts, lengths, weights, saturation)
        if matches.complete or limit is None or requested is None:
            return matches.nodes, scores
        others = matches.lowest * table.score_slack * _MARGIN * _most_more(table, saturation)
        if len(scores) >= limit and others < np.partition(scores, -limit)[-limit]:
            return matches.nodes, scores
        if requested == table.max_results:
            return matches.nodes, scores
        requested = min(4 * requested, table.max_results)


def _most_more(table: WordTable, saturation: Saturation) -> float:
    """Return how many times as much as in the table a term may add to a node, at most.

    The quotient grows or falls with a term's count, and with the node's length, all the way: it is
    highest at an end of both.
    """
    max_length = max(1, table.totals().longest)
    counts, lengths = np.array(
        [[1, max_length, 1, max_length], [1, 1, max_length, max_length]], np.int32
    )
    quotients = saturation.impacts(counts, lengths) / table.reference_impacts(counts, lengths)
    return float(quotients.max())


def _counts(nodes: Sequence[NodeTerms], numbers: Numbers) -> Numbers:
    """Return how often each node has each term, (nodes, terms)."""
    counts = np.zeros((len(nodes), len(numbers)), np.int64)
    for row, node in enumerate(nodes):
        positions = np.minimum(np.searchsorted(node.term_ids, numbers), len(node.term_ids) - 1)
        counts[row] = np.where(node.term_ids[positions] == numbers, node.counts[positions], 0)
    return counts


def _scores(counts: Numbers, lengths: Numbers, weights: Floats, saturation: Saturation) -> Floats:
    """Return the sums of what each term adds, term by term as a ``TextIndex`` adds them."""
    scores = np.zeros(len(counts))
    for impacts, weight in zip(
        _impacts(counts, lengths, saturation).T, weights.tolist(), strict=True
    ):
        scores += impacts * weight
    return scores


def _impacts(counts: Numbers, lengths: Numbers, saturation: Saturation) -> Floats:
    """Return what each term adds to each node for a weight of 1, (nodes, terms)."""
    impacts = np.zeros(counts.shape)
    rows, columns = np.nonzero(counts)
    of_rows = counts[rows, columns].astype(np.int32), lengths[rows].astype(np.int32)
    impacts[rows, columns] = saturation.impacts(*of_rows)
    return impacts
