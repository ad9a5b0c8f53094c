"""Read slides, spreadsheets and rich text."""

from __future__ import annotations

import datetime
import io
import logging
import re
import zipfile
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages, markdown_table
from .markup import joined_runs, subscript, superscript
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
from .word_processing import open_object, raised_styles


def read_pptx(source: SourceFile) -> Document:
    """Read slides, with a page break between slides.

    A slide has headings, lists, tables, equations, charts, diagrams and notes.
    """
    with parser("pptx"):
        from pptx import Presentation
    logging.getLogger("pptx").setLevel(logging.ERROR)
    with opened_zip(source, "PowerPoint file") as archive:
        properties = title_and_author(xml_part(archive, "docProps/core.xml"))
    heads: set[str] = set()
    slides = [
        "\n\n".join(filter(None, _slide_blocks(slide, source, f"slide {number}", heads)))
        for number, slide in enumerate(Presentation(str(source.path)).slides, 1)
    ]
    return source.document(join_pages(slides), {**properties, "page_unit": "slide"})


def _slide_blocks(slide: Any, source: SourceFile, place: str, heads: set[str]) -> Iterator[str]:
    """Yield the blocks of a slide. ``heads`` has the running heads of the slides before."""
    element = slide.element
    if element.get("show") in ("0", "false"):
        source.note("hidden slides", place)
    for part in slide.part.rels.values():
        if part.reltype.endswith("/comments"):
            note_left_out(source, ElementTree.fromstring(part.target_part.blob), place)
    for alternative in list(named(element, "AlternateContent")):
        for child in next(named(alternative, "Choice"), ()):
            alternative.addprevious(child)
        alternative.getparent().remove(alternative)
    title = slide.shapes.title
    if title is not None and (text := " ".join(_frame_lines(title.element))):
        yield f"# {text}"
    for shape in _in_reading_order(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape_blocks(shape, source, place, heads)
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := frame.text.strip()):
        yield f"Notes: {notes}"


def _in_reading_order(shapes: Any) -> list[Any]:
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _shape_blocks(shape: Any, source: SourceFile, place: str, heads: set[str]) -> Iterator[str]:
    element = shape.element
    if hasattr(shape, "shapes"):  # a group of shapes
        for inner in _in_reading_order(shape.shapes):
            yield from _shape_blocks(inner, source, place, heads)
    elif local_name(element) == "pic":
        source.note("pictures left out", place)
    elif shape.has_table:
        yield markdown_table(_table_rows(element))
    elif shape.has_chart:
        yield "\n".join(drawing_lines(ElementTree.fromstring(shape.chart_part.blob)))
    elif (diagram := next(named(element, "relIds"), None)) is not None:
        part = shape.part.related_part(attribute(diagram, "dm"))
        yield "\n".join(f"- {line}" for line in drawing_lines(ElementTree.fromstring(part.blob)))
    elif shape.has_text_frame:
        lines = _frame_lines(element, indented=True)
        kind = next((one.get("type") for one in named(element, "ph")), None)
        text = "\n".join(lines) if len(lines) > 1 else "".join(lines).lstrip(" -")
        if kind not in ("hdr", "ftr", "dt", "sldNum"):
            yield text
        elif kind != "sldNum" and text not in heads:
            heads.add(text)
            yield text
    elif local_name(element) == "graphicFrame":
        source.note("embedded objects left out", place)


def _frame_lines(element: Any, *, indented: bool = False) -> list[str]:
    """Return the paragraphs of a shape or a cell, as list items if ``indented``."""
    lines: list[str] = []
    for paragraph in named(element, "p"):
        runs: list[tuple[str, int]] = []
        for child in paragraph:
            kind = local_name(child)
            if kind in ("r", "fld"):
                baseline = next((integer(p.get("baseline")) for p in named(child, "rPr")), 0)
                runs.append((texts(child, "t"), (baseline > 0) - (baseline < 0)))
            elif kind == "br":
                runs.append((" ", 0))
            else:
                runs += ((equation(math), 0) for math in named(child, "oMath"))
        if text := " ".join(joined_runs(runs).split()):
            level = next((integer(p.get("lvl")) for p in named(paragraph, "pPr")), 0)
            lines.append(f"{'  ' * level}- {text}" if indented else text)
    return lines


