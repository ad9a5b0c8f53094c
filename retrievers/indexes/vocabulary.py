"""The terms of an inverted index and their numbers: most as one array of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .array_files import Arrays
from .packed_texts import PackedTexts, starts_of

_BUCKET_SIZE = 4  # terms in a bucket, on average

_ARRAYS = ("terms", "term_starts", "term_buckets", "term_numbers")


class Vocabulary:
    """Number terms upwards, in the order in which ``add`` first sees them.

    Packed terms are looked up in bytes, so that no dictionary has to be built when an index is
    read from a file; later ones stand in a dictionary.

    Example:
        >>> vocabulary = Vocabulary()
        >>> vocabulary.add("tea"), vocabulary.add("river"), vocabulary.add("tea")
        (0, 1, 0)
        >>> vocabulary.find("river"), vocabulary.find("sea")
        (1, -1)
    """

    def __init__(self) -> None:
        self._later: dict[str, int] = {}
        self._set_packed(_packed([]))

    def _set_packed(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._arrays = {name: arrays[name] for name in _ARRAYS}
        data, starts, buckets, numbers = (array.data for array in self._arrays.values())
        self._size = len(starts) - 1
        if not (
            len(numbers) == self._size and starts[-1] == len(data) and buckets[-1] == self._size
        ):
            raise ValueError(f"the arrays of an index don't fit its {self._size} terms")

        @lru_cache(10_000)
        def find(term: str) -> int:
            encoded = term.encode("utf-8", "surrogatepass")
            bucket = crc32(encoded) % (len(buckets) - 1)
            for at in range(buckets[bucket], buckets[bucket + 1]):
                number: int = numbers[at]
                if data[starts[number] : starts[number + 1]] == encoded:
                    return number
            return -1

        self._find_packed = find

    def __len__(self) -> int:
        return self._size + len(self._later)

    @property
    def has_later(self) -> bool:
        """Whether there are terms that are not packed."""
        return bool(self._later)

    def find(self, term: str) -> int:
        """Return a term's number, -1 where it has none."""
        number = self._later.get(term)
        if number is None:
            number = self._find_packed(term) if self._size else -1
        return number

    def add(self, term: str) -> int:
        """Return a term's number, the next one where it has none."""
        number = self.find(term)
        if number < 0:
            number = self._later[term] = len(self)
        return number

    def terms(self) -> list[str]:
        """Return all terms, by number."""
        packed = PackedTexts(self._arrays["terms"], self._arrays["term_starts"])
        return [*packed, *self._later]

    def arrays(self) -> Arrays:
        """Return arrays for a file, from which ``from_arrays`` restores the terms.

        Raises:
            TypeError: If a term is no text.
        """
        return _packed(self.terms()) if self._later else dict(self._arrays)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Vocabulary:
        """Restore a vocabulary; other arrays may be among them.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays don't fit each other.
        """
        vocabulary = cls()
        vocabulary._set_packed(arrays)
        return vocabulary

    @classmethod
    def of(cls, terms: Sequence[str]) -> Vocabulary:
        """Number some terms, each once, in this order, in as few bytes as they allow."""
        try:
            return cls.from_arrays(_packed(terms))
        except TypeError:  # terms that are no texts
            vocabulary = cls()
            for term in terms:
                vocabulary.add(term)
            return vocabulary


def _packed(terms: Sequence[str]) -> Arrays:
    data = [str.encode(term, "utf-8", "surrogatepass") for term in terms]
    buckets = len(data) // _BUCKET_SIZE + 1
    hashes = np.fromiter(map(crc32, data), np.int64, len(data)) % buckets
    return {
        "terms": np.frombuffer(b"".join(data), np.uint8),
        "term_starts": starts_of(list(map(len, data))),
        "term_buckets": starts_of(np.bincount(hashes, minlength=buckets)),
        "term_numbers": np.argsort(hashes, kind="stable").astype(np.uint32),
    }
