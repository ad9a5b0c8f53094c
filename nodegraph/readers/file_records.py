"""What the reader of a format is given, and what it returns: for other processes, as documents."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError
from ..search_text import SearchText
from .read_options import ReadOptions

Records = list[list[Any]]
"""What a file holds: text, metadata and id in the file of each document, and of one with a search
text of its own the row that it is stored as. ``codec`` writes it."""


def records_of(read: str | Document | Iterable[Document]) -> Records:
    """Return what a reader returned as records."""
    if isinstance(read, str):
        return [[_encodable(read), {}, ""]]
    if isinstance(read, Document):
        return [_record(read, "")]
    return [_record(document, document.id) for document in read]


def _record(document: Document, record_id: str) -> list[Any]:
    search_text = document.search_text
    row = [] if search_text is None else [search_text.to_row()]
    return [_encodable(document.text), dict(document.metadata), record_id, *row]


def _encodable(text: str) -> str:
    """Return a text without half characters, for which JSON has no place."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


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
            id=f"{file_id}#{record_id}" if record_id else file_id,
            search_text=SearchText.from_row(row[0]) if row else None,
        )
        for text, metadata, record_id, *row in records
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


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Name a file to be read, and how.

    Attributes:
        path: The file.
        options: How files are read.
        ocr: Reads the image of a page, which it takes as the bytes of a PNG. None without one.
    """

    path: Path
    options: ReadOptions
    ocr: Callable[[bytes], str] | None = None

    def document(self, text: str, metadata: Mapping[str, Any] | None = None) -> Document:
        """Return what the file holds as one document, whose id the caller of the reader makes."""
        return Document(text, metadata, id=self.path.name)  # the digest of a text takes a while

    def damaged(self, what: object) -> ReadError:
        """Return the error of a file that is not what it seems to be."""
        return ReadError(f"can't read {self.path}: {what}")

    def encrypted(self, what: str) -> ReadError:
        """Return the error of a file that takes a password."""
        return ReadError(
            f"{self.path} is encrypted: save it without a password, or leave it out",
            f"encrypted {what}",
            skippable=True,
        )
