"""Which slot has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .array_files import pack, unpack

Ints = npt.NDArray[np.int32]

_Block = tuple[npt.NDArray[np.int64], Ints, Ints]
"""How many postings each term has; their slots, by term, ascending; their counts."""

_BATCH = 4_000_000  # tokens that are sorted together; bounds the memory a build needs


class Postings:
    """Map terms to ascending slots and counts.

    Slots are numbered by the caller, upwards. Most postings lie in one sorted block (compressed
    rows, one for each term); what came since lies in small lists beside it, and is merged into
    the block when it has grown to an eighth of it. Removing is the caller's: it filters slots.
    """

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._starts: npt.NDArray[np.int64] = np.zeros(1, np.int64)
        self._slots: Ints = np.zeros(0, np.int32)
        self._counts: Ints = np.zeros(0, np.int32)
        self._recent: dict[int, tuple[array[int], array[int]]] = {}
        self._recent_size = 0

    def __len__(self) -> int:
        return len(self._slots) + self._recent_size

    def extend(self, first_slot: int, texts: Iterable[Iterable[str]]) -> list[int]:
        """Add the terms of new slots, numbered from ``first_slot``; return their lengths.

        Few are kept beside the block, many are sorted into it, some millions of terms at a time.
        """
        lengths: list[int] = []
        blocks: list[_Block] = []
        numbers = array("i")
        begun = 0  # the text that the numbers begin with
        for terms in texts:
            before = len(numbers)
            numbers.extend(map(self._vocabulary.__getitem__, terms))
            lengths.append(len(numbers) - before)
            if len(numbers) >= _BATCH:
                blocks.append(_block(numbers, lengths[begun:], first_slot + begun))
                numbers, begun = array("i"), len(lengths)
        if blocks or len(numbers) > self._room():
            blocks.append(_block(numbers, lengths[begun:], first_slot + begun))
            self._merge(blocks)
        else:
            self._keep_beside(numbers, lengths, first_slot)
        return lengths

    def _room(self) -> int:
        return 20_000 + len(self._slots) // 8

    def _keep_beside(self, numbers: array[int], lengths: Sequence[int], first: int) -> None:
        at = 0
        for slot, length in enumerate(lengths, first):
            for number, occurrences in Counter(numbers[at : at + length]).items():
                slots, counts = self._recent.setdefault(number, (array("i"), array("i")))
                slots.append(slot)
                counts.append(occurrences)
                self._recent_size += 1
            at += length
        if self._recent_size > self._room():
            self._merge([])

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Return a term's slots, ascending, and how often each has it; also removed slots."""
        number = self._vocabulary.find(term)
        if number < 0:
            return self._slots[:0], self._counts[:0]
        begin = end = 0
        if number < len(self._starts) - 1:
            begin, end = self._starts[number : number + 2]
        slots, counts = self._slots[begin:end], self._counts[begin:end]
        if number in self._recent:
            recent_slots, recent_counts = self._recent[number]
            slots = np.concatenate([slots, np.array(recent_slots, np.int32)])
            counts = np.concatenate([counts, np.array(recent_counts, np.int32)])
        return slots, counts

    def document_frequencies(self, alive: npt.NDArray[np.bool_]) -> Ints:
        """Return for every term that is there in how many living slots it is."""
        running = np.concatenate([[0], np.cumsum(alive[self._slots])])
        frequencies = np.zeros(self._vocabulary.size, np.int32)
        frequencies[: len(self._starts) - 1] = np.diff(running[self._starts])
        for number, (slots, _) in self._recent.items():
            frequencies[number] += alive[np.array(slots, np.int32)].sum()
        present: Ints = frequencies[frequencies > 0]
        return present

    def compact(self, alive: npt.NDArray[np.bool_]) -> None:
        """Drop dead slots and number the living ones anew, in order."""
        self._merge([])
        kept = alive[self._slots]
        running = np.concatenate([[0], np.cumsum(kept)])
        used = np.diff(running[self._starts]) > 0
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        words = self._vocabulary.words()
        self._vocabulary = Vocabulary(words[at] for at in np.flatnonzero(used).tolist())
        ends = running[self._starts[1:]][used]
        self._starts = np.concatenate([[0], ends])
        self._slots = numbers[self._slots[kept]]
        self._counts = self._counts[kept]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays for a file, of which ``from_arrays`` makes the same postings again.

        Nothing changes meanwhile, so that others may search.

        Raises:
            TypeError: If a term is no text.
        """
        order, arrays = sorted_terms(self._vocabulary.words())
        starts, slots, counts = self._merged([])
        sizes = np.diff(starts)[order]
        at = np.arange(len(slots)) + np.repeat(starts[order] - (np.cumsum(sizes) - sizes), sizes)
        mask = np.uint32((1 << int(slots.max(initial=0)).bit_length()) - 1)
        steps = np.diff(slots[at].view(np.uint32), prepend=np.uint32(0))
        steps &= mask  # so that the first of a term, which may be a step back, needs no more
        return {
            **arrays,
            "frequencies": pack(sizes),
            "slot_mask": np.array([mask]),
            "slot_steps": pack(steps),
            "counts": pack(counts[at] - 1, mostly_zero=True),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Postings:
        """Make postings of what ``arrays`` returned; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        made = cls()
        terms = KeptTerms(arrays)
        sizes = unpack(arrays["frequencies"])
        slots = unpack(arrays["slot_steps"])
        np.cumsum(slots, dtype=np.uint32, out=slots)
        slots &= arrays["slot_mask"]
        counts = unpack(arrays["counts"], mostly_zero=True)
        counts += 1
        made._vocabulary = Vocabulary(kept=terms)
        made._starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        made._slots, made._counts = slots.view(np.int32), counts.view(np.int32)
        if len(sizes) != len(terms) or not made._starts[-1] == len(slots) == len(counts):
            raise ValueError(f"the arrays of an index don't fit its {len(terms)} terms")
        return made

    def _recent_block(self) -> _Block:
        order = sorted(self._recent)
        sizes = np.zeros(self._vocabulary.size, np.int64)
        slots, counts = array("i"), array("i")
        for number in order:
            sizes[number] = len(self._recent[number][0])
            slots += self._recent[number][0]
            counts += self._recent[number][1]
        return sizes, np.array(slots, np.int32), np.array(counts, np.int32)

    def _merge(self, blocks: Sequence[_Block]) -> None:
        """Append what is beside the block and further blocks."""
        self._starts, self._slots, self._counts = self._merged(blocks)
        self._recent, self._recent_size = {}, 0

    def _merged(self, blocks: Sequence[_Block]) -> tuple[npt.NDArray[np.int64], Ints, Ints]:
        """Return where terms' postings begin, and these, each block's behind those before it."""
        if not blocks and not self._recent:
            return self._starts, self._slots, self._counts
        block = np.diff(self._starts), self._slots, self._counts
        everything = [block, self._recent_block(), *blocks]
        width = self._vocabulary.size
        sizes = [np.pad(block[0], (0, width - len(block[0]))) for block in everything]
        starts = np.concatenate([[0], np.cumsum(np.sum(sizes, axis=0))]).astype(np.int64)
        merged_slots = np.empty(starts[-1], np.int32)
        merged_counts = np.empty(starts[-1], np.int32)
        free = starts[:-1].copy()
        for size, (_, slots, counts) in zip(sizes, everything, strict=True):
            at = np.arange(len(slots)) + np.repeat(free - (np.cumsum(size) - size), size)
            merged_slots[at], merged_counts[at] = slots, counts
            free += size
        return starts, merged_slots, merged_counts


