"""Read files: those of other formats in processes of their own, texts and others' readers here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ..document import Document
from ..errors import ReadError, nearest_names
from .file_records import Records, documents_of, records_of
from .formats import FileFormat, format_of
from .read_options import ReadOptions
from .reader_registry import Reader, registered_reader, supported_suffixes
from .source_file import SourceFile


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
    """Read files; yield the id of each with what it holds, or why it can't be read.

    The third says whether a process of its own parsed it: those come after the others, as they
    are ready.
    """
    here: dict[str, Reader | FileFormat] = {}
    isolated: list[tuple[str, Path]] = []
    for file_id, path in files.items():
        try:
            reader = _reader(path, options)
        except ReadError as error:
            yield file_id, error, False
            continue
        if isinstance(reader, FileFormat) and reader.isolated:
            isolated.append((file_id, path))
        else:
            here[file_id] = reader
    from .worker_pool import parsing  # which loads what starts processes

    with parsing(isolated, options) as parsed:
        for file_id, reader in here.items():
            try:
                yield file_id, _read_here(files[file_id], reader, options), False
            except ReadError as error:
                yield file_id, error, False
        for file_id, read in parsed:
            yield file_id, read, True


def _reader(path: Path, options: ReadOptions) -> Reader | FileFormat:
    """Return what reads a file.

    Raises:
        ReadError: If nothing does.
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
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
    if reader is None:
        raise ReadError(
            f"no reader for {path.suffix!r} files ({path}); known are "
            f"{nearest_names(path.suffix, supported_suffixes())}: add one with "
            f'@register_reader("{path.suffix or ".txt"}"), or give the text itself',
            "without a reader",
        )
    return reader


def _read_here(path: Path, reader: Reader | FileFormat, options: ReadOptions) -> Records:
    try:
        if isinstance(reader, FileFormat):
            return records_of(reader.read(SourceFile(path, options)))
        read = reader(path)
        if isinstance(read, str):
            return [[read, {}, ""]]
        if isinstance(read, Document):
            return [[read.text, read.metadata, "", read.search_text]]
        return [[part.text, part.metadata, part.id, part.search_text] for part in read]
    except ReadError:
        raise
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
    except Exception as error:  # a registered reader's own
        raise ReadError(f"can't read {path}: {type(error).__name__}: {error}") from error
