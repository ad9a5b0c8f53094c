"""The inverted index of a group, with its postings, its statistics and its search."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast
from weakref import ref

import numpy as np
import Stemmer

from ...nodegraph.concurrency import track
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import fingerprint
from ...nodegraph.node import Node
from ...nodegraph.storage.columns import portions
from ..analysis.phrases import Phrase
from ..analysis.text_analyzer import Analyzer
from ..filters import Filter, parse_filters
from ..protocols import Snapshot
from ..results import Hits
from .array_files import Arrays, checked, grown, smallest
from .bm25_scores import QueryPostings, TermPostings, best_rows
from .bm25_weights import Floats, TermWeights
from .filter_index import FilterIndex
from .node_table import NodeTable
from .posting_lists import Ints
from .postings import MAX_TEXTS, AnalyzedTexts, Postings
from .text_analysis import PORTION, SharedAnalysis
from .vocabulary import Vocabulary

_LONG = 1_000  # the minimum number of nodes for a progress bar

# The number of terms per batch, which grows with the number of texts. Sorting a batch should need
# little memory in comparison with the index, but many small batches need more memory than a few.
_LEAST_TERMS = 15_000

_MOST_TERMS = 100_000

_HELD = 1 << 24  # the number of postings that are cached for the next queries

# Increase this after changing the terms or lengths of TextAnalyzer, to rebuild older files.
_ANALYSIS = 9

# The count of a phrase, which is so high that the length of the node does not matter.
_PHRASE_COUNT = 1 << 20

_LENGTHS = range(1 << 31)  # the possible numbers of terms in a node

_ROW_BYTES = 32  # the size of a question's arrays per row, in bytes

_MAX_FREED = 32_000_000  # in bytes; glibc ignores larger arrays

_ALL = parse_filters(None)


Meets = Callable[[str], bool]
"""A function that returns whether the node with an id meets conditions."""


class TextIndex(FilterIndex):
    """An inverted index of the words of a group's nodes.

    The amortized cost of an update depends only on the number of changed nodes. The statistics
    always cover exactly the current nodes of the group.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._analysis = SharedAnalysis(analyzer)
        # The fingerprint of the analyzer, which is computed on first use.
        self._fingerprint: str | None = None
        super().__init__(graph, group)
        graph.reader.add_listener(group, self)
        # The word indexes of the graph. Unlike a WeakSet, a list can grow while it is read.
        self._indexes: list[ref[TextIndex]] = graph.reader.shared("text indexes", list)
        self._indexes.append(ref(self))

    def clear(self) -> None:
        """Remove all nodes from the index."""
        super().clear()
        self._postings = Postings()
        self._lengths: Ints = np.zeros(0, np.int32)  # the lengths by row, with space for more rows
        self._total_length = 0
        self._statistics: TermPostings | None = None

    # Searching, while the graph is held

    def frequency(self, term: str) -> int:
        """Return the number of nodes that contain a term."""
        return self.statistics().frequency(term)

    def statistics(self) -> TermPostings:
        """Return the postings by term, which all queries at the same revision share."""
        statistics = self._statistics
        if statistics is None or statistics.held > _HELD:
            lengths = self._lengths[: len(self.table)]
            statistics = TermPostings(self._postings, lengths, self._total_length, self.table.alive)
            self._statistics = statistics
        return statistics

    def search(self, query: TermWeights, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes. Nodes with equal scores are in document order.

        Args:
            query: The query, as returned by ``Bm25.prepare`` for indexes that include this one.
            limit: The maximum number of nodes. If None, all nodes that contain a term are returned.
            filter: The filter that nodes must match.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[TermWeights], filter: Filter) -> Snapshot:
        """Return a search for queries that is not affected by later changes of the index."""
        table = self.table.snapshot(filter)
        matching = table.matching
        mask = None if matching is None else matching.mask
        postings = self.statistics()
        of_queries = [postings.of_query(q.weights, q.saturation, matching) for q in queries]

        def best(query: QueryPostings, limit: int | None) -> Hits:
            if not query.lists:
                return Hits([], [])
            rows, scores = best_rows(query, limit, mask, table.orders)
            return Hits(table.ids_of(rows), scores.tolist())

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            return [best(of_queries[number], limit) for number in numbers]

        def term_scores(number: int, ids: Sequence[str]) -> Floats:
            return of_queries[number].looked_up(table.rows_of(ids)).T

        return Snapshot(
            search,
            table.parents_of,
            term_scores,
            self.size,
            table.count_siblings,
            table.inherit,
        )

    def meeting(self, filter: Filter) -> Meets | None:
        """Return a function that checks whether a node matches a filter.

        If all nodes match, None is returned.
        """
        matching = self.table.matching(filter)
        rows = self.table.row_of
        return None if matching is None else lambda node_id: matching.mask.item(rows(node_id))

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        """Return the score of each term of a query in nodes, with shape (nodes, terms).

        Raises:
            LookupError: If a node is not in the group.
        """
        return cast(Floats, self.snapshot([query], _ALL).term_scores(0, ids))

    def find_phrase(self, phrase: Phrase, words: Sequence[Sequence[str]]) -> int:
        """Find the nodes that contain a phrase, add the phrase as a term, and return their number.

        Args:
            phrase: The phrase.
            words: The possible forms of each word. The texts of nodes that contain all words are
                read.
        """
        statistics = self.statistics()
        if phrase.text not in statistics:
            rows = statistics.rows_with_all(words)
            found: list[int] = []
            reader = self._graph.reader
            for batch in portions(rows.tolist(), PORTION):
                nodes = reader.nodes_by_id(self.table.ids_of(np.array(batch)))
                texts = zip(batch, reader.searched_texts(nodes), strict=True)
                found += [row for row, text in texts if phrase.is_in(text)]
            counts = np.full(len(found), _PHRASE_COUNT, np.uint32)
            statistics.add(phrase.text, np.array(found, np.int32), counts)
        return statistics[phrase.text]

    # Following the graph

    def nodes_written(self, nodes: Sequence[Node]) -> None:
        """Start to analyze the texts of new nodes while other nodes are built."""
        if self.uses_search_text:
            texts = self._graph.reader.composed_texts(nodes)
        else:
            texts = [node.text for node in nodes]
        if texts is not None:
            self._analysis.announce(texts)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes from the index. Their rows stay empty until the index is compacted."""
        rows = self.table.remove(ids)
        self._total_length -= int(self._lengths[rows].sum())

    def add(self, nodes: Sequence[Node]) -> None:
        """Analyze nodes and add them to the index."""
        first = len(self.table)
        show = self._graph.progress if len(nodes) >= _LONG else False
        tracked = track(nodes, len(nodes), f"indexing {self._group}", " nodes", show)
        texts = self._analysis.results(self._numbered(tracked), len(nodes))
        lengths: list[int] = []
        with self._postings.vocabulary.sharing(self._largest_vocabulary()):
            self._postings.extend(first, len(nodes), _batches(texts, len(nodes), lengths))
        self._lengths = grown(self._lengths.astype(np.int32, copy=False), len(self.table))
        self._lengths[first : len(self.table)] = lengths
        self._total_length += sum(lengths)

    def _largest_vocabulary(self) -> Vocabulary | None:
        """Return the largest vocabulary of the graph's other indexes.

        For example, the indexes of passages and of their sentences contain the same terms.
        """
        indexes = [reference() for reference in self._indexes]
        vocabularies = [
            index._postings.vocabulary
            for index in indexes
            if index is not None and index is not self
        ]
        return max(vocabularies, key=len, default=None)

    def _numbered(self, nodes: Iterable[Node]) -> Iterator[list[str]]:
        """Add nodes to the table, and yield their searched texts in portions."""
        for portion in portions(nodes, PORTION):
            self.table.add(portion)
            if self.uses_search_text:
                yield self._graph.reader.searched_texts(portion)
            else:
                yield [node.text for node in portion]

    def finish(self) -> None:
        """Compact the index if most of its rows are empty."""
        super().finish()
        self._statistics = None

    def compact(self) -> None:
        """Remove the empty rows of the index."""
        alive = self.table.alive
        self._lengths = self._lengths[: len(alive)][alive]
        self._postings = self._postings.compacted(alive)
        super().compact()

    # The file

    def file_name(self) -> str | None:
        """Return the name of the index file, which is different for each analyzer."""
        # Computed on first use, because this takes long for large analyzers.
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self._analyzer)
        return f"text-{self._fingerprint}"

    def header(self) -> dict[str, Any]:
        """Return the settings with which a stored index must have been built."""
        analysis = [_ANALYSIS, unicodedata.unidata_version, Stemmer.version()]
        return {"kind": "text", "analyzer": self._fingerprint, "analysis": analysis}

    def arrays(self) -> Arrays:
        """Return the arrays to store in the index file."""
        lengths = smallest(self._lengths[: len(self.table)])
        return {**self.table.arrays(), **self._postings.arrays(), "lengths": lengths}

    def restore(self, arrays: Arrays) -> None:
        """Restore the index from the result of ``arrays``.

        Raises:
            ValueError: If the arrays are not valid.
        """
        self.table = NodeTable.from_arrays(arrays)
        size = len(self.table)
        self._postings = Postings.from_arrays(arrays, size)
        self._lengths = checked(arrays, "lengths", np.unsignedinteger, size, values=_LENGTHS)
        self._total_length = int(self._lengths.sum(where=self.table.alive))
        self._statistics = None  # the statistics are outdated, because the terms have new numbers
        # glibc returns freed memory to the system until a larger array has been freed. Without
        # this, each question with arrays of all rows would take 30 % longer.
        np.empty(min(_ROW_BYTES * size, _MAX_FREED), np.uint8)

    def verify(self) -> None:
        """Verify that the index contains as many nodes as the graph.

        Raises:
            ValueError: If the numbers differ.
        """
        count = self._graph.reader.count(self._group)
        if self.size != count:
            raise ValueError(f"it must have {count:,} nodes, got {self.size:,}")


def _batches(
    analyzed: Iterable[AnalyzedTexts], count: int, lengths: list[int]
) -> Iterator[list[AnalyzedTexts]]:
    """Yield analyzed texts in batches for ``Postings.extend``, and collect their lengths.

    Args:
        analyzed: The analyzed texts.
        count: The total number of texts.
        lengths: A list to which the length of each text is appended.
    """
    most_terms = min(_MOST_TERMS, max(_LEAST_TERMS, 2 * count))
    batch: list[AnalyzedTexts] = []
    num_terms = 0
    num_texts = 0
    for texts in analyzed:
        if batch and (num_terms > most_terms or num_texts + len(texts.sizes) > MAX_TEXTS):
            yield batch
            batch = []
            num_terms = 0
            num_texts = 0
        batch.append(texts)
        lengths += texts.lengths
        num_terms += texts.num_terms
        num_texts += len(texts.sizes)
    if batch:
        yield batch