def _block(numbers: array[int], lengths: Sequence[int], first_slot: int) -> _Block:
    """Sort and count the terms of consecutive slots."""
    slots = np.repeat(np.arange(first_slot, first_slot + len(lengths)), lengths)
    keys = np.frombuffer(numbers, np.int32).astype(np.int64) << 32 | slots
    keys.sort()
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(begins, append=len(keys)).astype(np.int32)
    distinct = keys[begins]
    return np.bincount(distinct >> 32), distinct.astype(np.int32), counts


_TOGETHER = 4  # terms in a bucket, about


class KeptTerms:
    """Tell terms' numbers without making a dictionary of them first.

    The terms lie one after the other, sorted into buckets by their checksum; a term is compared
    with the few of its bucket. Numbers count upwards as the terms lie.

    Raises:
        KeyError: If an array is missing.
        ValueError: If the arrays don't fit each other.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._data = arrays["terms"].tobytes()
        # Views give plain numbers, one at a time, quicker than arrays do.
        self._starts = _running(arrays["term_lengths"]).data
        self._buckets = _running(arrays["term_buckets"]).data
        if self._starts[-1] != len(self._data) or self._buckets[-1] != len(self):
            raise ValueError(f"the terms of an index, {len(self)}, don't fit their places")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it is unknown."""
        if not len(self):
            return -1
        data = term.encode("utf-8", "surrogatepass")
        bucket = crc32(data) % (len(self._buckets) - 1)
        begin = self._starts[self._buckets[bucket]]
        for number in range(self._buckets[bucket], self._buckets[bucket + 1]):
            end = self._starts[number + 1]
            if self._data[begin:end] == data:
                return number
            begin = end
        return -1

    def words(self) -> list[str]:
        """Return all terms, by number."""
        places = pairwise(self._starts.tolist())
        return [self._data[begin:end].decode("utf-8", "surrogatepass") for begin, end in places]


