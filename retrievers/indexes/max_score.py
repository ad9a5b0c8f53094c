"""Rank nodes by the sums of a few terms' weights, without computing every sum (MaxScore)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .node_table import Mask, Orders

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int32]

ROUNDING = 1 + 1e-9
"""Sums in another order differ by less than this factor."""

# Checking whether the remaining terms can be skipped costs about as much as adding up a sixth of
# the rows so far, or 1,300 (measured at 10,000 and 200,000 short texts).
_CHECK_COST = 6

_CHECK_FLOOR = 8_000

# Postings, and half of the rows, up to which adding up all at once is quicker than term by term
# (measured at 1,000 to 20,000 short English texts).
_FEW = 20_000


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

    def impacts(self, counts: Ints, lengths: Ints) -> Floats:
        """Return what a term adds to each node, for an inverse document frequency of 1."""
        relative = lengths / (self.average_length or 1.0)
        return counts * (self.k1 + 1) / (counts + self.k1 * (1 - self.b + self.b * relative))


@dataclass(frozen=True, slots=True)
class TermWeights:
    """Hold the terms of a query that occur, each with its weight, and how counts are weighed.

    A weight is the term's inverse document frequency times its count in the query.
    """

    weights: dict[str, float]
    saturation: Saturation


class Scratch(NamedTuple):
    """Hold room for a search.

    Attributes:
        sums: Zeros, one a row; whoever uses it leaves zeros.
        touched: Room for as many rows, and one more.
    """

    sums: Floats
    touched: Ints


class PostingList:
    """Hold the nodes of a term, ascending, and its counts; weigh them once for each saturation.

    The result is cached together with the saturation it belongs to, as one value: threads that
    search with different settings may share a list.

    Attributes:
        rows: Which nodes have the term, ascending.
        counts: How often each has it.
        lengths: How many terms a node has, of all nodes, by row.
    """

    __slots__ = ("_highest", "_impacts", "counts", "lengths", "rows")

    def __init__(self, rows: Ints, counts: Ints, lengths: Ints) -> None:
        self.rows = rows
        self.counts = counts
        self.lengths = lengths
        self._highest: tuple[Saturation, float] | None = None
        self._impacts: tuple[Saturation, Floats] | None = None

    def highest(self, saturation: Saturation) -> float:
        """Return the most that the term adds to any node, for a weight of 1."""
        cached = self._highest
        if cached is None or (cached[0] is not saturation and cached[0] != saturation):
            impacts = saturation.impacts(self.counts, self.lengths[self.rows])
            cached = self._highest = (saturation, float(impacts.max(initial=0.0)))
        return cached[1]

    def impacts(self, saturation: Saturation) -> Floats:
        """Return what the term adds to each of its nodes, and cache it."""
        cached = self._impacts
        if cached is None or (cached[0] is not saturation and cached[0] != saturation):
            impacts = saturation.impacts(self.counts, self.lengths[self.rows])
            cached = self._impacts = (saturation, impacts)
        return cached[1]

    def impacts_on(self, rows: Ints, saturation: Saturation) -> Floats:
        """Return what the term adds to some nodes, 0 where it does not occur."""
        if not len(self.rows):
            return np.zeros(len(rows))
        at = np.searchsorted(self.rows, rows)
        at[at == len(self.rows)] = 0
        impacts = saturation.impacts(self.counts[at], self.lengths[rows])
        impacts[self.rows[at] != rows] = 0.0
        return impacts


def best_rows(
    postings: Sequence[tuple[float, PostingList]],
    saturation: Saturation,
    scratch: Scratch,
    limit: int | None,
    allowed: Mask | None,
    orders: Orders,
) -> tuple[Ints, Floats]:
    """Return the rows with the highest scores, best first, and the scores.

    Exact: terms are added up one after the other, best with the heaviest first. Unless there are
    few postings, as soon as all remaining terms together can't lift a new row into the ``limit``
    best so far, only rows that can still get there are looked up in the rest (Turtle and Flood,
    "Query evaluation: strategies and optimizations", 1995, called max-score). A row's terms are
    always added in the order of ``postings``, so that its score does not depend on what else is
    in the index.

    Args:
        postings: Weight and postings of each term, the heaviest first.
        saturation: Weighs the counts.
        scratch: Zeros, at least one a row; zeros again afterwards.
        limit: How many; None for all rows with any of the terms.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    if not postings:
        return np.zeros(0, np.int32), np.zeros(0)
    if any(weight <= 0 for weight, _ in postings):  # nothing bounds a sum from above then
        return ranked(*_all_sums(postings, saturation, scratch.sums, allowed), limit, orders)
    if sum(len(p.rows) for _, p in postings) + len(orders) // 2 < _FEW:
        return ranked(*_counted_sums(postings, saturation, allowed), limit, orders)
    most = [weight * posting.highest(saturation) for weight, posting in postings]
    ceilings = np.cumsum(most[::-1])[::-1] * ROUNDING  # what a term and all after it can add
    candidates: Ints
    scores: Floats
    if allowed is not None and few_allowed(postings, allowed):
        candidates = np.flatnonzero(allowed).astype(np.int32)
        scores, begin = np.zeros(len(candidates)), 0
    else:
        candidates, scores, begin = _first_sums(
            postings, saturation, scratch.sums, limit, allowed, ceilings
        )
    for at in range(begin, len(postings)):
        if limit is not None:
            reachable = scores + ceilings[at] >= _highest(scores, limit) / ROUNDING
            candidates, scores = candidates[reachable], scores[reachable]
        weight, posting = postings[at]
        scores = scores + weight * posting.impacts_on(candidates, saturation)
    matched = scores > 0
    return ranked(candidates[matched], scores[matched], limit, orders)


