"""The BM25 similarity: its settings and its formula."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from ...nodegraph.graph import NodeGraph
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from ..validation import choice, number

if TYPE_CHECKING:
    from ..indexes.impact_lists import Saturation
    from ..indexes.max_score import TermWeights
    from ..indexes.text_index import DocumentFrequency, TermStatistics, TextIndex
    from ..indexes.word_index import WordIndex

logger = logging.getLogger(__name__)

_Terms = Iterable[tuple[str | tuple[str, ...], float]]

_Weigh = Callable[[str, Callable[[str], int], int], _Terms]

_MOST_QUERIES = 512  # that an index remembers

_MOST_TERMS = 100_000  # whose weights it remembers

DEFAULT_ANALYZER = TextAnalyzer()


@cache  # the import, at every query, takes longer than a call
def _term_weights() -> type[TermWeights]:
    from ..indexes.max_score import TermWeights

    return TermWeights


@lru_cache(64)
def _saturation(k1: float, b: float, average_length: float) -> Saturation:
    """Return the same object for the same settings: quick to compare."""
    from ..indexes.impact_lists import Saturation

    return Saturation(k1, b, average_length)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Score nodes by the query's terms in them: rare terms weigh more, long nodes less.

    Each term of the query adds ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length /
    average_length))``, with ``tf`` its count in the node. Statistics are those of the whole group
    as it is now, over all graphs that are searched together; filters don't change them.

    Args:
        k1: How much further occurrences of a term still count; 0 counts only whether it occurs.
        b: How much the scores of long nodes are lowered, from 0 to 1.
        method: The inverse document frequency: ``"lucene"`` is ``log(1 + (N - n + 0.5) / (n +
            0.5))``, always positive; ``"okapi"`` that of ``rank_bm25.BM25Okapi``, which is
            ``log((N - n + 0.5) / (n + 0.5))``, or where that is negative ``epsilon`` times the
            average over all terms.
        epsilon: For ``"okapi"``.
        analyzer: Turns a text into terms; its method ``query``, where it has one, a query. Any
            callable from text to words will do: ``jieba.lcut``.

    Raises:
        ValueError: If a setting is out of range.

    Source:
        Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """

    k1: float = 1.5
    b: float = 0.75
    method: Literal["lucene", "okapi"] = "lucene"
    epsilon: float = 0.25
    analyzer: Analyzer = DEFAULT_ANALYZER
    name: str = "bm25"
    mode: ClassVar[Literal["text"]] = "text"

    def __post_init__(self) -> None:
        number(self.k1, "k1")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be from 0 to 1, not {self.b!r}")
        choice(self.method, "method", ("lucene", "okapi"))
        if not callable(self.analyzer):
            raise TypeError(f"analyzer is a callable from text to terms, not {self.analyzer!r:.80}")

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> TextIndex | WordIndex:
        """Return the index of a group, shared by all settings that analyse texts alike.

        Where an engine beside the store searches words, the index is there; except for
        ``method="okapi"``, which needs the frequencies of all terms.

        Args:
            graph: The node graph.
            group: The group to search.
            key: Not used: texts are compared, not embeddings.

        Raises:
            TransientStoreError: If there is an engine, and it can't be reached.
        """
        if graph.reader.word_table(group) is None:
            return self.open_here(graph, group)
        if self.method == "okapi":
            return self.open_here(graph, group, 'method="okapi" weighs by all terms')
        from ..indexes.word_index import WordIndex

        analyzer = self.analyzer
        name = ("word index", group, analyzer if isinstance(analyzer, Hashable) else id(analyzer))
        return graph.reader.shared(name, lambda: WordIndex(graph, group, analyzer))

    def open_here(self, graph: NodeGraph, group: str, reason: str = "") -> TextIndex:
        """Return an index in this process, for what needs the postings of all nodes.

        Args:
            graph: The node graph.
            group: The group to search.
            reason: Why, for the log, where an engine beside the store searches words.
        """
        from ..indexes.text_index import TextIndex

        analyzer = self.analyzer  # the index refers to it, so its id is not reused

        def make() -> TextIndex:
            if reason and graph.reader.word_table(group) is not None:
                logger.warning(
                    "the words of group %r are indexed in this process, and not in the engine: %s",
                    *(group, reason),
                )
            return TextIndex(graph, group, analyzer)

        name = ("text index", group, analyzer if isinstance(analyzer, Hashable) else id(analyzer))
        return graph.reader.shared(name, make)

    def prepare(self, query: str, indexes: Sequence[TextIndex | WordIndex]) -> TermWeights:
        """Analyse a query and weigh its terms by the statistics of all indexes together.

        An index remembers the last queries, as long as it does not change: a query comes again when
        a fusion searches twice, a strategy tries again, or a reader turns the page.
        """
        of_indexes = [index.statistics(query) for index in indexes]
        known = self._known(of_indexes)
        if type(self.analyzer) is not TextAnalyzer:  # others may change
            return self._prepared(query, known)
        queries = known.queries
        prepared = queries.get(query)
        if prepared is None:
            if len(queries) >= _MOST_QUERIES:
                queries.clear()
            prepared = queries[query] = self._prepared(query, known)
        return prepared

    def _known(self, indexes: Sequence[TermStatistics]) -> _KnownWeights:
        """Return what is known of the weights of terms in some indexes, as they are now."""
        first = indexes[0]
        if len(indexes) > 1:
            return self._known_of_several(indexes)
        memo = first.frequency.memo
        key = (self.k1, self.b, self.method, self.epsilon)
        known: _KnownWeights | None = memo.get(key)
        if known is None:
            known = memo[key] = self._learned(
                first, first.size, first.total_length, first.frequency
            )
        return known

    def _known_of_several(self, indexes: Sequence[TermStatistics]) -> _KnownWeights:
        if self.method == "okapi":
            raise ValueError(
                "method='okapi' needs the average over all terms of one graph; search several "
                "graphs with method='lucene'"
            )
        from ..indexes.text_index import DocumentFrequency

        size = sum(index.size for index in indexes)
        length = sum(index.total_length for index in indexes)
        frequency = DocumentFrequency(lambda term: sum(index.frequency[term] for index in indexes))
        return self._learned(indexes[0], size, length, frequency)

    def _learned(
        self, index: TermStatistics, size: int, length: int, frequency: DocumentFrequency
    ) -> _KnownWeights:
        idf = _InverseFrequency(partial(self._idf, size, index))
        saturation = _saturation(self.k1, self.b, length / size if size else 0.0)
        of_terms = _InverseFrequencyOfTerms(frequency, idf)
        return _KnownWeights(size, frequency, saturation, idf, of_terms, {})

    def _prepared(self, query: str, known: _KnownWeights) -> TermWeights:
        frequency, idf_of = known.frequency, known.of_terms
        weights: dict[str, float] = {}
        for term, occurrences in self._weigh(query, frequency, known.size):
            if type(term) is str:
                if (weight := idf_of[term]) is not None:
                    weights[term] = weights.get(term, 0.0) + occurrences * weight
                continue
            # A form in a language may be another word in the others: it is no rarer than the word
            # in the index's main language, so that it does not outweigh that.
            most = 0
            for form in term:
                if count := frequency(form):
                    most = most or count
                    idf = known.of_counts[max(count, most)]
                    weights[form] = weights.get(form, 0.0) + occurrences * idf
        return _term_weights()(weights, known.saturation)

    def _weigh(self, query: str, frequency: Callable[[str], int], size: int) -> _Terms:
        """Return the terms of a query, and how often each counts."""
        weigh: _Weigh | None = getattr(self.analyzer, "weigh", None)
        if weigh is not None:
            return weigh(query, frequency, size)
        analyze: Callable[[str], Iterable[str]] = getattr(self.analyzer, "query", self.analyzer)
        return Counter(analyze(query)).items()

    def _idf(self, size: int, index: TermStatistics, frequency: int) -> float:
        if self.method == "lucene":
            return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
        idf = math.log(size - frequency + 0.5) - math.log(frequency + 0.5)
        if idf >= 0:
            return idf
        from ..indexes.text_index import TextIndex

        if not isinstance(index, TextIndex):
            raise TypeError(
                'method="okapi" needs an index in this process: open it by Bm25.open_here'
            )
        frequencies = index.document_frequencies()
        average = np.mean(np.log(size - frequencies + 0.5) - np.log(frequencies + 0.5))
        return self.epsilon * float(average)


