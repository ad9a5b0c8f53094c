"""Find the slots with the highest sums over a few posting lists, without adding them all up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Ints = npt.NDArray[np.int32]

Mask = npt.NDArray[np.bool_]

_ROUNDING = 1 + 1e-9  # sums in another order differ by less

# Looking whether the rest can be skipped costs about as much as adding up a sixth of the slots
# so far, or 1,300 (measured at 10,000 and 200,000 short texts).
_CHECK_COST = 6

_CHECK_FLOOR = 8_000


def best_slots(
    postings: Sequence[tuple[float, Posting]],
    saturation: Saturation,
    scratch: Floats,
    limit: int | None,
    allowed: Mask | None,
    orders: npt.NDArray[np.int64],
) -> tuple[Ints, Floats]:
    """Return the slots with the highest scores, best first, and the scores.

    Exact: terms are added up one after the other, best those that add the most first. As soon as
    all the terms left together can't lift a new slot to the ``limit`` best so far, only slots
    that can still get there are looked up in the rest (Turtle and Flood, "Query evaluation:
    strategies and optimizations", 1995, called max-score). A slot's terms are always added in
    the order given, so that its score does not depend on what else is in the index.

    Args:
        postings: Weight and posting of each term, the heaviest first.
        saturation: Weighs the counts.
        scratch: Zeros, at least one a slot; left as zeros.
        limit: How many; None for all slots with any of the terms.
        allowed: Which slots count, None for all.
        orders: Breaks ties: lower goes first.
    """
    if not postings:
        return np.zeros(0, np.int32), np.zeros(0)
    if any(weight <= 0 for weight, _ in postings):  # nothing bounds a sum from above then
        return _ranked(*_all_sums(postings, saturation, scratch, allowed), limit, orders)
    most = [weight * posting.highest(saturation) for weight, posting in postings]
    ceilings = np.cumsum(most[::-1])[::-1] * _ROUNDING  # what a term and all after it can add
    candidates: Ints
    scores: Floats
    if allowed is not None and 4 * allowed.sum() < sum(len(p.slots) for _, p in postings):
        candidates = np.flatnonzero(allowed).astype(np.int32)
        scores, begin = np.zeros(len(candidates)), 0
    else:
        candidates, scores, begin = _first_sums(
            postings, saturation, scratch, limit, allowed, ceilings
        )
    for at in range(begin, len(postings)):
        if limit is not None:
            kept = scores + ceilings[at] >= _highest(scores, limit) / _ROUNDING
            candidates, scores = candidates[kept], scores[kept]
        weight, posting = postings[at]
        scores = scores + weight * posting.impacts_on(candidates, saturation)
    matched = scores > 0
    return _ranked(candidates[matched], scores[matched], limit, orders)


def _first_sums(
    postings: Sequence[tuple[float, Posting]],
    saturation: Saturation,
    scratch: Floats,
    limit: int | None,
    allowed: Mask | None,
    ceilings: Floats,
) -> tuple[Ints, Floats, int]:
    """Add up terms until no slot without one of them can get among the best any more.

    Returns:
        The slots that have any of the terms, their sums, and how many terms were added up.
    """
    touched: list[Ints] = []
    candidates: list[Ints] = []
    count, done = 0, len(postings)
    for at, (weight, posting) in enumerate(postings):
        worth = count + _CHECK_FLOOR < _CHECK_COST * len(posting.slots)
        if limit is not None and limit <= count and worth:
            partial = np.concatenate([scratch[slots] for slots in candidates])
            if ceilings[at] < _highest(partial, limit):
                done = at
                break
        before = scratch[posting.slots]
        new = posting.slots[before == 0]
        scratch[posting.slots] = before + weight * posting.impacts(saturation)
        touched.append(new)
        candidates.append(new if allowed is None else new[allowed[new]])
        count += len(candidates[-1])
    found = np.concatenate(candidates)
    sums = scratch[found]
    for slots in touched:
        scratch[slots] = 0
    return found, sums, done


def _all_sums(
    postings: Sequence[tuple[float, Posting]],
    saturation: Saturation,
    scratch: Floats,
    allowed: Mask | None,
) -> tuple[Ints, Floats]:
    for weight, posting in postings:
        scratch[posting.slots] += weight * posting.impacts(saturation)
    found = np.unique(np.concatenate([posting.slots for _, posting in postings]))
    sums = scratch[found]
    scratch[found] = 0
    if allowed is not None:
        kept = allowed[found]
        found, sums = found[kept], sums[kept]
    return found, sums


def _highest(scores: Floats, limit: int) -> float:
    """Return the limit-th highest score, or minus infinity where there are fewer."""
    if len(scores) < limit:
        return -np.inf
    place = len(scores) - limit
    return float(np.partition(scores, place)[place])


def _ranked(
    slots: Ints, scores: Floats, limit: int | None, orders: npt.NDArray[np.int64]
) -> tuple[Ints, Floats]:
    """Cut to the best and sort them, ties by order."""
    if limit is not None and limit < len(slots):
        threshold = _highest(scores, limit)
        above = np.flatnonzero(scores > threshold)
        tied = np.flatnonzero(scores == threshold)
        room = limit - len(above)
        if room < len(tied):
            tied = tied[np.argpartition(orders[slots[tied]], room)[:room]]
        kept = np.concatenate([above, tied])
        slots, scores = slots[kept], scores[kept]
    ranking = np.lexsort((orders[slots], -scores))
    return slots[ranking], scores[ranking]


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
