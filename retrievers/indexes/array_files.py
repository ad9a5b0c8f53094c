"""Write named arrays to a file, and map them from it: the file format of indexes.

A file begins with eight bytes that name the format, the length and checksum of a header, and the
header, which is JSON: what the caller says, and of each array its name, type, shape, place and
checksum. The arrays follow, each from a multiple of 64 bytes, so that they can be used where they
lie: processes that read one file share its pages, and what nobody looks at takes no memory.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)

_MAGIC = b"nodekin\x1a"

_FORMAT = 3

_HEADER = len(_MAGIC) + 8  # bytes before it: the name of the format, its length, its checksum

_ALIGNMENT = 64

_CHUNK = 1 << 20  # bytes that are verified at a time

_ABANDONED = 3600  # seconds after which a temporary file belongs to a process that died

Arrays = dict[str, npt.NDArray[Any]]


def save_arrays(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> bool:
    """Write a header and arrays to one file, completely or not at all.

    A failure is logged, not raised: an index can be rebuilt.

    Args:
        path: The file; its folder is created where it is missing.
        header: What ``load_arrays`` returns with the arrays, as JSON has it.
        arrays: By name; of numbers or booleans.

    Returns:
        Whether it was written.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            _write(file, header, arrays)
        temporary.replace(path)
        _remove_abandoned(path)
        return True
    except OSError as error:
        logger.warning("the index was not written to %s, and will be rebuilt: %s", path, error)
        return False
    finally:  # also when it is interrupted
        with suppress(OSError):
            temporary.unlink()


def _write(
    file: BinaryIO, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described, start = [], 0
    for name, array in parts.items():
        data = _bytes(array)
        described.append([name, array.dtype.str, array.shape, start, crc32(data)])
        start += _padded(len(data))
    text = json.dumps({**header, "format": _FORMAT, "arrays": described}).encode()
    file.write(_MAGIC + len(text).to_bytes(4, "little") + crc32(text).to_bytes(4, "little"))
    file.write(text.ljust(_padded(_HEADER + len(text)) - _HEADER, b"\0"))
    for array in parts.values():
        data = _bytes(array)
        file.write(data)
        file.write(bytes(_padded(len(data)) - len(data)))


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def load_arrays(path: Path) -> tuple[dict[str, Any], Arrays] | None:
    """Read a header, and map its arrays; return None where there is no file, or it is damaged.

    All checksums are verified, in one pass that leaves nothing in memory. What can't be read is
    logged. The arrays can't be written to, and stay what they are when another process replaces
    the file. Windows does not let anyone replace a file that is mapped: there it is read.
    """
    try:
        with path.open("rb") as file:
            header, start = _read_header(file)
            described = header.pop("arrays")
            if header["format"] != _FORMAT:
                return None
            shapes = {
                name: (np.dtype(kind), tuple(shape), start + at)
                for name, kind, shape, at, _ in described
            }
            for (kind, shape, at), (*_, checksum) in zip(shapes.values(), described, strict=True):
                _verify(file, at, kind.itemsize * int(np.prod(shape)), checksum)
            data = _content(file)
        return header, {name: _array(data, *shape) for name, shape in shapes.items()}
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged header may raise anything
        logger.warning("the index in %s is damaged and will be rebuilt: %s", path, error)
        return None


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """Return the header, and where the arrays begin."""
    start = file.read(_HEADER)
    if not start.startswith(_MAGIC) or len(start) < _HEADER:
        raise ValueError("it does not begin as a file of nodekin's")
    size, checksum = (
        int.from_bytes(start[at : at + 4], "little") for at in (len(_MAGIC), len(_MAGIC) + 4)
    )
    text = file.read(size)
    if len(text) < size or crc32(text) != checksum:
        raise ValueError("its header is not what was written")
    header: dict[str, Any] = json.loads(text)
    return header, _padded(_HEADER + size)


def _verify(file: BinaryIO, start: int, size: int, expected: int) -> None:
    file.seek(start)
    checksum = 0
    while size > 0 and (data := file.read(min(size, _CHUNK))):
        checksum = crc32(data, checksum)
        size -= len(data)
    if size or checksum != expected:
        raise ValueError("an array is not what was written")


def _content(file: BinaryIO) -> mmap.mmap | bytes:
    if sys.platform == "win32":
        file.seek(0)
        return file.read()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(
    data: mmap.mmap | bytes, kind: np.dtype[Any], shape: tuple[int, ...], start: int
) -> npt.NDArray[Any]:
    size = int(np.prod(shape))
    if not size:
        return np.zeros(shape, kind)
    return np.frombuffer(data, kind, size, start).reshape(shape)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of processes that died while they wrote this file."""
    for temporary in path.parent.iterdir():
        if temporary.name.startswith(f"{path.name}.") and temporary.suffix == ".tmp":
            with suppress(OSError):
                if temporary.stat().st_mtime < time.time() - _ABANDONED:
                    temporary.unlink()
