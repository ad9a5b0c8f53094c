"""The terms of an inverted index and their numbers, also while they still lie in a file's bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .array_files import Arrays, pack, unpack

_BUCKET_SIZE = 4  # terms in a bucket, on average

# Terms looked up one by one, plus a share of the stored ones, after which all are copied into
# the dictionary: that costs about as much as having looked up a tenth of them.
_LOOKUPS = 1_000

_LOOKUP_SHARE = 16


class Vocabulary(dict[str, int]):
    """Number terms upwards, in the order in which ``[]`` first sees them.

    A dictionary, so that a term it contains costs no call. Terms from a file are copied into it
    one by one when ``[]`` sees them, or all at once after many; until then only ``find`` and
    ``words`` see them.

    Args:
        words: The first terms, by number.
        stored: Terms of a file, in place of ``words``.

    Attributes:
        size: How many terms are numbered.

    Example:
        >>> vocabulary = Vocabulary(["tea"])
        >>> vocabulary["river"], vocabulary["tea"], vocabulary.find("sea"), vocabulary.size
        (1, 0, -1, 2)
    """

    def __init__(self, words: Iterable[str] = (), stored: StoredTerms | None = None) -> None:
        super().__init__(zip(words, count()))
        self._stored = stored
        self._lookups = 0
        self.size = len(self) if stored is None else len(stored)

    def __missing__(self, term: str) -> int:
        number = -1 if self._stored is None else self._copy(term, self._stored)
        if number < 0:
            number = self.size
            self.size += 1
        self[term] = number
        return number

    def _copy(self, term: str, stored: StoredTerms) -> int:
        """Return a stored term's number, -1 where it is unknown."""
        self._lookups += 1
        if self._lookups > _LOOKUPS + len(stored) // _LOOKUP_SHARE:
            words, self._stored = self.words(), None
            self.clear()
            self.update(zip(words, count()))
            return self.get(term, -1)
        return stored.find(term)

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it has none; change nothing."""
        number = self.get(term)
        if number is None:
            number = -1 if self._stored is None else self._stored.find(term)
        return number

    def words(self) -> list[str]:
        """Return all terms, by number."""
        if self._stored is None:
            return list(self)
        stored = len(self._stored)
        return self._stored.words() + [term for term, number in self.items() if number >= stored]


class StoredTerms:
    """Look up terms' numbers in a file's bytes, without building a dictionary first.

    The terms lie one after the other, sorted into buckets by their checksum; a term is compared
    with the few of its bucket. Numbers count upwards as the terms lie.

    Args:
        arrays: The second value of ``sorted_terms``; other arrays may be among them.

    Raises:
        KeyError: If an array is missing.
        ValueError: If the arrays don't fit each other.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._data = arrays["terms"].tobytes()
        # Reading one number at a time is faster from memory views than from arrays.
        self._starts = _running(arrays["term_lengths"]).data
        self._buckets = _running(arrays["term_buckets"]).data
        if self._starts[-1] != len(self._data) or self._buckets[-1] != len(self):
            raise ValueError(f"the arrays of an index don't fit its {len(self)} terms")

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
        spans = pairwise(self._starts.tolist())
        return [self._data[begin:end].decode("utf-8", "surrogatepass") for begin, end in spans]


def sorted_terms(words: Sequence[str]) -> tuple[npt.NDArray[np.int64], Arrays]:
    """Return the order in which ``StoredTerms`` numbers terms, and the arrays it needs."""
    data = [str.encode(word, "utf-8", "surrogatepass") for word in words]
    buckets = len(data) // _BUCKET_SIZE + 1
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
