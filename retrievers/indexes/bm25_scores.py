"""Compute the BM25 scores for the terms of a query, and find the rows with the highest scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .bm25_weights import Floats, LengthNorms, Saturation
from .matching_rows import MatchingRows
from .node_table import Orders
from .posting_lists import Counts, Ints
from .postings import NO_POSTINGS, Postings
from .row_ids import Mask, Rows
from .row_postings import TERM, RowPostings

_COLUMNS = 32  # the number of rows per set whose maximum is used to estimate the best scores

_MANY = 4  # for fewer maxima per requested row, the estimate takes longer than it saves

_FEW_ROWS = 128  # up to this number, sorting all rows is faster than selecting the best rows

_MAX_FILTERS = 64  # filters whose postings are cached

# A frequent term has at least this number of rows and this share of all rows.
_FREQUENT = 4_096

_FREQUENT_SHARE = 1 / 8

# The number of postings that can be added up in the time that one lookup of a row takes.
_LOOK_UP = 24

_ROUNDING = 1 + 1e-9  # sums of rounded numbers differ by less than this factor

LEAST = float(np.finfo(np.float64).tiny)
"""The smallest positive number."""


class TermPostings(dict[str, int]):
    """The frequency of each term at one revision of an index, with the postings of the term.

    The frequency is the number of nodes that contain the term. Terms that were looked up are
    cached.

    Args:
        postings: The postings of the index.
        lengths: The number of words of each row.
        total_length: The number of words in all nodes.
        alive: A boolean array that is True for rows that hold a node.

    Attributes:
        size: The number of nodes.
        total_length: The number of words in all nodes.
    """

    def __init__(self, postings: Postings, lengths: Ints, total_length: int, alive: Mask) -> None:
        super().__init__()
        self._postings = postings
        self._lengths = lengths
        self.total_length = total_length
        self.size = int(np.count_nonzero(alive))
        self._alive = None if self.size == len(alive) else alive
        self._lists: dict[str, tuple[Ints, Counts]] = {}
        self._norms: dict[Saturation, LengthNorms] = {}
        self._held = 0  # the memory of cached terms, in postings
        self._filtered: dict[int, _Filtered] = {}  # by the ids of matching rows

    @property
    def held(self) -> int:
        """The memory that the caches occupy, in postings."""
        if not self._filtered:  # as in most searches
            return self._held
        return self._held + sum([postings.held for _, postings in self._filtered.values()])

    @property
    def frequency(self) -> Callable[[str], int]:
        """A function that returns the number of nodes that contain a term."""
        return self.__getitem__

    def __missing__(self, term: str) -> int:
        self._held += TERM
        number = self._postings.vocabulary.find(term)
        if number < 0:
            return self.add(term, *NO_POSTINGS)
        rows, counts, is_copied = self._postings.of_term(number)
        if self._alive is not None:
            living = self._alive[rows]
            rows = rows[living]
            counts = counts[living]
            is_copied = True
        self._held += is_copied * len(rows)
        return self.add(term, rows, counts)

    def add(self, term: str, rows: Ints, counts: Counts) -> int:
        """Add the postings of a term, and return its frequency."""
        frequency = len(rows)
        self._lists[term] = rows, counts
        self[term] = frequency  # last, because another thread may already read the postings
        return frequency

    def lists_of(self, terms: Collection[str]) -> list[tuple[Ints, Counts]]:
        """Return the ascending rows and the counts of each term."""
        lists = self._lists
        # All terms are known, unless the query was weighted with earlier statistics.
        for term in {*terms}.difference(lists):
            self.__missing__(term)
        return [lists[term] for term in terms]

    def rows_with_all(self, words: Iterable[Sequence[str]]) -> Ints:
        """Return the rows that contain all of the given words, in ascending order.

        Args:
            words: The possible forms of each word. There must be at least one word.
        """
        shortest, *others = sorted([self._rows_of(forms) for forms in words], key=len)
        for rows in others:
            places = rows.searchsorted(shortest)
            shortest = shortest[rows.take(places, mode="clip") == shortest]
        return shortest

    def _rows_of(self, forms: Sequence[str]) -> Ints:
        """Return the rows that contain at least one form of a word, in ascending order."""
        rows = [rows for rows, _ in self.lists_of(forms)]
        return rows[0] if len(rows) == 1 else np.unique(np.concatenate(rows))

    def of_query(
        self,
        weights: Mapping[str, float],
        saturation: Saturation,
        allowed: MatchingRows | None = None,
    ) -> QueryPostings:
        """Return the postings of the weighted terms of a query.

        Args:
            weights: The weights of the terms.
            saturation: The formula that weights the counts.
            allowed: The rows that match a filter. If None, all rows are allowed.
        """
        norms = self._norms.get(saturation)
        if norms is None:  # only the latest saturation is cached
            norms = LengthNorms(saturation, self._lengths)
            self._norms = {saturation: norms}
            self._filtered = {}
        lists = self.lists_of(weights)
        of_terms = np.array([*weights.values()])
        filtered = None
        if allowed is not None and allowed.rows is not None:
            filtered = self._filtered_to(allowed, allowed.rows, saturation, norms)
        return QueryPostings([*weights], lists, of_terms, saturation, norms, filtered)

    def _filtered_to(
        self, allowed: MatchingRows, rows: Rows, saturation: Saturation, norms: LengthNorms
    ) -> RowPostings:
        """Return the postings in the few rows that meet a filter."""
        kept = self._filtered.pop(id(allowed), None)
        if kept is None:
            kept = _Filtered(allowed, RowPostings(allowed.mask, rows, saturation, norms))
            if len(self._filtered) == _MAX_FILTERS:
                del self._filtered[next(iter(self._filtered))]
        self._filtered[id(allowed)] = kept  # now the most recently used
        return kept.postings


class _Filtered(NamedTuple):
    """The postings in the rows that match a filter.

    The rows are included so that they are not deleted, and their ``id`` stays unique.
    """

    allowed: MatchingRows
    postings: RowPostings


class QueryPostings(NamedTuple):
    """The postings of a query's terms.

    Attributes:
        terms: The terms.
        lists: The ascending rows and the counts of each term.
        weights: The weight of each term, with shape (terms,).
        saturation: The formula that weights the counts.
        norms: A function that returns the length normalization of rows.
        filtered: The postings in the rows that match the filter, or None if many rows match it.
    """

    terms: Sequence[str]
    lists: Sequence[tuple[Ints, Counts]]
    weights: Floats
    saturation: Saturation
    norms: LengthNorms
    filtered: RowPostings | None = None

    def ceiling(self, first: int) -> float:
        """Return the maximum that the terms from ``first`` on can add to the score of a row."""
        return float(self.weights[first:].sum() * (self.saturation.k1 + 1) * _ROUNDING)

    def addends(
        self, part: slice, mask: Mask | None = None
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the rows that contain the given terms, with the amounts added to their scores.

        Args:
            part: The positions of the terms.
            mask: A boolean array of the rows to return. If None, all rows are returned.
        """
        lists = self.lists[part]
        of_terms, counts_of_terms = zip(*lists, strict=True)
        rows = np.concatenate(of_terms, dtype=np.int64)  # numpy's fastest type
        counts = np.concatenate(counts_of_terms)
        weights = self.weights[part]
        if len(lists) > 1:
            weights = weights.repeat([len(of_term) for of_term in of_terms])
        if mask is not None:
            is_allowed = mask.take(rows)
            rows = rows[is_allowed]
            counts = counts[is_allowed]
            weights = weights[is_allowed] if len(lists) > 1 else weights
        return rows, self.saturation.weighed(counts, self.norms(rows)) * weights

    def looked_up(self, rows: npt.NDArray[np.int64], first: int = 0) -> Floats:
        """Return the amounts that the terms from ``first`` on add to the scores of the given rows.

        The result has the shape (terms, rows).
        """
        lists = self.lists[first:]
        counts = np.zeros((len(lists), len(rows)))
        found = np.full(counts.shape, -1, np.int32)
        for at, (rows_of_term, counts_of_term) in enumerate(lists):
            if len(rows_of_term):
                # If both arrays have the same type, the rows of the term are not copied.
                places = rows_of_term.searchsorted(rows.astype(rows_of_term.dtype))
                found[at] = rows_of_term.take(places, mode="clip")
                counts[at] = counts_of_term.take(places, mode="clip")
        counts *= found == rows
        norms = self.norms(rows)
        # A norm of 0 would divide a missing term's count of 0 by 0.
        impacts = self.saturation.weighed(counts, np.maximum(norms, LEAST))
        impacts *= self.weights[first:, np.newaxis]
        return impacts


