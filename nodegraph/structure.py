"""Groups that every graph has by name: sections, pages, tables, symbols."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from .node import Node
from .readers.pages import PAGE_BREAK
from .source_names import file_name_of
from .splitters.chunking import strip_span
from .splitters.headings import headings_in, sections_of

_TABLE = re.compile(
    r"^[ \t]*\|.*\|[ \t]*\n[ \t]*\|(?:[ \t]*:?-{3,}:?[ \t]*\|)+[ \t]*(?:\n[ \t]*\|.*\|[ \t]*)*",
    re.M,
)

_CELL = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class SectionSplitter:
    """Split a document of any format into a node for each heading, with the text below it.

    Metadata has ``heading``, ``headings`` (from the top one down to it), ``level`` (0 before the
    first heading) and, where the file has pages, ``page``. Which lines are headings depends on
    the file's name: those of Markdown (and all that is converted to it), reStructuredText,
    AsciiDoc, LaTeX, Org; a program is one section.
    """

    trans_node: ClassVar[bool] = True

    def __call__(self, node: Node) -> list[Node]:
        """Return the sections of a document."""
        text, sections = node.text, []
        headings = headings_in(text, file_name_of(node.metadata) or "")
        for section in sections_of(text, headings):
            start, end = strip_span(text, (section.start, section.end))
            if start < end:
                metadata = {**section.metadata, **page_metadata(node, start)}
                sections.append(Node(text[start:end], metadata, start=start, end=end))
        return sections


@dataclass(frozen=True, slots=True)
class PageSplitter:
    """Split a document at its page breaks: into pages, slides, sheets, cells or chapters.

    Metadata has ``page``, counted from 1. A file without page breaks is one page.
    """

    trans_node: ClassVar[bool] = True

    def __call__(self, node: Node) -> Iterator[Node]:
        """Yield the pages of a document that are not blank."""
        begin, text = 0, node.text
        has_pages = PAGE_BREAK in text or "page_unit" in node.metadata
        for number, page in enumerate(text.split(PAGE_BREAK), start=1):
            at, after = strip_span(text, (begin, begin + len(page)))
            if at < after:
                metadata = {"page": number} if has_pages else {}
                yield Node(text[at:after], metadata, start=at, end=after)
            begin += len(page) + 1


@dataclass(frozen=True, slots=True)
class TableSplitter:
    """Find the tables of a document, which are written as Markdown.

    Metadata has ``columns`` (the cells of the head), ``rows`` (how many stand below it),
    ``headings`` and ``page``.
    """

    trans_node: ClassVar[bool] = True

    def __call__(self, node: Node) -> Iterator[Node]:
        """Yield the tables of a document."""
        sections = SectionSplitter()(node)
        for match in _TABLE.finditer(node.text):
            at, after = strip_span(node.text, match.span())
            lines = node.text[at:after].split("\n")
            cells = [cell.strip() for cell in _CELL.split(lines[0].strip().strip("|"))]
            metadata: dict[str, Any] = {"columns": cells, "rows": len(lines) - 2}
            above = [s for s in sections if s.start is not None and s.start <= at]
            metadata["headings"] = above[-1].own_metadata["headings"] if above else []
            metadata.update(page_metadata(node, at))
            yield Node(node.text[at:after], metadata, start=at, end=after)


@dataclass(frozen=True, slots=True)
class SymbolSplitter:
    """Find the functions, classes and methods of a program, each with its whole text.

    Metadata has ``symbol`` (``Corpus.refresh``) and ``kind`` (``"method"``). Texts that are no
    programs have none.

    Raises:
        ImportError: If the grammar of the language is not installed.
    """

    trans_node: ClassVar[bool] = True

    def __call__(self, node: Node) -> Iterator[Node]:
        """Yield the symbols of a document."""
        from .readers.formats import symbol_finder  # which loads what packages register

        name = file_name_of(node.metadata) or ""
        symbols_in = symbol_finder(name)
        for symbol in symbols_in(node.text, name) if symbols_in else ():
            metadata = {"symbol": symbol.name, "kind": symbol.kind}
            start, end = symbol.start, symbol.end
            yield Node(node.text[start:end], metadata, start=start, end=end)


PREDEFINED_STRUCTURE: dict[str, Callable[[Node], Any]] = {
    "section": SectionSplitter(),
    "page": PageSplitter(),
    "table": TableSplitter(),
    "symbol": SymbolSplitter(),
}
"""The groups that a graph has by name unless the user declares another of that name."""


def page_metadata(node: Node, offset: int) -> dict[str, int]:
    """Return the page on which a place in a document's text stands, where it has pages."""
    if "page_unit" not in node.metadata or node.parent_id is not None:
        return {}
    return {"page": node.text.count(PAGE_BREAK, 0, offset) + 1}
