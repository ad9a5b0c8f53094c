"""Read spreadsheets."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from ...nodegraph.document import Document
from ...nodegraph.readers.pages import join_pages, markdown_table
from ...nodegraph.readers.source_file import SourceFile
from .packed_files import check_zip, parser


def read_spreadsheet(source: SourceFile) -> Document:
    """Read a workbook: each sheet is a heading and a Markdown table, a page break between two."""
    with source.path.open("rb") as file:
        if file.read(2) == b"PK":
            check_zip(source, "spreadsheet")
    with parser("python_calamine"):
        from python_calamine import CalamineWorkbook, PasswordError
    try:
        book = CalamineWorkbook.from_path(str(source.path))
    except PasswordError as error:
        raise source.encrypted("spreadsheet") from error
    sheets = []
    for name in book.sheet_names:
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        filled = [row for row in rows if any(value != "" for value in row)]
        sheets.append(f"# {name}\n\n{markdown_table(map(_values, filled))}")
    return source.document(join_pages(sheets), {"page_unit": "sheet"})


def _values(row: Iterable[object]) -> list[object]:
    return [_value(value) for value in row]


def _value(value: object) -> object:
    """Return a number as it is shown: whole ones without a fraction, dates without midnight."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date()
    return value
