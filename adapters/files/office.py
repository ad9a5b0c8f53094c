"""Read Office files: Word, slides, spreadsheets, OpenDocument and rich text."""

from __future__ import annotations

import datetime
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages, markdown_table, sheet_layout
from .html import markdown
from .packed_files import check_zip, opened_zip, parser, title_and_author

if TYPE_CHECKING:
    from xml.etree import ElementTree


def read_docx(source: SourceFile) -> Document:
    """Read a Word document: headings, lists, tables, and footnotes at its end."""
    check_zip(source, "Word document")
    with parser("mammoth"):
        import mammoth
    with source.path.open("rb") as file:
        html = mammoth.convert_to_html(file, convert_image=mammoth.images.img_element(_no_image))
    text = markdown(_NOTE_REFERENCE.sub(r"\1", html.value))
    return source.document(text, _core_properties(source))


_NOTE_REFERENCE = re.compile(r'<a href="#(?:foot|end)note-[^>]*>(?:(\[\d+\])|↑)</a>')
"""A reference to a note, and the arrow back to the reference."""


def _no_image(image: Any) -> dict[str, str]:
    return {"src": ""}


def _core_properties(source: SourceFile) -> dict[str, str]:
    """Return the title and the author from the properties of an Office file."""
    from xml.etree import ElementTree

    with opened_zip(source, "Office file") as archive:
        if "docProps/core.xml" not in archive.namelist():
            return {}
        try:
            root = ElementTree.fromstring(archive.read("docProps/core.xml"))
        except ElementTree.ParseError:
            return {}
    return title_and_author(root)


def read_pptx(source: SourceFile) -> Document:
    """Read slides with headings, lists, tables and notes, and a page break between slides."""
    check_zip(source, "PowerPoint file")
    with parser("pptx"):
        from pptx import Presentation
    logging.getLogger("pptx").setLevel(logging.ERROR)
    slides = ["\n\n".join(_slide_blocks(slide)) for slide in Presentation(str(source.path)).slides]
    return source.document(join_pages(slides), {**_core_properties(source), "page_unit": "slide"})


