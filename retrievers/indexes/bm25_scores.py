"""BM25 sums of a query's terms, and the rows that have the highest."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..protocols import Index
from .array_files import grown
from .node_table import Mask, Orders
from .postings import Counts, Ints

Floats = npt.NDArray[np.float64]

_SPARSE = 32  # rows per posting: above, only the rows that occur are summed

_PARTS = 32  # columns whose maxima give a lower bound of the best scores

_LOOK_UP_COST = 24  # postings that are summed in the time of one lookup

LEAST = float(np.finfo(np.float64).tiny)
"""The least number above 0."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """Weigh a term's count in a node, by the node's length.

    Attributes:
        k1: How much further occurrences count.
        b: How much the scores of long nodes are lowered.
        average_length: Terms in a node, on average over all indexes.
    """

    k1: float
    b: float
    average_length: float

    def impacts(self, counts: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> Floats:
        """Return what a term adds to each node, for an inverse document frequency of 1."""
        return self.weighed(counts, self.norms(lengths))

    def norms(self, lengths: npt.NDArray[Any]) -> Floats:
        """Return what the lengths of nodes contribute to their impacts, once for all terms."""
        norms: Floats = lengths / (self.average_length or 1.0)
        norms *= self.b  # k1 * (1 - b + b * length / average), in one array
        norms += 1 - self.b
        norms *= self.k1
        return norms

    def weighed(self, counts: npt.NDArray[Any], norms: Floats | float) -> Floats:
        """Return the impacts of counts in nodes of some norms."""
        impacts = counts.astype(np.float64)
        totals = impacts + norms
        impacts *= self.k1 + 1
        impacts /= totals
        return impacts


class TermWeights(NamedTuple):
    """Hold the terms of a query that occur, each with its weight, and how counts are weighed.

    A weight is the term's inverse document frequency times its count in the query.

    Attributes:
        weights: The weights, by term.
        saturation: Weighs the counts.
        missing: What the terms that no node has weigh together.
        highest: What a term weighs that no node has.
        silent: Which terms are only parts of words that occur whole.
        statistics: What it was weighed by, of each index; they have the postings of its terms.
    """

    weights: dict[str, float]
    saturation: Saturation
    missing: float = 0.0
    highest: float = 0.0
    silent: frozenset[str] = frozenset()
    statistics: Sequence[TermStatistics] = ()

    def heaviest_first(self) -> list[str]:
        """Return the terms in the order in which all indexes add them up: equal nodes have equal
        scores so.
        """
        return sorted(sorted(self.weights), key=self.weights.__getitem__, reverse=True)


class RowLengths:
    """The lengths of a table's nodes by row. The array has room to grow.

    Args:
        lengths: The lengths of the first rows.
    """

    def __init__(self, lengths: Ints) -> None:
        self._lengths, self._size = lengths, len(lengths)
        self._norms: tuple[Saturation | None, Floats] = None, np.zeros(0)  # of the latest query

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Ints:
        """The lengths of all rows."""
        return self._lengths[: self._size]

    def take(self, rows: npt.NDArray[Any]) -> Ints:
        """Return the lengths of some rows."""
        return self._lengths.take(rows)

    def norms(self, saturation: Saturation) -> Floats:
        """Return the length norms of all rows. They are cached for the latest saturation."""
        of, norms = self._norms
        if of != saturation or len(norms) != self._size:
            norms = saturation.norms(self.values)
            self._norms = saturation, norms
        return norms

    def extend(self, lengths: Ints) -> None:
        """Append the lengths of the next rows."""
        first, self._size = self._size, self._size + len(lengths)
        self._lengths = grown(self._lengths, self._size)
        self._lengths[first : self._size] = lengths


class QueryPostings(NamedTuple):
    """The postings of a query's terms, the heaviest first.

    Attributes:
        lists: The rows of each term, ascending, and how often each has it.
        weights: The weight of each, (terms,), at least one.
        saturation: Weighs the counts.
        lengths: Those of all rows.
    """

    lists: Sequence[tuple[Ints, Counts]]
    weights: Floats
    saturation: Saturation
    lengths: RowLengths

    def impacts(self) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the rows of all terms, term after term, and the addend of each row's score."""
        # numpy takes and adds by 64-bit indexes several times as fast.
        rows = np.concatenate([rows for rows, _ in self.lists], dtype=np.int64)
        counts = np.concatenate([counts for _, counts in self.lists])
        norms = self.lengths.norms(self.saturation).take(rows, mode="clip")
        impacts = self.saturation.weighed(counts, norms)
        impacts *= self.weights.repeat([len(rows) for rows, _ in self.lists])
        return rows, impacts

    def looked_up(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return what each term adds to the scores of some rows, ascending, (terms, rows)."""
        counts = np.zeros((len(self.lists), len(rows)))
        sought = rows.astype(np.int32)
        for of_term, (rows_of_term, counts_of_term) in zip(counts, self.lists, strict=True):
            if len(rows_of_term):
                at = rows_of_term.searchsorted(sought)
                is_there = rows_of_term.take(at, mode="clip") == sought
                np.multiply(counts_of_term.take(at, mode="clip"), is_there, of_term)
        norms = self.saturation.norms(self.lengths.take(rows))
        # A norm of 0 would divide a missing term's count of 0 by 0.
        impacts = self.saturation.weighed(counts, np.maximum(norms, LEAST))
        impacts *= self.weights[:, np.newaxis]
        return impacts


def best_rows(
    query: QueryPostings,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the rows with the highest sums, best first, and the sums.

    Args:
        query: The query's postings.
        limit: How many; None for all rows with any of the terms.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    total = sum(len(rows) for rows, _ in query.lists)
    cost = _LOOK_UP_COST * len(query.lists)
    if limit is None or query.weights[-1] <= 0 or total * _SPARSE < len(orders):
        rows, sums = _all_sums(query, allowed)
    elif allowed is not None and cost * np.count_nonzero(allowed) < total:
        rows, sums = _looked_up(query, allowed.nonzero()[0])
    else:
        rows, sums = _highest_sums(query, limit, allowed, len(orders))
    return ranked(rows, sums, limit, orders)


def _all_sums(query: QueryPostings, allowed: Mask | None) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return all rows that have a term, and their sums."""
    rows, impacts = query.impacts()
    matches, positions = np.unique(rows, return_inverse=True)
    sums = np.bincount(positions, impacts).astype(np.float64, copy=False)
    return (
        (matches, sums) if allowed is None else (matches[allowed[matches]], sums[allowed[matches]])
    )


def _highest_sums(
    query: QueryPostings, limit: int, allowed: Mask | None, size: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return rows among which the best are, and their sums, of all that have a term."""
    sums = np.zeros(size)
    np.add.at(sums, *query.impacts())
    if allowed is not None:
        sums *= allowed
    rows = (sums >= max(_bound(sums, limit), LEAST)).nonzero()[0]
    return rows, sums.take(rows)


def _looked_up(
    query: QueryPostings, rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return those of some rows, ascending, that have a term, and their sums."""
    sums = np.zeros(len(rows))
    for of_term in query.looked_up(rows):
        sums += of_term
    return rows[sums > 0], sums[sums > 0]


def _bound(sums: Floats, limit: int) -> float:
    """Return a number that at least ``limit`` sums reach."""
    width = len(sums) // _PARTS
    if width >= 2 * limit:  # the highest sums of the columns are those of different rows
        sums = sums[: width * _PARTS].reshape(_PARTS, width).max(axis=0)
    return _highest(sums, limit)


def _highest(scores: Floats, limit: int) -> float:
    """Return the limit-th highest score, or minus infinity where there are fewer."""
    if len(scores) < limit:
        return -np.inf
    at = len(scores) - limit
    ordered = scores.copy()
    ordered.partition(at)
    return float(ordered[at])


def ranked(
    rows: npt.NDArray[Any], scores: Floats, limit: int | None, orders: Orders
) -> tuple[npt.NDArray[Any], Floats]:
    """Truncate to the best and sort them, ties by order."""
    if limit is not None and len(rows) > 4 * limit + _PARTS:
        threshold = _highest(scores, limit)
        above = np.flatnonzero(scores > threshold)
        tied = np.flatnonzero(scores == threshold)
        missing = limit - len(above)
        if missing < len(tied):
            tied = tied[np.argpartition(orders[rows[tied]], missing)[:missing]]
        best = np.concatenate([above, tied])
        rows, scores = rows[best], scores[best]
    ranking = np.lexsort((orders.take(rows), -scores))[:limit]
    return rows.take(ranking), scores.take(ranking)


Meets = Callable[[str], bool]
"""Says of a passage, by its id, whether it meets conditions."""


class TermStatistics(Protocol):
    """What a query is weighed by, for one state of a group."""

    @property
    def size(self) -> int:
        """How many nodes there are."""

    @property
    def total_length(self) -> int:
        """How long all nodes are together."""

    @property
    def frequency(self) -> Callable[[str], int]:
        """Returns in how many nodes a term is."""


class Passages(Protocol):
    """What is looked up of nodes for one query, while the graph is held."""

    def known(self, ids: Iterable[str]) -> Container[str]:
        """Return which of some nodes are in the group; what it has of others is open."""

    def meeting(self, filter: Filter) -> Meets | None:
        """Return what says whether a known node meets a filter; None where all do."""

    def term_scores(self, ids: Sequence[str], query: TermWeights) -> Floats:
        """Return what each term of a query adds to the BM25 score of known nodes.

        Args:
            ids: The nodes.
            query: From ``Bm25.prepare``, for their index.

        Returns:
            An array (nodes, terms); the sums of its rows are the scores.
        """


class WordSearch(Index[TermWeights], Protocol):
    """An index of the words of a group."""

    @property
    def size(self) -> int:
        """How many nodes there are; in an engine, when a query was weighed last."""

    def ready(self) -> None:
        """Do what may take long, before the graph is held."""

    def statistics(self, query: str) -> TermStatistics:
        """Return what a query is weighed by, in the state that this thread reads."""

    def passages(self) -> Passages:
        """Return what looks nodes up for one query."""
