"""Read Word documents, and OpenDocument texts and slides."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages
from .html import markdown
from .office_xml import (
    attribute,
    drawing_lines,
    equation,
    integer,
    local_name,
    named,
    note_left_out,
    opened_zip,
    parser,
    relations,
    running_heads,
    texts,
    title_and_author,
    xml_part,
)

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_VML_TEXT_BOX = "{urn:schemas-microsoft-com:vml}textbox"

_NOTE_REFERENCE = re.compile(r'<a href="#(?:foot|end)note-[^>]*>(?:(\[\d+\])|↑)</a>')
"""A reference to a note, and the arrow back to the reference."""


def read_docx(source: SourceFile) -> Document:
    """Read a Word document.

    The text has headings, lists with their numbers, tables, equations, charts and text boxes. Notes
    and running heads are at its end.
    """
    with parser("mammoth"):
        import mammoth
    file = io.BytesIO()
    heads: list[tuple[str, str]] = []
    with opened_zip(source, "Word document") as archive, zipfile.ZipFile(file, "w") as copy:
        properties = title_and_author(xml_part(archive, "docProps/core.xml"))
        for name in archive.namelist():
            if not name.endswith((".xml", ".rels")):
                continue
            data = archive.read(name)
            part = posixpath.basename(name).rstrip("0123456789.xml")
            if part in ("document", "footnotes", "endnotes"):
                root = ElementTree.fromstring(data)
                if part == "document":
                    note_left_out(source, root)
                    _write_labels(archive, root)
                _rewrite(root, archive, relations(archive, name))
                data = ElementTree.tostring(root)
            elif part in ("header", "footer"):
                heads.append((part, texts(ElementTree.fromstring(data), "t", "tab")))
            copy.writestr(name, data)
    html = mammoth.convert_to_html(file, convert_image=lambda image: [])
    for message in html.messages:
        if " style: " not in message.message and not message.message.startswith("Image of type"):
            source.note(message.message)
    text = with_labels(markdown(_NOTE_REFERENCE.sub(r"\1", html.value)))
    return source.document("\n\n".join([text, *running_heads(heads)]).strip(), properties)


def _run(lines: Iterable[str]) -> Element:
    run = Element(f"{_W}r")
    for number, line in enumerate(lines):
        if number:
            SubElement(run, f"{_W}br")
        SubElement(run, f"{_W}t").text = line
    return run


def _rewrite(
    element: Element, archive: zipfile.ZipFile, related: Mapping[str, tuple[str, str]]
) -> None:
    """Replace elements that mammoth does not support by supported elements."""
    children: list[Element] = []
    for child in element:
        replaced = _replaced(child, archive, related)
        for new in replaced:
            _rewrite(new, archive, related)
        children += replaced
    element[:] = children


def _replaced(
    child: Element, archive: zipfile.ZipFile, related: Mapping[str, tuple[str, str]]
) -> list[Element]:
    name = local_name(child)
    if name in ("oMath", "oMathPara"):
        return [_run([equation(child)])]
    if name == "fldSimple":
        return list(child)
    if name == "ruby":
        reading = texts(next(named(child, "rt"), child), "t")
        return [*next(named(child, "rubyBase"), ()), _run([f"({reading})"])]
    if name not in ("AlternateContent", "drawing"):
        return [child]
    chosen = next(named(child, "Choice"), child)
    if boxes := list(chosen.iter(f"{_W}txbxContent")):
        picture = Element(f"{_W}pict")
        for box in boxes:
            SubElement(picture, _VML_TEXT_BOX).append(box)
        return [picture]
    for drawing in named(chosen, "chart", "relIds"):
        _, part = related.get(attribute(drawing, "id") or attribute(drawing, "dm"), ("", ""))
        if lines := drawing_lines(xml_part(archive, part)):
            return [_run(lines)]
    has_fallback = next(named(child, "Fallback"), None) is not None
    return [child] if has_fallback or name == "drawing" else list(chosen)


def _write_labels(archive: zipfile.ZipFile, root: Element) -> None:
    """Write the numbers of list items and headings into their texts, as Word shows them."""
    numbering = xml_part(archive, "word/numbering.xml")
    lists = {attribute(number, "numId"): number for number in numbering.iter(f"{_W}num")}
    counts = ListCounts(
        {
            attribute(abstract, "abstractNumId"): dict(map(_word_level, abstract.iter(f"{_W}lvl")))
            for abstract in numbering.iter(f"{_W}abstractNum")
        }
    )
    styles = {
        attribute(style, "styleId"): (_value(style, "basedOn"), *_number(style))
        for style in xml_part(archive, "word/styles.xml").iter(f"{_W}style")
    }
    begun: set[str] = set()
    for paragraph in root.iter(f"{_W}p"):
        number, level = _number(paragraph)
        style, seen = _value(paragraph, "pPr", "pStyle"), set[str]()
        while style in styles and style not in seen and not (number and level):
            seen.add(style)
            style, of_style, its_level = styles[style]
            number, level = number or of_style, level or its_level
        if number not in lists:
            continue
        abstract = _value(lists[number], "abstractNumId")
        for override in lists[number].iter(f"{_W}lvlOverride") if number not in begun else ():
            start = integer(_value(override, "startOverride"), 1)
            counts.restart(abstract, integer(attribute(override, "ilvl")), start)
        begun.add(number)
        if label := counts.next_label(abstract, integer(level)):
            at = 1 if len(paragraph) and local_name(paragraph[0]) == "pPr" else 0
            paragraph.insert(at, _run([labeled(label)]))


def _value(element: Element, *path: str) -> str:
    found = element.find("/".join(f"{_W}{name}" for name in path))
    return "" if found is None else attribute(found, "val")


def _word_level(element: Element) -> tuple[int, Level]:
    kind, pattern = _value(element, "numFmt"), _value(element, "lvlText")
    return integer(attribute(element, "ilvl")), (
        kind,
        pattern,
        integer(_value(element, "start"), 1),
    )


def _number(element: Element) -> tuple[str, str]:
    """Return the id of the list of a paragraph or style, and the level in it."""
    return _value(element, "pPr", "numPr", "numId"), _value(element, "pPr", "numPr", "ilvl")


Level = tuple[str, str, int]
"""The format of a level's numbers, the pattern of its label (``%1.%2``), and the first number."""


