"""Which node has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..analysis.inversion import InvertedTexts
from .array_files import Arrays
from .node_table import Mask
from .posting_lists import Decoded, Ints, PostingLists, encoded
from .vocabulary import StoredTerms, Vocabulary, stored_terms

_PIECE = 200_000  # postings that are merged at a time

_NO_LISTS = PostingLists(np.zeros(8, np.uint8), np.array([8], np.uint32))


class _Block(NamedTuple):
    """Hold the postings of consecutive rows.

    Attributes:
        terms: The numbers of its terms, ascending.
        ends: How many postings there are up to the end of each.
        rows: By term, ascending, counted from the first row.
        counts: How often each row has the term.
        first: The first row.
    """

    terms: Ints
    ends: Ints
    rows: npt.NDArray[np.integer[Any]]
    counts: npt.NDArray[np.integer[Any]]
    first: int

    def piece(self, begin: int, end: int) -> tuple[Ints, Decoded]:
        """Return the numbers of its terms in a range, and their postings."""
        first, last = np.searchsorted(self.terms, np.array([begin, end], np.int32)).tolist()
        ends = self.ends[max(first - 1, 0) : last]
        before = int(ends[0]) if first else 0
        sizes = np.diff(ends) if first else np.diff(ends, prepend=np.int32(0))
        of_terms = slice(before, int(ends[-1]) if len(ends) else 0)
        rows = self.rows[of_terms].astype(np.int32)
        rows += self.first
        return self.terms[first:last], Decoded(sizes.astype(np.int64), rows, self.counts[of_terms])


class Postings:
    """Map terms to nodes, as ascending rows of a ``NodeTable``, and counts.

    The caller numbers the rows, upwards. Most postings lie encoded in one array of bytes, in memory
    or in a file; later ones lie in small lists beside it, and are merged with it when they have
    grown to an eighth of it. The caller filters out removed rows.
    """

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._lists = _NO_LISTS
        self._recent: dict[int, tuple[array[int], array[int]]] = {}
        self._recent_size = 0

    def __len__(self) -> int:
        return self._lists.size + self._recent_size

    def extend(self, first_row: int, texts: Iterable[InvertedTexts]) -> Ints:
        """Add the terms of new rows, numbered from ``first_row``; return their lengths.

        Few are stored beside the lists; many are merged with them, and until then take some three
        bytes a posting.
        """
        lengths: list[Ints] = []
        blocks: list[_Block] = []
        for some in texts:
            blocks.append(self._block(some, first_row))
            lengths.append(some.lengths)
            first_row += len(some.lengths)
        size = sum(len(block.rows) for block in blocks)
        if self._recent_size + size > self._room():
            self._merge(blocks)
        else:
            for block in blocks:
                self._add_recent(block)
            self._recent_size += size
        return np.concatenate(lengths) if lengths else np.zeros(0, np.int32)

    def _room(self) -> int:
        return 20_000 + self._lists.size // 8

    def _block(self, texts: InvertedTexts, first: int) -> _Block:
        """Put the postings of texts in the order of the vocabulary's numbers."""
        vocabulary, count = self._vocabulary, len(texts.terms)
        numbers = np.fromiter(map(vocabulary.__getitem__, texts.terms), np.int32, count)
        order = np.argsort(numbers)
        sizes = texts.sizes.astype(np.int64)
        begins, ends = np.cumsum(sizes) - sizes, np.cumsum(sizes[order])
        at = np.repeat(begins[order] - (ends - sizes[order]), sizes[order])
        at += np.arange(len(at))
        rows, counts = texts.rows[at], texts.counts[at]
        return _Block(numbers[order], ends.astype(np.int32), rows, counts, first)

    def _add_recent(self, block: _Block) -> None:
        rows, counts = (block.rows.astype(np.int64) + block.first).tolist(), block.counts.tolist()
        begin = 0
        for term, end in zip(block.terms.tolist(), block.ends.tolist(), strict=True):
            of_term = self._recent.get(term)
            if of_term is None:
                of_term = self._recent[term] = (array("i"), array("i"))
            of_term[0].extend(rows[begin:end])
            of_term[1].extend(counts[begin:end])
            begin = end

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Return a term's rows, ascending, and how often each has it; also removed rows."""
        number = self._vocabulary.find(term)
        if self._lists.size and 0 <= number < len(self._lists):
            rows, counts = self._lists.get(number)
        else:
            rows, counts = np.zeros(0, np.int32), np.zeros(0, np.int32)
        if number in self._recent:
            recent_rows, recent_counts = self._recent[number]
            rows = np.concatenate([rows, np.array(recent_rows, np.int32)])
            counts = np.concatenate([counts, np.array(recent_counts, np.int32)])
        return rows, counts

    def document_frequencies(self, alive: Mask) -> Ints:
        """Return for every term in how many living rows it is; terms of none are left out."""
        frequencies = np.zeros(self._vocabulary.size, np.int32)
        for first, last in self._lists.chunks():
            sizes, rows, _ = self._lists.decode(first, last)
            frequencies[first:last] = _sums(alive[rows], sizes)
        for number, (recent, _) in self._recent.items():
            frequencies[number] += alive[np.array(recent, np.int32)].sum()
        present: Ints = frequencies[frequencies > 0]
        return present

    def compact(self, alive: Mask) -> None:
        """Drop dead rows and number the living ones anew, in order."""
        self._merge([])
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        used: list[npt.NDArray[np.bool_]] = []

        def pieces() -> Iterator[Decoded]:
            for first, last in self._lists.chunks():
                sizes, rows, counts = self._lists.decode(first, last)
                living = alive[rows]
                sizes = _sums(living, sizes)
                used.append(sizes > 0)
                yield Decoded(sizes[sizes > 0], numbers[rows[living]], counts[living])

        lists = encoded(pieces())
        words = self._vocabulary.words()
        there = np.flatnonzero(np.concatenate(used)).tolist() if used else []
        self._vocabulary, self._lists = _numbered([words[at] for at in there]), lists

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the postings.

        The postings don't change meanwhile, so that others may search.

        Raises:
            TypeError: If a term is no text.
        """
        return {**self._vocabulary.arrays(), **self._merged([]).arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Postings:
        """Restore postings from what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        postings = cls()
        terms, lists = StoredTerms(arrays), PostingLists.from_arrays(arrays)
        if len(lists) != len(terms):
            raise ValueError(f"the postings of {len(lists)} terms don't fit {len(terms)} terms")
        postings._vocabulary, postings._lists = Vocabulary(terms), lists
        return postings

    def _merge(self, blocks: Sequence[_Block]) -> None:
        """Merge the recent postings and further blocks with the lists."""
        self._lists = self._merged(blocks)
        self._recent, self._recent_size = {}, 0
        if self._vocabulary.size > self._vocabulary.stored:
            self._vocabulary = _numbered(self._vocabulary.words())

    def _merged(self, blocks: Sequence[_Block]) -> PostingLists:
        if not blocks and not self._recent:
            return self._lists
        if self._recent:
            blocks = [self._recent_block(), *blocks]
        totals = np.zeros(self._vocabulary.size, np.int64)
        totals[: len(self._lists)] = self._lists.sizes()
        for block in blocks:
            totals[block.terms] += np.diff(block.ends, prepend=np.int32(0))
        return encoded(self._pieces(blocks, totals))

    def _recent_block(self) -> _Block:
        order = sorted(self._recent)
        rows, counts = array("i"), array("i")
        sizes = []
        for number in order:
            sizes.append(len(self._recent[number][0]))
            rows += self._recent[number][0]
            counts += self._recent[number][1]
        of_terms = np.array(rows, np.int32), np.array(counts, np.int32)
        ends = np.cumsum(sizes, dtype=np.int32)
        return _Block(np.array(order, np.int32), ends, *of_terms, 0)

    def _pieces(self, blocks: Sequence[_Block], totals: npt.NDArray[np.int64]) -> Iterator[Decoded]:
        """Yield the postings of ranges of terms: of the lists, then of each block."""
        ends = np.cumsum(totals)
        begin = 0
        while begin < len(totals):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _PIECE, "right")))
            sizes = totals[begin:end]
            free = np.cumsum(sizes) - sizes
            rows = np.empty(int(sizes.sum()), np.int32)
            counts = np.empty(len(rows), np.int32)
            for terms, piece in self._sources(blocks, begin, end):
                terms = terms - begin
                at = np.repeat(free[terms] - (np.cumsum(piece.sizes) - piece.sizes), piece.sizes)
                at += np.arange(len(at))
                rows[at], counts[at] = piece.rows, piece.counts
                free[terms] += piece.sizes
            yield Decoded(sizes, rows, counts)
            begin = end

    def _sources(
        self, blocks: Sequence[_Block], begin: int, end: int
    ) -> Iterator[tuple[Ints, Decoded]]:
        stored = min(end, len(self._lists))
        if begin < stored:
            yield np.arange(begin, stored, dtype=np.int32), self._lists.decode(begin, stored)
        for block in blocks:
            yield block.piece(begin, end)


def _numbered(words: Sequence[str]) -> Vocabulary:
    try:
        return Vocabulary(StoredTerms(stored_terms(words)))
    except TypeError:  # terms that are no texts
        vocabulary = Vocabulary()
        for word in words:
            _ = vocabulary[word]
        return vocabulary


def _sums(values: Mask, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the values of groups of some sizes."""
    running = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(sizes)
    sums: npt.NDArray[np.int64] = running[ends] - running[ends - sizes]
    return sums
