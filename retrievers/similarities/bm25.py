"""The BM25 similarity: its settings and its formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar, Literal

from ...nodegraph.graph import NodeGraph
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from ..validation import number

if TYPE_CHECKING:
    from ..indexes.bm25_scores import TermPostings, TermWeights
    from ..indexes.text_index import TextIndex

Terms = Iterable[tuple[str | tuple[str, ...], float]]

_Weigh = Callable[[str, Callable[[str], int], int], Terms]

DEFAULT_ANALYZER = TextAnalyzer()


@dataclass(frozen=True, slots=True)
class Bm25:
    """Score nodes by the query's terms in them: rare terms weigh more, long nodes less.

    Each term of the query adds ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length /
    average_length))``, with ``tf`` its count in the node and ``idf = log(1 + (N - n + 0.5) / (n +
    0.5))`` for a term in ``n`` of ``N`` nodes. Statistics are those of the whole group
    as it is now, over all graphs that are searched together; filters don't change them.

    Args:
        k1: How much further occurrences of a term still count; 0 counts only whether it occurs.
        b: How much the scores of long nodes are lowered, from 0 to 1.
        analyzer: Turns a text into terms; its method ``query``, where it has one, a query. Any
            callable from text to words will do: ``jieba.lcut``.

    Raises:
        ValueError: If a setting is out of range.

    Source:
        Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """

    k1: float = 1.5
    b: float = 0.75
    analyzer: Analyzer = DEFAULT_ANALYZER
    name: str = "bm25"
    mode: ClassVar[Literal["text"]] = "text"

    def __post_init__(self) -> None:
        number(self.k1, "k1")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be from 0 to 1, not {self.b!r}")
        if not callable(self.analyzer):
            raise TypeError(f"analyzer is a callable from text to terms, not {self.analyzer!r:.80}")

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> TextIndex:
        """Return the index of a group, shared by all settings that analyse texts alike.

        Args:
            graph: The node graph.
            group: The group to search.
            key: Not used: texts are compared, not embeddings.
        """
        return open_postings(graph, group, self.analyzer)

    def prepare(self, query: str, indexes: Sequence[TextIndex]) -> TermWeights:
        """Analyze a query and weigh its terms by the statistics of all indexes together."""
        from ..indexes.bm25_scores import Saturation, TermWeights

        statistics = [index.statistics() for index in indexes]
        size = sum(batch.size for batch in statistics)
        length = sum(batch.total_length for batch in statistics)
        frequency = _frequency(statistics)
        weights: dict[str, float] = {}
        idf = partial(lucene_idf, size)
        highest = idf(0) if size else 0.0
        missing = 0.0
        silent: set[str] = set()
        others: list[Iterable[str]] = []
        found = False  # the word whose parts follow
        for term, occurrences in self.weigh_terms(query, frequency, size):
            # A form in a language may be another word in the others: it is no rarer than the word
            # in the index's main language, so that it does not outweigh that.
            forms = (term,) if isinstance(term, str) else term
            first = 0
            for form in forms:
                if count := frequency(form):
                    first = first or count
                    weight = occurrences * idf(count if count > first else first)
                    weights[form] = weights.get(form, 0.0) + weight
            if occurrences >= 1:
                found = first > 0
            if found and occurrences < 1:
                silent.update(forms)
            else:
                others.append(forms)
            if not first:
                missing += occurrences * highest
        if silent:
            silent.difference_update(*others)
        heaviest_first = sorted(sorted(weights), key=weights.__getitem__, reverse=True)
        weights = {term: weights[term] for term in heaviest_first}
        saturation = Saturation(self.k1, self.b, length / size if size else 0.0)
        return TermWeights(weights, saturation, missing, highest, frozenset(silent))

    def weigh_terms(self, query: str, frequency: Callable[[str], int], size: int) -> Terms:
        """Return the terms of a query to an index, and how often each counts."""
        weigh: _Weigh | None = getattr(self.analyzer, "weigh", None)
        if weigh is not None:
            return weigh(query, frequency, size)
        analyze: Callable[[str], Iterable[str]] = getattr(self.analyzer, "query", self.analyzer)
        return Counter(analyze(query)).items()


def lucene_idf(size: int, frequency: int) -> float:
    """Return the inverse document frequency of a term that so many of all texts have."""
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _frequency(statistics: Sequence[TermPostings]) -> Callable[[str], int]:
    """Return what tells in how many nodes of all indexes a term is."""
    if len(statistics) == 1:
        return statistics[0].frequency
    return cache(lambda term: sum(batch.frequency(term) for batch in statistics))


def open_postings(graph: NodeGraph, group: str, analyzer: Analyzer) -> TextIndex:
    """Return the index of a group's words, shared by all users of an equal analyzer."""
    from ..indexes.text_index import TextIndex

    name = ("words", group, _identity(analyzer))
    return graph.reader.shared(name, lambda: TextIndex(graph, group, analyzer))


def _identity(analyzer: Analyzer) -> object:
    return analyzer if isinstance(analyzer, Hashable) else id(analyzer)  # which the index holds
