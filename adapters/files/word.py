"""Read Word documents."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from .drawings import (
    attribute,
    drawing_lines,
    equation,
    integer,
    local_name,
    named,
    note_left_out,
    running_heads,
    texts,
)
from .html import markdown
from .list_numbers import Level, ListCounts, labeled, with_labels
from .packed_files import core_properties, opened_zip, parser, relations, xml_part

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_VML_TEXT_BOX = "{urn:schemas-microsoft-com:vml}textbox"

_NOTE_REFERENCE = re.compile(r'<a href="#(?:foot|end)note-[^>]*>(?:(\[\d+\])|↑)</a>')
"""A reference to a note, and the arrow back to the reference."""

_LEFT_OUT = {
    "comments left out": ("commentReference",),
    "deleted passages left out": ("del", "moveFrom"),
    "pictures left out": ("blip", "imagedata"),
    "embedded files left out": ("OLEObject", "altChunk"),
}


def read_docx(source: SourceFile) -> Document:
    """Read a Word document.

    The text has headings, lists with their numbers, tables, equations, charts and text boxes. Notes
    and running heads are at its end.
    """
    with parser("mammoth"):
        import mammoth
    with opened_zip(source, "Word document") as archive:
        properties = core_properties(archive)
        file = io.BytesIO()
        heads: list[tuple[str, str]] = []
        with zipfile.ZipFile(file, "w") as copy:
            labels = _Labels(archive)
            for name in archive.namelist():
                if not name.endswith((".xml", ".rels")):
                    continue
                data = archive.read(name)
                part = posixpath.basename(name).rstrip("0123456789.xml")
                if part in ("document", "footnotes", "endnotes"):
                    root = ElementTree.fromstring(data)
                    if part == "document":
                        note_left_out(source, root, _LEFT_OUT)
                        labels.write(root)
                    _rewrite(root, _related(archive, name))
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


def _related(archive: zipfile.ZipFile, name: str) -> Callable[[str], Element]:
    """Return a function from the id of a related part to its XML."""
    targets = relations(archive, name)
    return lambda target: xml_part(archive, targets.get(target, ("", ""))[1])


def _run(lines: Iterable[str]) -> Element:
    run = Element(f"{_W}r")
    for number, line in enumerate(lines):
        if number:
            ElementTree.SubElement(run, f"{_W}br")
        ElementTree.SubElement(run, f"{_W}t").text = line
    return run


def _rewrite(element: Element, related: Callable[[str], Element]) -> None:
    """Replace elements that mammoth does not support by supported elements."""
    children: list[Element] = []
    for child in element:
        replaced = _replaced(child, related)
        for new in replaced:
            _rewrite(new, related)
        children += replaced
    element[:] = children


def _replaced(child: Element, related: Callable[[str], Element]) -> list[Element]:
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
            ElementTree.SubElement(picture, _VML_TEXT_BOX).append(box)
        return [picture]
    for drawing in named(chosen, "chart", "relIds"):
        root = related(attribute(drawing, "id") or attribute(drawing, "dm"))
        if lines := drawing_lines(root):
            return [_run(lines)]
    has_fallback = next(named(child, "Fallback"), None) is not None
    return [child] if has_fallback or name == "drawing" else list(chosen)


class _Labels:
    """The numbers of list items and headings, as Word shows them."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        numbering = xml_part(archive, "word/numbering.xml")
        styles = xml_part(archive, "word/styles.xml")
        self._counts = ListCounts(
            {
                attribute(abstract, "abstractNumId"): dict(map(_level, abstract.iter(f"{_W}lvl")))
                for abstract in numbering.iter(f"{_W}abstractNum")
            }
        )
        self._lists = {
            attribute(number, "numId"): (_values(number).get("abstractNumId", ""), number)
            for number in numbering.iter(f"{_W}num")
        }
        self._styles = {
            attribute(style, "styleId"): (_values(style).get("basedOn", ""), _number(style))
            for style in styles.iter(f"{_W}style")
        }
        self._begun: set[str] = set()

    def write(self, root: Element) -> None:
        """Write the number of each paragraph into its text."""
        for paragraph in root.iter(f"{_W}p"):
            if label := self._label(paragraph):
                at = 1 if len(paragraph) and local_name(paragraph[0]) == "pPr" else 0
                paragraph.insert(at, _run([labeled(label)]))

    def _label(self, paragraph: Element) -> str:
        number, level = _number(paragraph)
        style, seen = next(_below(paragraph, "pPr", "pStyle"), ""), set[str]()
        while style in self._styles and style not in seen and (not number or level is None):
            seen.add(style)
            style, (of_style, its_level) = self._styles[style]
            number, level = number or of_style, its_level if level is None else level
        if number not in self._lists:
            return ""
        abstract, element = self._lists[number]
        if number not in self._begun:
            self._begun.add(number)
            for override in element.iter(f"{_W}lvlOverride"):
                start = integer(_values(override).get("startOverride"), 1)
                self._counts.restart(abstract, integer(attribute(override, "ilvl")), start)
        return self._counts.next_label(abstract, level or 0)


def _level(element: Element) -> tuple[int, Level]:
    values = _values(element)
    start = integer(values.get("start"), 1)
    level = values.get("numFmt", "none"), values.get("lvlText", ""), start
    return integer(attribute(element, "ilvl")), level


def _values(element: Element) -> dict[str, str]:
    """Return the values of an element's children by name."""
    return {local_name(child): attribute(child, "val") for child in element}


def _below(element: Element, *path: str) -> Iterator[str]:
    for child in element.findall("/".join(f"{_W}{name}" for name in path)):
        yield attribute(child, "val")


def _number(element: Element) -> tuple[str, int | None]:
    """Return the id of the list of a paragraph or style, and the level in it."""
    level = next(_below(element, "pPr", "numPr", "ilvl"), "")
    number = next(_below(element, "pPr", "numPr", "numId"), "")
    return number, int(level) if level.isdecimal() else None
