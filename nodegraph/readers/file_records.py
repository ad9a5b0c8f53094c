"""What a file holds, as it goes from process to process, and as documents."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError

Records = list[list[Any]]
"""What a file holds: text, metadata and id in the file of each document (of one with a search
text of its own that, too)."""


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
