"""Read files: texts in this process, all others in other processes where that can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..document import Document
from ..errors import ReadError, nearest_names
from .formats import (
    FileFormat,
    RegisteredReader,
    UnloadableError,
    find_reader,
    how_to_read_more,
    registered_reader,
    supported_suffixes,
)
from .source_files import ReadOptions, Records, SourceFile, documents_of


def read_file(path: Path, file_id: str, options: ReadOptions | None = None) -> list[Document]:
    """Read one file into documents, with the file's attributes in their metadata.

    See ``documents_of`` for these.

    Raises:
        ReadError: If there is no reader for it, the file can't be opened, or it is not what its
            reader expects.
    """
    ((_, read, _),) = read_files({file_id: path}, options or ReadOptions())
    if isinstance(read, ReadError):
        raise read
    return documents_of(path, file_id, read)


def read_files(
    files: Mapping[str, Path], options: ReadOptions
) -> Iterator[tuple[str, Records | ReadError, bool]]:
    """Read files. Yield the id of each with what it holds, or why it can't be read.

    The third says whether a process of its own parsed it: those come after the others, as they
    are ready.
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
    from .isolated import parsing  # which loads what starts processes

    with parsing(isolated, options) as parsed:
        for file_id, reader in unisolated.items():
            try:
                yield file_id, _read_in_process(files[file_id], reader, options), False
            except ReadError as error:
                yield file_id, error, False
        for file_id, read in parsed:
            if isinstance(read, UnloadableError):
                yield file_id, _read_where_it_can_be(files[file_id], read, options), False
            else:
                yield file_id, read, True


def _reader(path: Path, options: ReadOptions) -> tuple[RegisteredReader | FileFormat, bool]:
    """Return what reads a file, and whether in a process of its own.

    Raises:
        ReadError: If nothing does.
        TypeError: If no process of its own can have a reader that is registered for one.
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
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
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


def _read_where_it_can_be(
    path: Path, error: UnloadableError, options: ReadOptions
) -> Records | ReadError:
    """Read a file here by a reader that another process could not load."""
    reader = registered_reader(path)
    if reader is None or reader.isolated:
        return ReadError(f"can't read {path}: its process can't load its reader: {error}")
    reader.run_in_process(str(error))
    try:
        return _read_in_process(path, reader, options)
    except ReadError as other:
        return other


def _read_in_process(
    path: Path, reader: RegisteredReader | FileFormat, options: ReadOptions
) -> Records:
    try:
        return reader.records(SourceFile(path, options))
    except ReadError:
        raise
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
    except Exception as error:  # a registered reader's own
        raise ReadError(f"can't read {path}: {type(error).__name__}: {error}") from error