def _table_rows(element: Any) -> list[list[str]]:
    """Return the rows of a table on a slide. Merged cells are repeated."""
    rows: list[list[str]] = []
    for row in named(element, "tr"):
        cells: list[str] = []
        for cell in named(row, "tc"):
            if cell.get("hMerge") in ("1", "true") and cells:
                cells.append(cells[-1])
            elif cell.get("vMerge") in ("1", "true") and rows and len(rows[-1]) > len(cells):
                cells.append(rows[-1][len(cells)])
            else:
                cells.append(" ".join(_frame_lines(cell)))
        rows.append(cells)
    return rows


def read_spreadsheet(source: SourceFile) -> Document:
    """Read a workbook: each sheet is a page with a heading, a Markdown table and its charts."""
    with parser("python_calamine"):
        from python_calamine import CalamineWorkbook, PasswordError, SheetVisibleEnum
    copy: io.BytesIO | None = None
    drawn: dict[str, list[str]] = {}
    merged: dict[str, list[Any]] = {}  # merged cells of OpenDocument, by sheet
    if zipfile.is_zipfile(source.path):
        with opened_zip(source, "spreadsheet") as archive:
            if "content.xml" in archive.namelist():
                copy, drawn, merged = _open_sheets(archive, source)
            else:
                copy = _with_scripts(archive)
                parts = relations(archive, "xl/workbook.xml")
                for sheet in named(xml_part(archive, "xl/workbook.xml"), "sheet"):
                    if part := parts.get(attribute(sheet, "id")):
                        name = sheet.get("name", "")
                        drawn[name] = _drawn(archive, part[1], name, source)
    try:
        book = CalamineWorkbook.from_object(copy or str(source.path))
    except PasswordError as error:
        raise source.encrypted("spreadsheet") from error
    pages: list[str] = []
    for details in book.sheets_metadata:
        name = details.name
        if details.visible != SheetVisibleEnum.Visible:
            source.note("hidden sheets", name)
        sheet = book.get_sheet_by_name(name)
        first_row, first_column = sheet.start or (0, 0)
        values = sheet.to_python(skip_empty_area=True)
        ranges = merged.get(name) or sheet.merged_cell_ranges or ()
        _repeat_merged(values, ranges, first_row, first_column)
        filled = (row for row in values if any(value != "" for value in row))
        table = markdown_table(map(_displayed, row) for row in filled)
        pages.append("\n\n".join([f"# {name}", table, *filter(None, drawn.get(name, ()))]))
    return source.document(join_pages(pages), {"page_unit": "sheet"})


_OPEN = "{{urn:oasis:names:tc:opendocument:xmlns:{}:1.0}}"

for _name in ("office", "style", "table", "text"):  # the prefixes that the library expects
    ElementTree.register_namespace(_name, _OPEN.format(_name).strip("{}"))


# The XML of a large sheet without these would need much memory.
_OPEN_FEATURE = re.compile(rb"text-position|-spanned|:annotation|draw:(?:object|image)")


def _open_sheets(
    archive: zipfile.ZipFile, source: SourceFile
) -> tuple[io.BytesIO | None, dict[str, list[str]], dict[str, list[Any]]]:
    """Return what the library does not read of an OpenDocument workbook.

    Returns:
        A workbook with superscripts as text, if it has any, and by sheet the charts, and the first
        and the last cell (row, column) of merged cells.
    """
    data = archive.read("content.xml")
    if not _OPEN_FEATURE.search(data):
        return None, {}, {}
    root = ElementTree.fromstring(data)
    scripts = raised_styles([root])
    for paragraph in root.iter(f"{_OPEN.format('text')}p") if scripts else ():
        runs = [(paragraph.text or "", 0)]
        for child in paragraph:
            script = scripts.get(attribute(child, "style-name"), "")
            runs += [("".join(child.itertext()), _HEIGHTS.get(script, 0)), (child.tail or "", 0)]
        if len(runs) > 1:
            paragraph[:], paragraph.text = [], joined_runs(runs)
    drawn: dict[str, list[str]] = {}
    merged: dict[str, list[Any]] = {}
    for table in root.iter(f"{_OPEN.format('table')}table"):
        name = attribute(table, "name")
        drawings = table.iter(f"{_OPEN.format('drawing')}object")
        objects = (attribute(one, "href") for one in drawings)
        blocks = ["\n".join(open_object(archive, target)) for target in objects]
        drawn[name] = [block.replace("|", "\\|") for block in blocks]
        merged[name] = list(_merged_cells(table))
        note_left_out(source, table, name)
    return _copy(archive, "content.xml", root) if scripts else None, drawn, merged