def best_rows(
    query: QueryPostings, limit: int | None, mask: Mask | None, orders: Orders
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the rows with the highest scores, best first, and their scores.

    The result is exact. As soon as only a few rows can still be among the best, the remaining terms
    are looked up in these rows only (Turtle and Flood, "Query evaluation: strategies and
    optimizations", 1995).

    Args:
        query: The postings of the query, with positive weights.
        limit: The number of rows. If None, all rows that contain any of the terms are returned.
        mask: A boolean array that is True for rows that can be returned. If None, all rows can.
        orders: The positions of the rows in document order. If scores are equal, the row with the
            lower position comes first.
    """
    filtered = query.filtered
    if filtered is not None:
        sums = filtered.sums(query.terms, query.lists, query.weights)
        positions = (sums >= LEAST).nonzero()[0]
        return _best(filtered.rows.take(positions), sums.take(positions), limit, orders)
    sums = np.zeros(len(orders))
    sizes = [len(rows) for rows, _ in query.lists]
    least_size = max(_FREQUENT, _FREQUENT_SHARE * len(orders))
    frequent = [at for at, size in enumerate(sizes) if at and size >= least_size]
    for first, last in pairwise([0, *frequent, len(sizes)]):
        least = _least(sums, limit) - query.ceiling(first) if first else 0.0
        if least > 0:
            rows = (sums >= least).nonzero()[0]
            if len(rows) * _LOOK_UP * (len(sizes) - first) < sum(sizes[first:]):
                scores = sums.take(rows)
                for addends in query.looked_up(rows, first):
                    scores += addends
                break
        np.add.at(sums, *query.addends(slice(first, last), mask))
    else:
        rows = (sums >= _least(sums, limit)).nonzero()[0]
        scores = sums.take(rows)
    return _best(rows, scores, limit, orders)


def _best(
    rows: Rows, scores: Floats, limit: int | None, orders: Orders
) -> tuple[npt.NDArray[Any], Floats]:
    """Return the rows with the highest scores, best first, and the scores."""
    if limit is not None and len(rows) > _FEW_ROWS + 4 * limit:
        best = scores >= _highest(scores, limit)
        rows = rows[best]
        scores = scores[best]
    ranking = np.lexsort((orders.take(rows), -scores))[:limit]
    return rows.take(ranking), scores.take(ranking)


def _least(sums: Floats, limit: int | None) -> float:
    """Return a positive lower limit of the scores of the best rows."""
    if limit is None or len(sums) < _MANY * limit * _COLUMNS:
        return LEAST
    return max(_highest(_maxima(sums), limit) / _ROUNDING, LEAST)


def _maxima(scores: Floats) -> Floats:
    """Return the maximum of each of several disjoint sets of rows."""
    width = len(scores) // _COLUMNS
    maxima: Floats = scores[: width * _COLUMNS].reshape(_COLUMNS, width).max(axis=0)
    return maxima


def _highest(scores: Floats, limit: int) -> float:
    """Return the lowest of the ``limit`` highest scores, or minus infinity if there are fewer."""
    if len(scores) < limit:
        return -math.inf
    if len(scores) >= 2 * limit * _COLUMNS:  # faster than a partition of all scores
        scores = scores[scores >= _highest(_maxima(scores), limit)]
    at = len(scores) - limit
    return float(np.partition(scores, at)[at])
