"""Read files: those of other formats in processes of their own, texts and others' readers here."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError, nearest_names
from .formats import FileFormat, format_of
from .read_options import ReadOptions
from .reader_registry import Reader, registered_reader, supported_suffixes
from .source_file import SourceFile

Records = list[list[Any]]
"""What a file holds: text, metadata and id in the file of each document (of one with a search
text of its own that, too)."""


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


def records_of(read: Document | Iterable[Document]) -> list[list[Any]]:
    """Return what a reader returned as records."""
    if isinstance(read, Document):
        return [[*_record(read)[:2], ""]]
    return [_record(document) for document in read]


def _record(document: Document) -> list[Any]:
    """Return a document as a record: JSON has no place for half characters."""
    text = document.text.encode("utf-8", "replace").decode("utf-8")
    return [text, dict(document.metadata), document.id]


def documents_of(path: Path, file_id: str, records: Records) -> list[Document]:
    """Return what a file holds as documents, with the file's attributes in their metadata.

    ``file_name``, ``file_path``, ``file_type`` (a MIME type), ``file_size`` (bytes),
    ``creation_date``, ``last_modified_date``, ``last_accessed_date`` (``YYYY-MM-DD``, UTC).

    Raises:
        ReadError: If the file is gone.
    """
    try:
        attributes = _file_attributes(path)
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}", "unreadable") from error
    return [
        Document(
            text,
            {**attributes, **metadata},
            id=f"{file_id}#{own_id}" if own_id else file_id,
            search_text=search_text[0] if search_text else None,
        )
        for text, metadata, own_id, *search_text in records
    ]


def _file_attributes(path: Path) -> dict[str, Any]:
    stat = path.stat()

    def day(seconds: float) -> str:
        return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d")

    return {
        "file_name": path.name,
        "file_path": str(path),
        "file_type": mimetypes.guess_type(path.name)[0] or path.suffix.lstrip(".") or "unknown",
        "file_size": stat.st_size,
        "creation_date": day(getattr(stat, "st_birthtime", stat.st_ctime)),
        "last_modified_date": day(stat.st_mtime),
        "last_accessed_date": day(stat.st_atime),
    }
