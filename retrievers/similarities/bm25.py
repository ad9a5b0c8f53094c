"""The BM25 similarity: settings and formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from ...nodegraph.graph import NodeGraph
from ..analysis.phrases import Phrase, quoted_phrases
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from ..validation import number

if TYPE_CHECKING:
    from ..indexes.bm25_scores import TermWeights
    from ..indexes.text_index import TextIndex

Terms = Iterable[tuple[str | tuple[str, ...], float]]

_Weigh = Callable[[str, Callable[[str], int], int], Terms]

DEFAULT_ANALYZER = TextAnalyzer()

# The weight of a phrase, compared with all words of its query together.
_PHRASE_WEIGHT = 10.0


@dataclass(frozen=True, slots=True)
class Bm25:
    """A similarity by query terms: rare terms add more to the score, long nodes score lower.

    Each term of the query adds ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length /
    average_length))``. ``tf`` is its count in the node, and ``idf = log(1 + (N - n + 0.5) / (n +
    0.5))`` for a term in ``n`` of ``N`` nodes. Statistics cover the whole current group, over all
    graphs of a search. Filters don't change the statistics.

    A phrase in quotation marks is a term as well: nodes with the phrase rank before all others.

    Args:
        k1: The weight of repeated terms. 0: repetitions don't count.
        b: The length normalization, from 0 (none) to 1 (full).
        analyzer: A callable from a text to terms, such as ``jieba.lcut``. Its optional method
            ``query`` analyzes queries. Defaults to ``TextAnalyzer()``.
        name: The name in evidence.

    Raises:
        TypeError: If ``k1`` is not a number, or the analyzer is not callable.
        ValueError: If a setting is out of range.

    Source:
        Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea, tea and milk, with much sugar and lemon.", "Green tea."])
        >>> [Retriever(graph, "ROOT", Bm25(b=b))("tea")[0].text for b in (0, 1)]
        ['Tea, tea and milk, with much sugar and lemon.', 'Green tea.']
    """

    k1: float = 1.5
    b: float = 0.75
    analyzer: Analyzer = DEFAULT_ANALYZER
    name: str = "bm25"
    mode: ClassVar[Literal["text"]] = "text"

    def __post_init__(self) -> None:
        number(self.k1, "k1")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be from 0 to 1, got {self.b!r}")
        if not callable(self.analyzer):
            raise TypeError(
                f"analyzer must be a callable from text to terms, got {self.analyzer!r:.80}"
            )

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> TextIndex:
        """Return the index of a group, shared by all settings with an equal analyzer.

        Args:
            graph: The node graph.
            group: The group to search.
            key: Not used, since texts are compared.
        """
        from ..indexes.text_index import TextIndex

        analyzer = self.analyzer  # kept alive by the index, so that its id stays unique
        identity = analyzer if isinstance(analyzer, Hashable) else id(analyzer)
        name = ("words", group, identity)
        return graph.reader.shared(name, lambda: TextIndex(graph, group, analyzer))

    def prepare(self, query: str, indexes: Sequence[TextIndex]) -> TermWeights:
        """Analyze a query and weight its terms by the statistics of all indexes together."""
        from ..indexes.bm25_scores import Saturation, TermWeights

        statistics = [index.statistics() for index in indexes]
        size = sum(batch.size for batch in statistics)
        length = sum(batch.total_length for batch in statistics)
        frequency = statistics[0].frequency
        if len(statistics) > 1:
            frequency = cache(lambda term: sum(batch.frequency(term) for batch in statistics))

        def idf(count: int) -> float:
            return math.log(1 + (size - count + 0.5) / (count + 0.5))

        weights: dict[str, float] = {}
        highest = idf(0) if size else 0.0
        missing = 0.0
        silent: set[str] = set()
        others: set[str] = set()
        found = True  # whether the last whole word occurs; its parts follow
        for term, occurrences in self.weigh_terms(query, frequency, size):
            # In another language, a form may be a different and rarer word. Its weight is capped by
            # the form in the index's main language.
            forms = (term,) if isinstance(term, str) else term
            first = 0
            for form in forms:
                if count := frequency(form):
                    first = first or count
                    weight = occurrences * idf(count if count > first else first)
                    weights[form] = weights.get(form, 0.0) + weight
            if not first:
                missing += occurrences * highest
            if occurrences >= 1:
                found = first > 0
            (silent if found and occurrences < 1 else others).update(forms)
        of_phrase = _PHRASE_WEIGHT * (sum(weights.values()) + missing)
        phrases: set[str] = set()
        for phrase in (Phrase(self.analyzer, text) for text in quoted_phrases(query)):
            terms = self.weigh_terms(phrase.words, frequency, size)
            words = [(t,) if isinstance(t, str) else t for t, weight in terms if weight >= 1]
            if words and sum([index.find_phrase(phrase, words) for index in indexes]):
                weights[phrase.text] = of_phrase
                phrases.add(phrase.text)
        heaviest_first = sorted(sorted(weights), key=weights.__getitem__, reverse=True)
        weights = {term: weights[term] for term in heaviest_first}
        saturation = Saturation(self.k1, self.b, length / size if size else 0.0)
        return TermWeights(
            weights,
            saturation,
            missing,
            highest,
            silent=frozenset(silent - others),
            phrases=frozenset(phrases),
        )

    def weigh_terms(self, query: str, frequency: Callable[[str], int], size: int) -> Terms:
        """Return the terms of a query and their weights."""
        weigh: _Weigh | None = getattr(self.analyzer, "weigh", None)
        if weigh is not None:
            return weigh(query, frequency, size)
        analyze: Callable[[str], Iterable[str]] = getattr(self.analyzer, "query", self.analyzer)
        return Counter(analyze(query)).items()
