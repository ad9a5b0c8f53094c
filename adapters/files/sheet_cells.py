"""Read how the cells of an XLSX file are displayed: number formats, scripts, struck text."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ...nodegraph.readers.source_files import SourceFile
from .markup import TextRun, joined_runs, struck
from .number_formats import BUILT_IN, GENERAL, shown_number, shown_text
from .office_xml import integer, local_name, named, texts, xml_part

Position = tuple[int, int]
"""The row and the column of a cell, from 0."""


class CellStyle(NamedTuple):
    """How the cells of a style are displayed."""

    code: str = GENERAL
    is_struck: bool = False


PLAIN = CellStyle()


@dataclass(frozen=True, slots=True)
class SheetCells:
    """The cells of a sheet that are displayed otherwise than by their values.

    Attributes:
        texts: The displayed texts of cells.
        styles: The styles of cells with a text.
        strings: The texts of strings with scripts or struck runs, by the same texts without marks.
    """

    texts: dict[Position, str] = field(default_factory=dict)
    styles: dict[Position, CellStyle] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)

    def shown(self, position: Position, value: object) -> object:
        """Return the displayed text of a cell, or its value if it has no other text."""
        text = self.texts.get(position)
        if text is not None:
            return text
        if not isinstance(value, str):
            return value
        value = self.strings.get(value, value)
        style = self.styles.get(position, PLAIN)
        value = shown_text(value, style.code)
        return struck(value) if style.is_struck else value


class Workbook(NamedTuple):
    """The parts of an XLSX file that all of its sheets use."""

    styles: Mapping[str, CellStyle]
    strings: Mapping[int, str]
    starts_1904: bool


def read_workbook(archive: zipfile.ZipFile) -> Workbook:
    """Read the styles and the marked strings of a workbook."""
    properties = next(named(xml_part(archive, "xl/workbook.xml"), "workbookPr"), None)
    starts_1904 = properties is not None and is_on(properties.get("date1904"))
    styles = {str(number): style for number, style in enumerate(_styles(archive))}
    return Workbook(styles, _shared_strings(archive), starts_1904)


def is_on(value: str | None) -> bool:
    """Return whether an attribute of XML is true. A missing attribute is false."""
    return value in ("1", "true", "on")


def _styles(archive: zipfile.ZipFile) -> list[CellStyle]:
    root = xml_part(archive, "xl/styles.xml")
    codes = dict(BUILT_IN)
    for number_format in named(root, "numFmt"):
        codes[integer(number_format.get("numFmtId"))] = number_format.get("formatCode", GENERAL)
    fonts = [font for fonts in _children(root, "fonts") for font in _children(fonts, "font")]
    are_struck = [_is_struck(font) for font in fonts]
    styles: list[CellStyle] = []
    for formats in _children(root, "cellXfs"):
        for style in _children(formats, "xf"):
            font = integer(style.get("fontId"))
            code = codes.get(integer(style.get("numFmtId")), GENERAL)
            is_struck = 0 <= font < len(fonts) and are_struck[font]
            is_plain = code == GENERAL and not is_struck
            styles.append(PLAIN if is_plain else CellStyle(code, is_struck))
    return styles


def _children(element: Any, name: str) -> Iterator[Any]:
    return (child for child in element if local_name(child) == name)


def _is_struck(properties: Any) -> bool:
    return any(is_on(strike.get("val", "1")) for strike in named(properties, "strike"))


def _shared_strings(archive: zipfile.ZipFile) -> dict[int, str]:
    """Return the strings with scripts or struck runs, by number."""
    name = "xl/sharedStrings.xml"
    if name not in archive.namelist() or not _MARKED.search(archive.read(name)):
        return {}
    strings = enumerate(named(xml_part(archive, name), "si"))
    return {at: _marked(string) for at, string in strings if _has_marks(string)}


_MARKED = re.compile(rb"vertAlign|strike")

_HEIGHTS = {"superscript": 1, "subscript": -1}


def _has_marks(string: Any) -> bool:
    return next(named(string, "vertAlign", "strike"), None) is not None


def _marked(string: Any) -> str:
    """Return a string of several runs with its scripts and struck runs as text."""
    runs: list[TextRun] = []
    for part in string:
        height = next(named(part, "vertAlign"), part).get("val")
        if local_name(part) in ("r", "t"):
            runs.append(TextRun(texts(part, "t"), _HEIGHTS.get(height, 0), _is_struck(part)))
    return joined_runs(runs)


_CELL = re.compile(
    rb"""<(?:\w+:)?(?:
    row\b(?P<row>[^<>]*)
    |c(?=[\s>])(?:\ r="(?P<letters>[A-Z]+)\d+")?(?:\ s="(?P<style>\d+)")?(?:\ t="(?P<kind>\w+)")?
    (?P<others>[^<>]*))>
    (?:<(?:\w+:)?f\b(?:[^<>]*/>|[^<>]*>[^<]*</(?:\w+:)?f>))?
    (?P<content><(?:\w+:)?(?:v|is)\b[^<>]*>(?P<value>[^<]*))?""",
    re.X,
)
"""A row, or a cell with the usual order of its attributes, or with others."""

_ATTRIBUTE = re.compile(rb"\b(r|s|t|ht|hidden|min|max|width)\s*=\s*[\"']([^\"']*)[\"']")

_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^<>]*>")


def read_cells(data: bytes, name: str, workbook: Workbook, source: SourceFile) -> SheetCells:
    """Read the cells of a sheet that need more than their values. Note hidden rows and columns.

    Args:
        data: The XML of the sheet.
        name: The name of the sheet.
        workbook: The styles and strings of the workbook.
        source: The file, which records the notes.
    """
    cells = SheetCells()
    cells.strings.update(_sheet_strings(data))
    row = -1
    column = -1
    last_column = -1
    hidden_rows: list[int] = []
    is_hidden = False
    plain_styles = _plain_styles(workbook)
    has_marked = bool(workbook.strings)
    for match in _CELL.finditer(data):
        row_attributes, letters, style, kind, others, content, value = match.groups(b"")
        if match.start("row") >= 0:
            attributes = _attributes(row_attributes)
            row = integer(attributes.get("r"), row + 2) - 1
            column = -1
            is_hidden = _is_hidden(attributes, "ht")
            continue
        if others and not others.isspace():
            letters, style, kind = _cell_attributes(match)
        column = _column(letters) if letters else column + 1
        if not content:
            continue
        if column > last_column:
            last_column = column
        if is_hidden and (not hidden_rows or hidden_rows[-1] != row):
            hidden_rows.append(row)
        if style in plain_styles:  # the library's value is enough for most cells
            if kind == b"s" and not has_marked:
                continue
            if kind in _NUMBER_KINDS and len(value) < _FEW_DIGITS:
                continue
        form = workbook.styles.get(style.decode() or "0", PLAIN)
        text = value.decode("utf-8", "replace")
        _read_cell(cells, (row, column), form, kind.decode() or "n", text, workbook)
    if hidden_rows:
        source.note("hidden rows read", f"{name}, row {hidden_rows[0] + 1}", len(hidden_rows))
    if hidden := [at for at in _hidden_columns(data) if at <= last_column]:
        place = f"{name}, column {column_letters(hidden[0])}"
        source.note("hidden columns read", place, len(hidden))
    return cells


def _plain_styles(workbook: Workbook) -> set[bytes]:
    """Return the numbers of the styles that show values unchanged."""
    styles = {style.encode() for style, form in workbook.styles.items() if form is PLAIN}
    if b"0" in styles or not workbook.styles:
        styles.add(b"")  # cells without a style have style 0
    return styles


def _sheet_strings(data: bytes) -> dict[str, str]:
    """Return the marked texts of the strings in the sheet itself, by their plain texts."""
    if not _MARKED.search(data):
        return {}
    root = ElementTree.fromstring(data)
    strings = [string for string in named(root, "is") if _has_marks(string)]
    return {texts(string, "t"): _marked(string) for string in strings}


def _attributes(text: bytes) -> dict[str, str]:
    """Return the attributes of a row, a column or a cell."""
    found = _ATTRIBUTE.findall(text)
    return {name.decode(): value.decode("utf-8", "replace") for name, value in found}


def _cell_attributes(match: re.Match[bytes]) -> tuple[bytes, bytes, bytes]:
    """Return the letters of the column, the style and the kind of a cell with other attributes."""
    attributes = _attributes(match[0].partition(b">")[0])
    place = attributes.get("r", "").rstrip("0123456789")
    return place.encode(), attributes.get("s", "").encode(), attributes.get("t", "").encode()


def _is_hidden(attributes: Mapping[str, str], size: str) -> bool:
    """Return whether a row or a column is hidden, or has no size."""
    is_flat = re.fullmatch(r"0(?:\.0*)?", attributes.get(size, "")) is not None
    return is_flat or is_on(attributes.get("hidden"))


def _hidden_columns(data: bytes) -> Iterator[int]:
    for match in _COLUMN.finditer(data):
        attributes = _attributes(match[0])
        if _is_hidden(attributes, "width"):
            first = integer(attributes.get("min"), 1)
            last = integer(attributes.get("max"), first)
            yield from range(first - 1, min(last, _MAX_COLUMNS))


_MAX_COLUMNS = 16_384


_FEW_DIGITS = 15

_NUMBER_KINDS = (b"", b"n")


def _read_cell(
    cells: SheetCells,
    position: Position,
    style: CellStyle,
    kind: str,
    value: str,
    workbook: Workbook,
) -> None:
    """Store the displayed text of a number, or the style of a text."""
    if kind == "n":
        if style is PLAIN and (len(value) < _FEW_DIGITS or not value.isdigit()):
            return  # the library's value is enough
        text = shown_number(value, style.code, starts_1904=workbook.starts_1904)
        if text is not None:
            cells.texts[position] = struck(text) if style.is_struck else text
    elif kind in ("s", "str", "inlineStr"):
        is_shared = kind == "s" and len(workbook.strings) > 0
        marked = workbook.strings.get(integer(value, -1)) if is_shared else None
        if marked is not None:
            text = shown_text(marked, style.code)
            is_struck = style.is_struck and "~~" not in text
            cells.texts[position] = struck(text) if is_struck else text
        elif style is not PLAIN:
            cells.styles[position] = style


@lru_cache(maxsize=2_000)
def _column(letters: bytes) -> int:
    """Return the number of a column, from 0, by its letters."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - ord("A") + 1
    return number - 1


def column_letters(number: int) -> str:
    """Return the letters of a column, from 0.

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
