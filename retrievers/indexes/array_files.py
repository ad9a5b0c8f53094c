"""Files of named arrays, which are mapped into memory."""

from __future__ import annotations

import json
import logging
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

    Returns:
        None if the file is missing, damaged or of another format. The last two are logged.
    """
    try:
        is_mapped = sys.platform != "win32"
        data: Any = np.memmap(path, np.uint8, "r") if is_mapped else np.fromfile(path, np.uint8)
        if crc32(data[:-4]) != int.from_bytes(data[-4:].tobytes(), "little"):
            raise ValueError("its checksum is wrong")
        at = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:at].tobytes())
        found = header.pop("format")
        if found != _FORMAT:
            logger.warning("the index in %s is rebuilt: its format %s is outdated", path, found)
            return None
        arrays: Arrays = {}
        for name, (kind, shape) in header.pop("arrays").items():
            arrays[name] = np.ndarray(shape, kind, data, at)
            at += arrays[name].nbytes + -arrays[name].nbytes % _ALIGNMENT
        return header, arrays
    except FileNotFoundError:
        return None
    except Exception as error:  # damaged headers raise anything
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def pack_texts(name: str, texts: Sequence[str]) -> Arrays:
    """Return a list of texts as arrays for a file."""
    data = "".join(texts).encode("utf-8", "surrogatepass")
    ends = np.cumsum([*map(len, texts)], dtype=np.int64)
    return {name: np.frombuffer(data, np.uint8), f"{name}_ends": ends}


def unpack_texts(name: str, arrays: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return the texts from ``pack_texts``.

    Example:
        >>> unpack_texts("names", pack_texts("names", ["tea", "长江"]))
        ['tea', '长江']
    """
    text = str(arrays[name].data, "utf-8", "surrogatepass")
    ends = [0, *arrays[f"{name}_ends"].tolist()]
    return [text[start:end] for start, end in pairwise(ends)]


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with room for a number of rows, with twice the former room if it grows."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
