"""Read tables: spreadsheets, and values separated by commas or tabs."""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterable

from ..document import Document
from .pages import join_pages, markdown_table
from .source_file import SourceFile, check_zip, parser
from .text import decoded


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


def read_csv(source: SourceFile) -> Document:
    """Read values separated by commas, semicolons, tabs or bars, as a Markdown table."""
    text, encoding = decoded(source)
    metadata = {} if encoding == "utf-8" else {"encoding": encoding}
    if source.path.suffix.lower() == ".tsv":
        delimiter = "\t"
    else:
        lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
        delimiter = max(",;\t|", key=lambda mark: min((n.count(mark) for n in lines), default=0))
    import csv

    csv.field_size_limit(10_000_000)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(row)]
    return source.document(markdown_table(rows), metadata)
