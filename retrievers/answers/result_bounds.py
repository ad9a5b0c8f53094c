"""Tell which queries may have other results than before, without searching for all of them.

Of each query the results are known, and as many runners-up. A new text is scored against all
queries at once, by the statistics that each was searched by. As the statistics change, what is
known is scored again, and everything else has changed by a factor that the terms of its query
bound. As long as all results stay above everything else, they are the same.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest, full_digest
from ...nodegraph.node import Node
from ...nodegraph.stored_answers import StaleAnswer, StoredAnswer
from ..analysis.text_analyzer import TextAnalyzer
from ..base_retriever import effective_child_k
from ..indexes.array_files import Arrays, PackedTexts, pack_texts
from ..indexes.bm25_scores import Saturation, TermWeights
from ..indexes.nearest_vectors import unit
from ..indexes.synced_index import SyncedIndex
from ..indexes.text_index import TextIndex, analysis_version, terms_and_length
from ..indexes.vector_index import VectorIndex
from ..protocols import RetrieverProtocol
from ..results import ScoredNode
from ..retriever import Retriever
from ..similarities.bm25 import Bm25
from ..similarities.registry import Cosine
from .staleness import compared, with_current_causes

Floats = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]

_ROUNDING = 1e-6  # sums in another order, of counts of 32 bits, differ by less, relatively

_PRODUCT_ERROR = 2e-5  # so do products of 32-bit numbers, and cosines are rounded


class Scorer(Protocol):
    """Scores new texts for the queries that were added, in rows."""

    def is_current(self) -> bool:
        """Whether the queries still mean what they did when they were added."""

    def add(self, query: str, results: Sequence[ScoredNode], top_k: int) -> None:
        """Add a query in the next row, with its ``top_k`` results and the runners-up."""

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield for each text the scores that it may have had at most, (rows,)."""

    def stay(self, others: Floats) -> Mask:
        """Return which rows have the same results for sure, (rows,).

        Args:
            others: What all that is not known scored at most when the query was added.
        """

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
        self._top_ks = list[int]()  # by row; 0 where there were fewer results
        self._new: list[npt.NDArray[Any]] = []
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

    def add(self, query: str, results: Sequence[ScoredNode], top_k: int) -> None:
        """Add a query with the weights that its terms have now."""
        index, similarity = self._index, self._similarity
        ids = [result.node.id for result in results]
        average = index.total_length / index.size if index.size else 0.0
        positions: dict[str, int] = {}
        rows, columns = list[tuple[Any, ...]](), list[int]()
        if not self._statistics.is_of(index):
            self._statistics = index.statistics("")
        statistics = self._statistics
        for term, count in similarity.weigh_terms(query, statistics.frequency, index.size):
            forms = (term,) if isinstance(term, str) else term
            frequencies = {form: statistics.frequency(form) for form in forms}
            main = next((form for form in forms if frequencies[form]), forms[0])
            for form in forms:
                rarest = max(frequencies[form], frequencies[main])
                idf = _inverse_frequency(rarest, index.size) if frequencies[form] else 0.0
                rows.append((self._number(form), self._number(main), count, count * idf))
                columns.append(positions.setdefault(form, len(positions)))
        new, of_terms = np.zeros(len(rows), self._kind), np.array(rows, _POSTING)
        for name in _POSTING.names or ():
            new[name] = of_terms[name]
        unit_weights = dict.fromkeys(positions, 1.0)
        saturation = Saturation(similarity.k1, similarity.b, average)
        unweighed = TermWeights(unit_weights, saturation, statistics=(statistics,))
        impacts = index.passages().term_scores(ids, unweighed)
        new["impacts"][:, : len(ids)] = np.rint(impacts.T[columns] / self._step)
        self._new.append(new)
        self._lengths.append(len(new))
        self._averages.append(average)
        self._top_ks.append(top_k if len(ids) >= top_k else 0)

    def _number(self, term: str) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def _build(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return the postings, and the row of each."""
        self._postings = np.concatenate([self._postings, *self._new])
        self._new.clear()
        return self._postings, np.repeat(np.arange(len(self._lengths)), self._lengths)

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield the scores of texts."""
        postings, rows = self._build()
        similarity = self._similarity
        averages = np.array(self._averages)
        averages[averages == 0] = 1.0
        order = np.argsort(postings["term"], kind="stable")
        starts = np.searchsorted(postings["term"], range(len(self._terms) + 1), sorter=order)
        for text in texts:
            terms, length = terms_and_length(similarity.analyzer, text)
            counts = Counter(terms)
            common = [*(counts.keys() & self._terms.keys())]
            numbers = [self._terms[term] for term in common]
            of_terms = [order[starts[number] : starts[number + 1]] for number in numbers]
            at = np.concatenate([order[:0], *of_terms])
            occurring = np.repeat([counts[term] for term in common], [*map(len, of_terms)])
            of_rows = rows[at]
            k1, b = similarity.k1, similarity.b
            norms = k1 * (1 - b + b * (length / averages[of_rows]))
            impacts = occurring * (k1 + 1) / (occurring + norms)
            weights = postings["weight"][at].astype(np.float64)
            weights[weights == 0] = np.inf  # no text had the term: what it weighs is not known
            sums = np.bincount(of_rows, weights * impacts, minlength=len(self._lengths))
            yield sums.astype(np.float64)  # they are integers where there are none

    def stay(self, others: Floats) -> Mask:
        """Score what is known again; bound the scores of all else."""
        postings, rows = self._build()
        index, size = self._index, len(self._lengths)
        frequencies = self._frequencies()
        rarest = np.maximum(frequencies[postings["term"]], frequencies[postings["main"]])
        weights = postings["count"] * _inverse_frequency(rarest, index.size)
        weights[frequencies[postings["term"]] == 0] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            changes = weights / postings["weight"]  # infinite for a term that no text had
        changes[np.isnan(changes)] = 1.0
        highest = np.zeros(size)
        np.maximum.at(highest, rows, changes)
        scores = np.zeros((size, self._kind["impacts"].shape[0]))
        weights *= self._step
        np.add.at(scores, rows, weights[:, np.newaxis] * postings["impacts"])
        rounded = np.bincount(rows, weights, minlength=size) / 2  # what scores may be off
        top_ks = np.array(self._top_ks)[:, np.newaxis]
        are_results = np.arange(scores.shape[1]) < top_ks
        least = np.where(are_results, scores, np.inf).min(axis=1)
        # As long as there are too few results, whatever has a term of the query is one.
        least[top_ks[:, 0] == 0], rounded[top_ks[:, 0] == 0] = 1e-300, 0.0
        most = np.where(are_results, 0.0, scores).max(axis=1)
        most[top_ks[:, 0] == 0] = 0.0
        average = index.total_length / index.size if index.size else 1.0
        lengths = average / np.maximum(np.array(self._averages), np.finfo(float).tiny)
        with np.errstate(invalid="ignore"):
            most = np.maximum(most, np.where(others > 0, highest * others, 0.0))
        least = (least - rounded) * np.minimum(lengths, 1.0)
        stay: Mask = np.isfinite(highest)
        stay &= least > (most + rounded) * np.maximum(lengths, 1.0) * (1 + _ROUNDING)
        return stay

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
        self._top_ks = np.array(self._top_ks)[rows].tolist()

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
            **{"averages": np.array(self._averages), "top_ks": np.array(self._top_ks, np.int64)},
        }

    def restore(self, arrays: Arrays) -> None:
        """Set what ``arrays`` returned."""
        self._postings = np.zeros(len(arrays["posting term"]), self._kind)
        for name in self._kind.names or ():
            self._postings[name] = arrays[f"posting {name}"]
        terms = PackedTexts(arrays["terms"], arrays["term starts"])
        self._terms = {term: number for number, term in enumerate(terms)}
        self._lengths, self._averages = arrays["lengths"].tolist(), arrays["averages"].tolist()
        self._top_ks = arrays["top_ks"].tolist()


