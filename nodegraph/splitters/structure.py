"""The transforms for the predefined groups of sections, pages, tables and symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..node import Node
from ..readers.text import PAGE_BREAK
from ..source_names import file_name_of
from .chunking import strip_span
from .headings import TABLE, columns_of, headings_in, sections_of


def split_sections(node: Node) -> list[Node]:
    """Split a document into sections, each with a heading and the text up to the next heading.

    The nodes have the metadata fields ``heading``, ``headings`` (all headings from the top level
    down to this heading), ``level`` (0 before the first heading), and ``page`` if the document has
    pages. The markup language is determined by the file name. Markdown (including formats that are
    converted to Markdown), reStructuredText, AsciiDoc, LaTeX, Org, TOML and INI are supported.
    Source code is returned as a single section.
    """
    text = node.text
    sections: list[Node] = []
    headings = headings_in(text, file_name_of(node.metadata) or "")
    for section in sections_of(text, headings):
        start, end = strip_span(text, (section.start, section.end))
        if start < end:
            metadata = {**section.metadata, **_page_metadata(node, start)}
            sections.append(Node(text[start:end], metadata, start=start, end=end))
    return sections


def split_pages(node: Node) -> Iterator[Node]:
    """Split a document at page breaks into pages, slides, sheets, cells or chapters.

    The metadata field ``page`` contains the page number, starting at 1. If a document has no pages,
    a single node without this field is returned. Blank pages are left out.
    """
    text = node.text
    start = 0
    has_pages = PAGE_BREAK in text or "page_unit" in node.metadata
    for number, page in enumerate(text.split(PAGE_BREAK), start=1):
        at, after = strip_span(text, (start, start + len(page)))
        if at < after:
            metadata = {"page": number} if has_pages else {}
            yield Node(text[at:after], metadata, start=at, end=after)
        start += len(page) + 1


def find_tables(node: Node) -> Iterator[Node]:
    """Find the Markdown tables in a document and yield them as nodes.

    The nodes have the metadata fields ``columns`` (the cells of the first row), ``rows`` (the
    number of rows below it), ``headings``, and ``page`` if the document has pages.
    """
    sections = split_sections(node)
    for match in TABLE.finditer(node.text):
        at, after = strip_span(node.text, match.span())
        head, *lines = node.text[at:after].split("\n")
        headings: list[str] = []
        for section in sections:
            if section.start is not None and section.start <= at:
                headings = section.own_metadata["headings"]
        metadata = {
            "columns": columns_of(head),
            "rows": len(lines) - 1,
            "headings": headings,
            **_page_metadata(node, at),
        }
        yield Node(node.text[at:after], metadata, start=at, end=after)


def find_symbols(node: Node) -> Iterator[Node]:
    """Find the functions, classes and methods in source code and yield them as nodes.

    The nodes have the metadata fields ``symbol``, such as ``Corpus.refresh``, and ``kind``, such as
    ``"method"``. For other texts, no nodes are returned.

    Raises:
        ImportError: If the grammar of the language is not installed.
    """
    from ..readers.formats import symbol_finder

    name = file_name_of(node.metadata) or ""
    symbols_in = symbol_finder(name)
    if symbols_in is None:
        return
    for symbol in symbols_in(node.text, name):
        metadata = {"symbol": symbol.name, "kind": symbol.kind}
        text = node.text[symbol.start : symbol.end]
        yield Node(text, metadata, start=symbol.start, end=symbol.end)


PREDEFINED_STRUCTURE: dict[str, Callable[[Node], Any]] = {
    "section": split_sections,
    "page": split_pages,
    "table": find_tables,
    "symbol": find_symbols,
}
"""The transforms of predefined groups, keyed by group name. A user-defined group with the same name
takes precedence."""


def _page_metadata(node: Node, offset: int) -> dict[str, int]:
    """Return the page number at an offset in a document as metadata.

    The dictionary is empty if the document has no pages.
    """
    if "page_unit" not in node.metadata or node.parent_id is not None:
        return {}
    return {"page": node.text.count(PAGE_BREAK, 0, offset) + 1}
