"""Find the titles, sources and headings of documents in the metadata that loaders set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

_SOURCES = ("source", "file_path", "url")
"""Metadata fields in which LangChain loaders and LlamaIndex readers store a path or a URL."""

_HEADER = re.compile(r"(?:header|heading|h)[ _-]?([1-6])", re.I)


def source_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the path or URL that a loader stored in the metadata, or None.

    Example:
        >>> source_of({"source": "docs/tea.md", "page": 3})
        'docs/tea.md'
    """
    values = (metadata.get(field) for field in _SOURCES)
    return next((str(value) for value in values if value and not isinstance(value, dict)), None)


def file_name_of(metadata: Mapping[str, Any]) -> str | None:
    r"""Return the file name of a document, or None if it is unknown.

    Example:
        >>> file_name_of({"source": "C:\\docs\\tea.md"}), file_name_of({"file_name": "tea.md"})
        ('tea.md', 'tea.md')
        >>> file_name_of({"source": "https://example.com/docs/tea.md?raw=1#green"})
        'tea.md'
    """
    if name := metadata.get("file_name"):
        return str(name)
    source = source_of(metadata)
    if source is None:
        return None
    path = unquote(urlsplit(source).path) if "://" in source else source
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or source


def source_title(metadata: Mapping[str, Any]) -> str:
    """Return the title of a document. Without a title, its URL or file name is returned.

    Example:
        >>> source_title({"source": "docs/tea.md"}), source_title({"title": "Tea"})
        ('tea.md', 'Tea')
        >>> source_title({"source": "https://example.com/tea"})
        'https://example.com/tea'
    """
    if title := metadata.get("title"):
        return str(title)
    source = source_of(metadata)
    if source is not None and "://" in source and not metadata.get("file_name"):
        return source
    return file_name_of(metadata) or ""


def headings_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return the headings above a node, outermost first.

    They are read from the field ``headings`` or ``heading``, or from the fields ``Header 1``,
    ``Header 2`` and so on that LangChain's ``MarkdownHeaderTextSplitter`` and
    ``HTMLHeaderTextSplitter`` set.

    Example:
        >>> headings_of({"Header 2": "Green", "Header 1": "Tea"})
        ['Tea', 'Green']
    """
    headings = metadata.get("headings") or metadata.get("heading")
    if isinstance(headings, str):
        return [headings]
    if isinstance(headings, list | tuple):
        return [str(heading) for heading in headings]
    levels = {
        int(match[1]): str(value)
        for field, value in metadata.items()
        if field[:1] in "Hh" and value and (match := _HEADER.fullmatch(field))
    }
    return [levels[level] for level in sorted(levels)]
