"""Read web pages and books."""

from __future__ import annotations

import posixpath
import re
from html import unescape
from urllib.parse import unquote

from ...nodegraph.document import Document
from ...nodegraph.readers.decoding import decode, decoded, label_in
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages
from .markup import with_repeated_cells, with_scripts
from .office_xml import opened_zip, parser, title_and_author

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)

_INTERNAL_LINK = re.compile(r"\[([^\[\]\n]*)\]\(#[^)\s]*\)")
"""A link within the page. Its target is removed; a link with a number refers to a note."""

_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^<>]*>", re.I | re.S)

_AS_IT_IS = re.compile(r"(</?(?:pre|script|style|textarea)\b)", re.I)

_WIDE = "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffef]"

_WRAP = re.compile(
    rf"(?<={_WIDE})[ \t]*\r?\n\s*(?=((?![\uac00-\ud7af]){_WIDE})|[^\s<])"  # not Korean
    rf"|(?<=[^\s>])\r?\n\s*(?={_WIDE})"
)

_MAX_TAGS = 1_000  # if more tags are nested, the HTML library may return nothing

_EMPHASIS = ["b", "strong", "i", "em", "u", "s", "font", "span", "mark", "ins"]


def read_html(source: SourceFile) -> Document:
    """Read a page as Markdown with headings, lists, tables, code and links."""
    html = decoded(source, is_html=True)
    metadata = {}
    match = _TITLE.search(html)
    if match and (title := " ".join(unescape(match[1]).split())):
        metadata["title"] = title
    return source.document(page_text(html, source), metadata)


_LEFT_OUT = {
    "menus": "nav",
    "hidden parts": "hidden",
    "form fields": "input select datalist textarea button",
    "pictures": "img svg picture canvas video audio",
}

_KINDS = {tag: f"{kind} left out" for kind, tags in _LEFT_OUT.items() for tag in tags.split()}

_ELEMENT = re.compile(
    r"<!--(?:(?!-->).)*|<(script|style|template)\b(?:(?!</\1\b).)*"  # not displayed
    r"|<input\b[^<>]*\btype=[\"']?(?:hidden|submit)[^<>]*>"
    rf"|<(?P<tag>{'|'.join(_KINDS)})\b"
    r"|<\w+(?P<hidden>\s(?:[^<>]*\s)?(?:hidden(?=[\s=/>])|style=[\"'][^\"'<>]*display:\s*none))",
    re.I | re.S,
)

_ALTERNATIVE = re.compile(r"<img\b[^<>]*?\salt\s*=\s*(?:\"([^\"<>]+)\"|'([^'<>]+)')[^<>]*>", re.I)


def page_text(html: str, source: SourceFile, place: str = "") -> str:
    """Convert a page to Markdown, with the texts of pictures. Note what is left out.

    Args:
        html: The page.
        source: The file, which records the notes.
        place: The place of the page in the file. Empty: the line is noted.
    """
    for match in _ELEMENT.finditer(html):
        tag = "hidden" if match["hidden"] else match["tag"] or ""
        kind = _KINDS.get(tag.lower())
        if kind in source.notes:
            source.note(kind)
        elif kind:
            source.note(kind, place or f"line {html.count(chr(10), 0, match.start()) + 1}")
    return markdown(_ALTERNATIVE.sub(lambda image: image[1] or image[2], html))


def markdown(html: str) -> str:
    """Convert HTML to Markdown, without emphasis, scripts, form fields and menus.

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
        exclude_selectors=["nav", *_LEFT_OUT["form fields"].split()],
        # By default, the library drops forms and headers with all their text.
        preprocessing=PreprocessingOptions(remove_forms=False, remove_navigation=False),
    )
    html = with_repeated_cells(with_scripts(html))
    text = convert(_unwrapped(html), options).content or ""
    if not text.strip() and html.count("<") > _MAX_TAGS:
        text = unescape(_TAG.sub(" ", html))
    while "\n\n\n" in text:  # left by removed elements
        text = text.replace("\n\n\n", "\n\n")
    if "](#" in text:
        text = _INTERNAL_LINK.sub(lambda m: f"[{m[1]}]" if m[1].isdecimal() else m[1], text)
    return text.strip()


def _unwrapped(html: str) -> str:
    """Remove line breaks within Chinese and Japanese text.

    Browsers don't show such a line break, but in Markdown it would end a sentence.
    """
    if html.isascii():
        return html
    parts = _AS_IT_IS.split(html)
    for at in range(0, len(parts), 2):
        if not at or parts[at - 1].startswith("</"):
            parts[at] = _WRAP.sub(lambda wrap: "" if wrap[1] else " ", parts[at])
    return "".join(parts)


def read_epub(source: SourceFile) -> Document:
    """Read a book, with a page break between chapters.

    Raises:
        ReadError: If the book is protected.
    """
    from xml.etree import ElementTree

    with opened_zip(source, "EPUB") as archive:
        names = set(archive.namelist())
        if "META-INF/rights.xml" in names:
            raise source.encrypted("EPUB")
        container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
        package_path = next(
            e.attrib["full-path"] for e in container.iter() if e.tag.endswith("}rootfile")
        )
        package = ElementTree.fromstring(archive.read(package_path))
        base = posixpath.dirname(package_path)
        items = {e.get("id"): e for e in package.iter() if e.tag.endswith("}item")}
        chapters: list[str] = []
        for reference in (e for e in package.iter() if e.tag.endswith("}itemref")):
            item = items.get(reference.get("idref"))
            if item is None or item.get("properties") == "nav":
                source.note("tables of contents left out")
                continue
            name = posixpath.normpath(posixpath.join(base, unquote(item.get("href", ""))))
            if name in names:
                data = archive.read(name)
                place = f"chapter {len(chapters) + 1}"
                html = decode(data, source, label_in(data), place)
                chapters.append(page_text(html, source, place))
            else:
                source.note("missing chapters", name)
    metadata = {**title_and_author(package.iter()), "page_unit": "chapter"}
    return source.document(join_pages(filter(None, chapters)), metadata)
