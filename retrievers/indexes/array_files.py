"""Files of named arrays, which are mapped into memory."""

from __future__ import annotations

import json
import logging
import mmap
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)

_FORMAT = 5

_ALIGNMENT = 64  # bytes; the position of an array in a file is a multiple

_CHUNK = 1 << 20  # bytes per verification step

_ABANDONED = 3600  # seconds after which a temporary file belongs to a killed process

T = TypeVar("T", bound=np.generic)

Arrays = dict[str, npt.NDArray[Any]]


def save_arrays(path: Path, header: Mapping[str, Any], arrays: Arrays) -> bool:
    """Write a header and arrays to one file, completely or not at all.

    The arrays are written by ``numpy.save``, one after the other; a checksum is at the end.

    Args:
        path: The file. A missing folder is created.
        header: Values for JSON.
        arrays: Arrays of numbers or booleans, by name.

    Returns:
        Whether the file was written. A failure is logged.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        described = {**header, "format": _FORMAT, "arrays": [*arrays]}
        with temporary.open("w+b") as file:
            for array in (
                np.frombuffer(json.dumps(described).encode(), np.uint8),
                *arrays.values(),
            ):
                np.save(file, array, allow_pickle=False)
                file.write(bytes(-file.tell() % _ALIGNMENT))
            size = file.tell()
            file.write(_checksum(file, size).to_bytes(4, "little"))
        temporary.replace(path)
        _remove_abandoned(path)
        return True
    except OSError as error:
        logger.warning("the index was not written to %s, and will be rebuilt: %s", path, error)
        return False
    finally:  # after an interrupt as well
        with suppress(OSError):
            temporary.unlink()


def load_arrays(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header, and map its arrays, which are read-only.

    Windows cannot replace mapped files: there, the file is read.

    Returns:
        None if the file is missing, damaged (this is logged) or of another format.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - 4
            if size < 0 or _checksum(file, size) != int.from_bytes(file.read(4), "little"):
                raise ValueError("its checksum is wrong")
            data: Any = file.seek(0) or file.read() if sys.platform == "win32" else _mapped(file)
            file.seek(0)
            header = json.loads(_read_array(file, data).tobytes())
            if header.pop("format") != _FORMAT:
                return None
            return header, {name: _read_array(file, data) for name in header.pop("arrays")}
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged headers raise anything
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read_array(file: BinaryIO, data: Any) -> npt.NDArray[Any]:
    """Map the array at the position of a file, and move to the next array."""
    np.lib.format.read_magic(file)
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    start, count = file.tell(), int(np.prod(shape))
    file.seek(start + count * kind.itemsize)
    file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
    array: npt.NDArray[Any] = np.zeros(0, kind)
    if count:
        array = np.frombuffer(data, kind, count, start)
    return array.reshape(shape)


def _checksum(file: BinaryIO, size: int) -> int:
    """Return the checksum of the first bytes of a file."""
    file.seek(0)
    checksum = 0
    while size > 0 and (data := file.read(min(size, _CHUNK))):
        checksum = crc32(data, checksum)
        size -= len(data)
    return checksum


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote a file."""
    for temporary in path.parent.glob(f"{path.name}.*.tmp"):
        with suppress(OSError):
            if temporary.stat().st_mtime < time.time() - _ABANDONED:
                temporary.unlink()


def pack_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Return a list of texts as arrays for a file."""
    data = "".join(texts).encode("utf-8", "surrogatepass")
    ends = np.cumsum([*map(len, texts)], dtype=np.int64)
    return {name: np.frombuffer(data, np.uint8), f"{name}_ends": ends}


def unpack_texts(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return the texts from ``pack_texts``.

    Raises:
        KeyError: If an array is missing.
        ValueError: If the arrays are inconsistent.

    Example:
        >>> unpack_texts("names", pack_texts("names", ["tea", "长江"]))
        ['tea', '长江']
    """
    text = str(arrays[name].data, "utf-8", "surrogatepass")
    ends = [0, *arrays[f"{name}_ends"].tolist()]
    if ends[-1] != len(text):
        raise ValueError(f"{len(text)} characters do not fit {len(ends) - 1} texts")
    return [text[start:end] for start, end in pairwise(ends)]


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with room for a number of rows, with twice the former room if it grows."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