def _slide_blocks(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and (text := " ".join(title.text_frame.text.split())):
        yield f"# {text}"
    for shape in _in_reading_order(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape_blocks(shape)
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := frame.text.strip()):
        yield f"Notes: {notes}"


def _in_reading_order(shapes: Any) -> list[Any]:
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _shape_blocks(shape: Any) -> Iterator[str]:
    if hasattr(shape, "shapes"):  # a group of shapes
        for inner in _in_reading_order(shape.shapes):
            yield from _shape_blocks(inner)
    elif getattr(shape, "has_table", False) and shape.has_table:
        yield markdown_table([cell.text for cell in row.cells] for row in shape.table.rows)
    elif getattr(shape, "has_text_frame", False) and shape.has_text_frame:
        paragraphs = [p for p in shape.text_frame.paragraphs if p.text.strip()]
        if len(paragraphs) > 1:
            yield "\n".join(f"{'  ' * p.level}- {' '.join(p.text.split())}" for p in paragraphs)
        elif paragraphs:
            yield " ".join(paragraphs[0].text.split())


def read_spreadsheet(source: SourceFile) -> Document:
    """Read a workbook: each sheet is a page with a heading and a Markdown table."""
    with source.path.open("rb") as file:
        if file.read(2) == b"PK":
            check_zip(source, "spreadsheet")
    with parser("python_calamine"):
        from python_calamine import CalamineWorkbook, PasswordError
    try:
        book = CalamineWorkbook.from_path(str(source.path))
    except PasswordError as error:
        raise source.encrypted("spreadsheet") from error
    pages: list[str] = []
    sheets: list[tuple[int, list[int]]] = []
    for name in book.sheet_names:
        sheet = book.get_sheet_by_name(name)
        first_row, first_column = sheet.start or (0, 0)
        rows = enumerate(sheet.to_python(skip_empty_area=True), first_row)
        filled = [(n, row) for n, row in rows if any(value != "" for value in row)]
        pages.append(f"# {name}\n\n{markdown_table(_values(row) for _, row in filled)}")
        sheets.append((first_column, [number for number, _ in filled]))
    text = join_pages(pages)
    return source.document(text, {"page_unit": "sheet"}, sheet_layout(text, sheets))


def _values(row: Iterable[object]) -> list[object]:
    return [_value(value) for value in row]


def _value(value: object) -> object:
    """Return the displayed value: integers without a fraction, dates without midnight."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return value


_HTML_TAGS = {
    "list": "ul",
    "list-item": "li",
    "list-header": "li",
    "table": "table",
    "table-row": "tr",
    "table-cell": "td",
    "covered-table-cell": "td",
}

_SKIPPED = frozenset({"annotation", "tracked-changes", "note-citation", "forms", "sequence-decls"})


def read_open_document(source: SourceFile) -> Document:
    """Read an OpenDocument text or slides with headings, lists, tables and footnotes.

    Raises:
        ReadError: If the file is damaged or encrypted.
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
        return source.document(join_pages(pages), {"page_unit": "slide"})
    return source.document(markdown("".join(_html(root))))


def _name(element: ElementTree.Element) -> str:
    return element.tag.rsplit("}")[-1]


def _attribute(element: ElementTree.Element, name: str) -> str | None:
    return next((v for k, v in element.attrib.items() if k.endswith(f"}}{name}")), None)


def _html(element: ElementTree.Element) -> Iterator[str]:
    """Yield an OpenDocument element as the equivalent HTML."""
    from html import escape

    name, tag = _name(element), ""
    if name in _SKIPPED:
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
        tag = _HTML_TAGS.get(name, "")
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


_FOOTNOTE = re.compile(r"\{\s*(?:\\\*)?\\footnote\b")

_BRACE = re.compile(r"\\.|[{}]", re.S)

_OUTLINE_LEVEL = re.compile(r"\\outlinelevel([0-5])(?!\d) ?")

_PREFIXES = {"\ue020": "- "} | {chr(0xE010 + n): f"{'#' * (n + 1)} " for n in range(6)}
"""Markers of list items and of heading levels in a rich text, with their Markdown prefixes."""


_NOTE_START = re.compile(r"\s*\ue021\s*")

_PRIVATE = re.compile("[\ue000-\uf8ff]")  # these markers, and bullets of symbol fonts


def read_rtf(source: SourceFile) -> Document:
    """Read rich text with headings, lists, tables and inline footnotes."""
    with parser("striprtf"):
        from striprtf.striprtf import rtf_to_text
    data = source.path.read_bytes().decode("latin-1")
    data = _with_footnotes(data).replace("{\\listtext", f"{{\\u{0xE020}?}}{{\\listtext")
    data = _OUTLINE_LEVEL.sub(lambda match: rf"{{\u{0xE010 + int(match[1])}?}}", data)
    text = str(rtf_to_text(data, errors="replace"))  # type: ignore[no-untyped-call]
    return source.document("\n\n".join(_rtf_blocks(text)))


def _with_footnotes(data: str) -> str:
    """Move footnotes, which the parser would drop, into brackets in the text."""
    parts: list[str] = []
    at = 0
    for match in _FOOTNOTE.finditer(data):
        if match.start() < at:
            continue
        depth, end = 1, len(data)
        for brace in _BRACE.finditer(data, match.end()):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                end = brace.start()
                break
        parts += (data[at : match.start()], f"{{\\u{0xE021}?", data[match.end() : end], ")")
        at = end
    return "".join([*parts, data[at:]])


def _rtf_blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs, headings, items and tables of the output of ``striprtf``."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for is_row, group in groupby(lines, lambda line: line.endswith("|")):
        block = list(group)
        if is_row and len(block) > 1:
            yield markdown_table(line[:-1].split("|") for line in block)
            continue
        for line in block:
            prefix = _PREFIXES.get(line[0], "")
            plain = _PRIVATE.sub("", _NOTE_START.sub(" (", line))
            if plain := " ".join(plain.split()):
                yield f"{prefix}{plain}"
