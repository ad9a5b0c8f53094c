"""The weights of BM25: the weights of a query's terms, and of their counts in nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .posting_lists import Ints

Floats = npt.NDArray[np.float64]


class Saturation(NamedTuple):
    """The BM25 formula that weights the number of a term's occurrences in a node by its length.

    Attributes:
        k1: The influence of additional occurrences.
        b: The degree to which the scores of long nodes are reduced.
        average_length: The average number of terms per node, over all indexes.
    """

    k1: float
    b: float
    average_length: float

    def norms(self, lengths: npt.NDArray[Any]) -> Floats:
        """Return the length normalization of nodes, which does not depend on the term."""
        norms: Floats = lengths / (self.average_length or 1.0)
        norms *= self.b  # in place, because creating arrays takes longer than the computation
        norms += 1 - self.b
        norms *= self.k1
        return norms

    def weighed(self, counts: npt.NDArray[Any], norms: Floats | float) -> Floats:
        """Return the weighted counts of a term in nodes with the given length normalization."""
        impacts = counts.astype(np.float64)
        divisors = impacts + norms
        impacts *= self.k1 + 1
        impacts /= divisors
        return impacts


class LengthNorms:
    """The length normalization of rows. If many values are requested, all values are computed.

    Args:
        saturation: The formula that computes the normalization.
        lengths: The number of words of each row.
    """

    def __init__(self, saturation: Saturation, lengths: Ints) -> None:
        self._saturation = saturation
        self._lengths = lengths
        self._used = 0
        self._all: Floats | None = None

    def __call__(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return the length normalization of the given rows."""
        if self._all is None:
            self._used += len(rows)
            if self._used <= len(self._lengths):
                return self._saturation.norms(self._lengths.take(rows, mode="clip"))
            self._all = self._saturation.norms(self._lengths)
        return self._all.take(rows, mode="clip")


class TermWeights(NamedTuple):
    """The weighted terms of a query.

    The weight of a term is its inverse document frequency multiplied by its count in the query.

    Attributes:
        weights: The weights of terms that occur in at least one node. Scores are added up in this
            order. ``Bm25`` places the heaviest terms first, so that equal nodes have equal scores
            in all indexes.
        saturation: The formula that weights the counts.
        missing: The total weight of the terms that do not occur in any node.
        highest: The weight of a single missing term.
        silent: Terms that only are parts of words that occur as a whole, or numbers in unknown
            codes.
        unknown: The codes that do not occur in any node, such as E106.
        phrases: The phrases in quotation marks that occur in nodes. They are also terms.
    """

    weights: dict[str, float]
    saturation: Saturation
    missing: float = 0.0
    highest: float = 0.0
    silent: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The total weight of all terms, including missing terms."""
        return sum(self.weights.values()) + self.missing
