"""Read HTML and what becomes HTML on the way: Word, OpenDocument, the chapters of a book."""

from __future__ import annotations

import re
from html import unescape

from ...nodegraph.document import Document
from ...nodegraph.readers.source_file import SourceFile
from ...nodegraph.readers.text import decoded
from .packed_files import parser

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)

_LINK_WITHIN = re.compile(r"\[([^\[\]\n]*)\]\(#[^)\s]*\)")
"""A link to another place of the page, which a text does not have; with a number, to a note."""

_EMPHASIS = ["b", "strong", "i", "em", "u", "s", "font", "span", "mark", "ins"]


def read_html(source: SourceFile) -> Document:
    """Read a page as Markdown: headings, lists, tables, code and links stay what they are."""
    html, encoding = decoded(source, declared=True)
    metadata = {} if encoding in ("utf-8", "utf8") else {"encoding": encoding}
    match = _TITLE.search(html)
    if match and (title := " ".join(unescape(match[1]).split())):
        metadata["title"] = title
    return source.document(markdown(html), metadata)


def markdown(html: str) -> str:
    """Return HTML as Markdown; marks of emphasis, scripts, forms and menus are left out.

    Raises:
        ReadError: If the library that does it is not installed.
    """
    with parser("html_to_markdown"):
        from html_to_markdown import ConversionOptions, convert
    options = ConversionOptions(
        skip_images=True, compact_tables=True, extract_metadata=False, strip_tags=_EMPHASIS
    )
    text = convert(html, options).content or ""
    while "\n\n\n" in text:  # what is left of what was left out
        text = text.replace("\n\n\n", "\n\n")
    if "](#" in text:
        text = _LINK_WITHIN.sub(lambda m: f"[{m[1]}]" if m[1].isdecimal() else m[1], text)
    return text.strip()
