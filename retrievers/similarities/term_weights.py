"""What a BM25 query means to every index it is put to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Saturation:
    """Weigh a term's count in a node, by the node's length.

    Attributes:
        k1: How much further occurrences count.
        b: How much long nodes are held back.
        average_length: Terms in a node, on average over all indexes.
    """

    k1: float
    b: float
    average_length: float

    def impacts(
        self, counts: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return what a term adds to each node, for an inverse document frequency of 1."""
        relative = lengths / (self.average_length or 1.0)
        return counts * (self.k1 + 1) / (counts + self.k1 * (1 - self.b + self.b * relative))


@dataclass(frozen=True, slots=True)
class TermWeights:
    """Hold the terms of a query that occur, each with its weight, and how to weigh counts.

    A weight is the term's inverse document frequency times how often the query has it.
    """

    weights: dict[str, float]
    saturation: Saturation
