"""Which node has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, pack, unpack
from .node_table import Mask
from .vocabulary import StoredTerms, Vocabulary, sorted_terms

Ints = npt.NDArray[np.int32]

_Block = tuple[npt.NDArray[np.int64], Ints, Ints]
"""The number of postings of each term; their rows, by term, ascending; their counts."""

_BATCH = 4_000_000  # tokens that are sorted together; bounds the memory a build needs


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
        self._counts: Ints = np.zeros(0, np.int32)
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
        numbers = array("i")
        batch_start = 0  # the text that the numbers begin with
        for terms in texts:
            before = len(numbers)
            numbers.extend(map(self._vocabulary.__getitem__, terms))
            lengths.append(len(numbers) - before)
            if len(numbers) >= _BATCH:
                blocks.append(_block(numbers, lengths[batch_start:], first_row + batch_start))
                numbers, batch_start = array("i"), len(lengths)
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
            return self._rows[:0], self._counts[:0]
        begin = end = 0
        if number < len(self._starts) - 1:
            begin, end = self._starts[number : number + 2]
        rows, counts = self._rows[begin:end], self._counts[begin:end]
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
            "counts": pack(counts[at] - 1, mostly_zero=True),
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
        postings._rows, postings._counts = rows.view(np.int32), counts.view(np.int32)
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
        return sizes, np.array(rows, np.int32), np.array(counts, np.int32)

    def _merge(self, blocks: Sequence[_Block]) -> None:
        """Append the recent postings and further blocks to the block."""
        self._starts, self._rows, self._counts = self._merged(blocks)
        self._recent, self._recent_size = {}, 0

    def _merged(self, blocks: Sequence[_Block]) -> tuple[npt.NDArray[np.int64], Ints, Ints]:
        """Return where each term's postings begin, and these, block after block."""
        if not blocks and not self._recent:
            return self._starts, self._rows, self._counts
        block = np.diff(self._starts), self._rows, self._counts
        everything = [block, self._recent_block(), *blocks]
        width = self._vocabulary.size
        sizes = [np.pad(block[0], (0, width - len(block[0]))) for block in everything]
        starts = np.concatenate([[0], np.cumsum(np.sum(sizes, axis=0))]).astype(np.int64)
        merged_rows = np.empty(starts[-1], np.int32)
        merged_counts = np.empty(starts[-1], np.int32)
        free = starts[:-1].copy()
        for size, (_, rows, counts) in zip(sizes, everything, strict=True):
            at = np.arange(len(rows)) + np.repeat(free - (np.cumsum(size) - size), size)
            merged_rows[at], merged_counts[at] = rows, counts
            free += size
        return starts, merged_rows, merged_counts


def _block(numbers: array[int], lengths: Sequence[int], first_row: int) -> _Block:
    """Sort and count the terms of consecutive rows."""
    rows = np.repeat(np.arange(first_row, first_row + len(lengths)), lengths)
    keys = np.frombuffer(numbers, np.int32).astype(np.int64) << 32 | rows
    keys.sort()
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(begins, append=len(keys)).astype(np.int32)
    distinct = keys[begins]
    return np.bincount(distinct >> 32), distinct.astype(np.int32), counts
