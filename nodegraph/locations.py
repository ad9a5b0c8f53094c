"""Where the parts of a text stand in its file: on which page and where, in which lines or cells."""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import add, sub
from typing import NamedTuple

SCALE = 10_000
"""How many units the width and the height of a page have in a layout."""

LAYOUTS = "layout"
"""Kind of values in the store: the layouts of documents, by their ids."""


class TextBox(NamedTuple):
    """A part of a text that is a rectangle in its file.

    On a page it is in units of ``SCALE`` from its upper left corner; in a sheet in rows and
    columns from 0, and a box is a row. Of a box that is a line, parts have a place of their
    own: it goes from left to right.
    """

    start: int
    end: int
    left: int
    top: int
    right: int
    bottom: int
    is_line: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """Say where the boxes of a text stand in its file.

    Args:
        boxes: In the order of the text; they don't overlap there.
        in_cells: Whether they are rows of a sheet.
    """

    boxes: Sequence[TextBox]
    in_cells: bool = False

    def to_bytes(self) -> bytes:
        """Pack the layout, in some 9 bytes a line."""
        columns = list(zip(*self.boxes, strict=True))
        if columns:
            starts, ends = columns[:2]
            columns[0] = tuple(map(sub, starts, (0, *starts)))
            columns[1] = tuple(map(sub, ends, starts))
        numbers = [int(self.in_cells), *chain.from_iterable(columns)]
        return zlib.compress(struct.pack(f"<{len(numbers)}i", *numbers), 1)

    @classmethod
    def from_bytes(cls, value: bytes) -> Layout:
        """Restore what ``to_bytes`` returned."""
        data = zlib.decompress(value)
        in_cells, *numbers = struct.unpack(f"<{len(data) // 4}i", data)
        count = len(numbers) // len(TextBox._fields)
        if not count:
            return cls((), bool(in_cells))
        offsets, lengths, *columns = (
            numbers[at : at + count] for at in range(0, len(numbers), count)
        )
        starts = list(accumulate(offsets))
        ends = map(add, starts, lengths)
        return cls(tuple(map(TextBox, starts, ends, *columns)), bool(in_cells))


@dataclass(frozen=True, slots=True)
class Location:
    """One place in a file where a part of its text stands.

    Attributes:
        page: The page, slide, sheet, cell or chapter, from 1; None where a file has none.
        rectangle: Left, top, right and bottom on the page as shares of its width and height, from
            its upper left corner: of one line, or of one cell of a table. None where it is not
            known. Where a line is marked in part, left and right are estimated by its letters.
        lines: The first and the last line of a text file, from 1; None for others.
        cells: The cells of a sheet, such as ``"B2"`` or ``"A2:C4"``; None for others.
    """

    page: int | None = None
    rectangle: tuple[float, float, float, float] | None = None
    lines: tuple[int, int] | None = None
    cells: str | None = None


def locations_in(
    text: str, start: int, end: int, layout: Layout | None, page_break: str | None, has_lines: bool
) -> list[Location]:
    """Return where a part of a text stands, in the order of the text.

    Args:
        text: The whole text.
        start: Where the part begins.
        end: Where it ends, exclusive.
        layout: Where its boxes stand; None if that is not known.
        page_break: What stands between two pages; None for a text without pages.
        has_lines: Whether the lines of the text are those of its file.
    """
    locations: list[Location] = []
    for page, first, last in _page_spans(text, start, end, page_break):
        boxes = [] if layout is None else list(_boxes(layout, first, last))
        if layout is not None and layout.in_cells and boxes:
            locations.append(Location(page, cells=_cells(text, boxes, first, last)))
        elif boxes:
            locations += (Location(page, _rectangle(text, p, first, last)) for p in boxes)
        elif has_lines:
            line = text.count("\n", 0, first) + 1
            locations.append(Location(page, lines=(line, line + text.count("\n", first, last))))
        elif page is not None:
            locations.append(Location(page))
    return locations


def _page_spans(
    text: str, start: int, end: int, page_break: str | None
) -> Iterator[tuple[int | None, int, int]]:
    """Yield the pages on which a part of a text stands, and its span on each, without blanks."""
    page = None if page_break is None else text.count(page_break, 0, start) + 1
    parts = [text[start:end]] if page_break is None else text[start:end].split(page_break)
    for part in parts:
        if stripped := part.strip():
            first = start + len(part) - len(part.lstrip())
            yield page, first, first + len(stripped)
        start += len(part) + len(page_break or "")
        page = None if page is None else page + 1


def _boxes(layout: Layout, start: int, end: int) -> Iterator[TextBox]:
    """Yield the boxes in which a part of the text stands."""
    first = bisect_right(layout.boxes, start, key=lambda box: box.end)
    for box in layout.boxes[first:]:
        if box.start >= end:
            return
        yield box


def _rectangle(text: str, box: TextBox, start: int, end: int) -> tuple[float, float, float, float]:
    """Return the rectangle of that part of a box which is in a part of its text."""
    first, last = max(start, box.start), min(end, box.end)
    left, right = float(box.left), float(box.right)
    if box.is_line and (first > box.start or last < box.end):
        advance = (right - left) / (_width(text[box.start : box.end]) or 1)
        left += advance * _width(text[box.start : first])
        right = left + advance * _width(text[first:last])
    edges = (round(left), box.top, round(right), box.bottom)
    x0, y0, x1, y1 = (min(max(edge / SCALE, 0.0), 1.0) for edge in edges)
    return x0, y0, x1, y1


_BAR = re.compile(r"(?<!\\)\|")

_NARROW = dict.fromkeys("iljtfrI.,;:'|!()[]{}\"- ", 0.6)

_CHARACTER_WIDTHS = {**_NARROW, **dict.fromkeys("mwMWABCDEGHKNOPQRSUVXYZ%@", 1.4)}


def _width(text: str) -> float:
    """Estimate how wide a text is, in letters."""
    if text.isascii():
        return sum(_CHARACTER_WIDTHS.get(character, 1.0) for character in text)
    return sum(
        2.0
        if character > "\u2e7f" and unicodedata.east_asian_width(character) in "WF"
        else _CHARACTER_WIDTHS.get(character, 1.0)
        for character in text
    )


def _cells(text: str, rows: Sequence[TextBox], start: int, end: int) -> str:
    """Return the range of cells in which a part of a text stands, of rows of a Markdown table."""
    columns: list[int] = []
    for row in rows:
        bars = [bar.start() for bar in _BAR.finditer(text, row.start, row.end)]
        for at in (max(start, row.start), min(end, row.end) - 1):
            column = row.left + bisect_right(bars, at) - 1
            columns.append(min(max(column, row.left), row.right - 1))
    first = f"{_column_name(min(columns))}{rows[0].top + 1}"
    last = f"{_column_name(max(columns))}{rows[-1].bottom}"
    return first if first == last else f"{first}:{last}"


def _column_name(number: int) -> str:
    """Return what spreadsheets call a column, from 0.

    Example:
        >>> [_column_name(number) for number in (0, 25, 26, 701, 702)]
        ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("A") + digit) + name
    return name
