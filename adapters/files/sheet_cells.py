"""Read the displayed texts of cells in XLSX files, including number formats and strikethrough."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ...nodegraph.readers.source_files import SourceFile
from .markup import TextRun, joined_runs, struck
from .number_formats import BUILT_IN, GENERAL, shown_number, shown_text
from .office_xml import integer, local_name, named, texts, xml_part

Position = tuple[int, int]
"""The row and column index of a cell, both starting at 0."""


class CellStyle(NamedTuple):
    """The formatting of all cells that have a certain style."""

    code: str = GENERAL
    is_struck: bool = False

    def marked(self, text: str) -> str:
        """Return a displayed text, marked in Markdown if the style strikes it through."""
        if self.is_struck and "~~" not in text:
            return struck(text)
        return text


PLAIN = CellStyle()


@dataclass(frozen=True, slots=True)
class SheetCells:
    """The cells of a sheet whose displayed text differs from their value.

    Attributes:
        texts: The displayed texts of cells.
        styles: The styles of cells that contain strings.
        strings: The texts of strings that contain superscripts, subscripts or strikethrough text,
            keyed by the same text without marks.
    """

    texts: dict[Position, str] = field(default_factory=dict)
    styles: dict[Position, CellStyle] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)

    def shown_text(self, position: Position, text: str) -> str:
        """Return the displayed text of a cell that contains a string."""
        text = self.strings.get(text, text)
        style = self.styles.get(position)
        if style is None:
            return text
        return style.marked(shown_text(text, style.code))


class Workbook(NamedTuple):
    """The parts of an XLSX file that are shared by all of its sheets.

    Attributes:
        styles: The styles, keyed by number. Cells without a style number have the first style.
        strings: The strings that contain superscripts, subscripts or strikethrough text, keyed by
            number.
        starts_1904: Whether days are counted from 1904.
    """

    styles: Mapping[bytes, CellStyle]
    strings: Mapping[bytes, str]
    starts_1904: bool


def read_workbook(archive: zipfile.ZipFile) -> Workbook:
    """Read the styles of a workbook, and its strings with special formatting."""
    properties = next(named(xml_part(archive, "xl/workbook.xml"), "workbookPr"), None)
    starts_1904 = properties is not None and is_on(properties.get("date1904"))
    styles = {b"%d" % number: style for number, style in enumerate(_styles(archive))}
    styles[b""] = styles.get(b"0", PLAIN)
    return Workbook(styles, _shared_strings(archive), starts_1904)


def is_on(value: str | None) -> bool:
    """Return whether a boolean XML attribute is true. A missing attribute is false."""
    return value in ("1", "true", "on")


def _styles(archive: zipfile.ZipFile) -> list[CellStyle]:
    root = xml_part(archive, "xl/styles.xml")
    codes = dict(BUILT_IN)
    for number_format in named(root, "numFmt"):
        codes[integer(number_format.get("numFmtId"))] = number_format.get("formatCode", GENERAL)
    struck_fonts: set[int] = set()
    for fonts in _children(root, "fonts"):
        struck_fonts.update(at for at, font in enumerate(fonts) if _is_struck(font))
    styles: list[CellStyle] = []
    for formats in _children(root, "cellXfs"):
        for style in _children(formats, "xf"):
            code = codes.get(integer(style.get("numFmtId")), GENERAL)
            found = CellStyle(code, integer(style.get("fontId")) in struck_fonts)
            styles.append(PLAIN if found == PLAIN else found)
    return styles


def _children(element: Any, name: str) -> Iterator[Any]:
    return (child for child in element if local_name(child) == name)


def _is_struck(properties: Any) -> bool:
    return any(is_on(strike.get("val", "1")) for strike in named(properties, "strike"))


def _shared_strings(archive: zipfile.ZipFile) -> dict[bytes, str]:
    """Return the strings that contain superscripts, subscripts or strikethrough text.

    The result is a dictionary that is keyed by the number of the string.
    """
    name = "xl/sharedStrings.xml"
    if name not in archive.namelist():
        return {}
    if not _may_have_marks(archive.read(name)):
        return {}
    strings = enumerate(named(xml_part(archive, name), "si"))
    return {b"%d" % at: _marked(string) for at, string in strings if _has_marks(string)}


def _may_have_marks(data: bytes) -> bool:
    return b"vertAlign" in data or b"strike" in data


_HEIGHTS = {"superscript": 1, "subscript": -1}


def _has_marks(string: Any) -> bool:
    return next(named(string, "vertAlign", "strike"), None) is not None


def _marked(string: Any) -> str:
    """Convert a string that consists of several runs to plain text with Markdown marks."""
    runs: list[TextRun] = []
    for part in string:
        height = next(named(part, "vertAlign"), part).get("val")
        if local_name(part) in ("r", "t"):
            runs.append(TextRun(texts(part, "t"), _HEIGHTS.get(height, 0), _is_struck(part)))
    return joined_runs(runs)


_ROW = re.compile(rb"<row\b([^<>]*)>")

_CELL = re.compile(
    rb"""<c(?=[\s>])
    (?:\ r="(?P<letters>[A-Z]+)\d+")?(?:\ s="(?P<style>\d+)")?(?:\ t="(?P<kind>\w+)")?
    (?P<others>[^<>]*)>
    (?:<f\b(?:[^<>]*/>|[^<>]*>[^<]*</f>))?
    (?P<content><(?:v|is)\b[^<>]*>(?P<value>[^<]*))?""",
    re.X,
)
"""A cell. If its attributes appear in the usual order, they are captured separately."""

_ATTRIBUTE = re.compile(rb"\b(r|s|t|ht|hidden|min|max|width)\s*=\s*[\"']([^\"']*)[\"']")

_COLUMN = re.compile(rb"<col\b[^<>]*>")


def sheet_xml(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the XML of a sheet in which element names have no namespace prefix."""
    data = archive.read(name)
    prefix = re.search(rb"<(\w+:)worksheet\b", data[:_START])
    if prefix is None:
        return data
    return data.replace(b"<" + prefix[1], b"<").replace(b"</" + prefix[1], b"</")


