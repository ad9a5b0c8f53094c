"""Score new texts for many queries at once, and again what was known of these.

The statistics are those that each query was searched by. As they change, what is known is scored
again, and everything else has changed by a factor that the terms of its query bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ..analysis.text_analyzer import TextAnalyzer
from ..indexes.array_files import Arrays, PackedTexts, pack_texts
from ..indexes.bm25_scores import Saturation, TermWeights
from ..indexes.nearest_vectors import unit
from ..indexes.text_index import TextIndex, analysis_version, terms_and_length
from ..indexes.vector_index import VectorIndex
from ..retriever import Retriever
from ..similarities.bm25 import Bm25, lucene_idf
from ..similarities.registry import Cosine

Floats = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]

_ROUNDING = 1e-6  # sums in another order, of counts of 32 bits, differ by less, relatively

_PRODUCT_ERROR = 2e-5  # so do products of 32-bit numbers, and cosines are rounded


class Rescored(NamedTuple):
    """What known nodes score now, and how much all scores have changed.

    Attributes:
        lowest: What they score at least, (rows, known).
        highest: What they score at most, (rows, known).
        least: By what all scores have been multiplied at least, (rows,).
        most: By what they have been multiplied at most, (rows,).
    """

    lowest: Floats
    highest: Floats
    least: Floats
    most: Floats


class Scorer(Protocol):
    """Scores new texts for the queries that were added, in rows."""

    def is_current(self) -> bool:
        """Whether the queries still mean what they did when they were added."""

    def add(self, query: str, ids: Sequence[str], scores: Sequence[float]) -> None:
        """Add a query in the next row, with known nodes and their scores, -inf for too low ones."""

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield for each text what it may have scored at most, -inf for no match, (rows,)."""

    def rescored(self) -> Rescored:
        """Score what is known again."""
        ...

    def select(self, rows: Mask) -> None:
        """Drop all other rows."""

    def header(self) -> dict[str, Any]:
        """Return what stored rows must have been made with, as JSON has it."""
        ...

    def arrays(self) -> Arrays:
        """Return all rows as arrays, for a file."""
        ...

    def restore(self, arrays: Arrays) -> None:
        """Set the empty scorer to what ``arrays`` returned."""
        ...


