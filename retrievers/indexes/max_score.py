"""Rank nodes by the sums of a few terms' weights, without computing every sum (MaxScore)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .impact_lists import Floats, Ints, Places, QueryLists, Saturation
from .kernels import ROUNDING
from .node_table import Mask, Orders

# Postings up to which all terms are added up at once: it takes less time than to find out which
# of them can be left out (measured at 1,000 to 100,000 short texts).
_FEW = 30_000

# The share of the postings that is added up before it is seen whether the rest can be left out,
# and how much more each time it can't.
_FIRST_SHARE = 4

_GROWTH = 3

# Looking rows up in a term takes NumPy as long as adding so many postings, and as many more for
# each row.
_LOOK_UP_COST = 3_000

_LOOK_UP_COST_EACH = 16

_IN_PARTS = 4_000  # sums from which it is quicker to look at parts of them

_SPREAD = 50_000  # sums from which it is quicker to find the high ones in parts, too

_WIDTH = 32  # sums of which only the highest is looked at to leave out most rows


class TermWeights(NamedTuple):
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
    spans, total = lists.spans(), len(orders)
    if lists.weights[-1] <= 0:  # nothing bounds a sum from above then
        rows, sums = _all_sums(lists, spans, scratch.sums)
        if allowed is not None:
            rows, sums = rows[allowed[rows]], sums[allowed[rows]]
        return ranked(rows, sums, limit, orders)
    if limit is not None and allowed is not None and _few_allowed(spans, allowed):
        rows = np.flatnonzero(allowed).astype(np.int32)
        sums, done = np.zeros(len(rows)), 0
    else:
        whole_parts = -(-total // _WIDTH) * _WIDTH
        rows, sums, done = _first_sums(lists, spans, scratch.sums[:whole_parts], limit, allowed)
    if done < len(spans):
        ceilings = _ceilings(lists)
        for at in range(done, len(spans)):
            reachable = sums + ceilings[at] >= _highest(sums, limit) / ROUNDING
            rows, sums = rows[reachable], sums[reachable]
            sums = sums + _added_to(rows, lists, *spans[at], lists.weights[at])
        matched = sums > 0
        rows, sums = rows[matched], sums[matched]
    return ranked(rows, sums, limit, orders)


def _few_allowed(spans: Sequence[tuple[int, int]], allowed: Mask) -> bool:
    """Return whether the terms had better be looked up for all the rows that count."""
    return bool(4 * np.count_nonzero(allowed) < sum(end - begin for begin, end in spans))


def _ceilings(lists: QueryLists) -> Floats:
    """Return the most that each term and all after it can add to a row."""
    most: Floats = lists.weights * lists.arrays.highest[lists.slots]
    return np.cumsum(most[::-1])[::-1] * ROUNDING


def _first_sums(
    lists: QueryLists,
    spans: Sequence[tuple[int, int]],
    sums: Floats,
    limit: int | None,
    allowed: Mask | None,
) -> tuple[Ints, Floats, int]:
    """Add up terms until no row without one of them can get among the best any more.

    Returns:
        The rows that can get among the best, their sums, and how many terms were added.
    """
    total = sum([end - begin for begin, end in spans])
    if limit is None or (total <= _FEW and len(sums) < _IN_PARTS):
        all_sums: Floats = np.bincount(*_added(lists, spans)).astype(np.float64, copy=False)
        if len(all_sums) < _IN_PARTS:
            all_sums = all_sums if allowed is None else all_sums * allowed[: len(all_sums)]
            best = (all_sums >= max(_highest(all_sums, limit), _LEAST)).nonzero()[0]
            return best.astype(np.int32), all_sums[best], len(spans)
        parts = _Parts(all_sums, allowed)
        return *parts.reaching(parts.bound(limit)), len(spans)
    if total <= _FEW:
        try:
            np.add.at(sums, *_added(lists, spans))
            parts = _Parts(sums, allowed)
            return *parts.reaching(parts.bound(limit)), len(spans)
        finally:
            sums[:] = 0.0
    sizes = np.cumsum([end - begin for begin, end in spans])
    ceilings = _ceilings(lists)
    done, most = 0, total // _FIRST_SHARE
    try:
        while True:
            end = max(done + 1, int(np.searchsorted(sizes, most, "right")))
            np.add.at(sums, *_added(lists, spans[:end], done))
            done, most = end, _GROWTH * most
            parts = _Parts(sums, allowed)
            bound = parts.bound(limit)
            if done == len(spans):
                return *parts.reaching(bound), done
            if bound > ceilings[done]:
                rows, scores = parts.reaching(bound / ROUNDING - ceilings[done])
                cost = _LOOK_UP_COST + _LOOK_UP_COST_EACH * len(rows)
                if cost * (len(spans) - done) < total - sizes[done - 1]:
                    return rows, scores, done
    finally:
        sums[:] = 0.0


def _added(
    lists: QueryLists, spans: Sequence[tuple[int, int]], first: int = 0
) -> tuple[Places, Floats]:
    """Return the rows of terms, term by term, and what each adds to them."""
    _, all_rows, all_codes, values, _ = lists.arrays
    spans = spans[first:]
    weights = lists.weights[first : first + len(spans)]
    # Places of 64 bits are taken, and added to, several times as fast.
    rows = np.concatenate([all_rows[begin:end] for begin, end in spans], dtype=np.int64)
    codes = np.concatenate([all_codes[begin:end] for begin, end in spans], dtype=np.int64)
    added = values.take(codes)
    added *= weights.repeat([end - begin for begin, end in spans])
    return rows, added


def _added_to(rows: Ints, lists: QueryLists, begin: int, end: int, weight: float) -> Floats:
    """Return what a term adds to some rows, 0 where it does not occur."""
    if begin == end:
        return np.zeros(len(rows))
    rows_of_term = lists.arrays.rows[begin:end]
    at = np.searchsorted(rows_of_term, rows)
    at[at == end - begin] = 0
    added = lists.arrays.values[lists.arrays.codes[begin:end][at]] * weight
    added[rows_of_term[at] != rows] = 0.0
    return added


def _all_sums(
    lists: QueryLists, spans: Sequence[tuple[int, int]], scratch: Floats
) -> tuple[Ints, Floats]:
    """Add up all terms; a row with one of them counts, whatever its sum."""
    rows_of_all, added = _added(lists, spans)
    np.add.at(scratch, rows_of_all, added)
    rows = np.unique(rows_of_all).astype(np.int32)
    sums = scratch[rows]
    scratch[rows] = 0
    return rows, sums


class _Parts:
    """Know the highest sum of each part of the rows, so that most parts need not be looked at.

    Args:
        sums: The sums, by row, 0 or more.
        allowed: Which rows count, None for all.
    """

    def __init__(self, sums: Floats, allowed: Mask | None) -> None:
        if allowed is not None:
            sums = sums[: len(allowed)] * allowed[: len(sums)]
        self._sums = sums
        self._width = len(sums) // _WIDTH
        # A part is a column: the highest of all columns are found a row at a time.
        self._table = sums[: self._width * _WIDTH].reshape(_WIDTH, self._width)
        self._highest = np.maximum.reduce(self._table, 0, initial=0.0)

    def bound(self, limit: int | None) -> float:
        """Return a number that ``limit`` sums reach; one above 0 where this does not tell."""
        if limit is None or self._width < 2 * limit:
            return _LEAST
        return max(_highest(self._highest, limit), _LEAST)  # they are of different rows

    def reaching(self, bound: float) -> tuple[Ints, Floats]:
        """Return the rows whose sums are above 0 and reach a bound, and these sums."""
        bound = max(bound, _LEAST)
        if len(self._sums) < _SPREAD:
            rows = (self._sums >= bound).nonzero()[0].astype(np.int32)
            return rows, self._sums[rows]
        parts = (self._highest >= bound).nonzero()[0]
        places, columns = (self._table.take(parts, 1) >= bound).nonzero()
        rows = places * self._width + parts.take(columns)
        end = self._width * _WIDTH
        if end < len(self._sums):
            rows = np.concatenate([rows, (self._sums[end:] >= bound).nonzero()[0] + end])
        return rows.astype(np.int32), self._sums.take(rows)


_LEAST = float(np.finfo(np.float64).tiny)


def _highest(scores: Floats, limit: int | None) -> float:
    """Return the limit-th highest score, or minus infinity where there are fewer."""
    if limit is None or len(scores) < limit:
        return -np.inf
    place = len(scores) - limit
    ordered = scores.copy()
    ordered.partition(place)
    return float(ordered[place])


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
    ranking = np.lexsort((orders.take(rows), -scores))[:limit]
    return rows.take(ranking), scores.take(ranking)
