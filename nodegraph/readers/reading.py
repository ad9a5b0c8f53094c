"""Read files.

Text files are read in this process, other formats in processes with resource limits.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ..errors import ReadError, nearest_names
from ..storage.columns import decode, encode
from ..workers.process_workers import WorkerProcess, ask_caller
from .formats import (
    FileFormat,
    Reader,
    RegisteredReader,
    format_of,
    how_to_read_more,
    registered_reader,
    supported_suffixes,
)
from .source_files import WITHOUT_READER, Ocr, ReadOptions, Records, SourceFile, records_of

AnyReader = RegisteredReader | FileFormat
"""A registered reader or a built-in file format."""


def read_files(
    files: Mapping[str, Path], options: ReadOptions
) -> Iterator[tuple[str, Records | ReadError]]:
    """Read files, and yield the id of each file with its documents or its error.

    Files that are parsed in separate processes are yielded last, in the order in which they are
    finished. If the iterator is closed, parsing of the remaining files is canceled.
    """
    unisolated: dict[str, AnyReader] = {}
    # The bytes are a pickled registered reader, or empty for a built-in format.
    isolated: dict[str, bytes] = {}
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
    parsers = _Parsers(options, len(isolated))
    try:
        futures = {parsers.parse(files[i], pickled): i for i, pickled in isolated.items()}
        yield from _read_here(files, unisolated, options)
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        parsers.close()


class _Parsers:
    """A pool of processes that parse files with limits on time and memory.

    Args:
        options: The options for reading files.
        num_files: The number of files to parse.
    """

    def __init__(self, options: ReadOptions, num_files: int) -> None:
        count = max(1, min(num_files, options.num_workers or _cores()))
        parse = partial(parse_file, replace(options, ocr=None), options.ocr is not None)
        answer = partial(_recognize, options.ocr) if options.ocr else None
        self._seconds = options.seconds
        self._pool = ThreadPoolExecutor(count, "nodekin reading")
        self._processes: list[WorkerProcess] = []
        self._free: SimpleQueue[WorkerProcess] = SimpleQueue()
        for _ in range(count):
            process = WorkerProcess(parse, options.seconds, options.memory_bytes, answer)
            self._processes.append(process)
            self._free.put(process)

    def parse(self, path: Path, pickled: bytes) -> Future[Records | ReadError]:
        """Start parsing a file with a pickled reader, and return a future for the result.

        If ``pickled`` is empty, the file is parsed as a built-in format.
        """
        return self._pool.submit(self._parsed, path, pickled)

    def _parsed(self, path: Path, pickled: bytes) -> Records | ReadError:
        process = self._free.get()
        try:
            kind, *values = process.call((str(path), pickled))
        except TimeoutError:
            return ReadError(
                f"can't read {path}: its parser took more than {self._seconds:g} seconds; "
                "leave it out, or give it more: ReadOptions(seconds=...)",
                "too slow to parse",
            )
        except ChildProcessError as error:
            return ReadError(
                f"can't read {path}: {error}; the file may be damaged, or need more memory than "
                "ReadOptions(memory_bytes=...)",
                "crashing their parser",
            )
        except Exception as error:  # The reply is invalid.
            return ReadError(f"can't read {path}: {error}")
        finally:
            self._free.put(process)
        if kind == "error":
            message, reason, skippable = values
            return ReadError(message, reason, skippable=skippable)
        records: Records = decode(values[0])
        return records

    def close(self) -> None:
        """Cancel the remaining files and stop the processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._end_processes()
        self._pool.shutdown()
        self._end_processes()  # A call that was just starting may have started a new process.

    def _end_processes(self) -> None:
        for process in self._processes:
            process.close()


def _cores() -> int:
    """Return the number of CPU cores that this process may use."""
    # This function is missing on macOS and Windows.
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return os.cpu_count() or 1
    return len(affinity(0))


def _read_here(
    files: Mapping[str, Path], readers: Mapping[str, AnyReader], options: ReadOptions
) -> Iterator[tuple[str, Records | ReadError]]:
    """Read files in the current process.

    If the encoding of a file could only be guessed, the file is read again, and the most common
    encoding in its folder is preferred.
    """
    usual: defaultdict[Path, Counter[str]] = defaultdict(Counter)
    guessed: dict[str, Records | ReadError] = {}
    for file_id, reader in readers.items():
        path = files[file_id]
        source = SourceFile(path, options)
        result = _read(reader, source)
        usual[path.parent].update(source.encodings)
        if source.guesses:
            guessed[file_id] = result
        else:
            yield file_id, result
    for file_id, first_result in guessed.items():
        path = files[file_id]
        result = first_result
        for encoding, _ in usual[path.parent].most_common(1):
            source = SourceFile(path, options, usual_encoding=encoding)
            result = _read(readers[file_id], source)
        yield file_id, result