_POSTING = np.dtype([("term", "i4"), ("main", "i4"), ("count", "f4"), ("weight", "f4")])


def _inverse_frequency(frequency: Any, size: int) -> Any:
    return np.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


class VectorScorer:
    """Scores by the cosine, which no other text changes.

    Args:
        graph: The graph.
        index: The index of the vectors.
        key: The embedding.
    """

    def __init__(self, graph: NodeGraph, index: VectorIndex, key: str) -> None:
        self._embeddings = graph.embeddings
        self._index = index
        self._key = key
        self._queries: Any = np.zeros((0, 0), np.float32)
        self._new: list[Any] = []
        self._least = list[float]()  # the score of the last result, by row

    def is_current(self) -> bool:
        """Whether all vectors are compared."""
        return self._index.exact

    def add(self, query: str, results: Sequence[ScoredNode], top_k: int) -> None:
        """Add a query's vector."""
        self._least.append(results[top_k - 1].score if len(results) >= top_k else -np.inf)
        self._new.append(unit(self._embeddings.query_vectors([query], self._key))[0])

    def _build(self) -> Any:
        if self._new:
            known = self._queries.reshape(-1, len(self._new[0]))
            self._queries = np.concatenate([known, np.array(self._new)])
            self._new.clear()
        return self._queries

    def scores(self, texts: Sequence[str]) -> Iterator[Floats]:
        """Yield the cosines of texts."""
        queries = self._build()
        for vector in self._embeddings.vectors(texts, self._key):
            yield (queries @ unit(vector[np.newaxis])[0]).astype(np.float64) + _PRODUCT_ERROR

    def stay(self, others: Floats) -> Mask:
        """Return where nothing else is as near."""
        stay: Mask = np.array(self._least) > others
        stay |= others == -np.inf
        return stay

    def select(self, rows: Mask) -> None:
        """Drop all other rows."""
        self._queries = self._build()[rows]
        self._least = np.array(self._least)[rows].tolist()

    def header(self) -> dict[str, Any]:
        """Return the model of the vectors."""
        return {"model": self._embeddings.embedder(self._key).name}

    def arrays(self) -> Arrays:
        """Return the vectors, and the score of the last result of each."""
        return {"queries": self._build(), "least": np.array(self._least)}

    def restore(self, arrays: Arrays) -> None:
        """Set what ``arrays`` returned."""
        self._queries, self._least = arrays["queries"], arrays["least"].tolist()


