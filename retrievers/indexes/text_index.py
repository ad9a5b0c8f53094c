"""The inverted index of a group: postings, statistics, search for the best nodes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import Stemmer

from ...nodegraph.concurrency import track
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import Node
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from ..filters import Filter
from ..results import Hits
from .array_files import Arrays
from .bm25_scores import Floats, Meets, QueryPostings, RowLengths, TermWeights, best_rows
from .node_table import Mask, NodeTable
from .postings import (
    MAX_TEXTS,
    InvertedTexts,
    Postings,
    PostingsByTerm,
    Vocabulary,
    invert,
    inverted_runs,
)
from .synced_index import SyncedIndex, portions

_FEW = 8  # nodes whose terms are counted one by one

_LONG = 1_000  # nodes whose indexing is worth a progress bar

_PORTION = 4_096  # nodes that are held at a time

_BATCH = 200_000  # characters that are analysed together

_HELD = 1 << 20  # postings that are held for the next queries

# Count up when TextAnalyzer returns other terms or lengths: older files are rebuilt then.
_ANALYSIS = 5


class TextIndex(SyncedIndex):
    """Search the nodes of a group that share terms with a query.

    Adding, changing and removing nodes costs what those nodes cost, amortised; the statistics
    are always those of the nodes that are in the group now. Call ``sync`` and ``search`` while
    the graph is held (``graph.reading``).

    Where the graph has a folder for it (``graph.index_file``) the index is stored in a file,
    which is used while group and analyzer are the same.

    Attributes:
        table: The nodes by row.
        total_length: How long all nodes are together.
        state: Another object after each change.
    """

    uses_search_text = True
    streams = True
    maps_file = True

    def __init__(self, graph: NodeGraph, group: str, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._fingerprint: str | None = None  # of the analyzer; None until it is needed
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything."""
        self.table = NodeTable()
        self.total_length = 0
        self._postings = Postings()
        self._lengths = RowLengths(np.zeros(0, np.int32))
        self._state_changed()

    def _state_changed(self) -> None:
        self.state = object()
        self._statistics: QueryStatistics | None = None
        self._latest: _Latest = None, [], np.zeros(0, np.int64)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return self.table.living

    # Searching

    def statistics(self, query: str) -> QueryStatistics:
        """Return what a query is weighed by; queries of one state share what was looked up."""
        statistics = self._statistics
        if statistics is None or statistics.held > _HELD:
            alive = self.table.alive if self.size < len(self.table) else None
            statistics = self._statistics = QueryStatistics(self, self._postings, alive)
        return statistics

    def frequency(self, term: str) -> int:
        """Return in how many nodes a term is, as they are now."""
        return self.statistics("").frequency(term)

    @property
    def vocabulary(self) -> Vocabulary:
        """The numbers of the terms; another object when they are numbered anew."""
        return self._postings.vocabulary

    def frequencies(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return in how many nodes each of many terms is; 0 for a negative number.

        Args:
            numbers: Those that the terms have in the vocabulary.
        """
        every = np.append(self._postings.frequencies(self.table.alive), 0)
        return every[np.where(numbers < 0, len(every) - 1, numbers)]

    def search(self, query: TermWeights, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes, ties in document order.

        The heaviest terms are added up first, in every index that is searched for the query, so
        that equal nodes have equal scores in all of them.

        Args:
            query: From ``Bm25.prepare``, for this index among others.
            limit: How many; None for all that share a term.
            filter: What their metadata must meet.
        """
        table = self.table
        terms = query.heaviest_first()
        if not terms:
            return Hits([], [])
        of_query = self._postings_of(query, terms)
        rows, scores = best_rows(of_query, limit, table.matching(filter), table.orders)
        ids = table.ids.take(rows)
        # Which terms the best nodes have is asked next.
        self._latest = query, ids, rows
        return Hits(ids, scores.tolist())

    def rows_of(self, ids: Collection[str], query: TermWeights) -> dict[str, int]:
        """Return the rows of nodes, by their ids, which a query may just have found."""
        latest, found, rows = self._latest
        if latest is query:
            by_id = dict(zip(found[:_BEST], rows[:_BEST].tolist(), strict=True))
            if by_id.keys() >= {*ids}:
                return by_id
        return self.table.rows_of(ids)

    def _statistics_of(self, query: TermWeights) -> QueryStatistics:
        """Return what a query was weighed by, with its postings, unless that has changed."""
        for statistics in query.statistics:
            if isinstance(statistics, QueryStatistics) and statistics.is_of(self):
                return statistics
        return self.statistics("")

    def passages(self) -> _TablePassages:
        """Return what looks nodes up for one query; see ``Passages``."""
        return _TablePassages(self)

    def term_scores(self, rows: npt.NDArray[np.int64], query: TermWeights) -> Floats:
        """Return what each term of a query adds to the scores of some rows, (rows, terms)."""
        order = rows.argsort()  # what is near each other is looked up in less time
        scores = self._postings_of(query, query.weights).looked_up(rows.take(order))
        return scores.T.take(order.argsort(), axis=0)

    def _postings_of(self, query: TermWeights, terms: Collection[str]) -> QueryPostings:
        """Return the postings of terms of a query."""
        return QueryPostings(
            [*map(self._statistics_of(query).__getitem__, terms)],
            np.array([*map(query.weights.__getitem__, terms)]),
            query.saturation,
            self._lengths,
        )

    # Following the graph

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes; their postings stay until gaps are closed."""
        if rows := self.table.remove(ids):
            self.total_length -= int(self._lengths.take(np.array(rows)).sum())

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Analyse and add nodes."""
        first = len(self.table)
        if len(nodes) <= _FEW:
            analyzed = [terms_and_length(self._analyzer, t) for t in self._added([*nodes])]
            self._postings.append(first, (terms for terms, _ in analyzed))
            lengths = np.array([length for _, length in analyzed], np.int32)
        else:
            show = self._graph.progress if len(nodes) >= _LONG else False
            tracked = track(nodes, len(nodes), f"indexing {self._group}", " nodes", show)
            texts = chain.from_iterable(map(self._added, portions(tracked, _PORTION)))
            lengths = self._postings.extend(first, map(self._invert, batches(texts)))
        self.total_length += int(lengths.sum())
        self._lengths.extend(lengths)

    def _added(self, nodes: Sequence[Node]) -> list[str]:
        """Number nodes; return their texts."""
        self.table.add(nodes)
        return self._graph.reader.searched_texts(nodes)

    def _invert(self, texts: Sequence[str]) -> InvertedTexts:
        return inverted(self._analyzer, texts)

    def finish(self) -> None:
        """Close gaps."""
        if self.table.sparse:
            alive = self.table.alive
            self._lengths = RowLengths(self._lengths.values[alive])
            self._postings.compact(alive)
            self.table.compact()
        self._state_changed()

    # The file

    def file_name(self) -> str:
        """Return the file's name, one for each analyzer."""
        if self._fingerprint is None:  # not before: a large analyzer takes its time
            self._fingerprint = fingerprint(self._analyzer)
        return f"text-{self._fingerprint}"

    def header(self) -> dict[str, Any]:
        """Return the settings that a stored index must have been built with."""
        return {
            "kind": "text",
            "analyzer": self._fingerprint,
            "analysis": analysis_version(),
        }

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        lengths = self._lengths.values
        return {**self.table.arrays(), **self._postings.arrays(), "lengths": lengths}

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to what ``arrays`` returned."""
        table, postings = NodeTable.from_arrays(arrays), Postings.from_arrays(arrays)
        lengths = arrays["lengths"]
        if len(lengths) != len(table):
            raise ValueError(f"it has the lengths of {len(lengths)} nodes of {len(table)}")
        self.table, self._postings, self._lengths = table, postings, RowLengths(lengths)
        self.total_length = int(lengths[table.alive].sum())
        self._state_changed()  # what was remembered refers to the postings as they were


_Latest = tuple[TermWeights | None, list[str], npt.NDArray[Any]]
"""A query, and the ids and the rows of the best nodes."""

_BEST = 64  # nodes of which a query's terms are looked up next


class QueryStatistics(PostingsByTerm):
    """Tell what queries are weighed by in an index; the postings of a term are looked up once.

    Args:
        index: The index.
        postings: Its postings.
        alive: Which rows there are; None for all.

    Attributes:
        size: How many nodes there are.
        total_length: How long they are together.
    """

    __slots__ = ("_index", "_state", "size", "total_length")

    def __init__(self, index: TextIndex, postings: Postings, alive: Mask | None) -> None:
        super().__init__(postings, alive)
        self._index, self.size, self.total_length = index, index.size, index.total_length
        self._state = index.state

    def is_of(self, index: TextIndex) -> bool:
        """Return whether it is of an index as it is now."""
        return self._index is index and self._state is index.state


class _TablePassages:
    """Nodes whose words this process has."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index

    def known(self, ids: Iterable[str]) -> Container[str]:
        return self._index.table.rows()

    def meeting(self, filter: Filter) -> Meets | None:
        mask, rows = self._index.table.matching(filter), self._index.table.rows()
        return None if mask is None else lambda passage: mask.item(rows[passage])

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        by_id = self._index.rows_of(ids, query)
        rows = np.fromiter(map(by_id.__getitem__, ids), np.int64, len(ids))
        return self._index.term_scores(rows, query)


def analysis_version() -> list[Any]:
    """Return what the terms of a text depend on beside the analyzer."""
    return [_ANALYSIS, unicodedata.unidata_version, Stemmer.version()]


def inverted(analyzer: Analyzer, texts: Sequence[str]) -> InvertedTexts:
    """Analyse the texts of an index, ``MAX_TEXTS`` at most."""
    if type(analyzer) is not TextAnalyzer:
        return _inverted(texts, partial(terms_and_length, analyzer))
    runs: list[list[str]] = [[] for _ in texts]
    unfilled = iter(runs)
    words = _inverted(texts, lambda text: analyzer.indexed(text, next(unfilled)))
    if not any(runs):
        return words
    of_runs = inverted_runs(["\0".join(of_text) for of_text in runs])
    if set(words.terms).isdisjoint(of_runs.terms):
        return words.joined(of_runs)
    # A run with letters of Thai, which are terms of another text, too.
    return _inverted(texts, analyzer.indexed)


def _inverted(
    texts: Sequence[str], analyze: Callable[[str], tuple[Sequence[str], int]]
) -> InvertedTexts:
    lengths: list[int] = []

    def terms(text: str) -> Iterable[str]:
        of_text, length = analyze(text)
        lengths.append(length)
        return of_text

    return replace(invert(texts, terms), lengths=np.array(lengths, np.int32))


def terms_and_length(analyzer: Analyzer, text: str) -> tuple[Sequence[str], int]:
    """Return the terms of a text in an index, and how long it is there."""
    indexed: Callable[[str], tuple[list[str], int]] | None = getattr(analyzer, "indexed", None)
    if indexed is not None:
        return indexed(text)
    terms = [*analyzer(text)]
    return terms, len(terms)


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in lists that are analysed together."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH or len(batch) == MAX_TEXTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
