"""Texts as one array of bytes, each read when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, overload

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_KEY = 8  # bytes of a key

_CHUNK = 4_096  # texts that are read at a time

Starts = npt.NDArray[np.unsignedinteger[Any]]


class PackedTexts(Sequence[str]):
    """Read texts out of the bytes that ``pack_texts`` made, also where these lie in a file.

    Args:
        data: The texts, one after the other.
        starts: Where each begins, and where the last ends; or the one number of bytes that each
            takes, where all are hexadecimal and two characters share a byte, as in digests.

    Raises:
        ValueError: If these don't fit each other.

    Example:
        >>> list(PackedTexts(*pack_texts(["tea", "", "长江"])))
        ['tea', '', '长江']
    """

    def __init__(self, data: Bytes, starts: Starts) -> None:
        self._data = data
        self._starts = starts
        self._width = int(starts[0]) if len(starts) == 1 else 0
        size = len(data) // self._width if self._width else len(starts) - 1
        if size < 0 or len(data) != (size * self._width if self._width else starts[-1]):
            raise ValueError(f"{len(data)} bytes don't fit {size} texts")
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.take(np.arange(self._size)[index])
        if not -self._size <= index < self._size:
            raise IndexError(f"no text {index} among {self._size}")
        index %= self._size
        if self._width:
            return self._data[index * self._width : (index + 1) * self._width].tobytes().hex()
        start, end = self._starts[index : index + 2].tolist()
        return self._data[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, self._size, _CHUNK):
            last = min(first + _CHUNK, self._size)
            yield from self[first:last] if self._width else self._between(first, last)

    def key(self, text: str) -> int:
        """Return a number that equal texts share: of digests their first bytes, else a hash."""
        if self._width >= _KEY and len(text) == 2 * self._width:
            with suppress(ValueError):  # no digest
                return int.from_bytes(bytes.fromhex(text)[:_KEY], sys.byteorder, signed=True)
        return hash(text)

    def keys(self) -> npt.NDArray[np.int64]:
        """Return the keys of all texts; of digests without reading one by one."""
        if self._width >= _KEY:
            first = self._data.reshape(-1, self._width)[:, :_KEY]
            return np.ascontiguousarray(first).view(np.int64)[:, 0]
        return np.fromiter(map(self.key, self), np.int64, self._size)

    def _between(self, first: int, last: int) -> list[str]:
        """Return neighbours, the last not among them."""
        starts = self._starts[first : last + 1].astype(np.int64)
        raw, ends = self._data[starts[0] : starts[-1]].tobytes(), (starts - starts[0]).tolist()
        if raw.isascii():
            joined = raw.decode()
            return [joined[start:end] for start, end in pairwise(ends)]
        return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts of some rows, (n,)."""
        if not self._width:
            return [self[row] for row in rows.tolist()]
        width = 2 * self._width
        joined = self._data.reshape(-1, self._width)[rows].tobytes().hex()
        return [joined[at : at + width] for at in range(0, len(joined), width)]


def pack_texts(texts: Sequence[str]) -> tuple[Bytes, Starts]:
    """Return the bytes of texts, also of lone surrogates, and where each begins."""
    sizes = {len(text) for text in texts}
    if len(sizes) == 1 and min(sizes) and not min(sizes) % 2:
        joined = "".join(texts)
        try:
            data = bytes.fromhex(joined)
        except ValueError:
            data = b""
        if data.hex() == joined:
            return np.frombuffer(data, np.uint8), np.array([sizes.pop() // 2], np.uint32)
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(b"".join(parts), np.uint8), starts_of(list(map(len, parts)))


def starts_of(sizes: npt.ArrayLike) -> Starts:
    """Return where parts of some sizes begin, and where the last ends; in four bytes each if
    these are enough.
    """
    ends = np.cumsum(sizes, dtype=np.uint64)
    last = int(ends[-1]) if len(ends) else 0
    starts: Starts = np.zeros(len(ends) + 1, np.uint32 if last < 1 << 32 else np.uint64)
    starts[1:] = ends
    return starts
