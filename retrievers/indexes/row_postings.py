"""The postings of terms in a few rows, which all queries with the same filter share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from .bm25_weights import Floats, LengthNorms, Saturation
from .posting_lists import Counts, Ints
from .row_ids import Mask, Rows

# The number of postings that can be selected in the time that one lookup of a row takes.
_LOOK_UP = 24

TERM = 256
"""The memory of a cached term, in postings."""

_BYTES = 8  # the memory of a posting

_PER_ENTRY = 2  # the memory of a row and a weighted count, in postings


class RowPostings:
    """The weighted counts of terms in the few rows that match a filter.

    A term is restricted to these rows when it is first used. Later queries only add up the weighted
    counts in these rows.

    Args:
        mask: A boolean array that is True for the rows.
        rows: The rows in ascending order.
        saturation: The formula that weights the counts.
        norms: A function that returns the length normalization of rows.

    Attributes:
        rows: The rows in ascending order.
        held: The memory of all arrays, including the mask, in postings.
    """

    def __init__(self, mask: Mask, rows: Rows, saturation: Saturation, norms: LengthNorms) -> None:
        self.rows = rows
        self._mask = mask
        self._saturation = saturation
        self._norms = norms(rows)
        self._terms: dict[str, tuple[Rows, Floats]] = {}
        self.held = _PER_ENTRY * len(rows) + mask.nbytes // _BYTES

    def sums(
        self, terms: Iterable[str], lists: Iterable[tuple[Ints, Counts]], weights: Floats
    ) -> Floats:
        """Return the BM25 score of each row for several terms.

        Args:
            terms: The terms, at least one. Their contributions are added up in this order.
            lists: The ascending rows and the counts of each term.
            weights: The weight of each term, with shape (terms,).
        """
        by_term = dict(zip(terms, lists, strict=True))
        self._restrict({term: by_term[term] for term in by_term if term not in self._terms})
        of_terms = [self._terms[term] for term in by_term]
        positions = np.concatenate([of_term[0] for of_term in of_terms])
        addends = np.concatenate([of_term[1] for of_term in of_terms])
        addends *= weights.repeat([len(of_term[0]) for of_term in of_terms])
        sums: Floats = np.bincount(positions, addends, len(self.rows))  # type: ignore[assignment]
        return sums

    def _restrict(self, lists: Mapping[str, tuple[Ints, Counts]]) -> None:
        """Compute and cache the weighted counts of terms in the rows, and the positions of these
        rows.

        All terms are processed together, because a few operations on long arrays are faster.
        """
        if not lists:
            return
        short = [self._shortened(*of_term) for of_term in lists.values()]
        rows = np.concatenate([rows for rows, _ in short])
        counts = np.concatenate([counts for _, counts in short])
        kept = self._mask.take(rows).nonzero()[0]
        positions = self.rows.searchsorted(rows.take(kept))
        impacts = self._saturation.weighed(counts.take(kept), self._norms.take(positions))
        ends = kept.searchsorted(np.cumsum([len(rows) for rows, _ in short])).tolist()
        for term, first, last in zip(lists, [0, *ends], ends, strict=False):
            self._terms[term] = positions[first:last], impacts[first:last]
        self.held += TERM * len(lists) + _PER_ENTRY * len(positions)

    def _shortened(self, rows: Ints, counts: Counts) -> tuple[Ints, Counts]:
        """Return the postings of a term. If there are many, only those in the rows are returned."""
        if len(self.rows) * _LOOK_UP >= len(rows):
            return rows, counts
        places = rows.searchsorted(self.rows.astype(rows.dtype))
        places = places[rows.take(places, mode="clip") == self.rows]
        return rows.take(places), counts.take(places)
