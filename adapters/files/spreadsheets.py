"""Read spreadsheets."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any
from xml.etree import ElementTree

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages, markdown_table
from .markup import joined_runs
from .office_xml import (
    attribute,
    drawing_lines,
    integer,
    local_name,
    named,
    note_left_out,
    open_object,
    opened_zip,
    parser,
    raised_styles,
    relations,
    running_heads,
    texts,
    xml_part,
)


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
        for shape in named(root, "sp"):
            blocks.append("\n".join(texts(paragraph, "t") for paragraph in named(shape, "p")))
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
