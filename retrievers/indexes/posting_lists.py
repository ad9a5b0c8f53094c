"""Posting lists in memory, and in a compact form in files.

A file contains one array of 16-bit units. A list occupies consecutive units:

- Its rows, in one, two or four bytes each. If the gaps between the rows fit into fewer bytes than
  the rows themselves, the gaps are stored.
- If counts are greater than 1: the positions of these postings in the list, their counts, and
  the number of these postings.

A second array contains the first unit of each list. The lower four bits describe the list: two bits
for the size of its rows, one bit for a byte of padding, and one bit for counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, checked, smallest, stored

Ints = npt.NDArray[np.integer[Any]]

Counts = npt.NDArray[np.unsignedinteger[Any]]

Starts = npt.NDArray[np.int64]

BATCH_SIZE = 1_000_000  # the number of postings that are processed per step

_FLAG_BITS = 4

_SIZE = 3  # the bits for the size of the rows: 0, 1 or 2 for one, two or four bytes

_PADDING = 4

_COUNTS = 8

_WIDTHS = np.array([1, 2, 4], np.int64)

_NARROW = 1 << 16  # the number of rows that two bytes can distinguish

_FREQUENT = 64  # the number of rows from which one byte per row saves more than unpacking costs


class PostingLists(NamedTuple):
    """The posting lists of all terms, concatenated.

    Attributes:
        starts: The start of each list, and the end of the last list, with shape (terms + 1,).
        rows: The rows that contain each term, in ascending order.
        counts: The number of occurrences of the term in each row.
    """

    starts: Starts
    rows: Ints
    counts: Counts

    def portions(self) -> Iterator[tuple[int, PostingLists]]:
        """Yield the number of the first term and the lists of several terms.

        The list of a term is not divided. The starts begin with 0 in each portion.
        """
        terms = len(self.starts) - 1
        first = 0
        while first < terms:
            limit = self.starts[first] + BATCH_SIZE
            last = max(first + 1, int(np.searchsorted(self.starts, limit, "right")) - 1)
            starts = self.starts[first : last + 1]
            part = slice(starts[0], starts[-1])
            yield first, PostingLists(starts - starts[0], self.rows[part], self.counts[part])
            first = last


class PackedLists:
    """Posting lists in a file. A list is verified and unpacked when it is read.

    Args:
        arrays: The arrays of the file, as returned by ``pack_lists``.
        num_terms: The number of terms.
        num_rows: The number of rows of the index.

    Attributes:
        size: The number of postings.

    Raises:
        ValueError: If an array is missing, or has the wrong type or shape.
    """

    def __init__(self, arrays: Arrays, num_terms: int, num_rows: int) -> None:
        self._starts = stored(arrays, "posting_starts", np.unsignedinteger, num_terms + 1)
        self._units = stored(arrays, "posting_units", np.uint16, None)
        form = checked(arrays, "posting_form", np.int64, 3, values=range(1 << 62)).tolist()
        self.size, row_bytes, count_bytes = form
        if row_bytes not in (2, 4) or count_bytes not in (1, 2, 4):
            raise ValueError(f"rows and counts must have 1, 2 or 4 bytes, got {form}")
        self._num_rows = num_rows
        self._form = _Form(row_bytes, count_bytes)
        self._ones: Counts = np.ones(0, self._form.counts)
        first = self._starts.item(0) >> _FLAG_BITS
        last = self._starts.item(num_terms) >> _FLAG_BITS
        if (first, last) != (0, len(self._units)):
            raise ValueError(f"lists must be from 0 to {len(self._units)}, got {first} to {last}")

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self._starts) - 1

    def of_term(self, number: int) -> tuple[Ints, Counts]:
        """Return the rows that contain a term, and its counts.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        entry, after = self._starts.part(number, number + 2).tolist()
        start = entry >> _FLAG_BITS
        stop = after >> _FLAG_BITS
        units = self._units.part(start, stop)
        if len(units) != stop - start:
            self._starts.refuse(f"{start} to {stop} of {len(self._units)}")
        if not entry & _COUNTS:
            rows = self._rows(units, entry)
            return rows, self._all_ones(len(rows))
        form = self._form
        try:
            num_counts = form.last_number(units)
            row_units = len(units) - form.units_of_counts(num_counts)
            if row_units < 0:
                self._units.refuse(f"the list of term {number} is too short")
            rows = self._rows(units[:row_units], entry)
            counts = self._all_ones(len(rows)).copy()
            places, greater = form.counts_in(units, row_units, num_counts)
            counts[places] = greater
        except (IndexError, ValueError) as error:
            self._units.refuse(f"the list of term {number} is invalid: {error}")
        return rows, counts

    def _rows(self, units: npt.NDArray[np.uint16], kind: int) -> Ints:
        """Return the rows of a list.

        Args:
            units: The units that contain the rows.
            kind: The bits that describe the list.

        Raises:
            MissingNodeError: If a row is out of range.
        """
        code = kind & _SIZE
        rows: Ints
        if code == 1 and self._form.row_bytes == 2:
            rows = units
        elif code == 1:
            rows = units.cumsum(dtype=np.uint32)
        elif code == 0:
            size = 2 * len(units) - (kind & _PADDING > 0)
            rows = units.view(np.uint8)[:size].cumsum(dtype=np.uint32)
        elif code == 2:
            rows = units[: len(units) & -2].copy().view(np.uint32)  # the copy is aligned
        else:
            self._starts.refuse(f"{kind} does not describe a list")
        if len(rows) and rows.item(rows.argmax()) >= self._num_rows:
            self._units.refuse(f"rows must be less than {self._num_rows}")
        return rows

    def _all_ones(self, size: int) -> Counts:
        """Return a read-only array of ones."""
        if size > len(self._ones):
            self._ones = np.ones(max(size, self._num_rows), self._form.counts)
            self._ones.flags.writeable = False
        return self._ones[:size]

    def all(self) -> PostingLists:
        """Return all posting lists.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        entries = self._starts.whole().astype(np.int64)
        units = self._units.whole()
        starts = entries >> _FLAG_BITS
        if np.any(starts[1:] < starts[:-1]):
            self._starts.refuse("it must ascend")
        sizes = np.zeros(len(self), np.int64)
        rows = [np.zeros(0, np.int32)]
        counts = [np.zeros(0, self._form.counts)]
        first = 0
        while first < len(self):
            last = int(np.searchsorted(starts, starts[first] + BATCH_SIZE, "right")) - 1
            last = max(first + 1, last)
            try:
                of_terms = _Portion(self._form, entries[first : last + 1], units)
                if of_terms.sizes.min(initial=0) < 0:
                    self._units.refuse("a list is too short")
                sizes[first:last] = of_terms.sizes
                rows.append(of_terms.rows())
                counts.append(of_terms.counts())
            except IndexError:
                self._units.refuse("numbers must be in their list")
            if len(rows[-1]) and not 0 <= rows[-1].min() <= rows[-1].max() < self._num_rows:
                self._units.refuse(f"rows must be less than {self._num_rows}")
            first = last
        ends = np.append(0, np.cumsum(sizes))
        return PostingLists(ends, np.concatenate(rows), np.concatenate(counts))


class _Form:
    """The sizes of the numbers in packed lists.

    Args:
        row_bytes: The size of a row and of a position in a list, 2 or 4.
        count_bytes: The size of a count, 1, 2 or 4.

    Attributes:
        rows: The type of a row.
        counts: The type of a count.
        position_units: The number of units of a position.
    """

    def __init__(self, row_bytes: int, count_bytes: int) -> None:
        self.row_bytes = row_bytes
        self.count_bytes = count_bytes
        self.rows = np.dtype(f"u{row_bytes}")
        self.counts = np.dtype(f"u{count_bytes}")
        self.position_units = row_bytes // 2

    def units_of_counts(self, number: Any) -> Any:
        """Return the number of units that a number of counts occupies, with their positions."""
        return (number + 1) * self.position_units + (number * self.count_bytes + 1) // 2

    def last_number(self, units: npt.NDArray[np.uint16]) -> int:
        """Return the number at the end of a list, which is the number of its counts."""
        if self.position_units == 1:
            return units.item(-1)
        return units.item(-2) | units.item(-1) << 16

    def counts_in(
        self, units: npt.NDArray[np.uint16], start: int, number: int
    ) -> tuple[Ints, Counts]:
        """Return the positions and the counts at the end of a list.

        Args:
            units: The units of the list.
            start: The number of units that contain rows.
            number: The number of counts.
        """
        end = start + number * self.position_units
        positions: Ints = units[start:end]
        values = units[end:].view(np.uint8)[: number * self.count_bytes]
        if self.position_units > 1:
            positions = positions.copy().view(np.uint32)  # the copy is aligned
        if self.count_bytes > 1:
            return positions, values.copy().view(self.counts)
        return positions, values


class _Portion:
    """The packed lists of several terms, which are unpacked together.

    Args:
        form: The sizes of the numbers.
        entries: The entries of the terms in ``posting_starts``, and the next entry.
        units: The units of all lists.

    Attributes:
        sizes: The number of postings of each term.

    Raises:
        IndexError: If a list is invalid.
    """

    def __init__(self, form: _Form, entries: Starts, units: npt.NDArray[np.uint16]) -> None:
        self._form = form
        self._units = units
        starts = entries >> _FLAG_BITS
        kinds = entries[:-1]
        left = np.diff(starts)
        self._starts = starts[:-1]
        self._ends = starts[1:]
        self._num_counts = np.zeros(len(left), np.int64)
        counted = np.flatnonzero((kinds & _COUNTS > 0) & (left >= form.position_units))
        last = self._ends[counted] - form.position_units
        self._num_counts[counted] = _numbers_at(units, last, form.row_bytes)
        left[counted] -= form.units_of_counts(self._num_counts[counted])
        self._codes = kinds & _SIZE
        if self._codes.max(initial=0) == _SIZE:
            raise IndexError("the size of rows is unknown")
        self.sizes = left // np.maximum(self._codes, 1)
        is_padded = kinds & _PADDING > 0
        self.sizes = np.where(self._codes == 0, 2 * left - is_padded, self.sizes)

    def rows(self) -> npt.NDArray[np.int32]:
        """Return the rows of all lists."""
        sizes = self.sizes
        rows = np.zeros(int(sizes.sum()), np.int64)
        for code, width in enumerate(_WIDTHS.tolist()):
            chosen = self._codes == code
            at = _positions(self._starts[chosen] * 2 // min(width, 2), sizes[chosen], width)
            rows[chosen.repeat(sizes)] = _numbers_at(self._units, at, width)
        is_gap = _WIDTHS[self._codes] < self._form.row_bytes
        sums = np.append(0, np.cumsum(rows))
        firsts = np.cumsum(sizes) - sizes
        before = np.where(is_gap, sums[firsts], 0).repeat(sizes)
        return np.where(is_gap.repeat(sizes), sums[1:] - before, rows).astype(np.int32)

    def counts(self) -> Counts:
        """Return the counts of all lists.

        Raises:
            IndexError: If a position is outside of its list.
        """
        form = self._form
        sizes = self.sizes
        number = self._num_counts
        counts: Counts = np.ones(int(sizes.sum()), form.counts)
        firsts = np.cumsum(sizes) - sizes
        places = self._ends - form.units_of_counts(number)
        at = _positions(places, number, form.row_bytes)
        positions = _numbers_at(self._units, at, form.row_bytes)
        if np.any(positions >= sizes.repeat(number)):
            raise IndexError("a position is outside of its list")
        places = places + number * form.position_units
        at = _positions(places * 2 // min(form.count_bytes, 2), number, form.count_bytes)
        greater = _numbers_at(self._units, at, form.count_bytes)
        counts[firsts.repeat(number) + positions] = greater
        return counts


def pack_lists(lists: PostingLists) -> Arrays:
    """Convert posting lists to arrays for a file.

    Example:
        >>> lists = PostingLists(
        ...     np.array([0, 2, 3]), np.array([5, 9, 7]), np.array([1, 3, 1], np.uint8)
        ... )
        >>> rows, counts = PackedLists(pack_lists(lists), 2, 10).of_term(0)
        >>> rows.tolist(), counts.tolist()
        ([5, 9], [1, 3])
    """
    row_bytes = 2 if lists.rows.max(initial=0) < _NARROW else 4
    form = _Form(row_bytes, lists.counts.itemsize)
    entries = np.zeros(len(lists.starts), np.int64)
    units = [np.zeros(0, np.uint16)]
    end = 0
    for first, of_terms in lists.portions():
        starts, kinds, packed = _packed(form, of_terms)
        last = first + len(kinds)
        entries[first:last] = (end + starts) << _FLAG_BITS | kinds
        end += len(packed)
        units.append(packed)
    entries[-1] = end << _FLAG_BITS
    return {
        "posting_form": np.array([len(lists.rows), row_bytes, form.count_bytes]),
        "posting_starts": smallest(entries),
        "posting_units": np.concatenate(units),
    }


def _packed(form: _Form, lists: PostingLists) -> tuple[Starts, Starts, npt.NDArray[np.uint16]]:
    """Return the first unit of each list, the bits that describe the lists, and their units."""
    sizes = np.diff(lists.starts)
    rows = lists.rows.astype(np.int32, copy=False)
    gaps = _gaps(rows, lists.starts[:-1][sizes > 0])
    codes = _codes(gaps, sizes, form)
    more = np.flatnonzero(lists.counts > 1)
    terms_of_more = np.searchsorted(lists.starts, more, "right") - 1
    num_counts = np.bincount(terms_of_more, minlength=len(sizes))
    has_counts = num_counts > 0
    row_units = (sizes * _WIDTHS[codes] + 1) // 2
    num_units = row_units + has_counts * form.units_of_counts(num_counts)
    ends = np.cumsum(num_units)
    starts = ends - num_units
    packed = np.zeros(int(num_units.sum()), np.uint16)
    for code, width in enumerate(_WIDTHS.tolist()):
        chosen = codes == code
        values = (rows if width == form.row_bytes else gaps)[chosen.repeat(sizes)]
        at = _positions(starts[chosen] * 2 // min(width, 2), sizes[chosen], width)
        _put(packed, at, values, width)
    positions = more - lists.starts[terms_of_more]
    _put_counts(packed, form, starts + row_units, num_counts, positions, lists.counts[more])
    last = ends[has_counts] - form.position_units
    _put(packed, last, num_counts[has_counts], form.row_bytes)
    has_padding = (codes == 0) & (sizes % 2 > 0)
    return starts, codes | has_padding * _PADDING | has_counts * _COUNTS, packed


def _put_counts(
    packed: npt.NDArray[np.uint16],
    form: _Form,
    starts: Starts,
    sizes: Starts,
    positions: Starts,
    counts: Counts,
) -> None:
    """Write the counts that are greater than 1, after the rows of their lists.

    Args:
        packed: The units of all lists.
        form: The sizes of the numbers.
        starts: The first unit after the rows of each list.
        sizes: The number of counts of each list.
        positions: The position of each count in its list.
        counts: The counts.
    """
    _put(packed, _positions(starts, sizes, form.row_bytes), positions, form.row_bytes)
    starts = starts + sizes * form.position_units
    at = _positions(starts * 2 // min(form.count_bytes, 2), sizes, form.count_bytes)
    _put(packed, at, counts, form.count_bytes)


def _gaps(rows: npt.NDArray[np.int32], firsts: Starts) -> npt.NDArray[np.int32]:
    """Return the difference of each row and the row before it.

    The first row of a list is returned unchanged.

    Args:
        rows: The rows of all lists.
        firsts: The positions of the first rows of lists.
    """
    gaps = np.empty_like(rows)
    np.subtract(rows[1:], rows[:-1], out=gaps[1:])
    gaps[firsts] = rows[firsts]
    return gaps


def _codes(gaps: npt.NDArray[np.int32], sizes: Starts, form: _Form) -> Starts:
    """Return the code of the size of each list's rows."""
    greatest = np.zeros(len(sizes), np.int64)
    is_filled = sizes > 0
    if len(gaps):
        firsts = (np.cumsum(sizes) - sizes)[is_filled]
        greatest[is_filled] = np.maximum.reduceat(gaps, firsts)
    codes = ((greatest >= 1 << 8) | (sizes < _FREQUENT)).astype(np.int64)
    if form.row_bytes == 4:
        codes += greatest >= _NARROW
    return codes


def _positions(starts: Starts, sizes: Starts, width: int) -> Starts:
    """Return the positions of the numbers of several lists.

    Args:
        starts: The position of the first number of each list, in bytes if the width is 1, otherwise
            in units.
        sizes: The number of numbers of each list.
        width: The size of a number in bytes.
    """
    step = max(width // 2, 1)
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return (starts - step * (ends - sizes)).repeat(sizes) + step * np.arange(total)


def _put(units: npt.NDArray[np.uint16], at: Starts, values: Ints, width: int) -> None:
    """Write numbers of a width in bytes to the given positions. See ``_positions``."""
    if width == 1:
        units.view(np.uint8)[at] = values
    else:
        units[at] = values & 0xFFFF
    if width == 4:
        units[at + 1] = values >> 16


def _numbers_at(units: npt.NDArray[np.uint16], at: Starts, width: int) -> Starts:
    """Return the numbers of a width in bytes at the given positions. See ``_positions``.

    Raises:
        IndexError: If a position is outside of the units.
    """
    if width == 1:
        return units.view(np.uint8)[at].astype(np.int64)
    numbers = units[at].astype(np.int64)
    if width == 4:
        numbers |= units[at + 1].astype(np.int64) << 16
    return numbers
