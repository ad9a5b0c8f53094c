"""The living postings of one term, and what they add to a score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .term_weights import Saturation

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Posting:
    """Hold a term's slots, ascending, and its counts; weigh them once for each saturation.

    Attributes:
        slots: Which nodes have the term.
    """

    __slots__ = ("_counts", "_highest", "_impacts", "_lengths", "_saturation", "slots")

    def __init__(self, slots: Ints, counts: Ints, lengths: Ints) -> None:
        self.slots = slots
        self._counts = counts
        self._lengths = lengths  # of all nodes, by slot
        self._saturation: Saturation | None = None
        self._highest = 0.0
        self._impacts: Floats | None = None

    def highest(self, saturation: Saturation) -> float:
        """Return the most that the term adds to any node, for a weight of 1."""
        if saturation != self._saturation:
            impacts = saturation.impacts(self._counts, self._lengths[self.slots])
            self._highest, self._impacts = float(impacts.max(initial=0.0)), None
            self._saturation = saturation
        return self._highest

    def impacts(self, saturation: Saturation) -> Floats:
        """Return what the term adds to each of its nodes, and keep it."""
        self.highest(saturation)
        impacts = self._impacts
        if impacts is None:
            impacts = saturation.impacts(self._counts, self._lengths[self.slots])
            self._impacts = impacts
        return impacts

    def impacts_on(self, slots: Ints, saturation: Saturation) -> Floats:
        """Return what the term adds to some nodes, 0 where it is not."""
        if not len(self.slots):
            return np.zeros(len(slots))
        at = np.searchsorted(self.slots, slots)
        at[at == len(self.slots)] = 0
        impacts = saturation.impacts(self._counts[at], self._lengths[slots])
        impacts[self.slots[at] != slots] = 0.0
        return impacts
