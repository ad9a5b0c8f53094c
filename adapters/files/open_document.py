"""Read OpenDocument texts and slides."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from html import escape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages
from .drawings import (
    attribute,
    equation,
    integer,
    local_name,
    named,
    note_left_out,
    running_heads,
)
from .html import markdown
from .list_numbers import ListCounts, labeled, with_labels
from .packed_files import opened_zip, xml_part

_HTML_TAGS = {"list-header": "li", "table": "table", "table-row": "tr", "table-cell": "td"}

_SKIPPED = frozenset(
    "annotation tracked-changes note-citation forms sequence-decls number "
    "covered-table-cell".split()
)

_HEADS = ("header", "footer", "header-first", "header-left", "footer-left")

_LEFT_OUT = {
    "comments left out": ("annotation",),
    "deleted passages left out": ("deletion",),
    "pictures left out": ("image",),
}

_KINDS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman"}

_OUTLINE = "\0outline"


def read_open_document(source: SourceFile) -> Document:
    """Read an OpenDocument text or slides.

    The text has headings, lists, tables, equations, charts and notes in their places, and running
    heads at its end.

    Raises:
        ReadError: If the file is encrypted.
    """
    with opened_zip(source, "OpenDocument file") as archive:
        if b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise source.encrypted("OpenDocument file")
        root = ElementTree.fromstring(archive.read("content.xml"))
        styles = xml_part(archive, "styles.xml")
        converter = _Converter(archive, [styles, root])
        note_left_out(source, root, _LEFT_OUT)
        if slides := list(named(root, "page")):
            for number, slide in enumerate(slides, 1):
                if attribute(slide, "style-name") in converter.hidden:
                    source.note("hidden slides", f"slide {number}")
            pages = [_markdown(converter.html(slide)) for slide in slides]
            return source.document(join_pages(pages), {"page_unit": "slide"})
        text = _markdown(converter.html(root))
    heads = named(styles, *_HEADS)
    found = ((local_name(e).partition("-")[0], "".join(e.itertext())) for e in heads)
    return source.document("\n\n".join([text, *running_heads(found)]))


def _markdown(html: Iterator[str]) -> str:
    return with_labels(markdown("".join(html)))


class _Converter:
    """Converts the elements of an OpenDocument file to HTML."""

    def __init__(self, archive: zipfile.ZipFile, roots: list[Element]) -> None:
        self._archive = archive
        self._scripts: dict[str, str] = {}
        self.hidden: set[str] = set()
        lists: dict[str, dict[int, tuple[str, str, int]]] = {}
        for style in (style for root in roots for style in named(root, "style")):
            for properties in style:
                position = attribute(properties, "text-position")
                if position and not position.startswith("0"):
                    is_low = position.startswith(("sub", "-"))
                    self._scripts[attribute(style, "name")] = "sub" if is_low else "sup"
                if attribute(properties, "visibility") == "hidden":
                    self.hidden.add(attribute(style, "name"))
        for root in roots:
            for style in named(root, "list-style", "outline-style"):
                is_outline = local_name(style) == "outline-style"
                name = _OUTLINE if is_outline else attribute(style, "name")
                lists[name] = dict(map(_level, style))
        self._counts = ListCounts(lists)

    def html(self, element: Any, style: str = "", level: int = -1) -> Iterator[str]:
        """Yield the HTML of an element in a list with a style and a level."""
        name, tag, label, spans = local_name(element), "", "", ""
        if name in _SKIPPED:
            return
        if name == "object":
            yield self._object(attribute(element, "href"))
            return
        if name == "s":
            yield " " * integer(attribute(element, "c"), 1)
        elif name in ("tab", "line-break"):
            yield " " if name == "tab" else "<br>"
        elif name == "h":
            depth = integer(attribute(element, "outline-level"), 1)
            tag, label = f"h{min(6, depth)}", self._counts.next_label(_OUTLINE, depth - 1)
        elif name == "p":
            tag = "h1" if attribute(element, "class") == "title" else "p"
        elif name == "frame" and attribute(element, "class") == "title":
            tag = "h1"
        elif name == "span":
            tag = self._scripts.get(attribute(element, "style-name"), "")
        elif name == "list":
            tag, level, style = "ul", level + 1, attribute(element, "style-name") or style
            is_continued = attribute(element, "continue-numbering") == "true"
            if not level and not is_continued and not attribute(element, "continue-list"):
                self._counts.restart(style)
        elif name == "list-item":
            tag, label = "li", self._counts.next_label(style, level)
        else:
            tag = _HTML_TAGS.get(name, "")
        if tag == "td":
            for kind, span in (("columns", "colspan"), ("rows", "rowspan")):
                if number := attribute(element, f"number-{kind}-spanned"):
                    spans += f' {span}="{escape(number)}"'
        inner = [escape(element.text or "")]
        for child in element:
            inner += self.html(child, style, level)
            inner.append(escape(child.tail or ""))
        text = "".join(inner)
        if name == "note":
            text = f" ({text.strip().removeprefix('<p>').removesuffix('</p>')})"
        if tag == "h1" and name == "frame":
            text = text.replace("<p>", "").replace("</p>", " ")
        if label and tag == "li":
            text = text.replace("<p>", "", 1).replace("</p>", "", 1)
        if label:
            text = f"{labeled(label)}{text}"
        yield f"<{tag}{spans}>{text}</{tag}>" if tag else text

    def _object(self, target: str) -> str:
        """Return an equation, or the titles and values of a chart, as HTML."""
        root = xml_part(self._archive, f"{target.removeprefix('./')}/content.xml")
        if not len(root):
            return ""
        if local_name(root) == "math":
            return escape(equation(root))
        titles = ("".join(title.itertext()) for title in named(root, "title"))
        lines = [f"Chart: {'; '.join(titles)}"]
        for row in named(root, "table-row"):
            lines.append(" ".join("".join(cell.itertext()) for cell in row))
        return "<br>".join(map(escape, lines))


def _level(style: Element) -> tuple[int, tuple[str, str, int]]:
    """Return the level of a list from 0, with its format, pattern and first number."""
    level = integer(attribute(style, "level"), 1)
    shown = integer(attribute(style, "display-levels"), 1)
    numbers = ".".join(f"%{n}" for n in range(level - shown + 1, level + 1))
    pattern = f"{attribute(style, 'num-prefix')}{numbers}{attribute(style, 'num-suffix')}"
    kind = attribute(style, "num-format")
    start = integer(attribute(style, "start-value"), 1)
    return level - 1, (_KINDS.get(kind, "upperRoman" if kind == "I" else kind), pattern, start)
