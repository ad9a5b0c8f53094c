"""An inverted index that stores the rows and counts of each term and can be extended in place."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .posting_lists import Counts, Ints, PackedLists, PostingLists, Starts, pack_lists
from .row_ids import Mask
from .vocabulary import Vocabulary

MAX_TEXTS = 1 << 16
"""The maximum number of texts per batch."""

_SMALL = 20_000  # the number of postings added later up to which they are not merged


_CODE_BITS = 21  # the number of bits of a character

_CODE = (1 << _CODE_BITS) - 1


class AnalyzedTexts(NamedTuple):
    """The terms of several texts as plain data.

    Attributes:
        terms: The distinct terms, in order of their first occurrence.
        numbers: The indexes of all terms in ``terms``, text by text, as the bytes of an int32
            array.
        sizes: The number of terms of each text.
        lengths: The length of each text. See ``TextAnalyzer.indexed``.
        runs: For each text, its sequences of characters in scripts without spaces, joined by zero
            characters. These characters and the pairs of adjacent characters are also terms.
    """

    terms: list[str]
    numbers: bytes
    sizes: list[int]
    lengths: list[int]
    runs: list[str]

    @classmethod
    def of(cls, texts: Iterable[tuple[Sequence[str], int, Sequence[str]]]) -> AnalyzedTexts:
        """Create an object from the terms of texts, which are numbered.

        Args:
            texts: For each text, all of its terms including repetitions, its length, and its
                sequences of characters without spaces.
        """
        numbered: defaultdict[str, int] = defaultdict()
        numbered.default_factory = numbered.__len__
        numbers = array("i")
        sizes: list[int] = []
        lengths: list[int] = []
        joined: list[str] = []
        for terms, length, runs in texts:
            numbers.extend([numbered[term] for term in terms])
            sizes.append(len(terms))
            lengths.append(length)
            joined.append("\0".join(runs))
        return cls([*numbered], numbers.tobytes(), sizes, lengths, joined)

    @property
    def num_terms(self) -> int:
        """The number of terms, plus half the number of characters in ``runs``.

        Terms in ``runs`` count only half because they are processed faster.
        """
        return len(self.numbers) // 4 + sum([len(run) for run in self.runs]) // 2


class _Block(NamedTuple):
    """The postings of several texts, grouped by term.

    ``sizes`` contains the number of rows per term.
    """

    terms: npt.NDArray[np.integer[Any]]
    sizes: Ints
    rows: Ints
    counts: Counts


_EMPTY = PostingLists(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))

NO_POSTINGS = _EMPTY.rows, _EMPTY.counts
"""The postings of a term that no row contains."""


class Postings:
    """An inverted index that maps terms to ascending rows of a ``NodeTable``, with counts.

    The caller numbers the rows in ascending order and ignores removed rows. Most postings are
    stored in arrays, in memory or in a file, and occupy five bytes each. Postings that are added
    later are stored in small lists. When they reach an eighth of the size of the arrays, they are
    merged into the arrays.

    Attributes:
        vocabulary: The numbers of the terms.
        later: The postings that were added later, by the number of the term. The upper bits contain
            the row and the lower bits the count.
    """

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.later: dict[int, array[int]] = {}
        self._lists = _EMPTY
        self._stored: PackedLists | None = None  # the lists in a file, until all of them are used
        self._later_size = 0

    def __len__(self) -> int:
        return self._size + self._later_size

    @property
    def _size(self) -> int:
        """The number of postings in the arrays."""
        return len(self._lists.rows) if self._stored is None else self._stored.size

    @property
    def lists(self) -> PostingLists:
        """The postings in the arrays.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        if self._stored is not None:
            self._lists = self._stored.all()
            self._stored = None
        return self._lists

    def of_term(self, number: int) -> tuple[Ints, Counts, bool]:
        """Return the rows that contain a term, its counts, and whether the arrays are copies.

        Args:
            number: The number of the term in the vocabulary.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        rows, counts = self._in_arrays(number)
        is_copied = self._stored is not None
        if number not in self.later:
            return rows, counts, is_copied
        later_rows, later_counts = _unpacked(np.array(self.later[number]))
        rows = np.concatenate([rows, later_rows])
        counts = np.concatenate([counts, later_counts])
        return rows, counts, True

    def _in_arrays(self, number: int) -> tuple[Ints, Counts]:
        """Return the rows that contain a term and its counts, without later postings."""
        if self._stored is not None:
            if number < len(self._stored):
                return self._stored.of_term(number)
            return NO_POSTINGS
        lists = self._lists
        if number >= len(lists.starts) - 1:
            return NO_POSTINGS
        start = lists.starts.item(number)
        stop = lists.starts.item(number + 1)
        return lists.rows[start:stop], lists.counts[start:stop]

    def extend(
        self, first_row: int, count: int, batches: Iterable[Sequence[AnalyzedTexts]]
    ) -> None:
        """Add the terms of the texts in new rows.

        Args:
            first_row: The number of the first row.
            count: The number of rows.
            batches: Batches of at most ``MAX_TEXTS`` texts.
        """
        if count <= first_row // 8:
            row = first_row
            for texts in chain.from_iterable(batches):
                self._add_later(row, texts)
                row += len(texts.sizes)
            if self._later_size > _SMALL + self._size // 8:
                self._merge([])
            return
        self.vocabulary.load()
        blocks: list[_Block] = []
        for batch in batches:
            blocks += self._blocks(first_row, batch)
            first_row += sum([len(texts.sizes) for texts in batch])
        self._merge(blocks)

    def _add_later(self, row: int, texts: AnalyzedTexts) -> None:
        later = self.later
        numbers = self._numbered(texts).tolist()
        end = 0
        for at, runs in zip(texts.sizes, texts.runs, strict=True):
            start = end
            end += at
            counts = Counter(numbers[start:end])
            for run in filter(None, runs.split("\0")):
                counts.update([self.vocabulary[character] for character in run])
                counts.update([self.vocabulary[first + second] for first, second in pairwise(run)])
            for number, count in counts.items():
                if number not in later:
                    later[number] = array("q")
                later[number].append(row << 32 | count)
            self._later_size += len(counts)
            row += 1

    def _numbered(self, texts: AnalyzedTexts) -> Starts:
        """Convert the terms of texts to their numbers in the vocabulary, text by text.

        New terms are added to the vocabulary.
        """
        vocabulary = self.vocabulary
        known = np.array([vocabulary[term] for term in texts.terms], np.int64)
        numbers: Starts = known[np.frombuffer(texts.numbers, np.int32)]
        return numbers

    def _blocks(self, first_row: int, batch: Sequence[AnalyzedTexts]) -> Iterator[_Block]:
        """Yield the sorted and counted terms of texts, followed by the terms without spaces."""
        vocabulary = self.vocabulary
        numbers = np.concatenate([self._numbered(texts) for texts in batch])
        sizes = [size for texts in batch for size in texts.sizes]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        of_words = _counted(numbers, rows, first_row)
        yield of_words._replace(terms=of_words.terms.astype(np.int32))
        codes, rows = _characters_and_pairs([runs for texts in batch for runs in texts.runs])
        of_runs = _counted(codes, rows, first_row)
        characters = np.stack([of_runs.terms >> _CODE_BITS, of_runs.terms & _CODE], axis=1)
        names = characters.astype(np.uint32).view("U2").ravel().tolist()
        yield of_runs._replace(terms=np.array([vocabulary[name] for name in names], np.int32))

    def _merge(self, blocks: list[_Block]) -> None:
        """Merge postings that were added later and new blocks into the arrays. Clear the blocks."""
        if self.later:
            blocks.insert(0, self._later_block())
        if not blocks:
            return
        lists = self.lists
        sizes = np.zeros(self.vocabulary.size, np.int64)
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
        free = starts[:-1].copy()  # the next free position of each term
        for first, part in lists.portions():
            sizes_of_part = np.diff(part.starts).astype(np.int32)
            terms = np.arange(first, first + len(sizes_of_part), dtype=np.int32)
            _place(merged, free, _Block(terms, sizes_of_part, part.rows, part.counts))
        while blocks:
            _place(merged, free, blocks.pop(0))
        self._lists = merged
        self.later = {}
        self._later_size = 0

    def _later_block(self) -> _Block:
        terms = np.array([*self.later], np.int32)
        sizes = np.array([len(entries) for entries in self.later.values()], np.int32)
        rows, counts = _unpacked(np.concatenate([*self.later.values()]))
        return _Block(terms, sizes, rows, counts)

    def compacted(self, alive: Mask) -> Postings:
        """Return postings without empty rows. The other rows are renumbered in order."""
        self._merge([])
        lists = self.lists
        living = alive[lists.rows]
        count = len(lists.starts) - 1
        of_postings = np.arange(count).repeat(np.diff(lists.starts))
        sizes = np.bincount(of_postings[living], minlength=count)
        terms = self.vocabulary.terms()[:count]
        compacted = Postings()
        compacted.vocabulary = Vocabulary.of([terms[n] for n in np.flatnonzero(sizes).tolist()])
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        rows = (np.cumsum(alive, dtype=np.int32) - 1)[lists.rows[living]]
        compacted._lists = PostingLists(starts, rows, lists.counts[living])
        return compacted

    def arrays(self) -> Arrays:
        """Return the postings as arrays for a file, from which ``from_arrays`` can restore them.

        Raises:
            TypeError: If a term is not a string.
        """
        self._merge([])
        return {**self.vocabulary.arrays(), **pack_lists(self.lists)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> Postings:
        """Restore postings for a number of rows from the result of ``arrays``.

        Other arrays are ignored.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        postings = cls()
        postings.vocabulary = Vocabulary.from_arrays(arrays)
        postings._stored = PackedLists(arrays, postings.vocabulary.size, size)
        return postings


