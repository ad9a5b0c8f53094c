"""Arrays in a file whose blocks are verified by checksums when they are first read."""

from __future__ import annotations

from typing import Any, NoReturn
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ...nodegraph.errors import MissingNodeError

BLOCK = 4_096
"""The number of bytes that one checksum covers."""

Array = npt.NDArray[Any]

Checksums = npt.NDArray[np.uint32]


class Damage:
    """A record of the first wrong value in a file, after which the index is rebuilt.

    Attributes:
        reason: A description of the first wrong value, or None if no wrong value was found.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def report(self, reason: str) -> NoReturn:
        """Record a wrong value, and raise an error.

        Raises:
            MissingNodeError: Always. The search is repeated after the index was rebuilt.
        """
        self.reason = self.reason or reason
        raise MissingNodeError(reason)


class StoredArray:
    """An array in a file. Its blocks are verified when they are first read.

    Args:
        name: The name of the array.
        array: The contiguous array.
        checksums: The checksums of its blocks, or None for an array in memory.
        damage: The object that records a wrong value.

    Attributes:
        array: The array, without verification.
    """

    __slots__ = (
        "_bytes",
        "_checksums",
        "_damage",
        "_flags",
        "_left",
        "_name",
        "_unchecked",
        "_values",
        "array",
    )

    def __init__(
        self, name: str, array: Array, checksums: Checksums | None, damage: Damage
    ) -> None:
        self.array = array
        self._name = name
        self._bytes = array.reshape(-1).view(np.uint8)
        self._checksums = checksums
        self._damage = damage
        self._values: range | None = None
        self._unchecked = bytearray(b"\1") * count_blocks(array.nbytes)
        # The same bytes as an array.
        self._flags = np.ndarray(len(self._unchecked), np.bool_, self._unchecked)
        self._left = len(self._unchecked) if checksums is not None else 0

    def __len__(self) -> int:
        return len(self.array)

    def limited(self, values: range) -> StoredArray:
        """Return the same array with an additional check of its integers.

        When a part of the array is read, its integers must be in the given range.
        """
        limited = StoredArray(self._name, self.array, self._checksums, self._damage)
        limited._values = values
        limited._left = len(limited._unchecked)
        return limited

    def item(self, place: int) -> Any:
        """Return a single value of a one-dimensional array."""
        if self._left:
            block = place * self.array.itemsize // BLOCK
            self._check(block, block + 1)
        return self.array.item(place)

    def part(self, start: int, stop: int) -> Array:
        """Return a part of a one-dimensional array."""
        if self._left and start < stop:
            size = self.array.itemsize
            self._check(start * size // BLOCK, -(-stop * size // BLOCK))
        return self.array[start:stop]

    def take(self, places: npt.NDArray[np.signedinteger[Any]]) -> Array:
        """Return the values at the given positions, which must be inside the array."""
        self.check(places, places + 1)
        return self.array.take(places)

    def check(
        self, starts: npt.NDArray[np.signedinteger[Any]], stops: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Verify the values of the given parts, which must be inside the array.

        Args:
            starts: The start of each part.
            stops: The end of each part.

        Raises:
            MissingNodeError: If a block is wrong.
        """
        if self._left:
            of_block = BLOCK // self.array.itemsize
            first = starts // of_block
            last = np.maximum(stops - 1, starts) // of_block
            is_unchecked = last - first > 1
            for blocks in (first, last):
                is_unchecked |= self._flags.take(blocks, mode="clip")
            for at in np.flatnonzero(is_unchecked).tolist():
                self._check(first.item(at), last.item(at) + 1)

    def whole(self) -> Array:
        """Return the whole array after verifying it."""
        if self._left:
            self._check(0, len(self._unchecked))
        return self.array

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error because of a wrong value in the file.

        Raises:
            MissingNodeError: Always.
        """
        self._damage.report(f"the array {self._name!r:.40} has invalid values: {reason}")

    def _check(self, first: int, last: int) -> None:
        """Verify the blocks from ``first`` to ``last - 1``.

        Raises:
            MissingNodeError: If a block is wrong.
        """
        block = self._unchecked.find(1, first, last)
        if block < 0:
            return
        self._check_values(first, last)
        while block >= 0:
            if self._checksums is not None:
                content = self._bytes[block * BLOCK : (block + 1) * BLOCK]
                if crc32(content.data) != self._checksums.item(block):
                    self.refuse("its checksum differs")
            self._unchecked[block] = 0
            block = self._unchecked.find(1, block + 1, last)
        # Other threads may verify other blocks at the same time.
        self._left = self._unchecked.count(1)

    def _check_values(self, first: int, last: int) -> None:
        """Verify that the values of some blocks are in the allowed range."""
        if self._values is None:
            return
        of_block = BLOCK // self.array.itemsize
        values = self.array[first * of_block : last * of_block]
        least = self._values.start
        if least == 0:  # one pass is sufficient, because negative numbers become large numbers
            values = values.view(f"u{values.itemsize}")
        else:
            least = int(values.min())
        greatest = int(values.max())
        if least < self._values.start or greatest >= self._values.stop:
            self.refuse(f"it must have values of {self._values}")


def count_blocks(size: int) -> int:
    """Return the number of blocks that a number of bytes occupies."""
    return -(-size // BLOCK)


def checksums_of(content: npt.NDArray[np.uint8]) -> Checksums:
    """Return the checksum of each block of bytes."""
    view = content.data
    starts = range(0, len(content), BLOCK)
    return np.array([crc32(view[start : start + BLOCK]) for start in starts], np.uint32)