def sorted_terms(
    words: Sequence[str],
) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Return the order in which ``KeptTerms`` numbers some terms, and the arrays it needs."""
    data = [str.encode(word, "utf-8", "surrogatepass") for word in words]
    buckets = len(data) // _TOGETHER + 1
    hashes = np.fromiter(map(crc32, data), np.int64, len(data)) % buckets
    order = np.argsort(hashes, kind="stable")
    data = [data[number] for number in order.tolist()]
    return order, {
        "terms": np.frombuffer(b"".join(data), np.uint8),
        "term_lengths": pack([*map(len, data)]),
        "term_buckets": pack(np.bincount(hashes, minlength=buckets)),
    }


def _running(packed: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(unpack(packed), dtype=np.int64)])


# Terms that were looked up one by one, and what share of the kept ones beside, after which all
# are taken in: that costs about as much as having looked up a tenth of them.
_MANY = 1_000

_SHARE = 16


class Vocabulary(dict[str, int]):
    """Number terms upwards in the order in which they are first asked for by ``[]``.

    A dictionary, so that a term it knows costs no call. Terms that came from a file are taken
    into it when they are asked for by ``[]``, or all at once when many have been; until then
    only ``find`` and ``words`` know them.

    Args:
        words: The first terms, by number.
        kept: Terms of a file, in place of ``words``.

    Attributes:
        size: How many terms are numbered.

    Example:
        >>> vocabulary = Vocabulary(["tea"])
        >>> vocabulary["river"], vocabulary["tea"], vocabulary.find("sea"), vocabulary.size
        (1, 0, -1, 2)
    """

    def __init__(self, words: Iterable[str] = (), kept: KeptTerms | None = None) -> None:
        super().__init__(zip(words, count()))
        self._kept = kept
        self._missed = 0
        self.size = len(self) if kept is None else len(kept)

    def __missing__(self, term: str) -> int:
        number = -1 if self._kept is None else self._take_in(term, self._kept)
        if number < 0:
            number = self.size
            self.size += 1
        self[term] = number
        return number

    def _take_in(self, term: str, kept: KeptTerms) -> int:
        """Return a kept term's number, -1 where it is unknown."""
        self._missed += 1
        if self._missed > _MANY + len(kept) // _SHARE:
            words, self._kept = self.words(), None
            self.clear()
            self.update(zip(words, count()))
            return self.get(term, -1)
        return kept.find(term)

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it has none; leave everything as it is."""
        number = self.get(term)
        if number is None:
            number = -1 if self._kept is None else self._kept.find(term)
        return number

    def words(self) -> list[str]:
        """Return all terms, by number."""
        if self._kept is None:
            return list(self)
        known = len(self._kept)
        return self._kept.words() + [term for term, number in self.items() if number >= known]