class ListCounts:
    """The numbers of list items and headings, as office programs show them.

    Args:
        lists: The levels of each list, from 0.
    """

    def __init__(self, lists: Mapping[str, Mapping[int, Level]]) -> None:
        self._lists = lists
        self._counts: dict[tuple[str, int], int] = {}

    def restart(self, name: str, level: int = 0, start: int | None = None) -> None:
        """Restart a list at a level, with its first number or another number."""
        self._counts = {k: n for k, n in self._counts.items() if k[0] != name or k[1] < level}
        if start is not None:
            self._counts[name, level] = start - 1

    def next_label(self, name: str, level: int) -> str:
        """Return the label of the next item. Empty: a bullet or none."""
        levels = self._lists.get(name, {})
        if level not in levels:
            return ""
        kind, pattern, start = levels[level]
        self.restart(name, level + 1)
        self._counts[name, level] = self._counts.get((name, level), start - 1) + 1

        def shown(match: re.Match[str]) -> str:
            other = int(match[1]) - 1
            its_kind, _, first = levels.get(other, ("decimal", "", 1))
            return number_text(self._counts.get((name, other), first), its_kind)

        return "" if kind in ("bullet", "none", "") else re.sub(r"%([1-9])", shown, pattern).strip()


_ROMAN = {
    **{1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl"},
    **{10: "x", 9: "ix", 5: "v", 4: "iv", 1: "i"},
}


def number_text(number: int, kind: str) -> str:
    """Return a number in a format of Word, such as ``lowerRoman``.

    Example:
        >>> [number_text(n, "lowerRoman") for n in (4, 9)], number_text(28, "upperLetter")
        (['iv', 'ix'], 'BB')
    """
    text = f"{number:02}" if kind == "decimalZero" else str(number)
    if "Letter" in kind and 0 < number < 1_000:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif "Roman" in kind and 0 < number < 5_000:
        text = ""
        for value, letters in _ROMAN.items():
            text += letters * (number // value)
            number %= value
    elif kind.startswith(("chinese", "japanese", "ideograph", "taiwanese")) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        digits = " 一二三四五六七八九"
        text = f"{digits[tens] if tens > 1 else ''}{'十' if tens else ''}{digits[ones]}".strip()
    return text.upper() if kind.startswith("upper") else text


_LABEL = re.compile("(?m)(^ *(?:(?:\\d+\\.|[-*+]) +)?)?\ue020(.*?)\ue021")
"""A label, with the number or the bullet that Markdown gives the item."""


def labeled(label: str) -> str:
    """Return a label in marks for ``with_labels``."""
    return f"\ue020{label}\ue021"


def with_labels(text: str) -> str:
    """Write the marked labels of a Markdown text instead of the numbers of Markdown."""

    def shown(match: re.Match[str]) -> str:
        prefix = match[1] or ""
        return f"{' ' * (len(prefix) - len(prefix.lstrip()))}{match[2]} "

    return _LABEL.sub(shown, text)


_TAGS = {"list-header": "li", "table": "table", "table-row": "tr", "table-cell": "td"}

_SKIPPED = frozenset(
    "annotation tracked-changes note-citation forms sequence-decls number "
    "covered-table-cell".split()
)

_HEADS = ("header", "footer", "header-first", "header-left", "footer-left")

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
        root = ElementTree.fromstring(archive.read("content.xml"))
        styles = xml_part(archive, "styles.xml")
        converter = _Converter(archive, [styles, root])
        note_left_out(source, root)
        slides = list(named(root, "page"))
        for number, slide in enumerate(slides, 1):
            if attribute(slide, "style-name") in converter.hidden:
                source.note("hidden slides", f"slide {number}")
        pages = [with_labels(markdown("".join(converter.html(page)))) for page in slides or [root]]
    if slides:
        return source.document(join_pages(pages), {"page_unit": "slide"})
    heads = named(styles, *_HEADS)
    found = ((local_name(e).partition("-")[0], "".join(e.itertext())) for e in heads)
    return source.document("\n\n".join([*pages, *running_heads(found)]))


def raised_styles(roots: Iterable[Element]) -> dict[str, str]:
    """Return the tags of styles of OpenDocument that raise or lower text: sup and sub."""
    scripts: dict[str, str] = {}
    for style in (style for root in roots for style in named(root, "style")):
        for properties in style:
            position = attribute(properties, "text-position")
            if position and not position.startswith("0"):
                is_low = position.startswith(("sub", "-"))
                scripts[attribute(style, "name")] = "sub" if is_low else "sup"
    return scripts


def open_object(archive: zipfile.ZipFile, target: str) -> list[str]:
    """Return an equation, or the titles and values of a chart, of an OpenDocument file."""
    root = xml_part(archive, f"{target.removeprefix('./')}/content.xml")
    if local_name(root) == "math":
        return [equation(root)]
    if not len(root):
        return []
    titles = ("".join(title.itertext()) for title in named(root, "title"))
    rows = (" ".join("".join(cell.itertext()) for cell in row) for row in named(root, "table-row"))
    return [f"Chart: {'; '.join(titles)}", *rows]


class _Converter:
    """Converts the elements of an OpenDocument file to HTML."""

    def __init__(self, archive: zipfile.ZipFile, roots: list[Element]) -> None:
        self._archive = archive
        self._scripts = raised_styles(roots)
        self.hidden = {
            attribute(style, "name")
            for root in roots
            for style in named(root, "style")
            if any(attribute(properties, "visibility") == "hidden" for properties in style)
        }
        self._counts = ListCounts(
            {
                attribute(style, "name") or _OUTLINE: dict(map(_open_level, style))
                for root in roots
                for style in named(root, "list-style", "outline-style")
            }
        )

    def html(self, element: Any, style: str = "", level: int = -1) -> Iterator[str]:
        """Yield the HTML of an element in a list with a style and a level."""
        name, label, spans = local_name(element), "", ""
        tag = _TAGS.get(name, "")
        if name in _SKIPPED:
            return
        if name == "object":
            yield "<br>".join(map(escape, open_object(self._archive, attribute(element, "href"))))
            return
        if name == "s":
            yield " " * integer(attribute(element, "c"), 1)
        elif name in ("tab", "line-break"):
            yield " " if name == "tab" else "<br>"
        elif name == "h":
            depth = integer(attribute(element, "outline-level"), 1)
            tag, label = f"h{min(6, depth)}", self._counts.next_label(_OUTLINE, depth - 1)
        elif name in ("p", "frame"):
            is_title = attribute(element, "class") == "title"
            tag = "h1" if is_title else "p" if name == "p" else ""
        elif name == "span":
            tag = self._scripts.get(attribute(element, "style-name"), "")
        elif name == "list":
            tag, level, style = "ul", level + 1, attribute(element, "style-name") or style
            is_continued = attribute(element, "continue-numbering") == "true"
            if not level and not is_continued and not attribute(element, "continue-list"):
                self._counts.restart(style)
        elif name == "list-item":
            tag, label = "li", self._counts.next_label(style, level)
        elif name == "table-cell":
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
        elif name == "notes":
            text = f"<p>Notes: {text.replace('<p>', '', 1)}"
        elif tag == "h1" and name == "frame":
            text = text.replace("<p>", "").replace("</p>", " ")
        if label and tag == "li":
            text = text.replace("<p>", "", 1).replace("</p>", "", 1)
        text = f"{labeled(label)}{text}" if label else text
        yield f"<{tag}{spans}>{text}</{tag}>" if tag else text


def _open_level(style: Element) -> tuple[int, Level]:
    """Return the level of a list from 0, with its format, pattern and first number."""
    level = integer(attribute(style, "level"), 1)
    shown = integer(attribute(style, "display-levels"), 1)
    numbers = ".".join(f"%{n}" for n in range(level - shown + 1, level + 1))
    pattern = f"{attribute(style, 'num-prefix')}{numbers}{attribute(style, 'num-suffix')}"
    kind = attribute(style, "num-format")
    start = integer(attribute(style, "start-value"), 1)
    return level - 1, (_KINDS.get(kind, "upperRoman" if kind == "I" else kind), pattern, start)
