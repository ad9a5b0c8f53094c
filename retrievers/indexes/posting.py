"""The living postings of one term, and what they add to a score."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..similarities.term_weights import Saturation

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class Posting:
    """Hold a term's slots, ascending, and its counts; weigh them once for each saturation.

    What was weighed is kept beside the saturation it was weighed by, replaced as one: threads
    that search by different settings may share a posting.

    Attributes:
        slots: Which nodes have the term.
    """

    __slots__ = ("_counts", "_highest", "_impacts", "_lengths", "slots")

    def __init__(self, slots: Ints, counts: Ints, lengths: Ints) -> None:
        self.slots = slots
        self._counts = counts
        self._lengths = lengths  # of all nodes, by slot
        self._highest: tuple[Saturation, float] | None = None
        self._impacts: tuple[Saturation, Floats] | None = None

    def highest(self, saturation: Saturation) -> float:
        """Return the most that the term adds to any node, for a weight of 1."""
        kept = self._highest
        if kept is None or kept[0] != saturation:
            impacts = saturation.impacts(self._counts, self._lengths[self.slots])
            kept = self._highest = (saturation, float(impacts.max(initial=0.0)))
        return kept[1]

    def impacts(self, saturation: Saturation) -> Floats:
        """Return what the term adds to each of its nodes, and keep it."""
        kept = self._impacts
        if kept is None or kept[0] != saturation:
            impacts = saturation.impacts(self._counts, self._lengths[self.slots])
            kept = self._impacts = (saturation, impacts)
        return kept[1]

    def impacts_on(self, slots: Ints, saturation: Saturation) -> Floats:
        """Return what the term adds to some nodes, 0 where it is not."""
        if not len(self.slots):
            return np.zeros(len(slots))
        at = np.searchsorted(self.slots, slots)
        at[at == len(self.slots)] = 0
        impacts = saturation.impacts(self._counts[at], self._lengths[slots])
        impacts[self.slots[at] != slots] = 0.0
        return impacts
