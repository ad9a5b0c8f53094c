"""Where a node is in its file: the page, the heading, the symbol of a program."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeAlias

from .node import Node
from .readers.text import PAGE_BREAK
from .source_names import file_name_of, headings_of, source_title
from .splitters.headings import headings_in

Outline: TypeAlias = tuple[list[int], list[str]]
"""Where the headings of a text begin, and their titles."""

OutlineOf: TypeAlias = Callable[[str, str], "Outline | None"]
"""Takes a document's id and file name; returns None if the document has been removed."""


def place_of(node: Node, outline_of: OutlineOf) -> str:
    """Return where a node is: ``report.pdf, page 12, 3.2 Results``.

    Of a file without pages it is the file and the heading, of a program the function or class.
    """
    metadata = node.metadata
    name = file_name_of(metadata) or source_title(metadata)
    parts = [name, _page_label(node), _heading_label(node, name, outline_of)]
    return ", ".join(" ".join(part.split()) for part in parts if part)


def _page_label(node: Node) -> str:
    """Return the page of a node: ``page 12``, ``slides 3-4``, or an empty text."""
    pages = pages_of(node)
    if pages is None:
        return _foreign_page(node.metadata)
    unit = str(node.metadata.get("page_unit", "page"))
    first, last = pages
    return f"{unit} {first}" if first == last else f"{unit}s {first}-{last}"


def pages_of(node: Node) -> tuple[int, int] | None:
    """Return the first and the last page that a node stands on, from 1.

    None where its file has no pages, and for whole documents.
    """
    if "page_unit" not in node.metadata or node.parent_id is None:
        return None
    text = _document_text(node)
    if text is None or node.start is None or node.end is None:
        return None
    first = text.count(PAGE_BREAK, 0, node.start)
    return first + 1, first + text.count(PAGE_BREAK, node.start, node.end) + 1


def _foreign_page(metadata: Mapping[str, Any]) -> str:
    """Return the page that a loader of LangChain or LlamaIndex has written into metadata."""
    label = metadata.get("page_label")
    if label is None and "page_unit" not in metadata and "file_path" not in metadata:
        number = metadata.get("page", "")
        is_from_zero = "source" in metadata  # as LangChain's loaders count
        label = number + 1 if isinstance(number, int) and is_from_zero else number
    return f"page {label}" if isinstance(label, int | str) and label != "" else ""


def outlines_of(graph: Any) -> OutlineOf:
    """Return a function that reads outlines and keeps them, of 4,096 documents of a state."""
    return lru_cache(maxsize=4096)(partial(_read_outline, graph))


def _read_outline(graph: Any, document_id: str, name: str) -> Outline | None:
    text = _text_of(graph, document_id)
    if text is None:
        return None
    headings = list(headings_in(text, name))
    return [start for start, _, _ in headings], [title for _, _, title in headings]


def _document_text(node: Node) -> str | None:
    return None if node.graph is None else _text_of(node.graph, node.document_id)


def _text_of(graph: Any, document_id: str) -> str | None:
    if not document_id:
        return None
    try:
        text: str = graph.node(document_id).text
    except LookupError:  # it has been removed
        return None
    return text


def _heading_label(node: Node, name: str, outline_of: OutlineOf) -> str:
    if node.parent_id is None:
        return ""
    if symbol := node.metadata.get("symbol"):
        return str(symbol)
    if headings := headings_of(node.metadata):
        return headings[-1]
    if node.start is None:
        return ""
    from .readers.formats import symbol_finder  # which loads what packages register

    if symbols_in := symbol_finder(name):
        try:
            symbols = symbols_in(_document_text(node) or "", name)
        except ImportError:  # without a grammar the place is the file alone
            return ""
        enclosing = [symbol for symbol in symbols if symbol.start <= node.start < symbol.end]
        return enclosing[-1].name if enclosing else ""
    starts, titles = outline_of(node.document_id, name) or ([], [])
    above = bisect_right(starts, node.start)
    return titles[above - 1] if above else ""
