"""Read the displayed texts of the cells in OpenDocument spreadsheets."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.readers.source_files import SourceFile
from .markup import TextRun, joined_runs
from .number_formats import is_ambiguous_date
from .office_xml import attribute, integer, is_line_through, local_name, raised, xml_part
from .sheet_cells import SheetCells, note_hidden

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"

# Complete names, including namespaces, are compared because a sheet may have millions of elements.
_PARAGRAPH = f"{_TEXT}p"

_AUTOMATIC_STYLES = f"{_OFFICE}automatic-styles"

_SHEET = f"{_TABLE}table"

_COLUMN = f"{_TABLE}table-column"

_ROW = f"{_TABLE}table-row"

_COLUMNS_REPEATED = f"{_TABLE}number-columns-repeated"

_ROWS_REPEATED = f"{_TABLE}number-rows-repeated"

_VISIBILITY = f"{_TABLE}visibility"

_STYLE_NAME = f"{_TABLE}style-name"

_VALUE_TYPE = f"{_OFFICE}value-type"

_PLAIN = TextRun("")

_TYPED = ("float", "percentage", "currency", "date", "time", "boolean")
"""The types of cells that display a formatted value."""

_MAX_REPEATED = 1_000  # maximum number of rows or columns that a repeated cell may have

_HIDDEN = ("collapse", "filter")


@dataclass(slots=True)
class _Sheet:
    """The state of a sheet while its rows are being read."""

    name: str = ""
    row: int = 0
    column: int = 0
    last_column: int = -1
    hidden_rows: list[int] = field(default_factory=list)
    hidden_columns: list[int] = field(default_factory=list)
    cells: SheetCells = field(default_factory=SheetCells)


def read_open_cells(
    archive: zipfile.ZipFile, content: bytes, source: SourceFile
) -> dict[str, SheetCells]:
    """Read the displayed texts of the cells in each sheet.

    Notes are recorded for hidden rows and columns. The rows are parsed one at a time, because the
    complete XML tree of a large sheet would need too much memory.

    Returns:
        The cells by the name of the sheet.
    """
    styles: dict[str, TextRun] = {}
    _add_styles(styles, xml_part(archive, "styles.xml"))
    sheets: list[_Sheet] = []
    sheet = _Sheet()
    for _, element in ElementTree.iterparse(io.BytesIO(content)):
        tag = element.tag
        if tag == _ROW:
            _read_row(sheet, element, styles)
            element.clear()
        elif tag == _COLUMN:
            _read_column(sheet, element)
        elif tag == _SHEET:
            sheet.name = attribute(element, "name")
            sheets.append(sheet)
            sheet = _Sheet()
        elif tag == _AUTOMATIC_STYLES:
            _add_styles(styles, element)
    for sheet in sheets:
        columns = [column for column in sheet.hidden_columns if column <= sheet.last_column]
        note_hidden(source, sheet.name, sheet.hidden_rows, columns)
    return {sheet.name: sheet.cells for sheet in sheets}


def _add_styles(styles: dict[str, TextRun], root: Element) -> None:
    """Add the formatting of all styles below an element, in the form of empty text runs."""
    for style in root.iter():
        if local_name(style) == "style":
            parent = styles.get(attribute(style, "parent-style-name"), _PLAIN)
            is_struck = is_line_through(style)
            if is_struck is None:
                is_struck = parent.is_struck
            form = TextRun("", raised(style) or parent.height, is_struck)
            styles[attribute(style, "name")] = form


def _repeated(element: Element, name: str) -> int:
    count = element.get(name)
    if count is None:
        return 1
    return max(1, integer(count, 1))


def _read_column(sheet: _Sheet, element: Element) -> None:
    count = _repeated(element, _COLUMNS_REPEATED)
    if element.get(_VISIBILITY) in _HIDDEN:
        sheet.hidden_columns += range(sheet.column, sheet.column + min(count, _MAX_REPEATED))
    sheet.column += count


def _read_row(sheet: _Sheet, line: Element, styles: Mapping[str, TextRun]) -> None:
    """Read the displayed texts of the cells in a row."""
    count = _repeated(line, _ROWS_REPEATED)
    column = 0
    last_column = -1
    for cell in line:
        width = _repeated(cell, _COLUMNS_REPEATED)
        paragraphs = cell.findall(_PARAGRAPH)
        if paragraphs:
            last_column = column + min(width, _MAX_REPEATED) - 1
            text = _shown(cell, paragraphs, styles)
            if text is not None:
                _store(sheet, text, column, width, count)
        column += width
    sheet.last_column = max(sheet.last_column, last_column)
    if last_column >= 0 and line.get(_VISIBILITY) in _HIDDEN:
        sheet.hidden_rows += range(sheet.row, sheet.row + min(count, _MAX_REPEATED))
    sheet.row += count


def _store(sheet: _Sheet, text: str, column: int, width: int, height: int) -> None:
    if width == height == 1:
        sheet.cells.texts[sheet.row, column] = text
        return
    for row in range(sheet.row, sheet.row + min(height, _MAX_REPEATED)):
        for at in range(column, column + min(width, _MAX_REPEATED)):
            sheet.cells.texts[row, at] = text


def _shown(cell: Element, paragraphs: list[Element], styles: Mapping[str, TextRun]) -> str | None:
    """Return the displayed text of a cell, or None if it is equal to the value of the cell."""
    kind = cell.get(_VALUE_TYPE)
    style = styles.get(cell.get(_STYLE_NAME, ""), _PLAIN)
    is_typed = kind in _TYPED
    first, *others = paragraphs
    if others or len(first) or style != _PLAIN:
        lines = [list(_runs(paragraph, style, styles)) for paragraph in paragraphs]
        if not is_typed and not any(_has_marks(line) for line in lines):
            return None
        text = "\n".join(joined_runs(line) for line in lines)
    elif is_typed:  # this applies to most cells
        text = first.text or ""
    else:
        return None
    if not is_typed:
        return text
    text = " ".join(text.split())
    if kind == "date" and is_ambiguous_date(text):
        return None
    return text


def _has_marks(runs: Iterable[TextRun]) -> bool:
    return any(run.height or run.is_struck for run in runs)


def _runs(element: Element, form: TextRun, styles: Mapping[str, TextRun]) -> Iterator[TextRun]:
    """Yield the text runs of a paragraph or a part of it."""
    if element.text:
        yield form._replace(text=element.text)
    for child in element:
        name = local_name(child)
        if name == "s":
            yield form._replace(text=" " * max(1, integer(attribute(child, "c"), 1)))
        elif name in ("tab", "line-break"):
            yield form._replace(text=" ")
        elif name != "annotation":
            yield from _runs(child, styles.get(attribute(child, "style-name"), form), styles)
        if child.tail:
            yield form._replace(text=child.tail)