_START = 2_000  # number of bytes in which the first element must start


def read_cells(data: bytes, name: str, workbook: Workbook, source: SourceFile) -> SheetCells:
    """Read the cells of a sheet whose displayed text differs from their value.

    Notes are recorded for hidden rows and columns.

    Args:
        data: The XML of the sheet, without namespace prefixes.
        name: The name of the sheet.
        workbook: The styles and strings of the workbook.
        source: The file, in which notes are recorded.
    """
    cells = SheetCells(strings=_sheet_strings(data))
    hidden_rows: list[int] = []
    last_column = -1
    for row in _rows(data):
        column = -1
        for column, style, kind, value in _filled_cells(data, row):
            form = workbook.styles.get(style, PLAIN)
            if form is PLAIN and len(value) < _MANY_DIGITS and not workbook.strings:
                continue  # for most cells, the value that calamine returns is sufficient
            _read_cell(cells, (row.number, column), form, kind, value, workbook)
        last_column = max(last_column, column)
        if row.is_hidden and column >= 0:
            hidden_rows.append(row.number)
    note_hidden(
        source, name, hidden_rows, [at for at in _hidden_columns(data) if at <= last_column]
    )
    return cells


def note_hidden(source: SourceFile, name: str, rows: Sequence[int], columns: Sequence[int]) -> None:
    """Record notes about the hidden rows and columns of a sheet."""
    if rows:
        source.note("hidden rows read", f"{name}, row {rows[0] + 1}", len(rows))
    if columns:
        place = f"{name}, column {column_letters(columns[0])}"
        source.note("hidden columns read", place, len(columns))


_MANY_DIGITS = 15  # numbers with fewer digits are read exactly by calamine


