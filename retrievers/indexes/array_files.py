"""Write named arrays to a file, and map them from it; pack texts into arrays.

The file format of indexes: a file begins with eight bytes that name the format, the length and
checksum of a header, and the header, which is JSON: what the caller says, and of each array its
name, type, shape, place and checksum. The arrays follow, each from a multiple of 64 bytes, so that
they can be used where they lie: processes that read one file share its pages, and what nobody
looks at takes no memory.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, overload
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

_TEXTS = 4_096  # that are read at a time

_KEY = 8  # bytes of a key

T = TypeVar("T", bound=np.generic)

Arrays = dict[str, npt.NDArray[Any]]

Bytes = npt.NDArray[np.uint8]

Starts = npt.NDArray[np.unsignedinteger[Any]]


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


class PackedTexts(Sequence[str]):
    """Read texts out of the bytes that ``pack_texts`` made, also where these lie in a file.

    Args:
        data: The texts, one after the other.
        starts: Where each begins, and where the last ends; or the one number of bytes that each
            takes, where all are hexadecimal and two characters share a byte, as in digests.

    Raises:
        ValueError: If these don't fit each other.

    Example:
        >>> list(PackedTexts(*pack_texts(["tea", "", "长江"])))
        ['tea', '', '长江']
    """

    def __init__(self, data: Bytes, starts: Starts) -> None:
        self._data = data
        self._starts = starts
        self._width = int(starts[0]) if len(starts) == 1 else 0
        size = len(data) // self._width if self._width else len(starts) - 1
        if size < 0 or len(data) != (size * self._width if self._width else starts[-1]):
            raise ValueError(f"{len(data)} bytes don't fit {size} texts")
        self._size = size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self.take(np.arange(self._size)[index])
        if not -self._size <= index < self._size:
            raise IndexError(f"no text {index} among {self._size}")
        index %= self._size
        if self._width:
            return self._data[index * self._width : (index + 1) * self._width].tobytes().hex()
        start, end = self._starts[index : index + 2].tolist()
        return self._data[start:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, self._size, _TEXTS):
            last = min(first + _TEXTS, self._size)
            yield from self[first:last] if self._width else self._between(first, last)

    def key(self, text: str) -> int:
        """Return a number that equal texts share: of digests their first bytes, else a hash."""
        if self._width >= _KEY and len(text) == 2 * self._width:
            with suppress(ValueError):  # no digest
                return int.from_bytes(bytes.fromhex(text)[:_KEY], sys.byteorder, signed=True)
        return hash(text)

    def keys(self) -> npt.NDArray[np.int64]:
        """Return the keys of all texts; of digests without reading one by one."""
        if self._width >= _KEY:
            first = self._data.reshape(-1, self._width)[:, :_KEY]
            return np.ascontiguousarray(first).view(np.int64)[:, 0]
        return np.fromiter(map(self.key, self), np.int64, self._size)

    def _between(self, first: int, last: int) -> list[str]:
        """Return neighbours, the last not among them."""
        starts = self._starts[first : last + 1].astype(np.int64)
        raw, ends = self._data[starts[0] : starts[-1]].tobytes(), (starts - starts[0]).tolist()
        if raw.isascii():
            joined = raw.decode()
            return [joined[start:end] for start, end in pairwise(ends)]
        return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> list[str]:
        """Return the texts of some rows, (n,)."""
        if not self._width:
            return [self[row] for row in rows.tolist()]
        width = 2 * self._width
        joined = self._data.reshape(-1, self._width)[rows].tobytes().hex()
        return [joined[at : at + width] for at in range(0, len(joined), width)]


def pack_texts(texts: Sequence[str]) -> tuple[Bytes, Starts]:
    """Return the bytes of texts, also of lone surrogates, and where each begins."""
    sizes = {len(text) for text in texts}
    if len(sizes) == 1 and min(sizes) and not min(sizes) % 2:
        joined = "".join(texts)
        try:
            data = bytes.fromhex(joined)
        except ValueError:
            data = b""
        if data.hex() == joined:
            return np.frombuffer(data, np.uint8), np.array([sizes.pop() // 2], np.uint32)
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(b"".join(parts), np.uint8), starts_of(list(map(len, parts)))


def grown(array: npt.NDArray[T], size: int) -> npt.NDArray[T]:
    """Return an array with room for so many rows, twice as many as before where it has to grow."""
    if size <= len(array):
        return array
    room = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room


def starts_of(sizes: npt.ArrayLike) -> Starts:
    """Return where parts of some sizes begin, and where the last ends; in four bytes each if
    these are enough.
    """
    ends = np.cumsum(sizes, dtype=np.uint64)
    last = int(ends[-1]) if len(ends) else 0
    starts: Starts = np.zeros(len(ends) + 1, np.uint32 if last < 1 << 32 else np.uint64)
    starts[1:] = ends
    return starts