def _merged_cells(table: ElementTree.Element) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    prefix, row = f"{_OPEN.format('table')}number-", 0
    for line in table.iter(f"{_OPEN.format('table')}table-row"):
        column = 0
        for cell in line:
            wide = integer(cell.get(f"{prefix}columns-spanned"), 1)
            high = integer(cell.get(f"{prefix}rows-spanned"), 1)
            if wide * high > 1:
                yield (row, column), (row + high - 1, column + wide - 1)
            column += integer(cell.get(f"{prefix}columns-repeated"), 1)
        row += integer(line.get(f"{prefix}rows-repeated"), 1)


def _copy(archive: zipfile.ZipFile, name: str, root: ElementTree.Element) -> io.BytesIO:
    """Return a copy of a workbook with another content of a part."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as copy:
        for part in archive.namelist():
            if part.endswith((".xml", ".rels", "mimetype")):
                copy.writestr(
                    part, ElementTree.tostring(root) if part == name else archive.read(part)
                )
    file.seek(0)
    return file


def _repeat_merged(
    rows: list[list[Any]], ranges: Iterable[Any], first_row: int, first_column: int
) -> None:
    """Repeat the values of merged cells, except for titles over the whole width."""
    for (top, left), (bottom, right) in ranges:
        top, left = top - first_row, left - first_column
        below, after = min(bottom - first_row + 1, len(rows)), right - first_column + 1
        if not (0 <= top < below and 0 <= left < len(rows[top])):
            continue
        if below - top == 1 and left == 0 and after >= len(rows[top]):
            continue
        for row in rows[top:below]:
            width = min(after, len(row)) - left
            row[left : left + width] = [rows[top][left]] * width


_HEIGHTS = {"superscript": 1, "subscript": -1, "sup": 1, "sub": -1}


def _with_scripts(archive: zipfile.ZipFile) -> io.BytesIO | None:
    """Return a workbook with superscripts and subscripts as text. None: it has none."""
    name = "xl/sharedStrings.xml"
    if name not in archive.namelist() or b"vertAlign" not in (data := archive.read(name)):
        return None
    root = ElementTree.fromstring(data)
    for string in root:
        if runs := [child for child in string if local_name(child) == "r"]:
            heights = (next((attribute(v, "val") for v in named(r, "vertAlign")), "") for r in runs)
            pairs = zip(runs, heights, strict=True)
            text = joined_runs((texts(run, "t"), _HEIGHTS.get(h, 0)) for run, h in pairs)
            string[:] = runs[:1]
            for at, part in enumerate(named(string, "t")):
                part.text = "" if at else text
    return _copy(archive, name, root)


_PRINTED = re.compile(r"<odd(Header|Footer)>(.*?)</odd", re.S)

_PRINT_CODE = re.compile(r"&(?:[A-Z]|\"[^\"]*\"|\d+)")

_WITHOUT_VALUE = re.compile(rb"(?:</f>|<f[^>]*/>)(?:<v\s*/>|<v></v>)?</c>")


def _drawn(archive: zipfile.ZipFile, part: str, name: str, source: SourceFile) -> list[str]:
    """Return the charts, text boxes, headers and footers of a sheet."""
    blocks: list[str] = []
    data = archive.read(part)
    if empty := len(_WITHOUT_VALUE.findall(data)):
        source.note("formulas without a stored value", name, empty)
    for kind, target in relations(archive, part).values():
        if kind not in ("comments", "drawing"):
            continue
        root = xml_part(archive, target)
        note_left_out(source, root, name)
        blocks += ("\n".join(_frame_lines(shape)) for shape in named(root, "sp"))
        for kind_of, drawing in relations(archive, target).values():
            if kind_of in ("chart", "diagramData"):
                blocks.append("\n".join(drawing_lines(xml_part(archive, drawing))))
    printed = _PRINTED.findall(data.decode("utf-8", "replace"))
    blocks += running_heads((edge, _PRINT_CODE.sub(" ", unescape(text))) for edge, text in printed)
    return [block.replace("|", "\\|") for block in blocks]


def _displayed(value: object) -> object:
    """Return the displayed value: integers without a fraction, dates without midnight."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return value


