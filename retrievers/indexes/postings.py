"""Which node has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, pack, unpack
from .node_table import Mask
from .vocabulary import StoredTerms, Vocabulary, sorted_terms

Ints = npt.NDArray[np.int32]

Counts = npt.NDArray[np.unsignedinteger[Any]]
"""Counts in as few bytes as hold the highest, which is one in nearly every index."""

_Block = tuple[npt.NDArray[np.int64], Ints, Counts]
"""The number of postings of each term; their rows, by term, ascending; their counts."""

# Tokens that are sorted together: they bound the memory a build needs. A block has a number for
# every term, so that there must not be too many: later ones are larger.
_BATCH = 500_000

_MOST_BATCH = 4_000_000

_BATCH_SHARE = 8

_COPIED = 250_000  # postings that are moved at a time


class Postings:
    """Map terms to nodes, as ascending rows of a ``NodeTable``, and counts.

    The caller numbers the rows, upwards. Most postings lie in one sorted block, in which each term
    has a range; later ones lie in small lists beside it, and are merged into the block when they
    have grown to an eighth of it. The caller filters out removed rows.
    """

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._starts: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._rows: Ints = np.zeros(0, np.int32)
        self._counts: Counts = np.zeros(0, np.uint8)
        self._recent: dict[int, tuple[array[int], array[int]]] = {}
        self._recent_size = 0

    def __len__(self) -> int:
        return len(self._rows) + self._recent_size

    def extend(self, first_row: int, texts: Iterable[Iterable[str]]) -> list[int]:
        """Add the terms of new rows, numbered from ``first_row``; return their lengths.

        Few are stored beside the block, many are sorted into it, some millions of terms at a time.
        """
        lengths: list[int] = []
        blocks: list[_Block] = []
        numbers, tokens = array("i"), 0
        batch_start, batch = 0, _BATCH  # the text that the numbers begin with, and most numbers
        for terms in texts:
            before = len(numbers)
            numbers.extend(map(self._vocabulary.__getitem__, terms))
            lengths.append(len(numbers) - before)
            if len(numbers) >= batch:
                blocks.append(_block(numbers, lengths[batch_start:], first_row + batch_start))
                tokens += len(numbers)
                numbers, batch_start = array("i"), len(lengths)
                batch = max(_BATCH, min(_MOST_BATCH, tokens // _BATCH_SHARE))
        if blocks or len(numbers) > self._room():
            blocks.append(_block(numbers, lengths[batch_start:], first_row + batch_start))
            self._merge(blocks)
        else:
            self._add_recent(numbers, lengths, first_row)
        return lengths

    def _room(self) -> int:
        return 20_000 + len(self._rows) // 8

    def _add_recent(self, numbers: array[int], lengths: Sequence[int], first: int) -> None:
        at = 0
        for row, length in enumerate(lengths, first):
            for number, occurrences in Counter(numbers[at : at + length]).items():
                rows, counts = self._recent.setdefault(number, (array("i"), array("i")))
                rows.append(row)
                counts.append(occurrences)
                self._recent_size += 1
            at += length
        if self._recent_size > self._room():
            self._merge([])

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Return a term's rows, ascending, and how often each has it; also removed rows."""
        number = self._vocabulary.find(term)
        if number < 0:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        begin = end = 0
        if number < len(self._starts) - 1:
            begin, end = self._starts[number : number + 2]
        rows, counts = self._rows[begin:end], self._counts[begin:end].astype(np.int32)
        if number in self._recent:
            recent_rows, recent_counts = self._recent[number]
            rows = np.concatenate([rows, np.array(recent_rows, np.int32)])
            counts = np.concatenate([counts, np.array(recent_counts, np.int32)])
        return rows, counts

    def document_frequencies(self, alive: Mask) -> Ints:
        """Return for every term in how many living rows it is; terms of none are left out."""
        running = np.concatenate([[0], np.cumsum(alive[self._rows])])
        frequencies = np.zeros(self._vocabulary.size, np.int32)
        frequencies[: len(self._starts) - 1] = np.diff(running[self._starts])
        for number, (rows, _) in self._recent.items():
            frequencies[number] += alive[np.array(rows, np.int32)].sum()
        present: Ints = frequencies[frequencies > 0]
        return present

    def compact(self, alive: Mask) -> None:
        """Drop dead rows and number the living ones anew, in order."""
        self._merge([])
        living = alive[self._rows]
        running = np.concatenate([[0], np.cumsum(living)])
        used = np.diff(running[self._starts]) > 0
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        words = self._vocabulary.words()
        self._vocabulary = Vocabulary(words[at] for at in np.flatnonzero(used).tolist())
        ends = running[self._starts[1:]][used]
        self._starts = np.concatenate([[0], ends])
        self._rows = numbers[self._rows[living]]
        self._counts = self._counts[living]

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the postings.

        The postings don't change meanwhile, so that others may search.

        Raises:
            TypeError: If a term is no text.
        """
        order, arrays = sorted_terms(self._vocabulary.words())
        starts, rows, counts = self._merged([])
        sizes = np.diff(starts)[order]
        at = np.arange(len(rows)) + np.repeat(starts[order] - (np.cumsum(sizes) - sizes), sizes)
        mask = np.uint32((1 << int(rows.max(initial=0)).bit_length()) - 1)
        steps = np.diff(rows[at].view(np.uint32), prepend=np.uint32(0))
        steps &= mask  # the first step of a term may be negative, and needs no more bits then
        return {
            **arrays,
            "frequencies": pack(sizes),
            "row_mask": np.array([mask]),
            "row_steps": pack(steps),
            "counts": pack(counts[at] - counts.dtype.type(1), mostly_zero=True),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Postings:
        """Restore postings from what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        postings = cls()
        terms = StoredTerms(arrays)
        sizes = unpack(arrays["frequencies"])
        rows = unpack(arrays["row_steps"])
        np.cumsum(rows, dtype=np.uint32, out=rows)
        rows &= arrays["row_mask"]
        counts = unpack(arrays["counts"], mostly_zero=True)
        counts += 1
        postings._vocabulary = Vocabulary(stored=terms)
        postings._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        postings._rows, postings._counts = rows.view(np.int32), _narrow(counts)
        if len(sizes) != len(terms) or not postings._starts[-1] == len(rows) == len(counts):
            raise ValueError(f"the arrays of an index don't fit its {len(terms)} terms")
        return postings

    def _recent_block(self) -> _Block:
        order = sorted(self._recent)
        sizes = np.zeros(self._vocabulary.size, np.int64)
        rows, counts = array("i"), array("i")
        for number in order:
            sizes[number] = len(self._recent[number][0])
            rows += self._recent[number][0]
            counts += self._recent[number][1]
        return sizes, np.array(rows, np.int32), _narrow(np.array(counts, np.uint32))

    def _merge(self, blocks: Sequence[_Block]) -> None:
        """Append the recent postings and further blocks to the block."""
        self._starts, self._rows, self._counts = self._merged(blocks)
        self._recent, self._recent_size = {}, 0

    def _merged(self, blocks: Sequence[_Block]) -> _Block:
        """Return where each term's postings begin, and these, block after block."""
        if not blocks and not self._recent:
            return self._starts, self._rows, self._counts
        block = np.diff(self._starts), self._rows, self._counts
        everything = [block, self._recent_block(), *blocks]
        totals = np.zeros(self._vocabulary.size, np.int64)
        for sizes, _, _ in everything:
            totals[: len(sizes)] += sizes
        starts = np.concatenate([[0], np.cumsum(totals)])
        merged_rows = np.empty(starts[-1], np.int32)
        merged_counts = np.empty(starts[-1], np.result_type(*(block[2] for block in everything)))
        free = starts[:-1].copy()
        for sizes, rows, counts in everything:
            ends = np.cumsum(sizes)
            offsets = free[: len(sizes)] - (ends - sizes)
            for terms, begin, end in _pieces(ends):
                at = np.repeat(offsets[terms], sizes[terms])
                at += np.arange(begin, end)
                merged_rows[at], merged_counts[at] = rows[begin:end], counts[begin:end]
            free[: len(sizes)] += sizes
        return starts, merged_rows, merged_counts


def _pieces(ends: npt.NDArray[np.int64]) -> Iterator[tuple[slice, int, int]]:
    """Yield ranges of terms whose postings, from begin to end, are moved at a time."""
    term = begin = 0
    while term < len(ends):
        after = max(term + 1, int(np.searchsorted(ends, begin + _COPIED, "right")))
        end = int(ends[after - 1])
        yield slice(term, after), begin, end
        term, begin = after, end


def _narrow(counts: Counts) -> Counts:
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))


def _block(numbers: array[int], lengths: Sequence[int], first_row: int) -> _Block:
    """Sort and count the terms of consecutive rows."""
    keys = np.frombuffer(numbers, np.int32).astype(np.int64)
    keys <<= 32
    keys |= np.repeat(np.arange(first_row, first_row + len(lengths), dtype=np.int32), lengths)
    keys.sort()
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    counts = _narrow(np.diff(begins, append=len(keys)).astype(np.uint32))
    keys = keys[begins]
    rows = keys.astype(np.int32)
    keys >>= 32
    return np.bincount(keys), rows, counts
