"""Files of named arrays, which are mapped into memory and verified when they are first used."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from .stored_array import Damage, StoredArray, checksums_of, count_blocks

logger = logging.getLogger(__name__)

_FORMAT = 11

_ALIGNMENT = 64  # in bytes; the position of an array in a file is a multiple of this number

_KINDS = "biuf"  # other types contain pointers or have no fixed meaning

_MAX_DIMENSIONS = 2

# The age in seconds from which a temporary file is assumed to belong to a killed process.
_ABANDONED = 3600

T = TypeVar("T", bound=np.generic)

Arrays = Mapping[str, npt.NDArray[Any]]


class StoredArrays(Mapping[str, npt.NDArray[Any]]):
    """The arrays of a file, by name. An array is verified by its checksums when it is first used.

    Attributes:
        parts: The arrays, by name. Each of their blocks is verified when it is first used.
        damage: A record of whether a wrong part of the file was found.
    """

    def __init__(self, parts: Mapping[str, StoredArray], damage: Damage) -> None:
        self.parts = parts
        self.damage = damage

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.parts[name].whole()

    def __contains__(self, name: object) -> bool:
        return name in self.parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def save_arrays(path: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays to a file, either completely or not at all. A failure is logged.

    The file consists of the length of the header, the header as JSON, the aligned arrays, the
    checksums of their blocks, and a checksum of everything except the arrays.

    Args:
        path: The path of the file. Missing folders are created.
        header: The header, as JSON values.
        arrays: Arrays of numbers or booleans, by name.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            for part in _parts(header, arrays):
                file.write(part)
        temporary.replace(path)
        for other in path.parent.glob(f"{path.name}.*.tmp"):
            with suppress(OSError):
                if other.stat().st_mtime < time.time() - _ABANDONED:
                    other.unlink()
    except OSError as error:
        logger.warning("the index was not written to %s, and will be rebuilt: %s", path, error)
    finally:  # even after an interrupt
        with suppress(OSError):
            temporary.unlink()


def _parts(header: Mapping[str, Any], arrays: Arrays) -> Iterator[Any]:
    """Yield the parts of a file as bytes."""
    described = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    data = json.dumps({**header, "format": _FORMAT, "arrays": described}).encode()
    data += b" " * (-(8 + len(data)) % _ALIGNMENT)
    start = len(data).to_bytes(8, "little") + data
    yield start
    checksums = [np.zeros(0, np.uint32)]
    for array in arrays.values():
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        checksums.append(checksums_of(content))
        yield content.data
        yield bytes(-array.nbytes % _ALIGNMENT)
    end = np.concatenate(checksums).tobytes()
    yield end
    yield crc32(end, crc32(start)).to_bytes(4, "little")


def load_arrays(path: Path) -> tuple[dict[str, Any], StoredArrays] | None:
    """Read the header of a file, and map its arrays into memory. The arrays are read-only.

    On Windows, the arrays are read instead, because Windows cannot replace a mapped file. The file
    may come from an untrusted source. Therefore, arrays of objects and arrays outside of the file
    are rejected. The values of the arrays are not verified here; see ``checked`` and ``stored``.

    Returns:
        The header and the arrays, or None if the file does not exist, is damaged or has a different
        format. The last two cases are logged.
    """
    try:
        is_mapped = sys.platform != "win32"
        data: Any = np.memmap(path, np.uint8, "r") if is_mapped else np.fromfile(path, np.uint8)
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        found = header.pop("format")
        if found != _FORMAT:
            logger.warning("the index in %s is rebuilt: its format %.9s is outdated", path, found)
            return None
        return header, _mapped(data, start, header.pop("arrays"))
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged headers may raise any error
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def _mapped(data: npt.NDArray[np.uint8], start: int, described: Mapping[str, Any]) -> StoredArrays:
    """Return the arrays of a file.

    Args:
        data: The content of the file.
        start: The position of the first array.
        described: The type and the shape of each array, by name.

    Raises:
        ValueError: If the description of an array is invalid, an array extends beyond the file, or
            the checksum is wrong.
    """
    if start % _ALIGNMENT:
        raise ValueError(f"its arrays must start at a multiple of {_ALIGNMENT}, got {start}")
    arrays: dict[str, npt.NDArray[Any]] = {}
    position = start
    for name, (kind, shape) in described.items():
        array = _array_at(data, position, name, kind, shape)
        arrays[name] = array
        position += array.nbytes + -array.nbytes % _ALIGNMENT
    end = data[position:-4].tobytes()
    checksum = int.from_bytes(data[-4:].tobytes(), "little")
    counts = [count_blocks(array.nbytes) for array in arrays.values()]
    is_complete = len(end) == 4 * sum(counts)
    if not is_complete or crc32(end, crc32(data[:start].data)) != checksum:
        raise ValueError("its checksum is wrong")
    damage = Damage()
    checksums = np.split(np.frombuffer(end, np.uint32), np.cumsum(counts[:-1]))
    parts = {
        name: StoredArray(name, array, of_array, damage)
        for (name, array), of_array in zip(arrays.items(), checksums, strict=True)
    }
    return StoredArrays(parts, damage)


def _array_at(
    data: npt.NDArray[np.uint8], start: int, name: str, kind: Any, shape: Any
) -> npt.NDArray[Any]:
    """Return one array of a file.

    Args:
        data: The content of the file.
        start: The position of the array.
        name: The name of the array.
        kind: The type of the array according to the file.
        shape: The shape of the array according to the file.

    Raises:
        ValueError: If the type is not a number or a boolean, or the array extends beyond the file.
    """
    dtype = np.dtype(str(kind))
    if dtype.kind not in _KINDS or not dtype.isnative:
        raise ValueError(f"the array {name!r:.40} has the type {kind!r:.40}")
    is_counted = all(type(length) is int and length >= 0 for length in shape)
    if len(shape) > _MAX_DIMENSIONS or not is_counted:
        raise ValueError(f"the array {name!r:.40} has the shape {shape!r:.40}")
    size = math.prod(shape) * dtype.itemsize
    if start + size > len(data):
        raise ValueError(f"the array {name!r:.40} ends after the file")
    if not size:
        return np.empty(shape, dtype)
    array: npt.NDArray[Any] = np.ndarray(shape, dtype, data, start)
    if dtype.kind == "b" and array.view(np.uint8).max() > 1:
        raise ValueError(f"the array {name!r:.40} has other values than 0 and 1")
    return array


def checked(
    arrays: Arrays,
    name: str,
    dtype: npt.DTypeLike,
    *shape: int | None,
    values: range | None = None,
) -> npt.NDArray[Any]:
    """Return an array of a file after verifying its type, shape and values.

    Args:
        arrays: The arrays of the file.
        name: The name of the array.
        dtype: The expected type, such as ``np.int32``, or a supertype.
        shape: The expected lengths. None stands for any length.
        values: The integers that are allowed. If None, any numbers are allowed.

    Raises:
        ValueError: If the array is missing, or has the wrong type or shape.
        MissingNodeError: If the array contains other values or is damaged.
    """
    return stored(arrays, name, dtype, *shape, values=values).whole()


def stored(
    arrays: Arrays,
    name: str,
    dtype: npt.DTypeLike,
    *shape: int | None,
    values: range | None = None,
) -> StoredArray:
    """Return an array of a file as in ``checked``, but verify its values when they are first used.

    Args:
        arrays: The arrays of the file.
        name: The name of the array.
        dtype: The expected type, such as ``np.int32``, or a supertype.
        shape: The expected lengths. None stands for any length.
        values: The integers that are allowed. If None, any numbers are allowed.

    Raises:
        ValueError: If the array is missing, or has the wrong type or shape.
    """
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing")
    if isinstance(arrays, StoredArrays):
        part = arrays.parts[name]
    else:
        part = StoredArray(name, arrays[name], None, Damage())
    array = part.array
    if not np.issubdtype(array.dtype, dtype) or array.ndim != len(shape):
        raise ValueError(f"the array {name!r} has the type {array.dtype} and shape {array.shape}")
    for length, expected in zip(array.shape, shape, strict=True):
        if expected not in (None, length):
            raise ValueError(f"the array {name!r} must have {expected} values, got {length}")
    return part if values is None else part.limited(values)


def check_ascending(array: npt.NDArray[Any], name: str, last: int) -> None:
    """Check that positions are not negative, are in ascending order and end at ``last``.

    Raises:
        ValueError: If this is not the case.
    """
    positions = np.append(0, array)
    is_ascending = (positions[1:] >= positions[:-1]).all()
    if not is_ascending or positions[-1] != last:
        raise ValueError(f"the positions {name!r} must ascend to {last}")


def smallest(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert non-negative integers to the smallest unsigned type that fits them, from 2 to 8
    bytes.
    """
    greatest = int(values.max(initial=0))
    if greatest < 1 << 16:
        return values.astype(np.uint16)
    return values.astype(np.uint32 if greatest < 1 << 32 else np.uint64)


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with space for a number of rows.

    If the array must grow, its space is doubled.
    """
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
