"""Read spreadsheets as Markdown."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages, markdown_table
from .number_formats import general
from .office_xml import (
    attribute,
    drawing_lines,
    integer,
    named,
    note_left_out,
    open_object,
    opened_zip,
    parser,
    relations,
    running_heads,
    texts,
    xml_part,
)
from .open_sheets import read_open_cells
from .sheet_cells import SheetCells, read_cells, read_workbook, sheet_xml


def read_spreadsheet(source: SourceFile) -> Document:
    """Read a workbook.

    Each sheet becomes a page with a heading, a Markdown table and its charts.
    """
    with parser("python_calamine"):
        from python_calamine import CalamineWorkbook, PasswordError, SheetVisibleEnum
    parts = _Parts()
    is_packed = zipfile.is_zipfile(source.path)
    if is_packed:
        with opened_zip(source, "spreadsheet") as archive:
            if "content.xml" in archive.namelist():
                _read_open_parts(archive, source, parts)
            else:
                _read_parts(archive, source, parts)
    try:
        book = CalamineWorkbook.from_path(str(source.path))
    except PasswordError as error:
        raise source.encrypted("spreadsheet") from error
    if not is_packed:
        _note_unread(source, book.sheet_names)
    pages: list[str] = []
    for details in book.sheets_metadata:
        if details.visible != SheetVisibleEnum.Visible:
            source.note("hidden sheets read", details.name)
        sheet = book.get_sheet_by_name(details.name)
        pages.append(_page(sheet, details.name, parts, source))
    return source.document(join_pages(pages), {"page_unit": "sheet"})


def _page(sheet: Any, name: str, parts: _Parts, source: SourceFile) -> str:
    """Convert a sheet to Markdown."""
    values = sheet.to_python(skip_empty_area=True)
    start = sheet.start or (0, 0)
    shown = parts.cells.get(name, SheetCells())
    hidden = _show(values, shown, *start)
    if hidden:
        source.note("values hidden by their format left out", name, hidden)
    ranges = parts.merged.get(name) or sheet.merged_cell_ranges or ()
    _repeat_merged(values, ranges, *start)
    filled = [row for row in values if any(value != "" for value in row)]
    drawn = [text for text in parts.drawn.get(name, ()) if text]
    return "\n\n".join([f"# {name}", markdown_table(filled), *drawn])


@dataclass(slots=True)
class _Parts:
    """The parts of a workbook that the calamine library does not read.

    Attributes:
        cells: The displayed texts of cells, keyed by sheet.
        drawn: The charts, text boxes, headers and footers, keyed by sheet.
        merged: The first and last cell (row, column) of each merged cell, keyed by OpenDocument
            sheet.
    """

    cells: dict[str, SheetCells] = field(default_factory=dict)
    drawn: dict[str, list[str]] = field(default_factory=dict)
    merged: dict[str, list[Any]] = field(default_factory=dict)


def _show(rows: list[list[Any]], cells: SheetCells, first_row: int, first_column: int) -> int:
    """Replace the values of cells with their displayed texts.

    Return the number of values that are not displayed.
    """
    hidden = 0
    texts = cells.texts
    for row, values in enumerate(rows, start=first_row):
        for column, value in enumerate(values, start=first_column):
            if value == "":
                continue
            position = (row, column)
            if position in texts:
                shown: object = texts[position]
            elif isinstance(value, str):
                shown = cells.shown_text(position, value)
            else:
                shown = _displayed(value)
            values[column - first_column] = shown
            if shown == "" and value != 0:
                hidden += 1
    return hidden


_ERRORS = "error values left out"

_FORMATS = "number formats not read"

_OLD_RECORDS = {
    "comments left out": rb"\x15\0\x12\0\x19\0",
    "pictures left out": rb"\x15\0\x12\0\x08\0",
    "charts left out": rb"\x15\0\x12\0\x05\0",
    _ERRORS: rb"\x06\0.{8}\x02\0[\0-\x2b]\0{3}\xff\xff|\x05\x02\x08\0.{6}[\0-\x2b]\x01",
    "superscript and subscript fonts not read": rb"1\0.\0.{6}(?:\x90\x01|\xbc\x02)[\x01\x02]\0",
}
"""Patterns of records in Excel 97 to 2003 files that the calamine library does not read."""

_OLD_SHEET = b"\x09\x08\x10\0\0\x06\x10\0"  # the record at the start of a sheet


def _note_unread(source: SourceFile, names: Sequence[str]) -> None:
    """Record notes about everything that is not read from an Excel 97 to 2003 workbook.

    Args:
        source: The workbook.
        names: The names of its sheets.
    """
    data = source.path.read_bytes()
    source.note(_FORMATS, "the workbook")
    for kind, record in _OLD_RECORDS.items():
        if found := list(re.finditer(record, data, re.S)):
            sheet = data.count(_OLD_SHEET, 0, found[0].start())
            source.note(kind, ["the workbook", *names][min(sheet, len(names))], len(found))


def _read_parts(archive: zipfile.ZipFile, source: SourceFile, parts: _Parts) -> None:
    is_binary = "xl/workbook.bin" in archive.namelist()
    if is_binary:
        source.note("superscripts, comments, charts, error values not read", "the workbook")
        source.note(_FORMATS, "the workbook")
    workbook = read_workbook(archive)
    related = relations(archive, "xl/workbook.xml")
    for sheet in named(xml_part(archive, "xl/workbook.xml"), "sheet"):
        if relation := related.get(attribute(sheet, "id")):
            name = sheet.get("name", "")
            data = sheet_xml(archive, relation.part)
            parts.cells[name] = read_cells(data, name, workbook, source)
            _note_values(data, name, source)
            blocks = [*_drawn(archive, relation.part, name, source), *_heads(data)]
            parts.drawn[name] = [block.replace("|", "\\|") for block in blocks]


# The XML is parsed only if it contains one of these, because a large sheet needs much memory.
_OPEN_FEATURES = (b"-spanned", b":annotation", b"draw:object", b"draw:image", b'"error"')


def _read_open_parts(archive: zipfile.ZipFile, source: SourceFile, parts: _Parts) -> None:
    data = archive.read("content.xml")
    parts.cells = read_open_cells(archive, data, source)
    if not any(feature in data for feature in _OPEN_FEATURES):
        return
    root = ElementTree.fromstring(data)
    for table in named(root, "table"):
        name = attribute(table, "name")
        objects = (attribute(drawing, "href") for drawing in named(table, "object"))
        blocks = ["\n".join(open_object(archive, target)) for target in objects]
        parts.drawn[name] = [block.replace("|", "\\|") for block in blocks]
        parts.merged[name] = list(_merged_cells(table))
        note_left_out(source, table, name, is_sheet=True)
        errors = ("error" in cell.attrib.values() for cell in named(table, "table-cell"))
        if count := sum(errors):
            source.note(_ERRORS, name, count)


def _merged_cells(table: Element) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    row = 0
    for line in named(table, "table-row"):
        column = 0
        for cell in line:
            wide = integer(attribute(cell, "number-columns-spanned"), 1)
            high = integer(attribute(cell, "number-rows-spanned"), 1)
            if wide * high > 1:
                yield (row, column), (row + high - 1, column + wide - 1)
            column += integer(attribute(cell, "number-columns-repeated"), 1)
        row += integer(attribute(line, "number-rows-repeated"), 1)


def _repeat_merged(
    rows: list[list[Any]], ranges: Iterable[Any], first_row: int, first_column: int
) -> None:
    """Copy the values of merged cells to all cells that they span.

    Titles that span the whole width of the table are not repeated.
    """
    for (top, left), (bottom, right) in ranges:
        top -= first_row
        left -= first_column
        below = min(bottom - first_row + 1, len(rows))
        after = right - first_column + 1
        if not (0 <= top < below and 0 <= left < len(rows[top])):
            continue
        is_one_row = below - top == 1
        is_whole_row = left == 0 and after >= len(rows[top])
        if is_one_row and is_whole_row:
            continue
        for row in rows[top:below]:
            width = min(after, len(row)) - left
            row[left : left + width] = [rows[top][left]] * width


_PRINTED = re.compile(rb"<odd(Header|Footer)>(.*?)</odd", re.S)

_PRINT_CODE = re.compile(r"&(?:[A-Z]|\"[^\"]*\"|\d+)")

_ERROR = re.compile(rb"<c\b[^<>]*\st=[\"']e[\"']")

_WITHOUT_VALUE = re.compile(rb"(?:</f>|<f[^>]*/>)(?:<v\s*/>|<v></v>)?</c>")


def _note_values(data: bytes, name: str, source: SourceFile) -> None:
    """Record notes about the values that are missing from a sheet.

    Args:
        data: The XML of the sheet.
        name: The name of the sheet.
        source: The file, in which notes are recorded.
    """
    if empty := len(_WITHOUT_VALUE.findall(data)):
        source.note("formulas without a stored value", name, empty)
    if errors := len(_ERROR.findall(data)):
        source.note(_ERRORS, name, errors)


def _drawn(archive: zipfile.ZipFile, part: str, name: str, source: SourceFile) -> Iterator[str]:
    """Yield the charts and text boxes of a sheet.

    Args:
        archive: The archive of the workbook.
        part: The name of the XML part of the sheet.
        name: The name of the sheet.
        source: The file, in which notes are recorded.
    """
    for relation in relations(archive, part).values():
        if relation.kind not in ("comments", "drawing"):
            continue
        root = xml_part(archive, relation.part)
        note_left_out(source, root, name, is_sheet=True)
        for shape in named(root, "sp"):
            yield "\n".join(texts(paragraph, "t") for paragraph in named(shape, "p"))
        for drawing in relations(archive, relation.part).values():
            if drawing.kind in ("chart", "diagramData"):
                yield "\n".join(drawing_lines(xml_part(archive, drawing.part)))


def _heads(data: bytes) -> list[str]:
    """Return the page headers and footers of a sheet."""
    heads: list[tuple[str, str]] = []
    for edge, printed in _PRINTED.findall(data):
        text = unescape(printed.decode("utf-8", "replace"))
        heads.append((edge.decode(), _PRINT_CODE.sub(" ", text)))
    return running_heads(heads)


def _displayed(value: object) -> object:
    """Convert a value to the text that is displayed by default.

    Whole numbers have no decimals, dates at midnight have no time, and booleans are TRUE or FALSE.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return general(value)
    if isinstance(value, datetime.datetime) and value.time() == _MIDNIGHT:
        return value.date()
    return value


_MIDNIGHT = datetime.time()
