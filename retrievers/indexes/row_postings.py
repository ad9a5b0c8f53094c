"""The postings of terms in a few rows, which all queries with the same filter share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .postings import Counts, Ints
from .row_ids import Mask, Rows

if TYPE_CHECKING:
    from .bm25_scores import LengthNorms, Saturation

Floats = npt.NDArray[np.float64]

# The number of postings that can be selected in the time that one lookup of a row takes.
_LOOK_UP = 24

_TERM = 256  # the memory of a cached term, in postings


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
        held: The size of the cache, in postings.
    """

    def __init__(self, mask: Mask, rows: Rows, saturation: Saturation, norms: LengthNorms) -> None:
        self.rows = rows
        self._mask = mask
        self._saturation = saturation
        self._norms = norms(rows)
        self._terms: dict[str, tuple[Rows, Floats]] = {}
        self.held = len(rows)

    def sums(
        self, terms: Iterable[str], lists: Iterable[tuple[Ints, Counts]], weights: Floats
    ) -> Floats:
        """Return the BM25 score of each row for several terms.

        Args:
            terms: The terms, at least one. Their contributions are added up in this order.
            lists: The ascending rows and the counts of each term.
            weights: The weight of each term, with shape (terms,).
        """
        of_terms = []
        for term, (rows, counts) in zip(terms, lists, strict=True):
            of_term = self._terms.get(term)
            of_terms.append(self._restrict(term, rows, counts) if of_term is None else of_term)
        positions = np.concatenate([of_term[0] for of_term in of_terms])
        addends = np.concatenate([of_term[1] for of_term in of_terms])
        addends *= weights.repeat([len(of_term[0]) for of_term in of_terms])
        sums: Floats = np.bincount(positions, addends, len(self.rows))  # type: ignore[assignment]
        return sums

    def _restrict(self, term: str, rows: Ints, counts: Counts) -> tuple[Rows, Floats]:
        """Compute and cache the weighted counts of a term in the rows, with their positions."""
        if len(self.rows) * _LOOK_UP < len(rows):
            places = rows.searchsorted(self.rows.astype(rows.dtype))
            is_found = rows.take(places, mode="clip") == self.rows
            positions = np.flatnonzero(is_found)
            counts = counts.take(places[is_found])
        else:
            is_allowed = self._mask.take(rows)
            positions = self.rows.searchsorted(rows[is_allowed])
            counts = counts[is_allowed]
        impacts = self._saturation.weighed(counts, self._norms.take(positions))
        self._terms[term] = positions, impacts
        self.held += _TERM + len(positions)
        return positions, impacts
