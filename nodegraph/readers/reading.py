"""Read files: texts in this process, other formats in limited processes."""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
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

    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    count = max(1, min(len(isolated), options.num_workers or cores))
    parse = partial(parse_file, replace(options, ocr=None), options.ocr is not None)
    answer = partial(_recognize, options.ocr) if options.ocr else None
    limits = (options.seconds, options.memory_bytes)
    processes = [WorkerProcess(parse, *limits, answer) for _ in range(count)]
    free: SimpleQueue[WorkerProcess] = SimpleQueue()
    for process in processes:
        free.put(process)

    def parsed(file_id: str, pickled: bytes) -> Records | ReadError:
        process, path = free.get(), files[file_id]
        try:
            kind, *values = process.call((str(path), pickled))
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
        finally:
            free.put(process)
        if kind == "error":
            message, reason, skippable = values
            return ReadError(message, reason, skippable=skippable)
        records: Records = decode(values[0])
        return records

    pool = ThreadPoolExecutor(count, "nodekin reading")
    futures = {pool.submit(parsed, *item): item[0] for item in isolated.items()}
    try:
        usual: dict[Path, Counter[str]] = {}  # the encodings of the files of a folder
        guessed: dict[str, Records | ReadError] = {}
        for file_id, reader in unisolated.items():
            source = SourceFile(files[file_id], options)
            result = _read(reader, source)
            usual.setdefault(source.path.parent, Counter()).update(source.encodings)
            if source.guesses:
                guessed[file_id] = result
            else:
                yield file_id, result
        for file_id, result in guessed.items():
            path = files[file_id]
            for name, _ in usual[path.parent].most_common(1):
                source = SourceFile(path, options, usual_encoding=name)
                result = _read(unisolated[file_id], source)
            yield file_id, result
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()
        for process in processes:
            process.close()
        pool.shutdown()
        for process in processes:
            process.close()  # a call that was starting may have started a process


def _read(reader: RegisteredReader | FileFormat, source: SourceFile) -> Records | ReadError:
    try:
        return reader.records(source)
    except Exception as error:
        return _read_error(source.path, error, source.options)


def _reader(path: Path, options: ReadOptions) -> RegisteredReader | FileFormat:
    """Return the reader of a file.

    Raises:
        ReadError: If the file has no reader.
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
    """Return the error of a reader as a ``ReadError`` with the path."""
    if isinstance(error, ReadError):
        return error
    kind = "damaged"
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if not isinstance(error, Exception):  # a panic of a parser in Rust
        reason = f"its parser crashed, so it may be damaged ({reason})"
    elif isinstance(error, MemoryError):
        kind = "too large for the memory limit"
        reason = f"it takes more memory than ReadOptions(memory_bytes={options.memory_bytes})"
    elif isinstance(error, OSError):
        kind, reason = "unreadable", error.strerror or str(error)
    read_error = ReadError(f"can't read {path}: {reason}", kind)
    read_error.__cause__ = error
    return read_error


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
        except Exception as error:  # errors of the user's function
            raise ReadError(f"can't read {path}: ocr failed on a page: {error}") from error

    try:
        if pickled:
            try:
                read: Reader = _unpickled(pickled)
            except Exception as error:  # errors of a module that the reader imports
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
