"""Files of named arrays, which are mapped into memory, and packed texts."""

from __future__ import annotations

import json
import logging
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

logger = logging.getLogger(__name__)

_FORMAT = 4

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


_NO_TEXT, _NO_STARTS = np.zeros(0, np.uint8), np.zeros(1, np.int64)


class Texts:
    """A list of texts: packed texts, which may be mapped from a file, and later texts.

    Args:
        data: The bytes of the packed texts.
        starts: The start positions of packed texts, and the end of the last text.

    Raises:
        ValueError: If the arrays are inconsistent.

    Example:
        >>> texts = Texts.from_arrays(Texts.of(["tea", "长江"]).arrays("name"), "name")
        >>> texts.extend(["river"])
        >>> list(texts)
        ['tea', '长江', 'river']
    """

    def __init__(
        self, data: npt.NDArray[np.uint8] = _NO_TEXT, starts: npt.NDArray[np.int64] = _NO_STARTS
    ) -> None:
        if not len(starts) or len(data) != starts[-1]:
            raise ValueError(f"{len(data)} bytes do not fit {len(starts) - 1} texts")
        self._data, self._starts = data.data, starts.data
        self._size = len(starts) - 1  # of packed texts
        self._later: list[str] = []

    def __len__(self) -> int:
        return self._size + len(self._later)

    def __getitem__(self, index: int) -> str:
        if index >= self._size:
            return self._later[index - self._size]
        data = self._data[self._starts[index] : self._starts[index + 1]]
        return str(data, "utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        yield from map(self.__getitem__, range(self._size))
        yield from self._later

    def take(self, rows: npt.NDArray[Any]) -> list[str]:
        """Return the texts at some positions."""
        if not self._size:
            return [*map(self._later.__getitem__, rows.tolist())]
        return [*map(self.__getitem__, rows.tolist())]

    def extend(self, texts: Iterable[str]) -> None:
        """Append texts."""
        self._later += texts

    def arrays(self, name: str) -> Arrays:
        """Return all texts as arrays for a file."""
        parts = [text.encode("utf-8", "surrogatepass") for text in self]
        starts = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([*map(len, parts)], out=starts[1:])
        return {name: np.frombuffer(b"".join(parts), np.uint8), f"{name}_starts": starts}

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """Return a list of texts."""
        created = cls()
        created.extend(texts)
        return created

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], name: str) -> Texts:
        """Restore texts from ``arrays``.

        Raises:
            KeyError: If an array is missing.
            ValueError: If the arrays are inconsistent.
        """
        return cls(arrays[name], arrays[f"{name}_starts"])


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with room for a number of rows, with twice the former room if it grows."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
