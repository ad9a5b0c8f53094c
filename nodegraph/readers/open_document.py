"""Read OpenDocument texts and slides, and rich text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..document import Document
from .html import markdown
from .pages import join_pages
from .source_file import SourceFile, opened_zip, parser

if TYPE_CHECKING:
    from xml.etree import ElementTree

_TAGS = {
    "list": "ul",
    "list-item": "li",
    "list-header": "li",
    "table": "table",
    "table-row": "tr",
    "table-cell": "td",
    "covered-table-cell": "td",
}

_LEFT_OUT = frozenset({"annotation", "tracked-changes", "note-citation", "forms", "sequence-decls"})


def read_open_document(source: SourceFile) -> Document:
    """Read a text or slides of OpenDocument: headings, lists, tables, footnotes.

    Raises:
        ReadError: If it is damaged, or encrypted.
    """
    from xml.etree import ElementTree

    with opened_zip(source, "OpenDocument file") as archive:
        try:
            if b"encryption-data" in archive.read("META-INF/manifest.xml"):
                raise source.encrypted("OpenDocument file")
            root = ElementTree.fromstring(archive.read("content.xml"))
        except (KeyError, ElementTree.ParseError) as error:
            raise source.damaged(f"it has no readable content ({error})") from error
    slides = [e for e in root.iter() if _name(e) == "page"]
    if slides:
        pages = [markdown("".join(_html(slide))) for slide in slides]
        return Document(join_pages(pages), {"page_unit": "slide"})
    return Document(markdown("".join(_html(root))))


def _name(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}")[-1]


def _attribute(element: ElementTree.Element, name: str) -> str | None:
    return next((v for k, v in element.attrib.items() if k.endswith(f"}}{name}")), None)


def _html(element: ElementTree.Element) -> Iterator[str]:
    """Yield an element as HTML: what a text consists of has the same parts there."""
    from html import escape

    name, tag = _name(element), ""
    if name in _LEFT_OUT:
        return
    if name == "s":
        yield " " * int(_attribute(element, "c") or 1)
    elif name in ("tab", "line-break"):
        yield " " if name == "tab" else "<br>"
    elif name == "h":
        tag = f"h{min(6, int(_attribute(element, 'outline-level') or 1))}"
    elif name == "p":
        tag = "h1" if _attribute(element, "class") == "title" else "p"
    elif name == "frame" and _attribute(element, "class") == "title":
        tag = "h1"
    else:
        tag = _TAGS.get(name, "")
    inner = [escape(element.text or "")]
    for child in element:
        inner += _html(child)
        inner.append(escape(child.tail or ""))
    text = "".join(inner)
    if name == "note":
        text = f" ({text.strip().removeprefix('<p>').removesuffix('</p>')})"
    if tag == "h1" and name == "frame":
        text = text.replace("<p>", "").replace("</p>", " ")
    yield f"<{tag}>{text}</{tag}>" if tag else text


def read_rtf(source: SourceFile) -> Document:
    """Read rich text as plain paragraphs."""
    with parser("striprtf"):
        from striprtf.striprtf import rtf_to_text
    data = source.path.read_bytes().decode("latin-1")
    text = str(rtf_to_text(data, errors="replace"))  # type: ignore[no-untyped-call]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Document("\n\n".join(lines))
