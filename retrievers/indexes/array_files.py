"""Keep an index in a file beside the store, and trust it only when it is whole and current."""

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

_FORMAT = 1

_ABANDONED = 3600  # seconds after which a draft is one of a process that died

Arrays = dict[str, npt.NDArray[Any]]


def save(path: Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays and a header in one file, whole or not at all.

    What can't be written is logged: an index can be made again.

    Args:
        path: The file; its folder is made where it is missing.
        header: What ``load`` gives back, as JSON has it.
        arrays: By name; of numbers or booleans.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    text = json.dumps({**header, "format": _FORMAT, "arrays": list(arrays)}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, **members)
        draft.replace(path)
        _tidy(path)
    except OSError as error:
        logger.warning("the index was not kept in %s, and will be made again: %s", path, error)
    finally:  # also when it is interrupted
        with suppress(OSError):
            draft.unlink()


def load(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header and its arrays; None where there is no file, or it is damaged.

    The archive's checksums are checked while it is read, and what can't be read is logged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        if header.pop("arrays") != list(arrays):  # the archive's table has no checksum
            raise ValueError("the arrays are not all there")
        return (header, arrays) if header["format"] == _FORMAT else None
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged archive raises anything, NotImplementedError among it
        logger.warning("the index in %s is damaged and will be made again: %s", path, error)
        return None


def _tidy(path: Path) -> None:
    """Remove drafts of the file whose processes died while they wrote them."""
    for draft in path.parent.iterdir():
        if draft.name.startswith(f"{path.name}.") and draft.suffix == ".tmp":
            with suppress(OSError):
                if draft.stat().st_mtime < time.time() - _ABANDONED:
                    draft.unlink()


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


def join(texts: Sequence[str]) -> tuple[Bytes, Bytes]:
    """Write texts one after the other, and their lengths.

    Any text will do, also one with lone surrogates. Where all are hexadecimal, as digests are,
    two characters share a byte; so there are fewer bytes than characters only then.

    Returns:
        The texts' bytes and the packed lengths, both for ``split``.
    """
    whole = "".join(texts)
    try:
        data = bytes.fromhex(whole)
    except ValueError:
        data = b""
    if data.hex() != whole:
        data = whole.encode("utf-8", "surrogatepass")
    return np.frombuffer(data, np.uint8), pack([*map(len, texts)])


def split(data: Bytes, lengths: Bytes) -> list[str]:
    """Read the texts that ``join`` wrote.

    Raises:
        ValueError: If the lengths don't fit the texts.
    """
    ends = np.cumsum(unpack(lengths), dtype=np.int64)
    size = int(ends[-1]) if len(ends) else 0
    raw = data.tobytes()
    whole = raw.hex() if len(raw) < size else raw.decode("utf-8", "surrogatepass")
    if len(whole) != size:
        raise ValueError(f"the texts have {len(whole)} characters, not {size}")
    places = [0, *ends.tolist()]
    return [whole[begin:end] for begin, end in pairwise(places)]
