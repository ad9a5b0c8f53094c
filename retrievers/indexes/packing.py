"""Numbers in few bytes: most are small, and few need more room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.uint32]

_MOSTLY_SMALL = (8, 8, 16)
_MOSTLY_ZERO = (0, 8, 8, 16)


def pack(numbers: npt.ArrayLike, *, mostly_zero: bool = False) -> Bytes:
    """Write numbers below 2**32 in little more than a byte each.

    How many there are comes first, then all their lowest bytes, then a bit for each that has
    more to it, then what those have more, in the same manner. Everything is done on whole
    arrays, so that millions of numbers are read in some hundredths of a second.

    Args:
        numbers: Shape (n,); whole numbers, taken modulo 2**32 (differences may be negative).
        mostly_zero: Whether a zero takes a bit only, and any other number a byte more.

    Returns:
        Shape (bytes,).
    """
    rest: Numbers = np.asarray(numbers).astype(np.uint32)
    parts = [np.array([len(rest)], "<u8").view(np.uint8)]
    for bits in _MOSTLY_ZERO if mostly_zero else _MOSTLY_SMALL:
        if bits == 16:  # nothing is left above
            parts.append(rest.astype("<u2").view(np.uint8))
            break
        if bits:
            parts.append(rest.astype(np.uint8))
        more = rest >= 1 << bits
        parts.append(np.packbits(more))
        rest = rest[more] >> np.uint32(bits)
    return np.concatenate(parts)


def unpack(packed: Bytes, *, mostly_zero: bool = False) -> Numbers:
    """Read the numbers that ``pack`` wrote.

    Raises:
        ValueError: If it wrote no such bytes.
    """
    if packed.dtype != np.uint8 or packed.ndim != 1 or len(packed) < 8:
        raise ValueError(f"no packed numbers: {packed.dtype} of shape {packed.shape}")
    (size,) = packed[:8].view("<u8").tolist()
    numbers, end = _unpack(packed[8:], size, _MOSTLY_ZERO if mostly_zero else _MOSTLY_SMALL)
    if end != len(packed) - 8:
        raise ValueError(f"{size} packed numbers take {end} bytes, not {len(packed) - 8}")
    return numbers


def _unpack(packed: Bytes, size: int, steps: Sequence[int]) -> tuple[Numbers, int]:
    """Return the numbers that begin the bytes, and how many bytes they take."""
    bits = steps[0]
    low = size * bits // 8
    end = low if bits == 16 else low + (size + 7) // 8
    if end > len(packed):
        raise ValueError(f"{size} packed numbers take more than {len(packed)} bytes")
    if bits == 16:
        return packed[:end].view("<u2").astype(np.uint32), end
    numbers = packed[:low].astype(np.uint32) if bits else np.zeros(size, np.uint32)
    more = np.flatnonzero(np.unpackbits(packed[low:end], count=size).view(np.bool_))
    rest, used = _unpack(packed[end:], len(more), steps[1:])
    numbers[more] |= rest << np.uint32(bits)
    return numbers, end + used
