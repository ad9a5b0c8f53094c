"""Read files: texts in this process, other formats in limited processes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..codec import decode, encode
from ..errors import ReadError, nearest_names
from ..workers.process_workers import Limits, ProcessWorkers, ask_caller, available_cores
from .formats import (
    FileFormat,
    RegisteredReader,
    find_reader,
    how_to_read_more,
    readers_to_send,
    receive_readers,
    supported_suffixes,
)
from .source_files import Ocr, ReadOptions, Records, SourceFile

K = TypeVar("K")


def read_files(
    files: Mapping[str, Path], options: ReadOptions
) -> Iterator[tuple[str, Records | ReadError, bool]]:
    """Read files, and yield their ids with their records or errors.

    The third value is whether another process parsed the file. Such files come last, as soon as
    they are ready.
    """
    unisolated: dict[str, RegisteredReader | FileFormat] = {}
    isolated: list[tuple[str, Path]] = []
    for file_id, path in files.items():
        try:
            reader, is_isolated = _reader(path, options)
        except ReadError as error:
            yield file_id, error, False
            continue
        if is_isolated:
            isolated.append((file_id, path))
        else:
            unisolated[file_id] = reader

    with parsing(isolated, options) as parsed:
        for file_id, reader in unisolated.items():
            yield file_id, _read_here(files[file_id], reader, options), False
        for file_id, read in parsed:
            yield file_id, read, True


def _reader(path: Path, options: ReadOptions) -> tuple[RegisteredReader | FileFormat, bool]:
    """Return the reader of a file, and whether it runs in another process.

    Raises:
        ReadError: If the file has no reader.
        TypeError: If a reader with ``isolated=True`` can't be pickled.
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
        reader = find_reader(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    if reader is None:
        raise ReadError(
            f"no reader for {path.suffix!r} files ({path}); known are "
            f"{nearest_names(path.suffix, supported_suffixes())}: {how_to_read_more()}add one with "
            f'@register_reader("{path.suffix or ".txt"}"), or give the text itself',
            "without a reader",
        )
    if isinstance(reader, FileFormat):
        return reader, reader.isolated
    return reader, reader.pickled() is not None


def _read_here(
    path: Path, reader: RegisteredReader | FileFormat, options: ReadOptions
) -> Records | ReadError:
    try:
        return reader.records(SourceFile(path, options))
    except ReadError as error:
        return error
    except Exception as error:  # from a registered reader
        read_error = _unreadable(path, error)
        read_error.__cause__ = error
        return read_error


def _unreadable(path: Path, error: Exception) -> ReadError:
    if isinstance(error, OSError):
        return ReadError(f"can't read {path}: {error.strerror or error}", "unreadable")
    return ReadError(f"can't read {path}: {type(error).__name__}: {error}")


@contextmanager
def parsing(
    files: Sequence[tuple[K, Path]], options: ReadOptions
) -> Iterator[Iterator[tuple[K, Records | ReadError]]]:
    """Parse files on all cores, and yield the results in order of completion.

    Files that are not parsed at the end of the block are canceled.

    Args:
        files: Pairs of a key and a file.
        options: The options for reading.
    """
    if not files:
        yield iter(())
        return
    count = min(len(files), options.workers or available_cores())
    memory_bytes = options.memory_bytes or _share_of_memory(count)
    options = replace(options, memory_bytes=memory_bytes)
    workers = ProcessWorkers(
        FileParser(replace(options, ocr=None), tuple(readers_to_send()), options.ocr is not None),
        count,
        Limits(options.seconds, memory_bytes),
        partial(_recognize, options.ocr) if options.ocr else None,
    )
    pool = ThreadPoolExecutor(count, "nodekin reading")
    futures = {pool.submit(_parsed, workers.call, path, options): key for key, path in files}
    try:
        yield ((futures[future], future.result()) for future in as_completed(futures))
    finally:
        for future in futures:
            future.cancel()
        workers.close()
        pool.shutdown()
        workers.close()  # a call that was starting may have started a process


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
    parse: Callable[[str], list[Any]], path: Path, options: ReadOptions
) -> Records | ReadError:
    """Return the records of a file, or its error."""
    try:
        kind, *values = parse(str(path))
    except TimeoutError:
        return ReadError(
            f"can't read {path}: its parser took more than {options.seconds:g} seconds; "
            "leave it out, or give it more: ReadOptions(seconds=...)",
            "too slow to parse",
        )
    except ChildProcessError as error:
        return ReadError(
            f"can't read {path}: {error}, as it does where a file is damaged or takes more memory "
            "than ReadOptions(memory_bytes=...)",
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


@dataclass(frozen=True)
class FileParser:
    """The function that reads files in other processes.

    Attributes:
        options: The options for reading.
        readers: Pickled readers of the program, with patterns.
        has_ocr: Whether the caller has an OCR function.
    """

    options: ReadOptions
    readers: tuple[tuple[str, bytes], ...]
    has_ocr: bool

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (self.options, self.readers, self.has_ocr)

    def __call__(self, file: str) -> list[Any]:
        """Return the records or the error of a file, as plain data."""

        def ocr(image: bytes) -> str:
            try:
                return str(ask_caller(image))
            except Exception as error:  # from the user's function
                reason = f"ocr failed on a page: {error}"
                raise ReadError(f"can't read {file}: {reason}") from error

        source = SourceFile(Path(file), self.options, ocr if self.has_ocr else None)
        try:
            reader = find_reader(source.path)
            if reader is None:
                raise ReadError(f"{file} has no format that is known here")
            records = reader.records(source)
            try:
                return ["read", encode(records)]
            except TypeError as error:  # metadata of an unsupported class
                remedy = "or register its reader with isolated=False"
                return ["error", f"can't read {file}: {error}; {remedy}", "damaged", False]
        except ReadError as error:
            return ["error", str(error), error.kind, error.skippable]
        except MemoryError:
            message = (
                f"can't read {file}: it takes more memory than "
                f"ReadOptions(memory_bytes={self.options.memory_bytes})"
            )
            return ["error", message, "too large for the memory limit", False]
        except OSError as error:
            return ["error", f"can't read {file}: {error.strerror or error}", "unreadable", False]
        except BaseException as error:  # some parsers' errors do not derive from Exception
            reason = " ".join(str(error).split())[:300]
            message = f"can't read {file}: {type(error).__name__}: {reason}"
            return ["error", message, "damaged", False]


def _received(
    options: ReadOptions, readers: Sequence[tuple[str, bytes]], has_ocr: bool
) -> FileParser:
    receive_readers(readers)
    return FileParser(options, tuple(readers), has_ocr)
