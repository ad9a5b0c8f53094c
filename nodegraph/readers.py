"""Turn files into documents: text, Markdown and JSON lines, and a registry for more."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .document import Document
from .errors import ReadError, nearest_names

Reader = Callable[[Path], "Iterable[Document] | str"]
"""Takes a path; returns the file's text, or documents with ids that are unique in the file."""

_READERS: dict[str, Reader] = {}


def register_reader(*suffixes: str) -> Callable[[Reader], Reader]:
    """Register a function that reads files with the given suffixes, replacing an earlier one.

    Raises:
        ValueError: If a suffix does not begin with a dot.

    Example:
        >>> @register_reader(".upper")
        ... def read_upper(path):
        ...     return path.read_text(encoding="utf-8").upper()
    """
    for suffix in suffixes:
        if not suffix.startswith("."):
            raise ValueError(f"a suffix begins with a dot, like '.txt', not {suffix!r}")

    def register(reader: Reader) -> Reader:
        _READERS.update(dict.fromkeys((s.lower() for s in suffixes), reader))
        return reader

    return register


def supported_suffixes() -> list[str]:
    """Return the suffixes that can be read, sorted."""
    return sorted(_READERS)


def can_read(path: Path) -> bool:
    """Tell whether a reader is registered for the file's suffix."""
    return path.suffix.lower() in _READERS


def read_file(path: Path, file_id: str) -> list[Document]:
    """Read one file into documents, with the file's attributes in their metadata.

    ``file_name``, ``file_path``, ``file_type`` (a MIME type), ``file_size`` (bytes),
    ``creation_date``, ``last_modified_date``, ``last_accessed_date`` (``YYYY-MM-DD``, UTC).

    Raises:
        ReadError: If there is no reader for the suffix, the file can't be opened, or it is not
            what its reader expects.
    """
    if not can_read(path):
        raise ReadError(
            f"no reader for {path.suffix!r} files ({path}); known are "
            f"{nearest_names(path.suffix, supported_suffixes(), limit=20)}: add one with "
            f'@register_reader("{path.suffix or ".txt"}"), or give the text itself'
        )
    try:
        attributes = _file_attributes(path)
        read = _READERS[path.suffix.lower()](path)
        if isinstance(read, str):
            return [Document(read, attributes, id=file_id)]
        return [
            Document(part.text, {**attributes, **part.metadata}, id=f"{file_id}#{part.id}")
            for part in read
        ]
    except ReadError:
        raise
    except OSError as error:
        raise ReadError(f"can't read {path}: {error.strerror or error}") from error
    except Exception as error:  # a registered reader's own
        raise ReadError(f"can't read {path}: {type(error).__name__}: {error}") from error


@register_reader(".txt", ".text", ".md", ".markdown", ".rst", ".csv", ".tsv", ".log", ".py")
def read_text(path: Path) -> str:
    """Read a UTF-8 file, with or without a byte order mark; line ends become ``\\n``.

    Raises:
        ReadError: If it is not UTF-8, with the place and the way out.
    """
    return _decoded(path)


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        offset = error.start + len(data) - len(error.object)  # which lacks a byte order mark
        raise ReadError(
            f"{path} is not UTF-8: byte {data[offset]:#04x} at offset {offset}; convert "
            "it, or register a reader that knows its encoding: @register_reader"
            f'("{path.suffix}") over path.read_text(encoding="gb18030")'
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


@register_reader(".jsonl", ".ndjson")
def read_json_lines(path: Path) -> list[Document]:
    """Read one document a line: an object with ``text``, or ``content``, or ``page_content``.

    Its ``id`` (or the line's number) completes the file's id, ``metadata`` and all other fields
    become metadata. Blank lines are skipped.

    Raises:
        ReadError: If a line is not such an object, or two lines have the same id.
    """
    documents: dict[str, Document] = {}
    for number, line in enumerate(_decoded(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # also numbers too long, too deep a nesting
            raise ReadError(f"{path}, line {number} is not JSON: {error}") from error
        document = _from_record(record, number)
        if document is None:
            raise ReadError(
                f"{path}, line {number} has no text: it needs a string 'text', 'content' or "
                f"'page_content', not {line[:80]!r}"
            )
        if document.id in documents:
            raise ReadError(f"{path}, line {number}: the id {document.id!r} was there before")
        documents[document.id] = document
    return list(documents.values())


def _from_record(record: Any, number: int) -> Document | None:
    if not isinstance(record, dict):
        return None
    name = next((n for n in ("text", "content", "page_content") if n in record), "")
    if not isinstance(record.get(name), str):
        return None
    metadata = {k: v for k, v in record.items() if k not in (name, "id")}
    inner = metadata.get("metadata")
    if inner is None or isinstance(inner, dict):
        metadata.update(metadata.pop("metadata", None) or {})
    own_id = record.get("id")
    return Document(record[name], metadata, id=str(number if own_id in (None, "") else own_id))


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
