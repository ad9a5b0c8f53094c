"""Rank nodes by the sums of a few terms' weights, without computing every sum (MaxScore)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .impact_lists import Floats, Ints, QueryLists, Saturation
from .kernels import ROUNDING
from .node_table import Mask, Orders

# Checking whether the remaining terms can be skipped costs about as much as adding up a sixth of
# the rows so far, or 1,300 (measured at 10,000 and 200,000 short texts).
_CHECK_COST = 6

_CHECK_FLOOR = 8_000

# Postings, and half of the rows, up to which adding up all at once is quicker than term by term
# (measured at 1,000 to 20,000 short English texts).
_FEW = 20_000

_WIDTH = 16  # sums of which only the highest is looked at to leave out most rows


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


def best_rows(
    lists: QueryLists,
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
    always added in the order of ``lists``, so that its score does not depend on what else is in
    the index.

    Args:
        lists: The query's terms, the heaviest first.
        scratch: Zeros, at least one a row; zeros again afterwards.
        limit: How many; None for all rows with any of the terms.
        allowed: Which rows count, None for all.
        orders: Breaks ties: lower goes first.
    """
    if not len(lists.slots):
        return np.zeros(0, np.int32), np.zeros(0)
    terms = _terms(lists)
    if lists.weights[-1] <= 0:  # nothing bounds a sum from above then
        return ranked(*_all_sums(terms, scratch.sums, allowed), limit, orders)
    total = sum(len(term.rows) for term in terms)
    if total + len(orders) // 2 < _FEW:
        return ranked(*_counted_sums(lists, terms, limit, allowed), limit, orders)
    # What a term and all after it can add.
    ceilings = np.cumsum((lists.weights * lists.arrays.highest[lists.slots])[::-1])[::-1] * ROUNDING
    candidates: Ints
    scores: Floats
    if allowed is not None and 4 * np.count_nonzero(allowed) < total:
        candidates = np.flatnonzero(allowed).astype(np.int32)
        scores, begin = np.zeros(len(candidates)), 0
    else:
        candidates, scores, begin = _first_sums(terms, scratch.sums, limit, allowed, ceilings)
    for at in range(begin, len(terms)):
        if limit is not None:
            reachable = scores + ceilings[at] >= _highest(scores, limit) / ROUNDING
            candidates, scores = candidates[reachable], scores[reachable]
        scores = scores + terms[at].added_to(candidates)
    matched = scores > 0
    return ranked(candidates[matched], scores[matched], limit, orders)


class _Term(NamedTuple):
    """Hold the rows of a term, ascending, and what it adds to each for a weight of 1."""

    weight: float
    rows: Ints
    impacts: Floats

    def added(self) -> Floats:
        """Return what the term adds to each of its rows."""
        return self.impacts * self.weight

    def added_to(self, rows: Ints) -> Floats:
        """Return what the term adds to some rows, 0 where it does not occur."""
        if not len(self.rows):
            return np.zeros(len(rows))
        at = np.searchsorted(self.rows, rows)
        at[at == len(self.rows)] = 0
        added = self.impacts[at] * self.weight
        added[self.rows[at] != rows] = 0.0
        return added


def _terms(lists: QueryLists) -> list[_Term]:
    _, rows, impacts, _ = lists.arrays
    return [
        _Term(weight, rows[begin:end], impacts[begin:end])
        for weight, (begin, end) in zip(lists.weights.tolist(), lists.spans(), strict=True)
    ]


def _first_sums(
    terms: Sequence[_Term],
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
    count, done = 0, len(terms)
    for at, term in enumerate(terms):
        worth = count + _CHECK_FLOOR < _CHECK_COST * len(term.rows)
        if limit is not None and limit <= count and worth:
            partial = np.concatenate([scratch[rows] for rows in candidates])
            if ceilings[at] < _highest(partial, limit):
                done = at
                break
        before = scratch[term.rows]
        new = term.rows[before == 0]
        scratch[term.rows] = before + term.added()
        touched.append(new)
        candidates.append(new if allowed is None else new[allowed[new]])
        count += len(candidates[-1])
    candidate_rows = np.concatenate(candidates)
    sums = scratch[candidate_rows]
    for rows in touched:
        scratch[rows] = 0
    return candidate_rows, sums, done


def _all_sums(terms: Sequence[_Term], scratch: Floats, allowed: Mask | None) -> tuple[Ints, Floats]:
    for term in terms:
        scratch[term.rows] += term.added()
    rows = np.unique(np.concatenate([term.rows for term in terms]))
    sums = scratch[rows]
    scratch[rows] = 0
    if allowed is not None:
        selected = allowed[rows]
        rows, sums = rows[selected], sums[selected]
    return rows, sums


def _counted_sums(
    lists: QueryLists, terms: Sequence[_Term], limit: int | None, allowed: Mask | None
) -> tuple[Ints, Floats]:
    """Add up all terms in one go, which NumPy does in their order; leave out what is too low."""
    weights = lists.weights.repeat([len(term.rows) for term in terms])
    weights *= np.concatenate([term.impacts for term in terms])
    rows_of_all = np.concatenate([term.rows for term in terms])
    sums: Floats = np.bincount(rows_of_all, weights).astype(np.float64, copy=False)
    if allowed is not None:
        sums *= allowed[: len(sums)]
    rows = np.flatnonzero(sums >= _low_bound(sums, limit)).astype(np.int32)
    return rows, sums[rows]


def _low_bound(sums: Floats, limit: int | None) -> float:
    """Return a number above 0 that ``limit`` sums reach, if so many are above 0."""
    width = len(sums) // _WIDTH
    least = np.finfo(np.float64).tiny
    if limit is None or width < 2 * limit:
        return float(least)
    # The highest of each of so many parts are different rows.
    highest = sums[: width * _WIDTH].reshape(_WIDTH, width).max(axis=0)
    return max(_highest(highest, limit), float(least))


def _highest(scores: Floats, limit: int) -> float:
    """Return the limit-th highest score, or minus infinity where there are fewer."""
    if len(scores) < limit:
        return -np.inf
    place = len(scores) - limit
    return float(np.partition(scores, place)[place])


def ranked(rows: Ints, scores: Floats, limit: int | None, orders: Orders) -> tuple[Ints, Floats]:
    """Truncate to the best and sort them, ties by order."""
    if limit is not None and len(rows) > 4 * limit + _WIDTH:
        threshold = _highest(scores, limit)
        above = np.flatnonzero(scores > threshold)
        tied = np.flatnonzero(scores == threshold)
        room = limit - len(above)
        if room < len(tied):
            tied = tied[np.argpartition(orders[rows[tied]], room)[:room]]
        best = np.concatenate([above, tied])
        rows, scores = rows[best], scores[best]
    ranking = np.lexsort((orders[rows], -scores))[:limit]
    return rows[ranking], scores[ranking]