def _read_cell(
    cells: SheetCells,
    position: Position,
    style: CellStyle,
    kind: bytes,
    value: bytes,
    workbook: Workbook,
) -> None:
    """Store the displayed text of a cell.

    If the cell contains a string, store its style instead.
    """
    text: str | None = None
    if kind in (b"", b"n"):
        is_exact = len(value) < _MANY_DIGITS or not value.isdigit()
        if style is PLAIN and is_exact:
            return
        number = value.decode("utf-8", "replace")
        text = shown_number(number, style.code, starts_1904=workbook.starts_1904)
    elif kind == b"s" and value in workbook.strings:
        text = shown_text(workbook.strings[value], style.code)
    elif kind in (b"s", b"str", b"inlineStr") and style is not PLAIN:
        cells.styles[position] = style
    if text is not None:
        cells.texts[position] = style.marked(text)


class _SheetRow(NamedTuple):
    """A row, with its index (starting at 0) and the position of its cells in the XML."""

    number: int
    is_hidden: bool
    start: int
    end: int


def _rows(data: bytes) -> Iterator[_SheetRow]:
    """Yield the rows of a sheet."""
    matches = list(_ROW.finditer(data))
    ends = [*(match.start() for match in matches[1:]), len(data)]
    number = -1
    for match, end in zip(matches, ends, strict=False):
        attributes = _attributes(match[1])
        number = integer(attributes.get("r"), number + 2) - 1
        yield _SheetRow(number, _is_hidden(attributes, "ht"), match.end(), end)


def _filled_cells(data: bytes, row: _SheetRow) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield the column, style, type and value of each cell in a row that has a value."""
    column = -1
    for letters, style, kind, others, content, value in _CELL.findall(data, row.start, row.end):
        if others not in _NO_ATTRIBUTES:
            attributes = _attributes(others)
            letters = letters or attributes.get("r", "").rstrip("0123456789").encode()
            style = style or attributes.get("s", "").encode()
            kind = kind or attributes.get("t", "").encode()
        column = _column(letters) if letters else column + 1
        if content:
            yield column, style, kind, value


_NO_ATTRIBUTES = (b"", b"/", b" ", b" /")


def _sheet_strings(data: bytes) -> dict[str, str]:
    """Return the strings with special formatting that are stored in the sheet itself.

    The keys are the same texts without marks.
    """
    if not _may_have_marks(data):
        return {}
    root = ElementTree.fromstring(data)
    strings = [string for string in named(root, "is") if _has_marks(string)]
    return {texts(string, "t"): _marked(string) for string in strings}


def _attributes(text: bytes) -> dict[str, str]:
    """Parse the attributes of a row, column or cell."""
    found = _ATTRIBUTE.findall(text)
    return {name.decode(): value.decode("utf-8", "replace") for name, value in found}


def _is_hidden(attributes: Mapping[str, str], size: str) -> bool:
    """Return whether a row or column is hidden, or has a width or height of zero."""
    is_flat = re.fullmatch(r"0(?:\.0*)?", attributes.get(size, "")) is not None
    return is_flat or is_on(attributes.get("hidden"))


def _hidden_columns(data: bytes) -> Iterator[int]:
    for match in _COLUMN.finditer(data, 0, max(0, data.find(b"<sheetData"))):
        attributes = _attributes(match[0])
        if _is_hidden(attributes, "width"):
            first = integer(attributes.get("min"), 1)
            last = integer(attributes.get("max"), first)
            yield from range(first - 1, min(last, _MAX_COLUMNS))


_MAX_COLUMNS = 16_384


@lru_cache(maxsize=2_000)
def _column(letters: bytes) -> int:
    """Convert the letters of a column to its index, which starts at 0."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - ord("A") + 1
    return number - 1


def column_letters(number: int) -> str:
    """Convert the index of a column to letters. The index of the first column is 0.

    Example:
        >>> column_letters(0), column_letters(27)
        ('A', 'AB')
    """
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
