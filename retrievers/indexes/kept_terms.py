"""The terms of a file, looked up where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .packing import pack, unpack

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
