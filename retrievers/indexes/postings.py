"""Which node has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, pack_texts, unpack_texts
from .node_table import Mask

MAX_TEXTS = 1 << 16
"""The maximum number of texts per inversion."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class InvertedTexts:
    """Hold the terms of some texts, each with the texts that have it.

    Attributes:
        terms: Each term once.
        sizes: In how many texts each is, (terms,).
        rows: The numbers of these texts, ascending, term after term.
        counts: How often each has the term.
        lengths: How many words each text has, (texts,).
    """

    terms: Sequence[str]
    sizes: Ints
    rows: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.unsignedinteger[Any]]
    lengths: Ints

    def joined(self, other: InvertedTexts) -> InvertedTexts:
        """Return other terms of the same texts with these."""
        return InvertedTexts(
            [*self.terms, *other.terms],
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.counts, other.counts]),
            self.lengths,
        )


def invert(texts: Sequence[str], analyze: Callable[[str], Iterable[str]]) -> InvertedTexts:
    """Analyse texts one by one.

    Args:
        texts: At most ``MAX_TEXTS``.
        analyze: Returns the terms of a text, each as often as it occurs.

    Example:
        >>> inverted = invert(["tea", "green tea"], str.split)
        >>> inverted.terms, inverted.sizes.tolist(), inverted.rows.tolist()
        (['tea', 'green'], [2, 1], [0, 1, 1])
    """
    numbers = Vocabulary()
    tokens, lengths = array("q"), []
    for text in texts:
        before = len(tokens)
        tokens.extend(map(numbers.__getitem__, analyze(text)))
        lengths.append(len(tokens) - before)
    keys = np.frombuffer(tokens, np.int64) << 16
    keys |= np.repeat(np.arange(len(lengths)), lengths)
    _, sizes, rows, counts = count_keys(keys)
    return InvertedTexts(list(numbers), sizes, rows, counts, np.array(lengths, np.int32))


def inverted_runs(texts: Sequence[str]) -> InvertedTexts:
    """Invert characters and pairs of neighbours, as an analyzer makes terms of runs.

    Args:
        texts: At most ``MAX_TEXTS``, of each the runs, with a zero character between them.

    Example:
        >>> inverted = inverted_runs(["江", "长江\\0水"])
        >>> inverted.terms, inverted.rows.tolist()
        (['水', '江', '长', '长江'], [1, 0, 1, 1, 1])
    """
    joined = "\0".join([*texts, ""]).encode("utf-32-le")
    codes = np.frombuffer(joined, np.uint32).astype(np.int64)
    texts_of = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])
    is_single = codes > 0
    is_pair = is_single[:-1] & is_single[1:]
    keys = np.append(codes, codes[:-1] << _CODE_BITS | codes[1:]) << 16
    keys |= np.append(texts_of, texts_of[:-1])
    numbers, sizes, rows, counts = count_keys(keys[np.append(is_single, is_pair)])
    first, last = (numbers >> _CODE_BITS).tolist(), (numbers & (1 << _CODE_BITS) - 1).tolist()
    terms = [chr(a) + chr(b) if a else chr(b) for a, b in zip(first, last, strict=True)]
    return InvertedTexts(terms, sizes, rows, counts, np.zeros(len(texts), np.int32))


_CODE_BITS = 21  # bits of a character code


class Vocabulary(dict[str, int]):
    """The number of each term, in the order of their first lookup."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def count_keys(
    keys: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.int64], Ints, npt.NDArray[np.uint16], npt.NDArray[np.unsignedinteger[Any]]
]:
    """Sort and count tokens. A token is the number of a term times 65,536, plus a text number.

    Returns:
        The numbers of the terms, ascending; the number of texts per term; the text numbers by
        term; and the count of the term in each of these texts.
    """
    keys = np.sort(keys)
    starts = _changes(keys)
    counts = np.diff(np.append(starts, len(keys)))
    pairs = keys[starts]
    rows = (pairs & 0xFFFF).astype(np.uint16)
    pairs >>= 16
    firsts = _changes(pairs)
    sizes = np.diff(np.append(firsts, len(pairs))).astype(np.int32)
    return pairs[firsts], sizes, rows, counts.astype(np.min_scalar_type(counts.max(initial=0)))


def _changes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the positions of the first value and of all changed values."""
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes.nonzero()[0]


Counts = npt.NDArray[np.unsignedinteger[Any]]

_Starts = npt.NDArray[np.int64]

BATCH_SIZE = 1_000_000  # postings moved per step


_SMALL = 20_000  # maximum later postings that are never merged


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


class LaterPostings(dict[int, tuple["array[int]", "array[int]"]]):
    """Rows and counts by term, and the number of postings."""

    size = 0


