"""The terms of an inverted index and their numbers: most as one array of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .packed_texts import PackedTexts, starts_of

_BUCKET_SIZE = 4  # terms in a bucket, on average

# Terms looked up one by one, plus a share of the stored ones, after which all are copied into
# the dictionary: that costs about as much as having looked up a tenth of them.
_LOOKUPS = 1_000

_LOOKUP_SHARE = 16


class Vocabulary(dict[str, int]):
    """Number terms upwards, in the order in which ``[]`` first sees them.

    A dictionary, so that a term it contains costs no call. Stored terms are copied into it one by
    one when ``[]`` sees them, or all at once after many; until then only ``find`` and ``words``
    see them.

    Args:
        stored: The first terms, by number.

    Attributes:
        size: How many terms are numbered.
        stored: How many of these are stored ones.

    Example:
        >>> vocabulary = Vocabulary()
        >>> vocabulary["tea"], vocabulary["river"], vocabulary["tea"], vocabulary.find("sea")
        (0, 1, 0, -1)
    """

    def __init__(self, stored: StoredTerms | None = None) -> None:
        super().__init__()
        self._stored = stored
        self._copied = False  # whether the dictionary has the stored terms, too
        self._lookups = 0
        self.stored = self.size = 0 if stored is None else len(stored)

    def __missing__(self, term: str) -> int:
        number = -1 if self._stored is None or self._copied else self._copy(term, self._stored)
        if number < 0:
            number = self.size
            self.size += 1
        self[term] = number
        return number

    def _copy(self, term: str, stored: StoredTerms) -> int:
        """Return a stored term's number, -1 where it is unknown."""
        self._lookups += 1
        if self._lookups > _LOOKUPS + len(stored) // _LOOKUP_SHARE:
            self.update(zip(stored.words(), count()))
            self._copied = True
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
        later = [term for term, number in self.items() if number >= self.stored]
        return self._stored.words() + later

    def arrays(self) -> Arrays:
        """Return the arrays from which ``StoredTerms`` restores all terms, with their numbers.

        Raises:
            TypeError: If a term is no text.
        """
        if self._stored is not None and self.size == self.stored:
            return self._stored.arrays
        return stored_terms(self.words())


class StoredTerms:
    """Look up terms' numbers in bytes, without building a dictionary first.

    The terms lie one after the other, by number. A table has their numbers in buckets by their
    checksum; a term is compared with the few of its bucket.

    Args:
        arrays: What ``stored_terms`` returned; other arrays may be among them.

    Attributes:
        arrays: These.

    Raises:
        KeyError: If an array is missing.
        ValueError: If the arrays don't fit each other.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = {name: arrays[name] for name in _NAMES}
        # Reading one number at a time is faster from memory views than from arrays.
        self._data, self._starts, self._buckets, self._numbers = (
            array.data for array in self.arrays.values()
        )
        if not (
            len(self._starts) == len(self._numbers) + 1
            and self._starts[-1] == len(self._data)
            and self._buckets[-1] == len(self._numbers)
        ):
            raise ValueError(f"the arrays of an index don't fit its {len(self)} terms")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it is unknown."""
        data = term.encode("utf-8", "surrogatepass")
        bucket = crc32(data) % (len(self._buckets) - 1)
        starts = self._starts
        for at in range(self._buckets[bucket], self._buckets[bucket + 1]):
            number: int = self._numbers[at]
            if self._data[starts[number] : starts[number + 1]] == data:
                return number
        return -1

    def words(self) -> list[str]:
        """Return all terms, by number."""
        return list(PackedTexts(self.arrays["terms"], self.arrays["term_starts"]))


_NAMES = ("terms", "term_starts", "term_buckets", "term_numbers")


def stored_terms(words: Sequence[str]) -> Arrays:
    """Return the arrays that ``StoredTerms`` takes of terms, by number.

    Raises:
        TypeError: If a term is no text.
    """
    data = [str.encode(word, "utf-8", "surrogatepass") for word in words]
    buckets = len(data) // _BUCKET_SIZE + 1
    hashes = _hashes(data) % buckets
    return {
        "terms": np.frombuffer(b"".join(data), np.uint8),
        "term_starts": starts_of(list(map(len, data))),
        "term_buckets": starts_of(np.bincount(hashes, minlength=buckets)),
        "term_numbers": np.argsort(hashes, kind="stable").astype(np.uint32),
    }


def _hashes(data: Iterable[bytes]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(crc32, data), np.int64)
