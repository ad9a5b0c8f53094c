"""The rows and counts of many terms in few bytes, each term's read on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .packed_texts import Bytes, Starts, starts_of

Ints = npt.NDArray[np.int32]

_Numbers = npt.NDArray[np.int64]

_SHORT = 63  # postings of a term from which their number takes four bytes more

_CHUNK = 250_000  # bytes of lists that are decoded at a time


class Decoded(NamedTuple):
    """Hold the postings of terms that follow each other.

    Attributes:
        sizes: How many postings each term has.
        rows: All rows, by term, ascending within each.
        counts: How often each row has the term.
    """

    sizes: _Numbers
    rows: Ints
    counts: npt.NDArray[np.integer[Any]]


class PostingLists:
    """Read the postings of terms, by number, out of the bytes that ``encoded`` made.

    A term's list begins with a byte: how many postings there are, up to 62, times four; whether
    gaps take two bytes; whether there are counts above 1. 63 stands for a number in the four bytes
    that follow. Then come the gaps between rows, each in one byte or two, and four bytes for each
    that is too large; where counts differ from 1 a bit for each posting, a byte for each count
    above 1, and four bytes for each that is too large.

    Args:
        data: The lists, one after the other, behind the number of all postings (eight bytes).
        starts: Where each term's list begins, and where the last one ends.

    Raises:
        ValueError: If these don't fit each other.
    """

    def __init__(self, data: Bytes, starts: Starts) -> None:
        if len(data) < 8 or not len(starts) or starts[0] != 8 or starts[-1] != len(data):
            raise ValueError(f"{len(data)} bytes don't fit the postings of {len(starts) - 1} terms")
        self._data = data
        self._view = data.data
        self._starts = starts
        self._offsets = starts.data  # reading one number is faster from a memory view
        self.size = int.from_bytes(self._view[:8], "little")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def get(self, number: int) -> tuple[Ints, Ints]:
        """Return the rows of a term, ascending, and how often each has it."""
        at = self._offsets[number]
        if at == self._offsets[number + 1]:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        data = self._data
        head = self._view[at]
        size, at = head >> 2, at + 1
        if size == _SHORT:
            size, at = int.from_bytes(self._view[at : at + 4], "little"), at + 4
        gaps: npt.NDArray[np.unsignedinteger[Any]]
        if head & 1:
            gaps, escape, at = np.frombuffer(data, "<u2", size, at), 65_535, at + 2 * size
        else:
            gaps, escape, at = data[at : at + size], 255, at + size
        rows = gaps.astype(np.int32)
        large = np.flatnonzero(gaps == escape)
        if len(large):
            rows[large] = np.frombuffer(data, "<u4", len(large), at)
            at += 4 * len(large)
        rows += 1
        np.cumsum(rows, out=rows)
        rows -= 1
        counts = np.ones(size, np.int32)
        if head & 2:
            mask = data[at : at + (size + 7) // 8]
            several = np.flatnonzero(np.unpackbits(mask, count=size))
            at += len(mask)
            more = data[at : at + len(several)].astype(np.int32)
            at += len(several)
            large = np.flatnonzero(more == 255)
            if len(large):
                more[large] = np.frombuffer(data, "<u4", len(large), at)
            counts[several] = more + 2
        return rows, counts

    def sizes(self) -> _Numbers:
        """Return how many postings each term has."""
        starts = self._starts.astype(np.int64)
        sizes = np.zeros(len(self), np.int64)
        there = np.flatnonzero(starts[1:] > starts[:-1])
        sizes[there] = _sizes(self._data, starts[there])[0]
        return sizes

    def decode(self, first: int, last: int) -> Decoded:
        """Return the postings of the terms from one number to another, exclusive."""
        starts = self._starts[first : last + 1].astype(np.int64)
        there = np.flatnonzero(starts[1:] > starts[:-1])
        data = self._data
        size, at = _sizes(data, starts[there])
        head = data[starts[there]]
        wide, several = (head & 1).astype(np.int64), (head & 2).astype(np.bool_)
        term, within = _places(size)
        places = at[term] + within * (1 + wide[term])
        gaps = data[places].astype(np.int64)
        second = np.flatnonzero(wide[term])
        gaps[second] |= data[places[second] + 1].astype(np.int64) << 8
        at = at + size * (1 + wide)
        large = np.flatnonzero(gaps == np.where(wide, 65_535, 255)[term])
        gaps[large], used = _read_four(data, at, term[large], len(size))
        at += used
        rows = np.cumsum(gaps + 1) - 1
        ends = np.cumsum(size)
        rows -= np.concatenate([[0], rows[ends[:-1] - 1] + 1])[term] if len(size) else 0
        counts = np.ones(len(rows), np.int32)
        marked = np.flatnonzero(several[term])
        bits = data[at[term[marked]] + (within[marked] >> 3)] >> (7 - (within[marked] & 7))
        marked = marked[(bits & 1).astype(np.bool_)]
        at += np.where(several, (size + 7) // 8, 0)
        of_term, place = _grouped(term[marked], len(size))
        more = data[at[term[marked]] + place].astype(np.int64)
        at += of_term
        large = np.flatnonzero(more == 255)
        more[large], _ = _read_four(data, at, term[marked[large]], len(size))
        counts[marked] = more + 2
        sizes = np.zeros(last - first, np.int64)
        sizes[there] = size
        return Decoded(sizes, rows.astype(np.int32), counts)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of terms that are decoded at a time."""
        first = 0
        while first < len(self):
            most = int(self._starts[first]) + _CHUNK
            last = max(first + 1, int(np.searchsorted(self._starts, most, "right")) - 1)
            yield first, min(last, len(self))
            first = last

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the lists."""
        return {"postings": self._data, "posting_starts": self._starts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> PostingLists:
        """Restore the lists from what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        return cls(arrays["postings"], arrays["posting_starts"])