def _unpacked(later: Starts) -> tuple[Ints, Counts]:
    """Return the rows and the counts of postings that were added later."""
    return (later >> 32).astype(np.int32), (later & 0xFFFF_FFFF).astype(np.uint32)


def _characters_and_pairs(texts: Sequence[str]) -> tuple[Starts, Starts]:
    """Return the codes of the characters and of adjacent pairs in texts, and the numbers of the
    texts.

    The upper bits of a pair contain its first character. Zero characters separate sequences.
    """
    joined = "\0".join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, np.uint32).astype(np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])
    characters = codes << _CODE_BITS
    pairs = characters[:-1] | codes[1:]
    in_run = codes > 0
    in_pair = in_run[:-1] & in_run[1:]
    found = np.append(characters[in_run], pairs[in_pair])
    return found, np.append(rows[in_run], rows[:-1][in_pair])


def _counted(terms: Starts, rows: Starts, first_row: int) -> _Block:
    """Sort terms, and count their occurrences in each text.

    Args:
        terms: The number of each term, below 2 ** 47.
        rows: The number of the text that contains each term, beginning with 0.
        first_row: The row of the first text.
    """
    pairs, counts = np.unique(terms << 16 | rows, return_counts=True)
    numbers, sizes = np.unique(pairs >> 16, return_counts=True)
    of_terms = (pairs & 0xFFFF).astype(np.int32) + np.int32(first_row)
    small = counts.astype(np.min_scalar_type(counts.max(initial=0)))
    return _Block(numbers, sizes.astype(np.int32), of_terms, small)


def _place(merged: PostingLists, free: Starts, block: _Block) -> None:
    """Append the postings of a block to the posting lists of their terms."""
    sizes = block.sizes.astype(np.int64)
    at = np.repeat(free[block.terms] - (np.cumsum(sizes) - sizes), sizes)
    at += np.arange(len(at))
    merged.rows[at] = block.rows
    merged.counts[at] = block.counts
    free[block.terms] += sizes