_EMPTY = PostingLists(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Postings:
    """An inverted index from terms to ascending rows of a ``NodeTable``, with counts.

    The caller numbers the rows in ascending order and skips removed rows. Most postings are in
    arrays, five bytes each, in memory or in a file. Later postings are in small lists, which are
    merged into the arrays when they reach an eighth of the arrays' size.
    """

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        # Replaced together, so that a concurrent search never sees a posting twice.
        self.state: tuple[PostingLists, LaterPostings] = _EMPTY, LaterPostings()

    def __len__(self) -> int:
        lists, later = self.state
        return len(lists.rows) + later.size

    def extend(self, first_row: int, texts: Iterable[InvertedTexts]) -> Ints:
        """Add the terms of new rows, numbered from ``first_row``; return their lengths."""
        lengths: list[Ints] = [np.zeros(0, np.int32)]
        blocks: list[_Block] = []
        for inverted in texts:
            terms = np.fromiter(map(self.vocabulary.__getitem__, inverted.terms), np.int32)
            rows = inverted.rows.astype(np.int32)
            rows += first_row
            blocks.append(_Block(terms, inverted.sizes, rows, inverted.counts))
            lengths.append(inverted.lengths)
            first_row += len(inverted.lengths)
        lists, later = self.state
        size = later.size + sum(len(block.rows) for block in blocks)
        if size > _SMALL + len(lists.rows) // 8:
            self._merge(blocks)
        else:
            for block in blocks:
                _add_later(later, block)
        return np.concatenate(lengths)

    def _merge(self, blocks: list[_Block]) -> None:
        """Merge later postings and blocks into the lists. Empties ``blocks``."""
        lists, later = self.state
        if not blocks and not later:
            return
        if later:
            blocks.insert(0, _block_of(later))
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
        self.state = merged, LaterPostings()

    def compacted(self, alive: Mask) -> Postings:
        """Return postings without empty rows. The remaining rows are renumbered in order."""
        self._merge([])
        lists = self.state[0]
        living = alive[lists.rows]
        count = len(lists.starts) - 1
        of_postings = np.arange(count).repeat(np.diff(lists.starts))
        sizes = np.bincount(of_postings[living], minlength=count)
        kept = (term for term, size in zip(self.vocabulary, sizes.tolist(), strict=True) if size)
        compacted = Postings()
        compacted.vocabulary = _numbered(kept)
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        rows = (np.cumsum(alive, dtype=np.int32) - 1)[lists.rows[living]]
        compacted.state = PostingLists(starts, rows, lists.counts[living]), LaterPostings()
        return compacted

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the postings.

        Concurrent searches are allowed.

        Raises:
            TypeError: If a term is not a string.
        """
        self._merge([])
        lists = self.state[0]._asdict()
        terms = pack_texts("terms", [*self.vocabulary])
        return {**terms, **{f"posting_{name}": lists[name] for name in lists}}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Postings:
        """Restore postings from ``arrays``; other arrays are ignored.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays are inconsistent.
        """
        postings = cls()
        postings.vocabulary = _numbered(unpack_texts("terms", arrays))
        lists = PostingLists(*(arrays[f"posting_{name}"] for name in PostingLists._fields))
        terms = len(lists.starts) - 1
        if terms != len(postings.vocabulary):
            raise ValueError(f"the postings of {terms} terms don't fit the vocabulary")
        if not lists.starts[-1] == len(lists.rows) == len(lists.counts):
            raise ValueError(f"the rows of an index don't fit its {terms} terms")
        postings.state = lists, LaterPostings()
        return postings


def _numbered(terms: Iterable[str]) -> Vocabulary:
    return Vocabulary((term, number) for number, term in enumerate(terms))


def _add_later(later: LaterPostings, block: _Block) -> None:
    rows, counts = block.rows.tolist(), block.counts.tolist()
    later.size += len(rows)
    start = 0
    for term, size in zip(block.terms.tolist(), block.sizes.tolist(), strict=True):
        of_term = later.setdefault(term, (array("i"), array("I")))
        of_term[0].extend(rows[start : start + size])
        of_term[1].extend(counts[start : start + size])
        start += size


def _block_of(later: LaterPostings) -> _Block:
    rows, counts = array("i"), array("I")
    for of_term in later.values():
        rows += of_term[0]
        counts += of_term[1]
    sizes = [len(of_term[0]) for of_term in later.values()]
    terms = np.array([*later], np.int32)
    return _Block(
        terms, np.array(sizes, np.int32), np.array(rows, np.int32), np.array(counts, np.uint32)
    )


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