def _sizes(data: Bytes, at: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return how many postings lists have, and where their gaps begin."""
    sizes = (data[at] >> 2).astype(np.int64)
    long = np.flatnonzero(sizes == _SHORT)
    sizes[long] = _four(data, at[long] + 1)
    behind = at + 1
    behind[long] += 4
    return sizes, behind


def _four(data: Bytes, at: _Numbers) -> _Numbers:
    """Read numbers of four bytes."""
    numbers = np.zeros(len(at), np.int64)
    for byte in range(4):
        numbers |= data[at + byte].astype(np.int64) << 8 * byte
    return numbers


def _read_four(data: Bytes, at: _Numbers, terms: _Numbers, size: int) -> tuple[_Numbers, _Numbers]:
    """Read a number of four bytes for each of some terms, which may come several times.

    Returns:
        The numbers, and how many bytes each of all terms has.
    """
    of_term, place = _grouped(terms, size)
    return _four(data, at[terms] + 4 * place), 4 * of_term


def _places(sizes: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return of which group each member is, and its place in it."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _grouped(groups: _Numbers, size: int) -> tuple[_Numbers, _Numbers]:
    """Return how many members each group has, and the place of each; groups ascend."""
    sizes = np.bincount(groups, minlength=size)
    return sizes, np.arange(len(groups)) - (np.cumsum(sizes) - sizes)[groups]


def encoded(pieces: Iterable[Decoded]) -> PostingLists:
    """Encode the postings of terms that follow each other, piece by piece."""
    data, lengths, size = bytearray(8), [np.array([8])], 0
    for piece in pieces:
        lists, bytes_of_each = _encode(*piece)
        data += lists.data
        lengths.append(bytes_of_each)
        size += len(piece.rows)
    data[:8] = size.to_bytes(8, "little")
    return PostingLists(np.frombuffer(data, np.uint8), starts_of(np.concatenate(lengths))[1:])


def _encode(
    sizes: _Numbers, rows: Ints, counts: npt.NDArray[np.integer[Any]]
) -> tuple[Bytes, _Numbers]:
    """Return the bytes of lists, and how many each has."""
    total = len(sizes)
    term, within = _places(sizes)
    gaps = rows.astype(np.int64)
    gaps[1:] -= gaps[:-1] + 1
    begins = np.flatnonzero(within == 0)
    gaps[begins] = rows[begins]
    costs = sizes + 4 * np.bincount(term[gaps >= 255], minlength=total)
    wide_costs = 2 * sizes + 4 * np.bincount(term[gaps >= 65_535], minlength=total)
    wide = wide_costs < costs
    escape = np.where(wide, 65_535, 255)[term]
    large = np.flatnonzero(gaps >= escape)
    several = np.flatnonzero(counts > 1)
    more, of_several = counts[several].astype(np.int64) - 2, term[several]
    several_sizes, several_places = _grouped(of_several, total)
    many = np.flatnonzero(more >= 255)
    marked = several_sizes > 0
    heads = np.where(sizes < _SHORT, 1, 5) * (sizes > 0)
    gaps_at = heads
    masks_at = gaps_at + np.where(wide, wide_costs, costs)
    more_at = masks_at + np.where(marked, (sizes + 7) // 8, 0)
    many_at = more_at + several_sizes
    lengths = many_at + 4 * np.bincount(of_several[many], minlength=total)
    starts = np.cumsum(lengths) - lengths
    data = np.zeros(int(lengths.sum()), np.uint8)

    there = np.flatnonzero(sizes)
    data[starts[there]] = np.minimum(sizes, _SHORT)[there] << 2 | marked[there] << 1 | wide[there]
    long = np.flatnonzero(sizes >= _SHORT)
    _write_four(data, starts[long] + 1, sizes[long])

    low = np.minimum(gaps, escape)
    places = (starts + gaps_at)[term] + within * (1 + wide[term])
    data[places] = low & 255
    second = np.flatnonzero(wide[term])
    data[places[second] + 1] = low[second] >> 8
    large_sizes, large_places = _grouped(term[large], total)
    large_at = starts + masks_at - 4 * large_sizes
    _write_four(data, large_at[term[large]] + 4 * large_places, gaps[large])

    if len(several):
        place = within[several]
        bytes_at = (starts + masks_at)[of_several] + (place >> 3)
        bits = (128 >> (place & 7)).astype(np.uint8)
        first = np.flatnonzero(np.diff(bytes_at, prepend=-1))
        data[bytes_at[first]] = np.bitwise_or.reduceat(bits, first)
        data[(starts + more_at)[of_several] + several_places] = np.minimum(more, 255)
        _, many_places = _grouped(of_several[many], total)
        _write_four(data, (starts + many_at)[of_several[many]] + 4 * many_places, more[many])
    return data, lengths


def _write_four(data: Bytes, at: _Numbers, numbers: _Numbers) -> None:
    """Write numbers of four bytes."""
    for byte in range(4):
        data[at + byte] = numbers >> 8 * byte & 255
