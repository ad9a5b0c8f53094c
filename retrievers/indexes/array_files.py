"""Files of named arrays, which are mapped into memory."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)

_FORMAT = 7

_ALIGNMENT = 64  # bytes; the position of an array in a file is a multiple

_KINDS = "biuf"  # other dtypes contain pointers or have no fixed meaning

_MAX_DIMENSIONS = 2

_ABANDONED = 3600  # seconds after which a temporary file belongs to a killed process

T = TypeVar("T", bound=np.generic)

Arrays = dict[str, npt.NDArray[Any]]


def save_arrays(path: Path, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays to one file, completely or not at all. Log a failure.

    The file has the length of the header, the header as JSON, the aligned arrays, and a checksum.

    Args:
        path: The file. A missing folder is created.
        header: Values for JSON.
        arrays: Arrays of numbers or booleans, by name.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    checksum = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            for part in _parts(header, arrays):
                checksum = crc32(part, checksum)
                file.write(part)
            file.write(checksum.to_bytes(4, "little"))
        temporary.replace(path)
        for other in path.parent.glob(f"{path.name}.*.tmp"):
            with suppress(OSError):
                if other.stat().st_mtime < time.time() - _ABANDONED:
                    other.unlink()
    except OSError as error:
        logger.warning("the index was not written to %s, and will be rebuilt: %s", path, error)
    finally:  # after an interrupt as well
        with suppress(OSError):
            temporary.unlink()


def _parts(header: Mapping[str, Any], arrays: Arrays) -> Iterator[Any]:
    """Yield the parts of a file as bytes."""
    described = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    data = json.dumps({**header, "format": _FORMAT, "arrays": described}).encode()
    data += b" " * (-(8 + len(data)) % _ALIGNMENT)
    yield len(data).to_bytes(8, "little")
    yield data
    for array in arrays.values():
        yield np.ascontiguousarray(array).data.cast("B") if array.size else b""
        yield bytes(-array.nbytes % _ALIGNMENT)


def load_arrays(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header, and map its arrays, which are read-only.

    Windows cannot replace mapped files: there, the file is read.

    A file may come from a stranger: arrays of objects and arrays outside the file are refused. The
    values of the arrays are not checked; see ``checked``.

    Returns:
        None if the file is missing, damaged or of another format. The last two are logged.
    """
    try:
        is_mapped = sys.platform != "win32"
        data: Any = np.memmap(path, np.uint8, "r") if is_mapped else np.fromfile(path, np.uint8)
        if crc32(data[:-4]) != int.from_bytes(data[-4:].tobytes(), "little"):
            raise ValueError("its checksum is wrong")
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        found = header.pop("format")
        if found != _FORMAT:
            logger.warning("the index in %s is rebuilt: its format %.9s is outdated", path, found)
            return None
        return header, _mapped(data[:-4], start, header.pop("arrays"))
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged headers raise anything
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def _mapped(data: npt.NDArray[np.uint8], start: int, described: Mapping[str, Any]) -> Arrays:
    """Return the arrays of a file.

    Args:
        data: The file without its checksum.
        start: The position of the first array.
        described: The type and the shape of each array, by name.

    Raises:
        ValueError: If the type of an array is not a number or a boolean, or the array is not inside
            the file.
    """
    if start % _ALIGNMENT:
        raise ValueError(f"its arrays must start at a multiple of {_ALIGNMENT}, got {start}")
    arrays: Arrays = {}
    for name, (kind, shape) in described.items():
        dtype = np.dtype(str(kind))
        if dtype.kind not in _KINDS or not dtype.isnative:
            raise ValueError(f"the array {name!r:.40} has the type {kind!r:.40}")
        is_counted = all(type(length) is int and length >= 0 for length in shape)
        if len(shape) > _MAX_DIMENSIONS or not is_counted:
            raise ValueError(f"the array {name!r:.40} has the shape {shape!r:.40}")
        size = math.prod(shape) * dtype.itemsize
        if start + size > len(data):
            raise ValueError(f"the array {name!r:.40} ends after the file")
        array = np.ndarray(shape, dtype, data, start) if size else np.empty(shape, dtype)
        if dtype.kind == "b" and size and array.view(np.uint8).max() > 1:
            raise ValueError(f"the array {name!r:.40} has other values than 0 and 1")
        arrays[name] = array
        start += size + -size % _ALIGNMENT
    return arrays


def checked(
    arrays: Mapping[str, npt.NDArray[Any]],
    name: str,
    dtype: npt.DTypeLike,
    *shape: int | None,
    values: range | None = None,
) -> npt.NDArray[Any]:
    """Return an array of a file after a check, since a file may be forged.

    Args:
        arrays: The arrays of the file.
        name: The name of the array.
        dtype: The expected type, such as ``np.int32``, or a type above it.
        shape: The expected lengths. None means any length.
        values: The allowed integers. None means any numbers.

    Raises:
        ValueError: If the array is missing, or has another type, shape or value.
    """
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"the array {name!r} is missing")
    if not np.issubdtype(array.dtype, dtype) or array.ndim != len(shape):
        raise ValueError(f"the array {name!r} has the type {array.dtype} and shape {array.shape}")
    for length, expected in zip(array.shape, shape, strict=True):
        if expected not in (None, length):
            raise ValueError(f"the array {name!r} must have {expected} values, got {length}")
    if values is not None and array.size:
        least = int(array.min())
        greatest = int(array.max())
        if least < values.start or greatest >= values.stop:
            raise ValueError(
                f"the array {name!r} must have values of {values}, got {least} to {greatest}"
            )
    return array


def check_ascending(array: npt.NDArray[Any], name: str, last: int) -> None:
    """Check positions: ascending, from 0 or more to ``last``.

    Raises:
        ValueError: If the positions are wrong.
    """
    positions = np.append(0, array)
    is_ascending = (positions[1:] >= positions[:-1]).all()
    if not is_ascending or positions[-1] != last:
        raise ValueError(f"the positions {name!r} must ascend to {last}")


def pack_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Return a list of texts as arrays for a file."""
    data = "".join(texts).encode("utf-8", "surrogatepass")
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {name: np.frombuffer(data, np.uint8), f"{name}_ends": ends}


def unpack_texts(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return the texts from ``pack_texts``.

    Raises:
        ValueError: If the arrays are forged.

    Example:
        >>> unpack_texts("names", pack_texts("names", ["tea", "长江"]))
        ['tea', '长江']
    """
    text = str(checked(arrays, name, np.uint8, None).data, "utf-8", "surrogatepass")
    positions = checked(arrays, f"{name}_ends", np.int64, None)
    check_ascending(positions, f"{name}_ends", len(text))
    ends = [0, *positions.tolist()]
    return [text[start:end] for start, end in pairwise(ends)]


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with room for a number of rows, with twice the former room if it grows."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