class WordScorer:
    """Scores by BM25, as the statistics were when a query was added.

    The queries are an inverted file of their own: for each of its terms a query has a posting.

    Args:
        index: The index of the words.
        similarity: How they are weighed.
        known: How many results and runners-up a query has at most.
    """

    def __init__(self, index: TextIndex, similarity: Bm25, known: int) -> None:
        self._index = index
        self._similarity = similarity
        self._terms: dict[str, int] = {}
        self._numbers = np.zeros(0, np.int64)  # those of the terms in the index
        self._vocabulary: object = None
        self._languages = self._index_languages()
        self._statistics = index.statistics("")  # those of the index when a query was added last
        self._lengths = list[int]()  # postings of each row
        self._averages = list[float]()  # by row
        self._new = list[tuple[int, int, float, float]]()
        self._new_impacts: list[npt.NDArray[np.uint16]] = []
        self._kind = np.dtype([*_POSTING.descr, ("impacts", np.uint16, (known,))])
        self._step = (similarity.k1 + 1) / 65_535  # an impact is stored in steps, k1 + 1 at most
        self._postings = np.zeros(0, self._kind)

    def _index_languages(self) -> object:
        analyzer = self._similarity.analyzer
        if isinstance(analyzer, TextAnalyzer):
            frequency = self._index.statistics("").frequency
            return analyzer.index_languages(frequency, self._index.size)
        return None

    def is_current(self) -> bool:
        """Whether queries are analysed as they were."""
        return self._index_languages() == self._languages

    def add(self, query: str, ids: Sequence[str], scores: Sequence[float]) -> None:
        """Add a query with the weights that its terms have now."""
        index, similarity = self._index, self._similarity
        average = index.total_length / index.size if index.size else 0.0
        positions: dict[str, int] = {}
        columns = list[int]()
        if not self._statistics.is_of(index):
            self._statistics = index.statistics("")
        statistics = self._statistics
        for term, count in similarity.weigh_terms(query, statistics.frequency, index.size):
            forms = (term,) if isinstance(term, str) else term
            frequencies = {form: statistics.frequency(form) for form in forms}
            main = next((form for form in forms if frequencies[form]), forms[0])
            for form in forms:
                rarest = max(frequencies[form], frequencies[main])
                idf = lucene_idf(index.size, rarest) if frequencies[form] else 0.0
                self._new.append((self._number(form), self._number(main), count, count * idf))
                columns.append(positions.setdefault(form, len(positions)))
        unit_weights = dict.fromkeys(positions, 1.0)
        saturation = Saturation(similarity.k1, similarity.b, average)
        unweighed = TermWeights(unit_weights, saturation, statistics=(statistics,))
        impacts = np.zeros((len(columns), self._kind["impacts"].shape[0]), np.uint16)
        scores_of_terms = index.passages().term_scores(ids, unweighed).T[columns]
        impacts[:, : len(ids)] = np.rint(scores_of_terms / self._step)
        self._new_impacts.append(impacts)
        self._lengths.append(len(columns))
        self._averages.append(average)

    def _number(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def _build(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the postings, and the row of each."""
        if self._new:
            new, of_terms = np.zeros(len(self._new), self._kind), np.array(self._new, _POSTING)
            for name in _POSTING.names or ():
                new[name] = of_terms[name]
            new["impacts"] = np.concatenate(self._new_impacts)
            self._postings = np.concatenate([self._postings, new])
            self._new.clear()
            self._new_impacts.clear()
        return self._postings, np.repeat(np.arange(len(self._lengths)), self._lengths)

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield the scores of texts."""
        postings, rows = self._build()
        similarity, size = self._similarity, len(self._lengths)
        order = np.argsort(postings["term"], kind="stable")
        starts = np.searchsorted(postings["term"], range(len(self._terms) + 1), sorter=order)
        rows, weights = rows[order], postings["weight"][order].astype(np.float64)
        weights[weights == 0] = np.inf  # no text had the term: what it weighs is not known
        average = max(self._averages, default=0.0) or 1.0  # a text scores most by the highest one
        k1, b = similarity.k1, similarity.b
        for text in texts:
            terms, length = terms_and_length(similarity.analyzer, text)
            norm = k1 * (1 - b + b * length / average)
            of_rows, of_weights = [rows[:0]], [weights[:0]]
            for term, count in Counter(terms).items():
                if (number := self._terms.get(term)) is not None:
                    of_term = slice(starts[number], starts[number + 1])
                    of_rows.append(rows[of_term])
                    of_weights.append(weights[of_term] * (count * (k1 + 1) / (count + norm)))
            joined = np.concatenate(of_rows), np.concatenate(of_weights)
            sums = np.bincount(*joined, minlength=size)
            yield np.where(sums > 0, sums, -np.inf)

    def rescored(self) -> Rescored:
        """Score what is known by the statistics of now."""
        postings, rows = self._build()
        index, size = self._index, len(self._lengths)
        frequencies = self._frequencies()
        rarest = np.maximum(frequencies[postings["term"]], frequencies[postings["main"]])
        weights = postings["count"] * _inverse_frequency(rarest, index.size)
        weights[frequencies[postings["term"]] == 0] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = weights / postings["weight"]  # infinite for a term that no text had
        changes[np.isnan(changes)] = 1.0
        most, least = np.zeros(size), np.full(size, np.inf)
        np.maximum.at(most, rows, changes)
        np.minimum.at(least, rows, changes)
        scores = np.zeros((size, self._kind["impacts"].shape[0]))
        weights *= self._step
        np.add.at(scores, rows, weights[:, np.newaxis] * postings["impacts"])
        off = np.bincount(rows, weights, minlength=size)[:, np.newaxis] / 2  # as they are rounded
        average = index.total_length / index.size if index.size else 1.0
        lengths = average / np.maximum(np.array(self._averages), np.finfo(float).tiny)
        shorter, longer = np.minimum(lengths, 1.0), np.maximum(lengths, 1.0)
        return Rescored(
            (scores - off) * shorter[:, np.newaxis],
            (scores + off) * longer[:, np.newaxis],
            least * shorter * (1 - _ROUNDING),
            most * longer * (1 + _ROUNDING),
        )

    def _frequencies(self) -> npt.NDArray[np.int64]:
        """Return in how many nodes each term of the queries is."""
        vocabulary = self._index.vocabulary
        if self._vocabulary is not vocabulary:
            self._numbers, self._vocabulary = np.zeros(0, np.int64), vocabulary
        terms = [*self._terms]
        new = [vocabulary.find(term) for term in terms[len(self._numbers) :]]
        self._numbers = np.concatenate([self._numbers, np.array(new, np.int64)])
        for at in np.flatnonzero(self._numbers < 0).tolist():
            self._numbers[at] = vocabulary.find(terms[at])
        return self._index.frequencies(self._numbers)

    def select(self, rows: Mask) -> None:
        """Drop all other rows, and the terms that only they have."""
        postings, of_rows = self._build()
        self._postings = postings = postings[rows[of_rows]]
        numbers = np.concatenate([postings["term"], postings["main"]])
        used, new = np.unique(numbers, return_inverse=True)
        postings["term"], postings["main"] = np.split(new, 2)
        terms = [*self._terms]
        self._terms = {terms[number]: at for at, number in enumerate(used.tolist())}
        self._numbers = np.zeros(0, np.int64)
        self._lengths = np.array(self._lengths)[rows].tolist()
        self._averages = np.array(self._averages)[rows].tolist()

    def header(self) -> dict[str, Any]:
        """Return the languages by which queries were analysed."""
        return {"languages": repr(self._languages), "analysis": analysis_version()}

    def arrays(self) -> Arrays:
        """Return the postings, the terms and what there is by row."""
        postings, _ = self._build()
        terms, starts = pack_texts([*self._terms])
        return {
            **{f"posting {name}": postings[name] for name in postings.dtype.names or ()},
            **{"terms": terms, "term starts": starts, "lengths": np.array(self._lengths, np.int64)},
            "averages": np.array(self._averages),
        }

    def restore(self, arrays: Arrays) -> None:
        """Set what ``arrays`` returned."""
        self._postings = np.zeros(len(arrays["posting term"]), self._kind)
        for name in self._kind.names or ():
            self._postings[name] = arrays[f"posting {name}"]
        terms = PackedTexts(arrays["terms"], arrays["term starts"])
        self._terms = {term: number for number, term in enumerate(terms)}
        self._lengths, self._averages = arrays["lengths"].tolist(), arrays["averages"].tolist()


_POSTING = np.dtype([("term", "i4"), ("main", "i4"), ("count", "f4"), ("weight", "f4")])


def _inverse_frequency(frequency: Any, size: int) -> Any:
    return np.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


class VectorScorer:
    """Scores by the cosine, which no other text changes.

    Args:
        graph: The graph.
        index: The index of the vectors.
        key: The embedding.
        known: How many results and runners-up a query has at most.
    """

    def __init__(self, graph: NodeGraph, index: VectorIndex, key: str, known: int) -> None:
        self._embeddings = graph.embeddings
        self._index = index
        self._key = key
        self._queries: Any = np.zeros((0, 0), np.float32)
        self._new: list[Any] = []
        self._known: Any = np.zeros((0, known), np.float32)
        self._new_known: list[list[float]] = []

    def is_current(self) -> bool:
        """Whether all vectors are compared."""
        return self._index.exact

    def add(self, query: str, ids: Sequence[str], scores: Sequence[float]) -> None:
        """Add a query's vector."""
        missing = self._known.shape[1] - len(scores)
        self._new_known.append([*scores, *[-np.inf] * missing])
        self._new.append(unit(self._embeddings.query_vectors([query], self._key))[0])

    def _build(self) -> Any:
        if self._new:
            known = self._queries.reshape(-1, len(self._new[0]))
            self._queries = np.concatenate([known, np.array(self._new)])
            added = np.array(self._new_known, np.float32)
            self._known = np.concatenate([self._known, added])
            self._new.clear()
            self._new_known.clear()
        return self._queries

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield the cosines of texts."""
        queries = self._build()
        for vector in self._embeddings.vectors(texts, self._key):
            yield (queries @ unit(vector[np.newaxis])[0]).astype(np.float64) + _PRODUCT_ERROR

    def rescored(self) -> Rescored:
        """Return the cosines as they were."""
        self._build()
        known, ones = self._known.astype(np.float64), np.ones(len(self._known))
        return Rescored(known - _ROUNDING, known + _ROUNDING, ones, ones)

    def select(self, rows: Mask) -> None:
        """Drop all other rows."""
        self._queries, self._known = self._build()[rows], self._known[rows]

    def header(self) -> dict[str, Any]:
        """Return the model of the vectors."""
        return {"model": self._embeddings.embedder(self._key).name}

    def arrays(self) -> Arrays:
        """Return the vectors, and the cosines of what is known."""
        return {"queries": self._build(), "known": self._known}

    def restore(self, arrays: Arrays) -> None:
        """Set what ``arrays`` returned."""
        self._queries, self._known = arrays["queries"], arrays["known"]


def scorer_of(retriever: Retriever, known: int) -> Callable[[], Scorer] | None:
    """Return what makes a scorer of new texts for a retriever, None where there is none."""
    (graph,), group, similarity = retriever.graphs, retriever.group_name, retriever.similarity
    if type(similarity) is Bm25:
        index = similarity.open(graph, group)
        analyzer = similarity.analyzer
        plain = isinstance(analyzer, TextAnalyzer) or not hasattr(analyzer, "weigh")
        if isinstance(index, TextIndex) and plain:
            return partial(WordScorer, index, similarity, known)
    if type(similarity) is Cosine and len(retriever.embed_keys) == 1:
        (key,) = retriever.embed_keys
        vectors = similarity.open(graph, group, key)
        if isinstance(vectors, VectorIndex):
            return partial(VectorScorer, graph, vectors, key, known)
    return None