def few_allowed(postings: Sequence[tuple[float, PostingList]], allowed: Mask) -> bool:
    """Return whether the terms had better be looked up for all the rows that count."""
    return bool(4 * np.count_nonzero(allowed) < sum(len(posting.rows) for _, posting in postings))


def _first_sums(
    postings: Sequence[tuple[float, PostingList]],
    saturation: Saturation,
    scratch: Floats,
    limit: int | None,
    allowed: Mask | None,
    ceilings: Floats,
) -> tuple[Ints, Floats, int]:
    """Add up terms until no row without one of them can get among the best any more.

    Returns:
        The rows that have any of the terms, their sums, and how many terms were added.
    """
    touched: list[Ints] = []
    candidates: list[Ints] = []
    count, done = 0, len(postings)
    for at, (weight, posting) in enumerate(postings):
        worth = count + _CHECK_FLOOR < _CHECK_COST * len(posting.rows)
        if limit is not None and limit <= count and worth:
            partial = np.concatenate([scratch[rows] for rows in candidates])
            if ceilings[at] < _highest(partial, limit):
                done = at
                break
        before = scratch[posting.rows]
        new = posting.rows[before == 0]
        scratch[posting.rows] = before + weight * posting.impacts(saturation)
        touched.append(new)
        candidates.append(new if allowed is None else new[allowed[new]])
        count += len(candidates[-1])
    candidate_rows = np.concatenate(candidates)
    sums = scratch[candidate_rows]
    for rows in touched:
        scratch[rows] = 0
    return candidate_rows, sums, done


def _all_sums(
    postings: Sequence[tuple[float, PostingList]],
    saturation: Saturation,
    scratch: Floats,
    allowed: Mask | None,
) -> tuple[Ints, Floats]:
    for weight, posting in postings:
        scratch[posting.rows] += weight * posting.impacts(saturation)
    rows = np.unique(np.concatenate([posting.rows for _, posting in postings]))
    sums = scratch[rows]
    scratch[rows] = 0
    if allowed is not None:
        selected = allowed[rows]
        rows, sums = rows[selected], sums[selected]
    return rows, sums


def _counted_sums(
    postings: Sequence[tuple[float, PostingList]], saturation: Saturation, allowed: Mask | None
) -> tuple[Ints, Floats]:
    """Add up all terms in one go, which NumPy does in their order."""
    sizes = [len(posting.rows) for _, posting in postings]
    weights = np.repeat([weight for weight, _ in postings], sizes)
    weights *= np.concatenate([posting.impacts(saturation) for _, posting in postings])
    rows_of_all = np.concatenate([posting.rows for _, posting in postings])
    sums: Floats = np.bincount(rows_of_all, weights).astype(np.float64, copy=False)
    rows = np.flatnonzero(sums).astype(np.int32)
    if allowed is not None:
        rows = rows[allowed[rows]]
    return rows, sums[rows]


def _highest(scores: Floats, limit: int) -> float:
    """Return the limit-th highest score, or minus infinity where there are fewer."""
    if len(scores) < limit:
        return -np.inf
    place = len(scores) - limit
    return float(np.partition(scores, place)[place])


def ranked(rows: Ints, scores: Floats, limit: int | None, orders: Orders) -> tuple[Ints, Floats]:
    """Truncate to the best and sort them, ties by order."""
    if limit is not None and limit < len(rows):
        threshold = _highest(scores, limit)
        above = np.flatnonzero(scores > threshold)
        tied = np.flatnonzero(scores == threshold)
        room = limit - len(above)
        if room < len(tied):
            tied = tied[np.argpartition(orders[rows[tied]], room)[:room]]
        best = np.concatenate([above, tied])
        rows, scores = rows[best], scores[best]
    ranking = np.lexsort((orders[rows], -scores))
    return rows[ranking], scores[ranking]
