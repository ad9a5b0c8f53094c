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
from .array_files import grown
from .node_table import Mask, Orders
from .postings import Counts, Ints

Floats = npt.NDArray[np.float64]

# Rows for each posting from which sums of the rows that occur take less time than sums of all.
_SPARSE = 32

_PARTS = 32  # sums of which the highest alone is looked at, to leave out most rows

# Postings up to which all terms are added up at once; of more, the share of which bounds are added
# up before it is seen which others can be left out, and that of a second attempt.
_FEW = 30_000

_FIRST_SHARE, _SECOND_SHARE = 4, 2

_LOOK_UP_COST = 24  # postings whose bounds are added while a row is looked up in a term

_MOST_TERMS = 1_000  # of a query for which bounds are added up

# Bounds on impacts know counts up to one less than the first number, and lengths of so many steps.
_COUNTS, _STEPS = 4, 64

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


class RowLengths:
    """How long the nodes of a table are, by row; each also as a small number, for bounds on scores.

    Args:
        lengths: Those of the first rows.
    """

    def __init__(self, lengths: Ints) -> None:
        self._lengths, self._size = lengths, len(lengths)
        # How many words a step is, the steps of the rows, and of how many rows they are: together,
        # as many threads may search.
        self._stepped: tuple[int, Steps, int] = 0, np.zeros(0, np.uint8), 0
        self._normed: tuple[Saturation | None, Floats] = None, np.zeros(0)  # of the latest query

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Ints:
        """The lengths of all rows."""
        return self._lengths[: self._size]

    def take(self, rows: npt.NDArray[Any]) -> Ints:
        """Return the lengths of some rows."""
        return self._lengths.take(rows)

    def norms(self, saturation: Saturation, rows: npt.NDArray[np.int64]) -> Floats:
        """Return what the lengths of rows contribute to their impacts, each as often as given."""
        if self._size > _FEW:  # more than are asked for at once
            return saturation.norms(self._lengths.take(rows, mode="clip"))
        of, norms = self._normed
        if of != saturation or len(norms) != self._size:
            norms = saturation.norms(self.values)
            self._normed = saturation, norms
        return norms.take(rows, mode="clip")  # as rows are there: twice as fast as to look

    def extend(self, lengths: Ints) -> None:
        """Append the lengths of the next rows."""
        first, self._size = self._size, self._size + len(lengths)
        self._lengths = grown(self._lengths, self._size)
        self._lengths[first : self._size] = lengths

    def steps(self) -> tuple[int, Steps]:
        """Return how many words a step is, and how many whole steps each length has.

        Lengths of more than ``_STEPS`` have the highest number. A step is a thirty-second to a
        sixteenth of the average that there was when the rows last became twice as many.
        """
        step, steps, size = self._stepped
        if self._size > len(steps):
            step = 1 << max(0, int(self.values.mean()).bit_length() - 5)
            steps, size = np.zeros(max(self._size, 2 * len(steps)), np.uint8), 0
        if size < self._size:
            steps[size : self._size] = np.minimum(self.values[size:] // step, _STEPS - 1)
            self._stepped = step, steps, self._size
        return step, steps


Steps = npt.NDArray[np.uint8]


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

    def ceilings(self) -> list[float]:
        """Return the most that each term and all after it can add to a row, and 0 at the end."""
        maximum = self.weights * ((self.saturation.k1 + 1) * _ROUNDING)
        return [*np.cumsum(maximum[::-1])[::-1].tolist(), 0.0]

    def impacts(self, part: slice = slice(None)) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the rows of terms, one term after the other, and what is added to each."""
        lists = self.lists[part]
        # Indexes of 64 bits are taken, and added to, several times as fast.
        rows = np.concatenate([rows for rows, _ in lists], dtype=np.int64)
        counts = np.concatenate([counts for _, counts in lists])
        impacts = self.saturation.weighed(counts, self.lengths.norms(self.saturation, rows))
        impacts *= self.weights[part].repeat([len(rows) for rows, _ in lists])
        return rows, impacts

    def looked_up(self, rows: npt.NDArray[np.int64], part: slice = slice(None)) -> Floats:
        """Return what terms add to some rows, ascending, (terms, rows)."""
        lists, weights = self.lists[part], self.weights[part]
        counts = np.zeros((len(lists), len(rows)))
        sought = rows.astype(np.int32)
        for of_term, (rows_of_term, counts_of_term) in zip(counts, lists, strict=True):
            if len(rows_of_term):
                at = rows_of_term.searchsorted(sought)
                is_there = rows_of_term.take(at, mode="clip") == sought
                np.multiply(counts_of_term.take(at, mode="clip"), is_there, of_term)
        norms = self.lengths.norms(self.saturation, rows)
        # Where lengths don't count, what is not there would be nothing of nothing.
        impacts = self.saturation.weighed(counts, np.maximum(norms, LEAST))
        impacts *= weights[:, np.newaxis]
        return impacts


def best_rows(
    query: QueryPostings,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the rows with the highest sums, best first, and the sums.

    Exact. Where there are many postings, bounds on the sums are added up first, the heaviest terms
    before the others, until all remaining terms together can't lift another row among the best.
    Only rows that can get there are looked up (Turtle and Flood, "Query evaluation: strategies and
    optimizations", 1995, called max-score).

    Args:
        query: The query's postings.
        limit: How many; None for all rows with any of the terms.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    total, terms = sum([len(rows) for rows, _ in query.lists]), len(query.lists)
    cost = _LOOK_UP_COST * terms
    if limit is None or query.weights[-1] <= 0 or total * _SPARSE < len(orders):
        rows, sums = _all_sums(query, allowed)
    elif allowed is not None and cost * np.count_nonzero(allowed) < total:
        rows, sums = _looked_up(query, allowed.nonzero()[0])
    elif total <= max(_FEW, cost * limit) or terms > _MOST_TERMS:
        rows, sums = _highest_sums(query, limit, allowed, len(orders))
    else:
        rows, sums = _highest_bounded(query, limit, allowed, len(orders))
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


def _highest_bounded(
    query: QueryPostings, limit: int, allowed: Mask | None, size: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the same without looking at most postings of terms that many rows have."""
    terms, ends = len(query.lists), [*accumulate(len(rows) for rows, _ in query.lists)]
    total, ceilings = ends[-1], query.ceilings()
    bounds = _Bounds(query, ceilings[0], limit, allowed, size)
    done, stop, goal, least = 0, 1, total // _FIRST_SHARE, 0.0
    while True:
        stop = max(stop, bisect_right(ends, goal))
        bounds.add(range(done, stop))
        best = _looked_up(query, bounds.highest(limit))[1]
        least = max(least, _highest(best, limit) / _ROUNDING)
        if stop == terms:
            break
        if ceilings[stop] < least:
            number = bounds.count(least - ceilings[stop])
            if number * _LOOK_UP_COST * (terms - stop) < total - ends[stop - 1]:
                break
        done, stop = stop, stop + 1
        while ceilings[stop] >= least and stop < terms:
            stop += 1
        goal = total // _SECOND_SHARE
    rows, highest = bounds.reaching(least - ceilings[stop])
    for term in range(stop, terms):
        reachable = highest + ceilings[term] >= least
        rows, highest = rows[reachable], highest[reachable]
        highest = highest + query.looked_up(rows, slice(term, term + 1))[0]
    return _looked_up(query, rows[highest * _ROUNDING >= least])


class _Bounds:
    """The most that the terms which were added can give to each row, in few bytes.

    They are whole numbers of a unit, and of a query's terms rounded up each; lengths are rounded
    down, counts from ``_COUNTS`` on are as good as infinite.

    Args:
        query: The query.
        ceiling: The most that all of its terms can give.
        limit: How many rows are wanted.
        allowed: Which rows count, None for all.
        size: How many rows there are.
    """

    def __init__(
        self, query: QueryPostings, ceiling: float, limit: int, allowed: Mask | None, size: int
    ) -> None:
        saturation = query.saturation
        self._query, self._allowed, self._size = query, allowed, size
        self._unit = max(ceiling / (2**16 - 1 - 2 * len(query.lists)), LEAST)
        step, self._steps = query.lengths.steps()
        norms = np.tile(saturation.norms(np.arange(_STEPS) * step), _COUNTS)
        impacts = saturation.weighed(np.arange(1, _COUNTS + 1).repeat(_STEPS), norms)
        impacts[-_STEPS:] = saturation.k1 + 1
        impacts *= _ROUNDING / self._unit
        self._impacts = np.ceil(np.multiply.outer(query.weights, impacts)).astype(np.uint16)
        parts = _PARTS if size >= 2 * _PARTS * limit else 1
        # By columns of rows that are far from each other, of which the highest are looked at.
        self._bounds = np.zeros((parts, -(-size // parts)), np.uint16)
        self._highest = self._bounds[0]

    def add(self, terms: Iterable[int]) -> None:
        """Add terms, by their places in the query."""
        bounds = self._bounds.reshape(-1)
        for term in terms:
            of_term, counts = self._query.lists[term]
            rows = of_term.astype(np.int64)  # several times as fast as with 32 bits
            kinds = np.minimum(counts, _COUNTS).astype(np.uint8, copy=False)
            kinds -= 1
            kinds *= _STEPS
            kinds += self._steps.take(rows, mode="clip")
            np.add.at(bounds, rows, self._impacts[term].take(kinds, mode="clip"))
        if self._allowed is not None:
            bounds[: self._size] *= self._allowed
        self._highest = self._bounds.max(axis=0)

    def highest(self, limit: int) -> npt.NDArray[np.int64]:
        """Return so many of the rows with the highest bounds, ascending, or all that have one."""
        at = max(0, len(self._highest) - limit)
        least = max(1, int(np.partition(self._highest, at)[at]))
        rows, bounds = self._reaching(least)
        if len(rows) > limit:
            rows = rows[np.argpartition(bounds, len(rows) - limit)[-limit:]]
        return np.sort(rows)

    def count(self, score: float) -> int:
        """Return how many rows reach a score, or less where they are near each other."""
        return int(np.count_nonzero(self._highest >= self._units(score)))

    def reaching(self, score: float) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the rows whose bounds reach a score, ascending, and these."""
        rows, bounds = self._reaching(self._units(score))
        order = rows.argsort()
        return rows.take(order), bounds.take(order).astype(np.float64) * self._unit

    def _units(self, score: float) -> int:
        return max(1, int(score / self._unit)) if score > 0 else 1

    def _reaching(
        self, least: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.unsignedinteger[Any]]]:
        columns = (self._highest >= least).nonzero()[0]
        bounds = self._bounds[:, columns]
        part, column = (bounds >= least).nonzero()
        return part * len(self._highest) + columns.take(column), bounds[part, column]


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
