"""Write named arrays to a file and read them back: the file format of indexes."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)

_FORMAT = 2

_ABANDONED = 3600  # seconds after which a temporary file belongs to a process that died

Arrays = dict[str, npt.NDArray[Any]]

Bytes = npt.NDArray[np.uint8]

Numbers = npt.NDArray[np.uint32]

# Files


def save_arrays(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write a header and arrays to one file, completely or not at all.

    A failure is logged, not raised: an index can be rebuilt.

    Args:
        path: The file; its folder is created where it is missing.
        header: What ``load_arrays`` returns with the arrays, as JSON has it.
        arrays: By name; of numbers or booleans.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    text = json.dumps({**header, "format": _FORMAT, "arrays": list(arrays)}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.savez(file, **members)
        temporary.replace(path)
        _remove_abandoned(path)
    except OSError as error:
        logger.warning("the index was not written to %s, and will be rebuilt: %s", path, error)
    finally:  # also when it is interrupted
        with suppress(OSError):
            temporary.unlink()


def load_arrays(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header and its arrays; return None where there is no file, or it is damaged.

    The archive's checksums are verified while it is read. What can't be read is logged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        if header.pop("arrays") != list(arrays):  # the archive's table has no checksum
            raise ValueError("some arrays are missing")
        return (header, arrays) if header["format"] == _FORMAT else None
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged archive raises anything, NotImplementedError among it
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of processes that died while they wrote this file."""
    for temporary in path.parent.iterdir():
        if temporary.name.startswith(f"{path.name}.") and temporary.suffix == ".tmp":
            with suppress(OSError):
                if temporary.stat().st_mtime < time.time() - _ABANDONED:
                    temporary.unlink()


# Compact arrays of numbers and of texts

_MOSTLY_SMALL = (8, 8, 16)

_MOSTLY_ZERO = (0, 8, 8, 16)


def pack(numbers: npt.ArrayLike, *, mostly_zero: bool = False) -> Bytes:
    """Encode numbers below 2**32 in little more than a byte each.

    The count comes first, then the lowest byte of every number, then one bit per number that
    says whether it has higher bytes, then those higher bytes, encoded in the same way. All steps
    work on arrays, so that millions of numbers are decoded in some hundredths of a second.

    Args:
        numbers: Shape (n,); whole numbers, taken modulo 2**32 (differences may be negative).
        mostly_zero: Whether a zero takes one bit only, and any other number a byte more.

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
    """Decode the numbers that ``pack`` encoded.

    Raises:
        ValueError: If ``pack`` can't have written these bytes.
    """
    if packed.dtype != np.uint8 or packed.ndim != 1 or len(packed) < 8:
        raise ValueError(f"no packed numbers: {packed.dtype} of shape {packed.shape}")
    (size,) = packed[:8].view("<u8").tolist()
    numbers, end = _unpack(packed[8:], size, _MOSTLY_ZERO if mostly_zero else _MOSTLY_SMALL)
    if end != len(packed) - 8:
        raise ValueError(f"{size} packed numbers take {end} bytes, not {len(packed) - 8}")
    return numbers


def _unpack(packed: Bytes, size: int, steps: Sequence[int]) -> tuple[Numbers, int]:
    """Decode numbers at the start of the bytes; return also how many bytes they take."""
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


def join(texts: Sequence[str]) -> tuple[Bytes, Bytes]:
    """Encode texts as their concatenation and their lengths.

    Any text is possible, also one with lone surrogates. Where all are hexadecimal, as digests
    are, two characters share a byte; only then there are fewer bytes than characters.

    Returns:
        The texts' bytes and the packed lengths, both for ``split``.
    """
    joined = "".join(texts)
    try:
        data = bytes.fromhex(joined)
    except ValueError:
        data = b""
    if data.hex() != joined:
        data = joined.encode("utf-8", "surrogatepass")
    return np.frombuffer(data, np.uint8), pack([*map(len, texts)])


def split(data: Bytes, lengths: Bytes) -> list[str]:
    """Decode the texts that ``join`` encoded.

    Raises:
        ValueError: If the lengths don't fit the texts.
    """
    ends = np.cumsum(unpack(lengths), dtype=np.int64)
    size = int(ends[-1]) if len(ends) else 0
    raw = data.tobytes()
    joined = raw.hex() if len(raw) < size else raw.decode("utf-8", "surrogatepass")
    if len(joined) != size:
        raise ValueError(f"the texts have {len(joined)} characters, not {size}")
    return [joined[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
