"""An inverted index: the rows and counts of each term, which grows in place."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, pack_texts, unpack_texts
from .node_table import Mask

MAX_TEXTS = 1 << 16
"""The maximum number of texts per batch."""

Ints = npt.NDArray[np.int32]

Counts = npt.NDArray[np.unsignedinteger[Any]]

_Starts = npt.NDArray[np.int64]

BATCH_SIZE = 1_000_000  # postings moved per step

_SMALL = 20_000  # maximum later postings that are never merged


class Vocabulary(dict[str, int]):
    """The number of each term, in the order of their first lookup."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class PostingLists(NamedTuple):
    """The rows of each term, one list after the other.

    Attributes:
        starts: The start of each list, and the end of the last list, shape (terms + 1,).
        rows: The rows by term, ascending.
        counts: The count of the term in each row.
    """

    starts: _Starts
    rows: Ints
    counts: Counts


class _Block(NamedTuple):
    """The postings of texts by ascending term. ``sizes`` is the number of rows per term."""

    terms: Ints
    sizes: Ints
    rows: Ints
    counts: Counts


_EMPTY = PostingLists(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Postings:
    """An inverted index from terms to ascending rows of a ``NodeTable``, with counts.

    The caller numbers the rows in ascending order and skips removed rows. Most postings are in
    arrays, five bytes each, in memory or in a file. Later postings are in small lists, which are
    merged into the arrays when they reach an eighth of the arrays' size.

    Attributes:
        vocabulary: The numbers of the terms.
        lists: Most postings.
        later: The rows and counts of later postings, by the number of the term.
    """

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.lists = _EMPTY
        self.later: dict[int, tuple[array[int], array[int]]] = {}
        self._later_size = 0

    def __len__(self) -> int:
        return len(self.lists.rows) + self._later_size

    def count(self, term: str) -> int:
        """Return the number of rows with a term, including removed rows."""
        number = self.vocabulary.get(term, -1)
        later, starts = self.later.get(number), self.lists.starts
        is_listed = 0 <= number < len(starts) - 1
        listed = int(starts[number + 1] - starts[number]) if is_listed else 0
        return listed + (0 if later is None else len(later[0]))

    def extend(self, first_row: int, batches: Iterable[Sequence[Iterable[str]]]) -> None:
        """Add the terms of new rows, numbered from ``first_row``.

        Args:
            first_row: The number of the first row.
            batches: Batches of at most ``MAX_TEXTS`` texts. A text is given by its terms, each as
                often as it occurs.
        """
        blocks: list[_Block] = []
        for texts in batches:
            blocks.append(self._block(first_row, texts))
            first_row += len(texts)
        size = self._later_size + sum(len(block.rows) for block in blocks)
        if size > _SMALL + len(self.lists.rows) // 8:
            self._merge(blocks)
        else:
            for block in blocks:
                self._add_later(block)

    def _block(self, first_row: int, texts: Sequence[Iterable[str]]) -> _Block:
        """Sort and count the terms of texts."""
        tokens, sizes = array("q"), []
        for terms in texts:
            before = len(tokens)
            tokens.extend(map(self.vocabulary.__getitem__, terms))
            sizes.append(len(tokens) - before)
        keys = np.frombuffer(tokens, np.int64) << 16
        keys |= np.repeat(np.arange(len(sizes)), sizes)
        pairs, counts = np.unique(keys, return_counts=True)
        rows = (pairs & 0xFFFF).astype(np.int32) + np.int32(first_row)
        numbers, sizes_of_terms = np.unique(pairs >> 16, return_counts=True)
        small = counts.astype(np.min_scalar_type(counts.max(initial=0)))
        return _Block(numbers.astype(np.int32), sizes_of_terms.astype(np.int32), rows, small)

    def _add_later(self, block: _Block) -> None:
        rows, counts = block.rows.tolist(), block.counts.tolist()
        self._later_size += len(rows)
        start = 0
        for term, size in zip(block.terms.tolist(), block.sizes.tolist(), strict=True):
            of_term = self.later.setdefault(term, (array("i"), array("I")))
            of_term[0].extend(rows[start : start + size])
            of_term[1].extend(counts[start : start + size])
            start += size

    def _merge(self, blocks: list[_Block]) -> None:
        """Merge later postings and blocks into the lists. Empties ``blocks``."""
        lists = self.lists
        if self.later:
            blocks.insert(0, self._later_block())
        if not blocks:
            return
        sizes = np.zeros(len(self.vocabulary), np.int64)
        sizes[: len(lists.starts) - 1] = np.diff(lists.starts)
        limit = lists.counts.max(initial=1)
        for block in blocks:
            sizes[block.terms] += block.sizes
            limit = max(limit, block.counts.max(initial=1))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        merged = PostingLists(
            starts,
            np.empty(int(starts[-1]), np.int32),
            np.empty(int(starts[-1]), np.min_scalar_type(limit)),
        )
        free = starts[:-1].copy()  # next free position of each term
        for block in _blocks_of(lists):
            _place(merged, free, block)
        while blocks:
            _place(merged, free, blocks.pop(0))
        self.lists, self.later, self._later_size = merged, {}, 0

    def _later_block(self) -> _Block:
        rows, counts = array("i"), array("I")
        for of_term in self.later.values():
            rows += of_term[0]
            counts += of_term[1]
        sizes = [len(of_term[0]) for of_term in self.later.values()]
        terms = np.array([*self.later], np.int32)
        return _Block(
            terms, np.array(sizes, np.int32), np.array(rows, np.int32), np.array(counts, np.uint32)
        )

    def compacted(self, alive: Mask) -> Postings:
        """Return postings without empty rows. The remaining rows are renumbered in order."""
        self._merge([])
        lists = self.lists
        living = alive[lists.rows]
        count = len(lists.starts) - 1
        of_postings = np.arange(count).repeat(np.diff(lists.starts))
        sizes = np.bincount(of_postings[living], minlength=count)
        kept = (term for term, size in zip(self.vocabulary, sizes.tolist(), strict=True) if size)
        compacted = Postings()
        compacted.vocabulary = _numbered(kept)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        rows = (np.cumsum(alive, dtype=np.int32) - 1)[lists.rows[living]]
        compacted.lists = PostingLists(starts, rows, lists.counts[living])
        return compacted

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the postings.

        Raises:
            TypeError: If a term is not a string.
        """
        self._merge([])
        lists = self.lists._asdict()
        terms = pack_texts("terms", [*self.vocabulary])
        return {**terms, **{f"posting_{name}": lists[name] for name in lists}}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Postings:
        """Restore postings from ``arrays``; other arrays are ignored."""
        postings = cls()
        postings.vocabulary = _numbered(unpack_texts("terms", arrays))
        postings.lists = PostingLists(*(arrays[f"posting_{n}"] for n in PostingLists._fields))
        return postings


def _numbered(terms: Iterable[str]) -> Vocabulary:
    return Vocabulary((term, number) for number, term in enumerate(terms))


def _blocks_of(lists: PostingLists) -> Iterator[_Block]:
    """Yield postings in portions of whole terms."""
    first, terms = 0, len(lists.starts) - 1
    while first < terms:
        limit = lists.starts[first] + BATCH_SIZE
        last = max(first + 1, int(np.searchsorted(lists.starts, limit, "right")) - 1)
        part = slice(lists.starts[first], lists.starts[last])
        yield _Block(
            np.arange(first, last, dtype=np.int32),
            np.diff(lists.starts[first : last + 1]).astype(np.int32),
            lists.rows[part],
            lists.counts[part],
        )
        first = last


def _place(merged: PostingLists, free: _Starts, block: _Block) -> None:
    """Append the postings of a block to the lists of their terms."""
    sizes = block.sizes.astype(np.int64)
    at = np.repeat(free[block.terms] - (np.cumsum(sizes) - sizes), sizes)
    at += np.arange(len(at))
    merged.rows[at], merged.counts[at] = block.rows, block.counts
    free[block.terms] += sizes