_FOOTNOTE = re.compile(r"\{\s*(?:\\\*)?\\footnote\b")

_BRACE = re.compile(r"\\.|[{}]", re.S)

_OUTLINE_LEVEL = re.compile(r"\\outlinelevel([0-5])(?!\d) ?")

_PREFIXES = {"\ue020": "- "} | {chr(0xE010 + n): f"{'#' * (n + 1)} " for n in range(6)}
"""Markers of list items and of heading levels in a rich text, with their Markdown prefixes."""


_RUNNING_HEAD = re.compile(r"\{\\(header|footer)[lrf]?(?![a-z]) ?")

_SCRIPT = re.compile(r"\\(super|sub)(?![a-z\d]) ?")

_SCRIPT_END = re.compile(r"\\(?:nosupersub|plain|super0|sub0)(?![a-z\d])")

_MARKED_SCRIPT = re.compile("([\ue022\ue023])(.*?)\ue024")

_NOTE_START = re.compile(r"\s*\ue021\s*")

_PRIVATE = re.compile("[\ue000-\uf8ff]")  # these markers, and bullets of symbol fonts


def read_rtf(source: SourceFile) -> Document:
    """Read rich text with headings, lists, tables and inline footnotes."""
    data = source.path.read_bytes().decode("latin-1")
    heads = running_heads(
        (match[1], _plain(f"{{\\rtf1 {data[match.end() : _group_end(data, match)]}}}"))
        for match in _RUNNING_HEAD.finditer(data)
    )
    data = _marked(_marked(data, _FOOTNOTE), _SCRIPT)
    data = data.replace("{\\listtext", f"{{\\u{0xE020}?}}{{\\listtext")
    data = _OUTLINE_LEVEL.sub(lambda match: rf"{{\u{0xE010 + int(match[1])}?}}", data)
    for kind, name in (("pict", "pictures"), ("atnid", "comments"), ("object", "embedded objects")):
        if count := len(re.findall(rf"\\{kind}(?![a-z])", data)):
            source.note(f"{name} left out", count=count)
    text = _MARKED_SCRIPT.sub(_script_text, _plain(data))
    return source.document("\n\n".join([*_rtf_blocks(text), *heads]))


def _plain(data: str) -> str:
    with parser("striprtf"):
        from striprtf.striprtf import rtf_to_text
    return str(rtf_to_text(data, errors="replace"))  # type: ignore[no-untyped-call]


def _marked(data: str, pattern: re.Pattern[str]) -> str:
    """Put marks around footnotes, or superscripts and subscripts, which the parser would drop."""
    parts: list[str] = []
    at = 0
    for match in pattern.finditer(data):
        end = _group_end(data, match)
        mark, end_mark = 0xE021, ")"
        if pattern is _SCRIPT:
            ending = _SCRIPT_END.search(data, match.end(), end)
            end = ending.start() if ending else end
            mark, end_mark = 0xE022 if match[1] == "super" else 0xE023, f"\\u{0xE024}?"
            if f"\\u{0xE021}?" in data[match.end() : end]:  # the mark of a footnote
                continue
        if match.start() >= at:
            mark_group = f"{{\\u{mark}?" if pattern is _FOOTNOTE else f"\\u{mark}?"
            parts += (data[at : match.start()], mark_group, data[match.end() : end], end_mark)
            at = end
    return "".join([*parts, data[at:]])


def _group_end(data: str, start: re.Match[str]) -> int:
    """Return the position of the brace that ends the group of a match."""
    depth = 1
    for brace in _BRACE.finditer(data, start.end()):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return brace.start()
    return len(data)


def _script_text(match: re.Match[str]) -> str:
    start, end = match.span()
    write = superscript if match[1] == "\ue022" else subscript
    return write(match.string[:start][-40:], match[2].strip(), match.string[end : end + 1])


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