class ResultBounds(SyncedIndex):
    """Tell which queries may have other results than when they were recorded.

    An index of queries, not of nodes: what it was not told of it need not read. All methods but
    ``close`` are called while the graph is held.

    Args:
        graph: The graph.
        group: The group that is searched, and returned.
        make: Makes what scores new texts.
        search: Names all that the results depend on, beside the graph and the query.
    """

    uses_search_text = True
    streams = True

    def __init__(
        self, graph: NodeGraph, group: str, make: Callable[[], Scorer], search: str
    ) -> None:
        self._make = make
        self._search = search
        super().__init__(graph, group)

    def clear(self) -> None:
        """Drop all queries."""
        self._scorer = self._make()
        self._rows: dict[str, int] = {}
        self._most = np.zeros(0)  # the highest score of all that is not known
        self._open = np.zeros(0, np.bool_)
        self._marks = np.zeros(0, np.int64)
        self._new: list[tuple[float, int]] = []
        self._results = np.zeros(0, _RESULT)
        self._new_results: list[tuple[int, int, int, bool]] = []
        self._changes: tuple[Sequence[str], Sequence[Node]] = [], []

    @property
    def size(self) -> int:
        """How many queries there are."""
        return len(self._rows)

    def select(self, queries: Container[str]) -> None:
        """Drop all other queries."""
        self._build()
        self._rows = {query: row for query, row in self._rows.items() if query in queries}
        self._compact()

    def may_differ(self, query: str) -> bool:
        """Return whether a query may have other results; True for one that was not recorded."""
        row = self._rows.get(query)
        return row is None or (row < len(self._open) and bool(self._open[row]))

    def mark(self, query: str) -> int:
        """Return the mark that a query was recorded with; 0 for one that was not."""
        row = self._rows.get(query)
        if row is None:
            return 0
        new = row - len(self._marks)
        return int(self._marks[row]) if new < 0 else self._new[new][1]

    def record(
        self,
        query: str,
        text: str,
        results: Sequence[ScoredNode],
        top_k: int,
        limit: int,
        filtered: bool,
        mark: int,
    ) -> None:
        """Record what a query has.

        Args:
            query: What the query is called.
            text: The query.
            results: Its results, and runners-up.
            top_k: How many of them are results at most.
            limit: How many of both there are at most.
            filtered: Whether it has conditions on metadata.
            mark: What ``mark`` returns.
        """
        self._scorer.add(text, results, top_k)
        row = self._rows[query] = len(self._open) + len(self._new)
        self._new.append((results[-1].score if len(results) >= limit else -np.inf, mark))
        nodes = [result.node for result in results]
        contents = self._contents(nodes, filtered)
        self._new_results += [
            (row, _hash(node.id), content, at < top_k)
            for at, (node, content) in enumerate(zip(nodes, contents, strict=True))
        ]
        self._unsaved += 1

    def _contents(self, nodes: Sequence[Node], filtered: bool) -> list[int]:
        """Return hashes of what a search compares of nodes."""
        texts = self._graph.reader.searched_texts(nodes)
        return [
            _hash(node.id, str(node.content), text, full_digest(node.metadata) if filtered else "")
            for node, text in zip(nodes, texts, strict=True)
        ]

    def _build(self) -> None:
        """Put what is new into the arrays; drop queries that were recorded again, if many."""
        most = np.array([score for score, _ in self._new], np.float64)
        marks = np.array([mark for _, mark in self._new], np.int64)
        self._most = np.concatenate([self._most, most])
        self._marks = np.concatenate([self._marks, marks])
        self._open = np.concatenate([self._open, np.zeros(len(most), np.bool_)])
        self._results = np.concatenate([self._results, np.array(self._new_results, _RESULT)])
        self._new.clear()
        self._new_results.clear()
        if len(self._open) > 2 * len(self._rows) + 100:
            self._compact()

    def _compact(self) -> None:
        current = np.zeros(len(self._open), np.bool_)
        current[[*self._rows.values()]] = True
        self._scorer.select(current)
        numbers = np.cumsum(current) - 1
        self._rows = {query: int(numbers[row]) for query, row in self._rows.items()}
        self._results = self._results[current[self._results["row"]]]
        self._results["row"] = numbers[self._results["row"]]
        self._most, self._open = self._most[current], self._open[current]
        self._marks = self._marks[current]

    # Following the graph

    def accepts(self, prepared: None) -> bool:
        """Return whether the queries still mean what they did."""
        return self._scorer.is_current()

    def remove(self, ids: Sequence[str]) -> None:
        """Note which nodes are gone."""
        self._changes = ids, []

    def add(self, nodes: Sequence[Node], prepared: None) -> None:
        """Note which nodes are new; all of them are of no interest where no query is known."""
        if self._rows:
            self._changes = self._changes[0], nodes

    def finish(self) -> None:
        """Take in what has changed in the group."""
        (removed, added), self._changes = self._changes, ([], [])
        if not self._rows:
            return
        self._build()
        # Of each text, once without and once with its metadata.
        contents = np.array([self._contents(added, f) for f in (False, True)], np.int64)
        ids = [_hash(node_id) for node_id in (*removed, *(node.id for node in added))]
        rows, of_rows = self._results["row"], self._results["content"]
        changed = np.isin(self._results["id"], np.array(ids, np.int64))
        changed &= self._results["is_result"]
        self._open[rows[changed & ~np.isin(of_rows, contents)]] = True
        texts = self._graph.reader.searched_texts(added)
        all_scores = self._scorer.scores(texts) if added else iter(())
        order = of_rows.argsort()
        ordered = of_rows[order]
        for of_text, scores in zip(contents.T, all_scores, strict=True):
            bounds = (ordered.searchsorted(of_text, side) for side in _SIDES)
            for start, stop in zip(*bounds, strict=True):
                scores[rows[order[start:stop]]] = -np.inf  # it is known, and has only moved
            np.maximum(self._most, scores, out=self._most)
        self._open |= ~self._scorer.stay(self._most)

    # The file

    def file_name(self) -> str:
        """Return the file's name, one for each search."""
        return f"bounds-{self._search}"

    def header(self) -> dict[str, Any]:
        """Return what a stored index must have been built with."""
        return {**self._scorer.header(), "search": self._search, "nodekin": version("nodekin")}

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        if not self._rows:
            return {}
        self._build()
        self._compact()
        queries, starts = pack_texts(sorted(self._rows, key=self._rows.__getitem__))
        return {
            **{f"result {name}": self._results[name] for name in _RESULT.names or ()},
            **{"rows": queries, "row starts": starts, "most": self._most, "open": self._open},
            **{"marks": self._marks, **self._scorer.arrays()},
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to what ``arrays`` returned."""
        queries = PackedTexts(arrays["rows"], arrays["row starts"])
        self._rows = {query: row for row, query in enumerate(queries)}
        self._most, self._open = arrays["most"].copy(), arrays["open"].copy()
        self._marks = arrays["marks"]
        self._results = np.zeros(len(arrays["result row"]), _RESULT)
        for name in _RESULT.names or ():
            self._results[name] = arrays[f"result {name}"]
        self._scorer.restore(arrays)


def _hash(*parts: str) -> int:
    """Return a number for texts, which is the same in every process."""
    return int(digest(*parts)[:15], 16)


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

_RESULT = np.dtype([("row", "i4"), ("id", "i8"), ("content", "i8"), ("is_result", "?")])


class BoundedCheck:
    """Compare stored answers with what is retrieved now, where bounds say that it may differ.

    Args:
        retriever: What the answers were made from.
        top_k: How many results, for answers that say nothing else.
        search: Names all that the results depend on, beside the graph and the question.
    """

    def __init__(self, retriever: Retriever, top_k: int, search: str) -> None:
        self.retriever = retriever
        self.top_k = top_k
        self.retrievals = 0  # so far
        self._search = search
        self._known = top_k + max(2, top_k // 2)
        (self._graph,) = retriever.graphs
        self._lock = threading.Lock()
        self._index: object = None  # which the bounds are made from
        self._bounds: ResultBounds | None = None
        self._stale: dict[str, tuple[int, StaleAnswer]] = {}  # with the marks of the answers

    @classmethod
    def of(
        cls, retriever: RetrieverProtocol, top_k: int | None, search: str
    ) -> BoundedCheck | None:
        """Return the check for a search; None where there are no bounds for its results."""
        if (
            type(retriever) is not Retriever
            or len(retriever.graphs) != 1
            or retriever.target != retriever.group_name
            or retriever.similarity_cut_off is not None
            or effective_child_k(retriever.settings.child_k) is not None
            or _scorer(retriever, 0) is None
        ):
            return None
        own, limit = retriever, top_k or retriever.top_k
        reader = retriever.graphs[0].reader
        return reader.shared(("bounds", search), lambda: cls(own, limit, search))

    def __call__(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer | None]:
        """Return for each answer what has changed, None if nothing has."""
        with self._lock:
            return [
                stale
                for start in range(0, len(answers), _BATCH_SIZE)
                for stale in self._check(answers[start : start + _BATCH_SIZE])
            ]

    def close(self) -> None:
        """Store the bounds, unless a thread is about to check."""
        if self._bounds is not None and self._lock.acquire(blocking=False):
            try:
                self._bounds.close()
            finally:
                self._lock.release()

    def _forget_removed(self, bounds: ResultBounds) -> None:
        """Drop what is known of answers that the graph has no longer, once they are many."""
        stored = self._graph.answers
        if bounds.size > len(stored) + _REMOVED:
            current = {answer.key for answer in stored}
            self._stale = {key: value for key, value in self._stale.items() if key in current}
            bounds.select(current)

    def _check(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer | None]:
        """Check some answers while the graph is held."""
        retriever, graph, group = self.retriever, self._graph, self.retriever.group_name
        index = retriever.similarity.open(graph, group, *retriever.embed_keys[:1])
        index.ready()
        with graph.reader.reading(*graph.reader.searched_groups(group)):
            index.sync()
            if self._bounds is None or self._index is not index:  # it was closed meanwhile
                self._index = index
                make = partial(_made, retriever, self._known)
                self._bounds = ResultBounds(graph, group, make, self._search)
            self._bounds.sync()
            self._forget_removed(self._bounds)
            self._retrieve(answers, self._bounds)
            found = [self._stale.get(answer.key) for answer in answers]
            return with_current_causes([item and item[1] for item in found], graph)

    def _marks(self, answers: Sequence[StoredAnswer]) -> list[int]:
        """Return a hash of each answer, and of its question's terms by a user's analyzer."""
        marks = self._graph.answers.marks(answers)
        similarity = self.retriever.similarity
        if isinstance(similarity, Bm25) and not isinstance(similarity.analyzer, TextAnalyzer):
            analyze = getattr(similarity.analyzer, "query", similarity.analyzer)
            terms = (analyze(answer.question) for answer in answers)
            return [mark and _hash(str(mark), *t) for mark, t in zip(marks, terms, strict=True)]
        return marks

    def _retrieve(self, answers: Sequence[StoredAnswer], bounds: ResultBounds) -> None:
        """Retrieve for those whose results may differ, and compare them."""
        together: dict[tuple[int, str], list[tuple[StoredAnswer, int]]] = {}
        for answer, mark in zip(answers, self._marks(answers), strict=True):
            key = answer.key
            known = self._stale[key][0] if key in self._stale else bounds.mark(key)
            if not mark or known != mark or bounds.may_differ(key):
                limit = max(self._known, answer.top_k or self.top_k)
                together.setdefault((limit, repr(answer.filters)), []).append((answer, mark))
        for (limit, _), several in together.items():
            filters = several[0][0].filters
            filtered = bool(self.retriever.conditions(filters))
            questions = [answer.question for answer, _ in several]
            found = self.retriever.batch(questions, top_k=limit, filters=filters)
            for (answer, mark), retrieved in zip(several, found, strict=True):
                key, top_k, asks = answer.key, answer.top_k or self.top_k, answer.question.strip()
                results = retrieved if asks else []
                stale = compared(answer, results[:top_k])
                self._stale.pop(key, None)
                if stale is not None:
                    self._stale[key] = mark, stale
                self.retrievals += bool(asks)
                if asks and top_k < self._known:
                    # Of what has changed a process that reads this has to see how.
                    own = 0 if stale else mark
                    bounds.record(key, answer.question, results, top_k, limit, filtered, own)


_REMOVED = 16  # answers that are removed before what is known of them is dropped

_BATCH_SIZE = 256  # answers that are checked before another thread may write


def _scorer(retriever: Retriever, known: int) -> Callable[[], Scorer] | None:
    """Return what makes a scorer of new texts for a retriever, None where there is none."""
    (graph,), group, similarity = retriever.graphs, retriever.group_name, retriever.similarity
    if type(similarity) is Bm25 and similarity.method == "lucene":
        index = similarity.open(graph, group)
        analyzer = similarity.analyzer
        plain = isinstance(analyzer, TextAnalyzer) or not hasattr(analyzer, "weigh")
        if isinstance(index, TextIndex) and plain:
            return partial(WordScorer, index, similarity, known)
    if type(similarity) is Cosine and len(retriever.embed_keys) == 1:
        (key,) = retriever.embed_keys
        vectors = similarity.open(graph, group, key)
        if isinstance(vectors, VectorIndex):
            return partial(VectorScorer, graph, vectors, key)
    return None


def _made(retriever: Retriever, known: int) -> Scorer:
    make = _scorer(retriever, known)
    assert make is not None
    return make()
