"""Read web pages and e-books."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from ...nodegraph.document import Document
from ...nodegraph.readers.decoding import decode, decoded, label_in
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages
from .html_styles import (
    BookHeadings,
    mark_struck,
    rules_in,
    rules_of_book,
    struck_as_markdown,
    with_styles,
)
from .markup import mark_merged_cells, repeat_merged_cells, with_scripts
from .office_xml import named, opened_zip, parser, title_and_author

_TITLE = re.compile(r"<svg\b(?:(?!</svg\b).)*|<title[^>]*>((?:(?!<title).)*?)</title>", re.I | re.S)
"""A regular expression that matches the title of a page.

It also matches SVG drawings, whose titles must be ignored.
"""

_INTERNAL_LINK = re.compile(r"\[([^\[\]\n]*)\]\(#[^)\s]*\)")
"""A link to another place on the same page, whose target is removed.

If the text of such a link is a number, the link refers to a note.
"""

_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^<>]*>", re.I | re.S)

_AS_IT_IS = re.compile(r"(</?(?:pre|script|style|textarea)\b)", re.I)

_WIDE = "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffef]"

_WRAP = re.compile(
    rf"\n(?:(?<={_WIDE}\n)\s*(?=((?![\uac00-\ud7af]){_WIDE})|[^\s<])"  # not Korean
    rf"|(?<=[^\s>]\n)\s*(?={_WIDE}))"
)

_EMPHASIS = ["b", "strong", "i", "em", "u", "s", "strike", "del", "font", "span", "mark", "ins"]


def read_html(source: SourceFile) -> Document:
    """Convert a web page to Markdown with headings, lists, tables, code and links."""
    html = decoded(source, is_html=True)
    found = next((match[1] for match in _TITLE.finditer(html) if match[1]), "")
    metadata: dict[str, str] = {}
    if title := " ".join(unescape(found).split()):
        metadata["title"] = title
    return source.document(page_text(html, source), metadata)


_FORM_FIELDS = ["input", "select", "datalist", "textarea", "button"]

_KINDS = {
    "nav": "menus left out",
    "hidden": "hidden parts left out",
    "noscript": "texts for browsers without scripts left out",
    "iframe": "embedded pages left out",
    **dict.fromkeys(_FORM_FIELDS, "form fields left out"),
    **dict.fromkeys("img svg picture canvas video audio".split(), "pictures left out"),
}

_ELEMENT = re.compile(
    # elements that are not displayed
    r"<!--(?:(?!-->).)*|<(script|style|template)\b(?:(?!</\1\b).)*"
    r"|<input\b[^<>]*\btype=[\"']?(?:hidden|submit)[^<>]*>"
    rf"|<(?P<tag>{'|'.join(_KINDS)})\b"
    r"|<\w+(?P<hidden>\s(?:[^<>]*\s)?(?:hidden(?=[\s=/>])"
    r"|style\s*=\s*(?:[\"'][^\"'<>]*|[^\s\"'<>]*)"
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![\d.]))))",
    re.I | re.S,
)

_ALTERNATIVE = re.compile(r"<img\b[^<>]*?\salt\s*=\s*(?:\"([^\"<>]+)\"|'([^'<>]+)')[^<>]*>", re.I)


def page_text(html: str, source: SourceFile, place: str = "") -> str:
    """Convert an HTML page to Markdown, including the alternative texts of pictures.

    A note is recorded for everything that is left out.

    Args:
        html: The HTML page.
        source: The file, in which notes are recorded.
        place: The position of the page in the file, for notes. If it is empty, notes contain line
            numbers instead.
    """
    for match in _ELEMENT.finditer(html):
        kind = _kind_left_out(match)
        if kind is None:
            continue
        if place or kind in source.notes:
            source.note(kind, place)
        else:
            source.note(kind, _line(html, match.start()))
    if cut := _cut_off(html):
        line = _line(html, cut.start)
        source.note("pages cut off", place or f"{line}, inside a {cut.element}")
        if cut.is_not_displayed:
            html = html[: cut.start]
    text = markdown(_ALTERNATIVE.sub(lambda image: image[1] or image[2], html))
    if html.strip() and not text:
        source.note("pages without a text", place or "line 1")
    return text


def _kind_left_out(match: re.Match[str]) -> str | None:
    """Return the category of the note for an element that is left out."""
    if match["hidden"]:
        return _KINDS["hidden"]
    return _KINDS.get((match["tag"] or "").lower())


def _line(html: str, start: int) -> str:
    number = html.count("\n", 0, start) + 1
    return f"line {number}"


class _Cut(NamedTuple):
    """An element at the end of a page that was not completed."""

    start: int
    element: str
    is_not_displayed: bool = True


_RAW_START = re.compile(r"<(script|style|title|textarea)\b", re.I)

_OPEN_TAG = re.compile(
    r"<[a-z/!](?:[^<>\"']*\Z"
    r"|[^<>\"']*(?:=\s*(?:\"[^\"]*\"|'[^']*')[^<>\"'=]*)*=\s*(?:\"[^\"]*|'[^']*)\Z)",
    re.I,
)
"""A tag that is not closed, or that contains an unclosed quotation mark."""

_HEAD = re.compile(r"<head[\s>]", re.I)

_AFTER_HEAD = re.compile(r"</head|<(?:body|p|div|h[1-6]|table|ul|ol|main|article|section)\b", re.I)


def _cut_off(html: str) -> _Cut | None:
    """Return the comment, script or tag that is incomplete at the end of a page."""
    comment = html.rfind("<!--")
    if comment >= 0 and html.find("-->", comment) < 0:
        return _Cut(comment, "comment")
    starts = list(_RAW_START.finditer(html))
    if starts:
        last = starts[-1]
        if not re.search(rf"</{last[1]}", html[last.end() :], re.I):
            return _Cut(last.start(), last[1].lower())
    tag = html.rfind("<")
    if tag >= 0 and _OPEN_TAG.match(html, tag):
        return _Cut(tag, "tag")
    head = _HEAD.search(html)
    if head and not _AFTER_HEAD.search(html, head.end()):
        return _Cut(head.start(), "head", is_not_displayed=False)
    return None


def markdown(html: str) -> str:
    """Convert HTML to Markdown. Emphasis, scripts, form fields and menus are left out.

    Raises:
        ReadError: If html-to-markdown is not installed.
    """
    with parser("html_to_markdown"):
        from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
    options = ConversionOptions(
        skip_images=True,
        compact_tables=True,
        extract_metadata=False,
        strip_tags=_EMPHASIS,
        exclude_selectors=["nav", *_FORM_FIELDS],
        # By default, the library removes forms and headers together with their text.
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),
    )
    html = mark_struck(with_styles(html, rules_in(html)))
    html = mark_merged_cells(with_scripts(html))
    result = convert(_unwrapped(html), options)
    text = repeat_merged_cells(result.content or "")
    if result.warnings:  # text is missing because the tags are nested too deeply
        text = unescape(_TAG.sub(" ", html))
    while "\n\n\n" in text:  # blank lines that removed elements left behind
        text = text.replace("\n\n\n", "\n\n")
    text = struck_as_markdown(text)
    if "](#" in text:
        text = _INTERNAL_LINK.sub(_without_target, text)
    return text.strip()


def _without_target(link: re.Match[str]) -> str:
    """Replace a link to the same page with its text. The number of a note is put in brackets."""
    text = link[1]
    if text.isdecimal():
        return f"[{text}]"
    return text


def _unwrapped(html: str) -> str:
    """Remove line breaks inside Chinese and Japanese text.

    Browsers do not display these line breaks, but in Markdown they would look like the end of a
    sentence.
    """
    if not re.search(_WIDE, html):
        return html
    parts = _AS_IT_IS.split(html)
    for at in range(0, len(parts), 2):
        if not at or parts[at - 1].startswith("</"):
            text = re.sub(r"[ \t\r]+\n", "\n", parts[at])
            parts[at] = _WRAP.sub(lambda wrap: "" if wrap[1] else " ", text)
    return "".join(parts)


def read_epub(source: SourceFile) -> Document:
    """Read an e-book, with page breaks between its chapters.

    Raises:
        ReadError: If the book is copy-protected.
    """
    with opened_zip(source, "EPUB") as archive:
        if "META-INF/rights.xml" in archive.namelist():
            raise source.encrypted("EPUB")
        container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
        package_path = next(named(container, "rootfile")).attrib["full-path"]
        package = ElementTree.fromstring(archive.read(package_path))
        css = _style_sheets(archive)
        chapters = list(_chapters(archive, _chapter_names(package, package_path, source), source))
    rules = rules_of_book(css)
    chapters = [with_styles(chapter, rules) for chapter in chapters]
    headings = BookHeadings(css)
    headings.count(chapters)
    pages = [
        page_text(headings.marked(chapter), source, f"chapter {number}")
        for number, chapter in enumerate(chapters, start=1)
    ]
    metadata = {**title_and_author(package.iter()), "page_unit": "chapter"}
    return source.document(join_pages(page for page in pages if page), metadata)


def _style_sheets(archive: ZipFile) -> str:
    """Return the contents of all style sheets of a book as a single string."""
    names = [name for name in sorted(archive.namelist()) if name.lower().endswith(".css")]
    return "\n".join(archive.read(name).decode("utf-8", "replace") for name in names)


def _chapters(archive: ZipFile, names: Iterable[str], source: SourceFile) -> Iterator[str]:
    """Yield the chapters of a book, and record notes about chapters that are missing."""
    existing = set(archive.namelist())
    number = 1
    for name in names:
        if name not in existing:
            source.note("missing chapters", name)
            continue
        data = archive.read(name)
        yield decode(data, source, label_in(data), f"chapter {number}")
        number += 1


def _chapter_names(package: Element, package_path: str, source: SourceFile) -> Iterator[str]:
    """Yield the paths of the chapters of a book, excluding tables of contents."""
    folder = posixpath.dirname(package_path)
    items = {item.get("id"): item for item in named(package, "item")}
    for reference in named(package, "itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("properties") == "nav":
            source.note("tables of contents left out")
            continue
        href = unquote(item.get("href", ""))
        yield posixpath.normpath(posixpath.join(folder, href))
