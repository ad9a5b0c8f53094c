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

_LOOK_UP = 24  # postings that are selected in the time it takes to look up one row in a term

_TERM = 256  # memory of a cached term, in postings


class RowPostings:
    """The impacts of terms in the few rows that meet a filter.

    A term is restricted to these rows when it is first used. Later queries add only the impacts in
    these rows.

    Args:
        mask: A mask of the rows.
        rows: The ascending rows.
        saturation: The object that weighs the counts.
        norms: A function that returns the length norms of rows.

    Attributes:
        rows: The ascending rows.
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
        """Return the sum of the weighted impacts in each row.

        Args:
            terms: The terms, at least one. The impacts are added in this order.
            lists: The ascending rows and the counts of each term.
            weights: The weight of each term, (terms,).
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
        """Cache the positions of a term's rows among the rows, and the impacts there."""
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
