"""Which slot has which term how often: an inverted file that grows and shrinks in place."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .kept_terms import KeptTerms, sorted_terms
from .packing import pack, unpack
from .vocabulary import Vocabulary

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
