"""Read files: texts in this process, other formats in limited processes."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..codec import decode, encode
from ..errors import ReadError, nearest_names
from ..workers.process_workers import Limits, ProcessWorkers, ask_caller, available_cores
from .formats import (
    FileFormat,
    Reader,
    RegisteredReader,
    format_of,
    how_to_read_more,
    registered_reader,
    supported_suffixes,
)
from .source_files import Ocr, ReadOptions, Records, SourceFile, records_of


def read_files(
    files: Mapping[str, Path], options: ReadOptions
) -> Iterator[tuple[str, Records | ReadError]]:
    """Read files, and yield their ids with their records or errors.

    Files that other processes parse come last, as soon as they are ready. Files that are not
    parsed when the iterator is closed are canceled.
    """
    unisolated: dict[str, RegisteredReader | FileFormat] = {}
    isolated: dict[str, bytes] = {}  # pickled registered readers, or empty
    for file_id, path in files.items():
        try:
            reader = _reader(path, options)
        except ReadError as error:
            yield file_id, error
            continue
        pickled = reader.pickled()
        if pickled is None:
            unisolated[file_id] = reader
        else:
            isolated[file_id] = pickled

    count = max(1, min(len(isolated), options.workers or available_cores()))
    memory_bytes = options.memory_bytes or _share_of_memory(count)
    options = replace(options, memory_bytes=memory_bytes)
    workers = ProcessWorkers(
        partial(parse_file, replace(options, ocr=None), options.ocr is not None),
        count,
        Limits(options.seconds, memory_bytes),
        partial(_recognize, options.ocr) if options.ocr else None,
    )
    pool = ThreadPoolExecutor(count, "nodekin reading")
    futures = {
        pool.submit(_parsed, workers.call, files[file_id], pickled, options): file_id
        for file_id, pickled in isolated.items()
    }
    try:
        for file_id, reader in unisolated.items():
            yield file_id, _read_here(files[file_id], reader, options)
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()
        workers.close()
        pool.shutdown()
        workers.close()  # a call that was starting may have started a process


def _reader(path: Path, options: ReadOptions) -> RegisteredReader | FileFormat:
    """Return the reader of a file.

    Raises:
        ReadError: If the file has no reader.
    """
    try:
        size = path.stat().st_size
        if size > options.max_bytes:
            raise ReadError(
                f"{path} has {size:,} bytes, more than the {options.max_bytes:,} of "
                "ReadOptions(max_bytes=...)",
                "too large",
                skippable=True,
            )
        reader = registered_reader(path) or format_of(path)
    except OSError as error:
        raise _read_error(path, error, options) from error
    if reader is None:
        raise ReadError(
            f"no reader for {path.suffix!r} files ({path}); nearest suffixes: "
            f"{nearest_names(path.suffix, supported_suffixes())}: {how_to_read_more()}add one with "
            f'@register_reader("{path.suffix or ".txt"}"), or pass the text',
            "without a reader",
        )
    return reader


def _read_here(
    path: Path, reader: RegisteredReader | FileFormat, options: ReadOptions
) -> Records | ReadError:
    try:
        return reader.records(SourceFile(path, options))
    except Exception as error:
        return _read_error(path, error, options)


def _read_error(path: Path, error: BaseException, options: ReadOptions) -> ReadError:
    """Return the error of a reader as a ``ReadError`` with the path."""
    if isinstance(error, ReadError):
        return error
    kind = "damaged"
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if isinstance(error, MemoryError):
        kind = "too large for the memory limit"
        reason = f"it takes more memory than ReadOptions(memory_bytes={options.memory_bytes})"
    elif isinstance(error, OSError):
        kind, reason = "unreadable", error.strerror or str(error)
    read_error = ReadError(f"can't read {path}: {reason}", kind)
    read_error.__cause__ = error
    return read_error


MEMORY_BYTES = 512 * 2**20
"""Default memory of a parser."""


def _share_of_memory(count: int) -> int:
    """Return the memory of each of several parsers."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return MEMORY_BYTES
    return min(MEMORY_BYTES, max(64 * 2**20, physical // (2 * count)))


def _parsed(
    parse: Callable[[tuple[str, bytes]], list[Any]],
    path: Path,
    pickled: bytes,
    options: ReadOptions,
) -> Records | ReadError:
    """Return the records of a file, or its error."""
    try:
        kind, *values = parse((str(path), pickled))
    except TimeoutError:
        return ReadError(
            f"can't read {path}: its parser took more than {options.seconds:g} seconds; "
            "leave it out, or give it more: ReadOptions(seconds=...)",
            "too slow to parse",
        )
    except ChildProcessError as error:
        return ReadError(
            f"can't read {path}: {error}; the file may be damaged, or need more memory than "
            "ReadOptions(memory_bytes=...)",
            "crashing their parser",
        )
    except Exception as error:  # an invalid reply
        return ReadError(f"can't read {path}: {error}")
    if kind == "error":
        message, reason, skippable = values
        return ReadError(message, reason, skippable=skippable)
    records: Records = decode(values[0])
    return records


def _recognize(ocr: Ocr, image: bytes) -> str:
    """Return the text of a page, given as PNG."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as picture:
        return str(ocr(picture))


def parse_file(options: ReadOptions, has_ocr: bool, file: tuple[str, bytes]) -> list[Any]:
    """Return the records or the error of a file as plain data. Runs in another process.

    Args:
        options: The options for reading.
        has_ocr: Whether the caller has an OCR function.
        file: The path, and the pickled registered reader; empty for the reader of the format.
    """
    path, pickled = file

    def ocr(image: bytes) -> str:
        try:
            return str(ask_caller(image))
        except Exception as error:  # from the user's function
            raise ReadError(f"can't read {path}: ocr failed on a page: {error}") from error

    try:
        if pickled:
            try:
                read: Reader = _unpickled(pickled)
            except Exception as error:  # from a module that the reader imports
                raise ReadError(
                    f"can't read {path}: the reader could not be loaded in a process: "
                    f"{type(error).__name__}: {error}; register the reader with isolated=False"
                ) from error
            records = records_of(read(Path(path)))
        else:
            reader = format_of(Path(path))
            if reader is None:
                raise ReadError(f"{path} has an unknown format")
            records = reader.records(SourceFile(Path(path), options, ocr if has_ocr else None))
        try:
            return ["read", encode(records)]
        except TypeError as error:  # metadata of an unsupported class
            remedy = "or register its reader with isolated=False"
            raise ReadError(f"can't read {path}: {error}; {remedy}") from error
    except BaseException as error:  # some parsers' errors do not derive from Exception
        read_error = _read_error(Path(path), error, options)
        return ["error", str(read_error), read_error.kind, read_error.skippable]


_unpickled = cache(pickle.loads)
