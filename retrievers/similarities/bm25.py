"""The BM25 similarity, with its settings and its formula."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Literal

from ...nodegraph.graph import NodeGraph
from ..analysis.phrases import Phrase, quoted_phrases
from ..analysis.text_analyzer import Analyzer, TextAnalyzer
from ..indexes.bm25_weights import Saturation, TermWeights
from ..validation import number

if TYPE_CHECKING:
    from ..indexes.text_index import TextIndex

Terms = Iterable[tuple[str | tuple[str, ...], float]]

_Weigh = Callable[[str, Callable[[str], int], int], Terms]

DEFAULT_ANALYZER = TextAnalyzer()

# The weight of a phrase, relative to the total weight of the words of its query.
_PHRASE_WEIGHT = 10.0


@dataclass(frozen=True, slots=True)
class Bm25:
    """The BM25 similarity, in which rare terms count more and long nodes score lower.

    Each term of the query adds ``idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length /
    average_length))`` to the score. ``tf`` is the number of its occurrences in the node, and ``idf
    = log(1 + (N - n + 0.5) / (n + 0.5))`` for a term that occurs in ``n`` of ``N`` nodes. These
    statistics cover the whole group in its current state, over all graphs that are searched. They
    do not depend on filters.

    A phrase in quotation marks is treated as an additional term. Nodes that contain the phrase are
    ranked before all others.

    Args:
        k1: The influence of repeated terms. If 0, repetitions are ignored.
        b: The degree of length normalization, from 0 (none) to 1 (full).
        analyzer: A function that converts a text to terms, such as ``jieba.lcut``. If it has a
            method ``query``, this method is used for queries. Defaults to ``TextAnalyzer()``.
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
        """Return the index of a group, which all settings with the same analyzer share.

        Args:
            graph: The graph.
            group: The name of the group to search.
            key: This argument is ignored, since texts are compared.
        """
        analyzer = self.analyzer  # the index keeps a reference, so that the id remains unique
        identity = analyzer if isinstance(analyzer, Hashable) else id(analyzer)
        name = ("words", group, identity)
        return graph.reader.shared(name, lambda: _create(graph, group, analyzer))

    def prepare(self, query: str, indexes: Sequence[TextIndex]) -> TermWeights:
        """Analyze a query, and weight its terms by the combined statistics of all indexes."""
        first, *others = [index.statistics() for index in indexes]
        size = first.size
        length = first.total_length
        frequency = first.frequency
        if others:
            size += sum([each.size for each in others])
            length += sum([each.total_length for each in others])
            frequency = cache(lambda term: sum([each.frequency(term) for each in (first, *others)]))
        saturation = Saturation(self.k1, self.b, length / size if size else 0.0)
        terms = self.weigh_terms(query, frequency, size)
        words = _weighted(terms, frequency, size, saturation)
        find_unknown = getattr(self.analyzer, "unknown_codes", None)
        unknown = {} if find_unknown is None else find_unknown(query, frequency)
        if unknown:
            numbers = words.silent.union(*unknown.values())
            words = words._replace(unknown=tuple(unknown), silent=numbers)
        quoted = quoted_phrases(query)
        if quoted:
            phrases = self._find_phrases(quoted, indexes, frequency, size)
            weights = words.weights | dict.fromkeys(phrases, _PHRASE_WEIGHT * words.total)
            words = words._replace(weights=_heaviest_first(weights), phrases=frozenset(phrases))
        return words

    def _find_phrases(
        self,
        quoted: Iterable[str],
        indexes: Sequence[TextIndex],
        frequency: Callable[[str], int],
        size: int,
    ) -> list[str]:
        """Find the phrases that occur in nodes. Each becomes a term of the indexes."""
        found: list[str] = []
        for text in quoted:
            phrase = Phrase(self.analyzer, text)
            terms = self.weigh_terms(phrase.words, frequency, size)
            forms = [_forms(term) for term, occurrences in terms if occurrences >= 1]
            counts = [index.find_phrase(phrase, forms) for index in indexes if forms]
            if any(counts):
                found.append(phrase.text)
        return found

    def weigh_terms(self, query: str, frequency: Callable[[str], int], size: int) -> Terms:
        """Return the terms of a query with their weights."""
        weigh: _Weigh | None = getattr(self.analyzer, "weigh", None)
        if weigh is not None:
            return weigh(query, frequency, size)
        analyze: Callable[[str], Iterable[str]] = getattr(self.analyzer, "query", self.analyzer)
        return Counter(analyze(query)).items()


def _create(graph: NodeGraph, group: str, analyzer: Analyzer) -> TextIndex:
    from ..indexes.text_index import TextIndex

    return TextIndex(graph, group, analyzer)


def _weighted(
    terms: Terms,
    frequency: Callable[[str], int],
    size: int,
    saturation: Saturation,
) -> TermWeights:
    """Multiply the weights of a query's terms by their inverse document frequencies."""
    weights: dict[str, float] = {}
    highest = _idf(0, size) if size else 0.0
    missing = 0.0
    silent: list[str] = []
    others: list[tuple[str, ...]] = []
    is_found = True  # whether the last whole word occurs; the parts of the word come after it
    for term, occurrences in terms:
        # In another language, the same form may be a different and rarer word. Its weight is capped
        # by that of the form in the index's main language.
        forms = (term,) if isinstance(term, str) else term
        first = 0
        for form in forms:
            count = frequency(form)
            if count:
                first = first or count
                weight = occurrences * _idf(max(count, first), size)
                weights[form] = weights.get(form, 0.0) + weight
        if not first:
            missing += occurrences * highest
        is_whole = occurrences >= 1
        if is_whole:
            is_found = first > 0
        if is_found and not is_whole:
            silent += forms
        else:
            others.append(forms)
    only_parts = frozenset(silent).difference(*others) if silent else frozenset[str]()
    return TermWeights(_heaviest_first(weights), saturation, missing, highest, only_parts)


@lru_cache(10_000)  # most terms of a question have the frequency of an earlier term
def _idf(count: int, size: int) -> float:
    return math.log(1 + (size - count + 0.5) / (count + 0.5))


def _forms(term: str | tuple[str, ...]) -> tuple[str, ...]:
    return (term,) if isinstance(term, str) else term


def _heaviest_first(weights: dict[str, float]) -> dict[str, float]:
    """Sort terms by weight. Terms of equal weight are sorted by name."""
    by_name = sorted(weights.items())
    return dict(sorted(by_name, key=itemgetter(1), reverse=True))
