"""What terms add to the scores of nodes, side by side, for the terms that queries have."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]

Places = npt.NDArray[np.int64]

Floats = npt.NDArray[np.float64]

_MOST_TERMS = 200_000

_LONG = 1 << 20  # postings from which room is made for all that may come

_SHARED_COUNTS = 16  # counts up to which nodes of the same length share an impact

_MOST_SHARED = 1 << 16  # impacts that are shared, so that they stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Saturation:
    """Weigh a term's count in a node, by the node's length.

    Attributes:
        k1: How much further occurrences count.
        b: How much the scores of long nodes are lowered.
        average_length: Terms in a node, on average over all indexes.
    """

    k1: float
    b: float
    average_length: float

    def impacts(self, counts: Ints, lengths: Ints) -> Floats:
        """Return what a term adds to each node, for an inverse document frequency of 1."""
        relative = lengths / (self.average_length or 1.0)
        return counts * (self.k1 + 1) / (counts + self.k1 * (1 - self.b + self.b * relative))


class ImpactArrays(NamedTuple):
    """Hold lists of rows with the impacts of a term on each, one list after the other.

    An impact depends on count and length alone, so that most are there once: a posting takes eight
    bytes, and its impact is none the less exact.

    Attributes:
        starts: Where each list begins, and, one place on, where it ends.
        rows: The rows, ascending within a list.
        codes: Where the impact on each is among ``values``.
        values: What a term adds to a row, for a weight of 1.
        highest: The highest impact of each list.
    """

    starts: Places
    rows: Ints
    codes: Ints
    values: Floats
    highest: Floats

    def impacts(self, begin: int, end: int) -> Floats:
        """Return the impacts on the rows from one place to another."""
        return self.values[self.codes[begin:end]]


class QueryLists(NamedTuple):
    """Name the lists of a query's terms.

    Attributes:
        arrays: All lists.
        slots: Which of them are the query's, the heaviest first.
        weights: The weight of each.
    """

    arrays: ImpactArrays
    slots: Places
    weights: Floats

    def spans(self) -> list[tuple[int, int]]:
        """Return where each list of the query begins and ends."""
        starts = self.arrays.starts
        begins, ends = starts.take(self.slots).tolist(), starts.take(self.slots + 1).tolist()
        return [*zip(begins, ends, strict=True)]


class ImpactLists:
    """Weigh the postings of terms once, for one state of an index and one saturation.

    Lists are only added: what a search has read of the arrays stays true while others add.

    Args:
        saturation: Weighs the counts.
        lengths: How many terms a node has, by row.
        most: How many postings there may be before it is full.
    """

    def __init__(self, saturation: Saturation, lengths: Ints, most: int) -> None:
        self.saturation = saturation
        self._lengths = lengths
        self._most = most
        self._adding = threading.Lock()
        self._slots: dict[str, int] = {}
        self._count = 0
        self._size = 0
        # The impacts of count 1 by length, then those of count 2, and so on. Where lengths differ
        # much, only those that there are have a place.
        longest = int(lengths.max(initial=0))
        if longest < min(len(lengths), _MOST_SHARED // _SHARED_COUNTS):
            distinct, self._ranks = np.arange(longest + 1, dtype=np.int32), lengths
        else:
            present = np.zeros(longest + 1, np.bool_)
            present[lengths] = True
            distinct = np.flatnonzero(present).astype(np.int32)
            self._ranks = (np.cumsum(present, dtype=np.int32) - 1)[lengths]
        self._distinct = len(distinct)
        shared = max(1, min(_SHARED_COUNTS, _MOST_SHARED // max(1, len(distinct))))
        counts = np.arange(1, shared + 1, dtype=np.int32).repeat(len(distinct))
        values = saturation.impacts(counts, np.tile(distinct, shared))
        self._shared = shared
        self._values = len(values)
        self.arrays = ImpactArrays(
            *(np.zeros(17, np.int64), np.empty(1024, np.int32), np.empty(1024, np.int32)),
            *(values, np.zeros(16)),
        )

    @property
    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return self._size + self._values > self._most or self._count > _MOST_TERMS

    def slots(self, terms: Sequence[str], read: Callable[[str], tuple[Ints, Ints]]) -> list[int]:
        """Return the number of each term's list.

        Args:
            terms: The terms.
            read: Returns the rows of a term, ascending, and how often each has it.
        """
        slots = self._slots
        try:
            return [slots[term] for term in terms]
        except KeyError:
            with self._adding:
                for term in terms:
                    if term not in slots:
                        slots[term] = self._add(*read(term))
            return [slots[term] for term in terms]

    def _add(self, rows: Ints, counts: Ints) -> int:
        slot, begin, end = self._count, self._size, self._size + len(rows)
        # Places of 64 bits are taken several times as fast.
        codes = (counts - 1) * np.int64(self._distinct) + self._ranks.take(rows.astype(np.int64))
        rare = np.flatnonzero(counts > self._shared)  # whose impacts are their own
        values = _with_room(self.arrays.values, self._values + len(rare))
        if len(rare):
            own = slice(self._values, self._values + len(rare))
            values[own] = self.saturation.impacts(counts[rare], self._lengths[rows[rare]])
            codes[rare] = np.arange(own.start, own.stop)
        arrays = ImpactArrays(
            _with_room(self.arrays.starts, slot + 2),
            _with_room(self.arrays.rows, end, self._most),
            _with_room(self.arrays.codes, end, self._most),
            values,
            _with_room(self.arrays.highest, slot + 1),
        )
        arrays.rows[begin:end] = rows
        arrays.codes[begin:end] = codes
        arrays.starts[slot + 1] = end
        arrays.highest[slot] = values.take(codes).max(initial=0.0)
        self.arrays, self._count, self._size = arrays, slot + 1, end
        self._values += len(rare)
        return slot


def _with_room(array: npt.NDArray, size: int, most: int = 0) -> npt.NDArray:  # type: ignore[type-arg]
    """Return an array of at least a size, the same one or a copy of twice the size.

    A long one gets at once more than it may come to have, since both take memory while it is
    copied, and room that is not used takes none.
    """
    if size <= len(array):
        return array
    twice = max(size, 2 * len(array))
    larger = np.empty(twice if size < _LONG else max(twice, 2 * most), array.dtype)
    larger[: len(array)] = array
    return larger
