"""BM25 sums of a query's terms, and the rows that have the highest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..filters import Filter
from ..protocols import Index
from .node_table import Mask, Orders
from .postings import Counts, Ints

Floats = npt.NDArray[np.float64]

# Rows for each posting from which sums of the rows that occur take less time than sums of all.
_SPARSE = 32

_PARTS = 32  # sums of which the highest alone is looked at, to leave out most rows

# Postings up to which all terms are added up at once, the share of more that is added up before it
# is seen whether the others can be left out, and how much more each time they can't.
_FEW = 30_000

_FIRST_SHARE = 4

_GROWTH = 3

_LOOK_UP_COST = 16  # postings that are added while a row is looked up in a term

_ROUNDING = 1 + 1e-9  # sums in another order differ by less than this factor

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


class QueryPostings(NamedTuple):
    """The postings of a query's terms, the heaviest first.

    Attributes:
        lists: The rows of each term, ascending, and how often each has it.
        weights: The weight of each, (terms,), at least one.
        saturation: Weighs the counts.
        norms: Those of the lengths of all rows.
    """

    lists: Sequence[tuple[Ints, Counts]]
    weights: Floats
    saturation: Saturation
    norms: Floats

    def ceilings(self) -> Floats:
        """Return the most that each term and all after it can add to a row."""
        highest = np.array([counts.max(initial=0) for _, counts in self.lists])
        maximum = self.weights * self.saturation.weighed(highest, self.norms.min(initial=np.inf))
        return np.cumsum(maximum[::-1])[::-1] * _ROUNDING

    def impacts(self, part: slice = slice(None)) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the rows of terms, one term after the other, and what is added to each."""
        lists = self.lists[part]
        # Indexes of 64 bits are taken, and added to, several times as fast.
        rows = np.concatenate([rows for rows, _ in lists], dtype=np.int64)
        counts = np.concatenate([counts for _, counts in lists])
        impacts = self.saturation.weighed(counts, self.norms.take(rows))
        impacts *= self.weights[part].repeat([len(rows) for rows, _ in lists])
        return rows, impacts


def add(query: QueryPostings, part: slice, sums: Floats) -> None:
    """Add the impacts of some terms to the sums of rows, one term after the other."""
    np.add.at(sums, *query.impacts(part))


def best_rows(
    query: QueryPostings,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the rows with the highest sums, best first, and the sums.

    Exact. Terms are added up the heaviest first. Where there are many postings, as soon as all
    remaining terms together can't lift a new row among the best, only rows that can still get
    there are looked up in the others (Turtle and Flood, "Query evaluation: strategies and
    optimizations", 1995, called max-score).

    Args:
        query: The query's postings.
        limit: How many; None for all rows with any of the terms.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    total = sum([len(rows) for rows, _ in query.lists])
    if limit is None or query.weights[-1] <= 0 or total * _SPARSE < len(orders):
        rows, sums = _all_sums(query, allowed)
    elif allowed is not None and 4 * np.count_nonzero(allowed) < total:
        rows = allowed.nonzero()[0]
        rows, sums = _looked_up(query, rows, np.zeros(len(rows)), 0, limit)
    else:
        rows, sums = _highest_sums(query, total, limit, allowed, len(orders))
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
    query: QueryPostings, total: int, limit: int, allowed: Mask | None, size: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return rows among which the best are, and their sums."""
    sums, terms, done = np.zeros(size), len(query.weights), 0
    ends = [*accumulate(len(rows) for rows, _ in query.lists)]
    maximum = total // _FIRST_SHARE if total > _FEW else total
    while True:
        stop = max(done + 1, bisect_right(ends, maximum))
        add(query, slice(done, stop), sums)
        counted = sums if allowed is None else sums * allowed
        bound = max(_bound(counted, limit), LEAST)
        if stop == terms:
            rows = (counted >= bound).nonzero()[0]
            return rows, counted.take(rows)
        above = bound / _ROUNDING - query.ceilings()[stop]
        if above > 0:
            rows = (counted >= above).nonzero()[0]
            if len(rows) * _LOOK_UP_COST * (terms - stop) < total - ends[stop - 1]:
                return _looked_up(query, rows, counted.take(rows), stop, limit)
        done, maximum = stop, _GROWTH * maximum


def _looked_up(
    query: QueryPostings, rows: npt.NDArray[np.int64], sums: Floats, first: int, limit: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Add what terms from one on add to some rows; drop rows that can't get among the best."""
    ceilings = query.ceilings()
    for term in range(first, len(query.lists)):
        reachable = sums + ceilings[term] >= _highest(sums, limit) / _ROUNDING
        rows, sums = rows[reachable], sums[reachable]
        of_term, counts = query.lists[term]
        if len(of_term):
            at = np.searchsorted(of_term, rows.astype(np.int32)).clip(max=len(of_term) - 1)
            added = query.saturation.weighed(counts[at], query.norms.take(rows))
            sums = sums + np.where(of_term[at] == rows, added * query.weights[term], 0.0)
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

    def mean_inverse_frequency(self) -> float:
        """Return the average over all terms of Okapi's inverse document frequency.

        Raises:
            TypeError: If no process has the frequencies of all terms.
        """


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