def _read(reader: AnyReader, source: SourceFile) -> Records | ReadError:
    try:
        return reader.records(source)
    except Exception as error:
        return _read_error(source.path, error, source.options)


def _reader(path: Path, options: ReadOptions) -> AnyReader:
    """Return the reader for a file.

    Raises:
        ReadError: If the type of the file is not supported.
    """
    try:
        options.check_size(path, path.stat().st_size)
        reader = registered_reader(path) or format_of(path)
    except OSError as error:
        raise _read_error(path, error, options) from error
    if reader is None:
        nearest = nearest_names(path.suffix, supported_suffixes())
        raise ReadError(
            f"no reader for {path.suffix!r} files ({path}); nearest suffixes: {nearest}: "
            f"{how_to_read_more()}add one with "
            f'register_reader("{path.suffix or f"{path.name}*"}", reader), or pass the text',
            WITHOUT_READER,
        )
    return reader


def _read_error(path: Path, error: BaseException, options: ReadOptions) -> ReadError:
    """Convert an exception that a reader raised to a ``ReadError`` with the path of the file."""
    if isinstance(error, ReadError):
        return error
    kind = "damaged"
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if not isinstance(error, Exception):  # a panic in a parser written in Rust
        reason = f"its parser crashed, so it may be damaged ({reason})"
    elif isinstance(error, MemoryError):
        kind = "too large for the memory limit"
        reason = f"it takes more memory than ReadOptions(memory_bytes={options.memory_bytes})"
    elif isinstance(error, OSError):
        kind = "unreadable"
        reason = error.strerror or str(error)
    read_error = ReadError(f"can't read {path}: {reason}", kind)
    read_error.__cause__ = error
    return read_error


def _recognize(ocr: Ocr, image: bytes) -> str:
    """Call an OCR function for the PNG image of a page, and return the text."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as picture:
        return str(ocr(picture))


def parse_file(options: ReadOptions, has_ocr: bool, file: tuple[str, bytes]) -> list[Any]:
    """Parse a file in a separate process, and return its documents or its error as plain data.

    Args:
        options: The options for reading files.
        has_ocr: Whether the calling process has an OCR function.
        file: The path of the file and the pickled registered reader. The latter is empty if the
            file has a built-in format.
    """
    path = Path(file[0])
    try:
        records = _parsed_records(path, file[1], options, has_ocr)
        try:
            return ["read", encode(records)]
        except TypeError as error:  # The metadata contains an object of an unsupported class.
            remedy = "or register its reader with isolated=False"
            raise ReadError(f"can't read {path}: {error}; {remedy}") from error
    except BaseException as error:  # The errors of some parsers do not derive from Exception.
        read_error = _read_error(path, error, options)
        return ["error", str(read_error), read_error.kind, read_error.skippable]


def _parsed_records(path: Path, pickled: bytes, options: ReadOptions, has_ocr: bool) -> Records:
    """Read a file and return its documents.

    Raises:
        ReadError: If the type of the file is not supported, or if its registered reader cannot be
            loaded.
    """
    if pickled:
        try:
            read: Reader = _unpickled(pickled)
        except Exception as error:  # an error in a module that the reader imports
            raise ReadError(
                f"can't read {path}: the reader could not be loaded in a process: "
                f"{type(error).__name__}: {error}; register the reader with isolated=False"
            ) from error
        return records_of(read(path))
    reader = format_of(path)
    if reader is None:
        raise ReadError(f"{path} has an unknown format")
    ocr = partial(_recognized_by_caller, path) if has_ocr else None
    return reader.records(SourceFile(path, options, ocr))


def _recognized_by_caller(path: Path, image: bytes) -> str:
    """Send the image of a page to the calling process for OCR, and return the text."""
    try:
        return str(ask_caller(image))
    except Exception as error:  # an error in the user's function
        raise ReadError(f"can't read {path}: ocr failed on a page: {error}") from error


_unpickled = cache(pickle.loads)