class _InverseFrequency(dict[int, float]):
    """Map how many nodes have a term to what it weighs, for one state of an index.

    Args:
        compute: Computes the weight.
    """

    def __init__(self, compute: Callable[[int], float]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, frequency: int) -> float:
        self[frequency] = weight = self._compute(frequency)
        return weight


class _InverseFrequencyOfTerms(dict[str, float | None]):
    """Map terms to what they weigh, those that no node has to None, for one state of an index.

    Args:
        frequency: Tells in how many nodes a term is.
        idf: What that many weigh.
    """

    def __init__(self, frequency: Callable[[str], int], idf: Mapping[int, float]) -> None:
        super().__init__()
        self._frequency, self._weights = frequency, idf

    def __missing__(self, term: str) -> float | None:
        if len(self) >= _MOST_TERMS:
            self.clear()
        count = self._frequency(term)
        weight = self[term] = self._weights[count] if count else None
        return weight


class _KnownWeights(NamedTuple):
    """Hold what is known of the weights of terms, for one state of an index.

    Attributes:
        size: How many nodes there are.
        frequency: In how many of them a term is.
        saturation: Weighs the counts of terms.
        of_counts: What terms weigh, by how many nodes have them.
        of_terms: What terms weigh.
        queries: The latest queries.
    """

    size: int
    frequency: DocumentFrequency
    saturation: Saturation
    of_counts: _InverseFrequency
    of_terms: _InverseFrequencyOfTerms
    queries: dict[str, TermWeights]
