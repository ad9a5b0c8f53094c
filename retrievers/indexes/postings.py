"""An inverted index that stores the rows and counts of each term and can be extended in place."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, smallest, stored
from .row_ids import Mask
from .stored_array import StoredArray
from .vocabulary import Vocabulary

MAX_TEXTS = 1 << 16
"""The maximum number of texts per batch."""

Ints = npt.NDArray[np.integer[Any]]

Counts = npt.NDArray[np.unsignedinteger[Any]]

_Starts = npt.NDArray[np.int64]

BATCH_SIZE = 1_000_000  # the number of postings that are moved per step

_MAX_COUNT_BYTES = 4

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


class PostingLists(NamedTuple):
    """The posting lists of all terms, concatenated.

    Attributes:
        starts: The start of each list, and the end of the last list, with shape (terms + 1,).
        rows: The rows that contain each term, in ascending order.
        counts: The number of occurrences of the term in each row.
    """

    starts: _Starts
    rows: Ints
    counts: Counts


class StoredLists(NamedTuple):
    """Posting lists in a file, which are verified when they are first used."""

    starts: StoredArray
    rows: StoredArray
    counts: StoredArray

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the start and the end of a posting list.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        start, stop = self.starts.part(number, number + 2).tolist()
        if not 0 <= start <= stop <= len(self.rows):
            self.starts.refuse(f"{start} to {stop} of {len(self.rows)}")
        return start, stop

    def all(self) -> PostingLists:
        """Return all posting lists.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        starts = self.starts.whole().astype(np.int64)
        if np.any(starts[1:] < starts[:-1]):
            self.starts.refuse("it must ascend")
        return PostingLists(starts, self.rows.whole(), self.counts.whole())


class _Block(NamedTuple):
    """The postings of several texts, grouped by term.

    ``sizes`` contains the number of rows per term.
    """

    terms: npt.NDArray[np.integer[Any]]
    sizes: Ints
    rows: Ints
    counts: Counts


_EMPTY = PostingLists(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


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
        self._stored: StoredLists | None = None  # the lists in a file, until all of them are used
        self._later_size = 0

    def __len__(self) -> int:
        return self._size + self._later_size

    @property
    def _size(self) -> int:
        """The number of postings in the arrays."""
        return len(self._lists.rows if self._stored is None else self._stored.rows)

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

    def count(self, term: str) -> int:
        """Return the number of rows that contain a term, including removed rows.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        number = self.vocabulary.find(term)
        if number < 0:
            return 0
        start, stop = self._bounds(number)
        later = self.later.get(number)
        return stop - start if later is None else stop - start + len(later)

    def of_term(self, term: str) -> tuple[Ints, Counts, bool]:
        """Return the rows that contain a term, its counts, and whether the arrays are copies.

        Raises:
            MissingNodeError: If the file is damaged.
        """
        number = self.vocabulary.find(term)
        if number < 0:
            return _EMPTY.rows, _EMPTY.counts, False
        start, stop = self._bounds(number)
        if self._stored is None:
            rows = self._lists.rows[start:stop]
            counts = self._lists.counts[start:stop]
        else:
            rows = self._stored.rows.part(start, stop)
            counts = self._stored.counts.part(start, stop)
        if number not in self.later:
            return rows, counts, False
        later_rows, later_counts = _unpacked(np.array(self.later[number]))
        rows = np.concatenate([rows, later_rows])
        counts = np.concatenate([counts, later_counts])
        return rows, counts, True

    def _bounds(self, number: int) -> tuple[int, int]:
        """Return the start and the end of a term's posting list. It is empty for unknown terms."""
        starts = self._lists.starts if self._stored is None else self._stored.starts.array
        if not 0 <= number < len(starts) - 1:
            return 0, 0
        if self._stored is None:
            return starts.item(number), starts.item(number + 1)
        return self._stored.bounds(number)

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

    def _numbered(self, texts: AnalyzedTexts) -> _Starts:
        """Convert the terms of texts to their numbers in the vocabulary, text by text.

        New terms are added to the vocabulary.
        """
        vocabulary = self.vocabulary
        known = np.array([vocabulary[term] for term in texts.terms], np.int64)
        numbers: _Starts = known[np.frombuffer(texts.numbers, np.int32)]
        return numbers

    def _blocks(self, first_row: int, batch: Sequence[AnalyzedTexts]) -> Iterator[_Block]:
        """Yield the sorted and counted terms of texts, followed by the terms without spaces."""
        vocabulary = self.vocabulary
        numbers = np.concatenate([self._numbered(texts) for texts in batch])
        sizes = [size for texts in batch for size in texts.sizes]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        yield _counted(numbers, rows, first_row)
        codes, rows = _characters_and_pairs([runs for texts in batch for runs in texts.runs])
        of_runs = _counted(codes, rows, first_row)
        characters = np.stack([of_runs.terms >> _CODE_BITS, of_runs.terms & _CODE], axis=1)
        names = characters.astype(np.uint32).view("U2").ravel().tolist()
        yield of_runs._replace(terms=np.array([vocabulary[name] for name in names], np.int64))

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
        for block in _blocks_of(lists):
            _place(merged, free, block)
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
        lists = self.lists
        return {
            **self.vocabulary.arrays(),
            "posting_starts": smallest(lists.starts),
            "posting_rows": smallest(lists.rows),
            "posting_counts": lists.counts,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> Postings:
        """Restore postings for a number of rows from the result of ``arrays``.

        Other arrays are ignored.

        Raises:
            ValueError: If an array is missing, or has the wrong type or shape.
        """
        postings = cls()
        postings.vocabulary = Vocabulary.from_arrays(arrays)
        count = postings.vocabulary.size
        starts = stored(arrays, "posting_starts", np.unsignedinteger, count + 1)
        rows = stored(arrays, "posting_rows", np.unsignedinteger, None, values=range(size))
        counts = stored(arrays, "posting_counts", np.unsignedinteger, len(rows))
        if counts.array.itemsize > _MAX_COUNT_BYTES:
            raise ValueError(f"counts must have at most {_MAX_COUNT_BYTES} bytes")
        ends = starts.item(0), starts.item(len(starts) - 1)
        if ends != (0, len(rows)):
            raise ValueError(f"the lists must be from 0 to {len(rows)}, got {ends}")
        postings._stored = StoredLists(starts, rows, counts)
        return postings


def _unpacked(later: _Starts) -> tuple[Ints, Counts]:
    """Return the rows and the counts of postings that were added later."""
    return (later >> 32).astype(np.int32), (later & 0xFFFF_FFFF).astype(np.uint32)


def _characters_and_pairs(texts: Sequence[str]) -> tuple[_Starts, _Starts]:
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


def _counted(terms: _Starts, rows: _Starts, first_row: int) -> _Block:
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


def _blocks_of(lists: PostingLists) -> Iterator[_Block]:
    """Yield postings in portions, without splitting the list of a term."""
    terms = len(lists.starts) - 1
    first = 0
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
    """Append the postings of a block to the posting lists of their terms."""
    sizes = block.sizes.astype(np.int64)
    at = np.repeat(free[block.terms] - (np.cumsum(sizes) - sizes), sizes)
    at += np.arange(len(at))
    merged.rows[at] = block.rows
    merged.counts[at] = block.counts
    free[block.terms] += sizes
