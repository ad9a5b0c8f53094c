"""Parse Markdown and CSV tables in a model's answer."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from .chinese_script import chinese_pattern

_SEPARATOR_ROW = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")

_ROW = re.compile(r"\s*\|.*\|\s*")

_TEXT_COLUMN = chinese_pattern(
    r"\W*(?:(?:sub|new|next|search|rewritten)[ _-]?)?"
    r"(?:questions?|quer(?:y|ies)|phrasings?|rewrites?|rewritten|改写后"
    r"|alternatives?|variants?|子?问题|查询|改写|问法)\W*",
    re.I,
)


def read_table(
    lines: Sequence[str], column: re.Pattern[str] = _TEXT_COLUMN
) -> list[dict[str, str]] | None:
    """Return the rows of a Markdown or CSV table as dictionaries, or None if there is no table.

    Args:
        lines: The lines of the answer.
        column: A pattern for the name of the requested column. A row with such a name is a header.

    Example:
        >>> read_table(["| # | question |", "|---|---|", "| 1 | Who wrote it? |"])
        [{'#': '1', 'question': 'Who wrote it?'}]
    """
    filled = [line for line in lines if line.strip()]
    rows = [line for line in filled if _ROW.fullmatch(line) or _SEPARATOR_ROW.fullmatch(line)]
    bars = [line for line in rows if "|" in line]
    if len(bars) > 1:
        return _markdown_rows(bars, column)
    return _csv_rows(filled, column)


def _markdown_rows(lines: Sequence[str], column: re.Pattern[str]) -> list[dict[str, str]]:
    cells = [_cells(line) for line in lines if not _SEPARATOR_ROW.fullmatch(line)]
    has_header = any(_SEPARATOR_ROW.fullmatch(line) for line in lines[1:2])
    if has_header or any(column.fullmatch(cell) for cell in cells[0]):
        header = cells[0]
        body = cells[1:]
    else:
        header = [str(number) for number in range(len(cells[0]))]
        body = cells
    return [dict(zip(header, row, strict=False)) for row in body]


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]


def _csv_rows(lines: Sequence[str], column: re.Pattern[str]) -> list[dict[str, str]] | None:
    if len(lines) < 2:
        return None
    delimiter = next((sign for sign in "\t;,|" if sign in lines[0]), None)
    if delimiter is None:
        return None
    # Python 3.10 cannot read NUL characters.
    without_nul = [line.replace("\0", "") for line in lines]
    try:
        table = [*csv.reader(without_nul, delimiter=delimiter, skipinitialspace=True)]
    except csv.Error:  # A cell exceeds the length limit of the csv module.
        return None
    header = [cell.strip() for cell in table[0]]
    if not any(column.fullmatch(cell) for cell in header):
        return None
    if any(len(cell.split()) > 3 for cell in header):
        return None
    last = len(header) - 1
    rows: list[dict[str, str]] = []
    for row in table[1:]:
        if len(row) > len(header):  # The text contains the delimiter but is not in quotation marks.
            row = [*row[:last], f"{delimiter} ".join(row[last:])]
        rows.append(dict(zip(header, row, strict=False)))
    return rows


def _is_label_column(rows: Sequence[dict[str, str]], name: str) -> bool:
    """Return whether all cells of a column are labels, as in the rows "Query" and "Question"."""
    return all(_TEXT_COLUMN.fullmatch(row.get(name, "")) for row in rows)


def text_column(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the texts in the column of queries, or in the column with the longest texts."""
    if not rows:
        return []
    names = [name for name in rows[0] if not _is_label_column(rows, name)]
    named = [name for name in names if _TEXT_COLUMN.fullmatch(name)]
    if named:
        name = named[0]
    else:
        name = max(names, key=lambda name: sum(len(row.get(name, "")) for row in rows), default="")
    return [row[name] for row in rows if row.get(name, "").strip()]


def named_column(rows: Sequence[dict[str, str]], column: re.Pattern[str]) -> list[str]:
    """Return the texts in the column whose name matches a pattern.

    If no name matches, the first column that does not consist of numbers is used.

    Example:
        >>> named_column([{"#": "1", "Term": "tea"}], re.compile("term", re.I))
        ['tea']
    """
    names = [*rows[0]] if rows else []
    named = [name for name in names if column.fullmatch(name)]
    texts = [name for name in names if not all(_is_number(row.get(name)) for row in rows)]
    chosen = [*named, *texts]
    if not chosen:
        return []
    return [row[chosen[0]] for row in rows if row.get(chosen[0], "").strip()]


def _is_number(cell: str | None) -> bool:
    return re.fullmatch(r"\W*\d{0,4}\W*", cell or "") is not None
