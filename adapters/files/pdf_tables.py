"""Find ruled tables of a PDF page: tables whose cells are between drawn lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_double, c_float, c_int
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from math import inf
from operator import neg
from typing import Any, NamedTuple

from ...nodegraph.readers.text import markdown_table
from .pdf_layout import Lines, Rectangle, TextLine, joined, without_bullets

_BAR = re.compile(r"(?<!\\)\|")

_NEAR = 3.0  # points between rules that count as one rule

_MAX_RULES = 300  # maximum per direction; drawings have more

_WORD = re.compile(r"\S+")


def with_tables(page: Any, textpage: Any, lines: Lines) -> Lines:
    """Replace the lines of each ruled table by one line with its Markdown.

    A table has at least two rows and two columns between drawn lines, or at least three rules of
    equal width and columns between gaps. Each text in it is included once. If a line of text
    crosses its border, the lines are unchanged.
    """
    horizontal, vertical = _rules(page)
    grids = [*_grids(horizontal, vertical), *_open_grids(horizontal, vertical, textpage, lines)]
    for grid in grids:
        inside = grid.lines_inside(lines)
        if inside and (table := _table(_filled(grid, textpage, inside), inside)):
            merged_starts = {line.start for line in inside[1:]}
            lines = [
                table if line is inside[0] else line
                for line in lines
                if line.start not in merged_starts
            ]
    return lines


class _TableRow(NamedTuple):
    """The texts and rectangles of a row."""

    texts: Sequence[str]
    rectangles: Sequence[Rectangle]


def _table(rows: Sequence[_TableRow], lines: Sequence[TextLine]) -> TextLine | None:
    """Return a table as one line. None: no rows."""
    if not rows:
        return None
    text = markdown_table(map(without_bullets, row.texts) for row in rows)
    rectangles = (rectangle for row in rows for rectangle in row.rectangles)
    cells = [
        (start, end, rectangle)
        for (start, end), rectangle in zip(cell_spans(text), rectangles, strict=True)
        if end > start
    ]
    return TextLine(text, lines[0].start, is_table=True, cells=cells)


def cell_spans(table: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the cells of a Markdown table, without surrounding spaces.

    Example:
        >>> table = markdown_table([["a", "b"], [1, "x|y"]])
        >>> [table[start:end] for start, end in cell_spans(table)]
        ['a', 'b', '1', 'x\\\\|y']
    """
    at = 0
    for number, row in enumerate(table.split("\n")):
        bars = [at + bar.start() for bar in _BAR.finditer(row)]
        at += len(row) + 1
        if number != 1:  # the line below the header contains no cells
            for left, right in pairwise(bars):
                cell = table[left + 1 : right]
                start = left + 1 + len(cell) - len(cell.lstrip())
                yield start, start + len(cell.strip())


def may_have_rows(lines: Lines) -> bool:
    """Return whether a line has gaps, or two lines are at equal height.

    Otherwise, the page contains no table, except for the rest of a table on the previous page.
    """
    above = inf
    for text, _, x0, x1, baseline, size, _, _, _, _ in lines:
        # Average width of a character: at most 0.63, 0.6 in monospaced fonts, 1.13 in Chinese.
        wide = 0 if text.isascii() else 0.25 * (len(text.encode()) - len(text))
        width = size * (0.63 * len(text) + wide + 0.3)
        if x1 - x0 > width or abs(above - baseline) < 0.2 * size:
            return True
        above = baseline
    return False


class _Rule(NamedTuple):
    """A straight line: its position across its direction, its start and its end."""

    at: float
    start: float
    end: float

    def reaches(self, position: float) -> bool:
        return self.start - _NEAR <= position <= self.end + _NEAR


@dataclass(frozen=True, slots=True)
class _Grid:
    """Connected rules, with the starts of columns (to the right) and rows (down)."""

    horizontal: Sequence[_Rule]
    vertical: Sequence[_Rule]
    columns: Sequence[float]
    rows: Sequence[float]
    merged: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def lines_inside(self, lines: Lines) -> list[TextLine]:
        """Return the lines inside the grid. Empty if a line crosses the border."""
        x0, x1 = self.columns[0] - _NEAR, self.columns[-1] + _NEAR
        top, bottom = self.rows[0], self.rows[-1]
        inside = []
        for line in lines:
            if bottom < line.baseline < top and line.x1 > x0 and line.x0 < x1:
                if line.x0 < x0 or line.x1 > x1 or line.is_table:
                    return []
                inside.append(line)
        return inside

    def cell(self, x: float, y: float) -> tuple[int, int]:
        """Return the row and the column at a position. For merged cells, return the first cell."""
        position = bisect_right(self.rows, -y, key=neg), bisect_right(self.columns, x)
        cell = self.merged.get(position)
        if cell is None:
            row = min(max(position[0] - 1, 0), len(self.rows) - 2)
            column = min(max(position[1] - 1, 0), len(self.columns) - 2)
            cell = self.merged[position] = self._first(row, column)
        return cell

    def _first(self, row: int, column: int) -> tuple[int, int]:
        """Return the first cell of a merged cell, to the left and above."""
        x = (self.columns[column] + self.columns[column + 1]) / 2
        y = (self.rows[row] + self.rows[row + 1]) / 2
        while column and not _is_ruled(self.vertical, self.columns[column], y):
            column -= 1
        while row and not _is_ruled(self.horizontal, self.rows[row], x):
            row -= 1
        return row, column


def _is_ruled(rules: Sequence[_Rule], at: float, position: float) -> bool:
    """Return whether any of these sorted rules is at a position."""
    first, end = bisect_left(rules, (at - _NEAR,)), bisect_right(rules, (at + _NEAR, inf))
    return any(rule.reaches(position) for rule in rules[first:end])


def _rules(page: Any) -> tuple[list[_Rule], list[_Rule]]:
    """Return the straight horizontal and vertical lines on a page."""
    from pypdfium2 import raw

    horizontal: list[_Rule] = []
    vertical: list[_Rule] = []
    handle = page.raw
    count = raw.FPDFPage_CountObjects(handle)
    objects = [raw.FPDFPage_GetObject(handle, index) for index in range(count)]
    paths = [o for o in objects if raw.FPDFPageObj_GetType(o) == raw.FPDF_PAGEOBJ_PATH]
    if len(paths) > 10 * _MAX_RULES:
        return [], []
    edges = [c_float() for _ in range(4)]
    for path in paths:
        if not raw.FPDFPageObj_GetBounds(path, *edges):
            continue
        x0, bottom, x1, top = (edge.value for edge in edges)
        width, height = x1 - x0, top - bottom
        if height <= _NEAR < width:
            horizontal.append(_Rule((top + bottom) / 2, x0, x1))
        elif width <= _NEAR < height:
            vertical.append(_Rule((x0 + x1) / 2, bottom, top))
        elif width > _NEAR:
            for (x, y), (to_x, to_y) in _strokes(path):
                if abs(y - to_y) < 1:
                    horizontal.append(_Rule((y + to_y) / 2, min(x, to_x), max(x, to_x)))
                elif abs(x - to_x) < 1:
                    vertical.append(_Rule((x + to_x) / 2, min(y, to_y), max(y, to_y)))
    return _merged(horizontal), _merged(vertical)


def _strokes(path: Any) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the straight lines of a path: start and end."""
    from pypdfium2 import raw

    mode, is_stroked = c_int(), c_int()
    raw.FPDFPath_GetDrawMode(path, mode, is_stroked)
    count = raw.FPDFPath_CountSegments(path)
    if not is_stroked.value or count > _MAX_RULES:
        return
    matrix, x, y = raw.FS_MATRIX(), c_float(), c_float()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    start = before = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        if raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_LINETO:
            yield before, point
        else:
            start = point
        if raw.FPDFPathSegment_GetClose(segment):
            yield point, start
        before = point


def _merged(rules: list[_Rule]) -> list[_Rule]:
    """Merge rules that touch or overlap on one line."""
    merged: list[_Rule] = []
    for rule in sorted(rules):
        for index in reversed(range(len(merged))):
            other = merged[index]
            if rule.at - other.at > _NEAR:
                merged.append(rule)
                break
            if rule.start <= other.end + _NEAR and other.start <= rule.end + _NEAR:
                start, end = min(rule.start, other.start), max(rule.end, other.end)
                merged[index] = _Rule(other.at, start, end)
                break
        else:
            merged.append(rule)
    return merged


def _grids(horizontal: list[_Rule], vertical: list[_Rule]) -> Iterator[_Grid]:
    """Yield groups of connected rules with at least two rows and two columns."""
    if min(len(horizontal), len(vertical)) < 1 or max(len(horizontal), len(vertical)) > _MAX_RULES:
        return
    waiting = [(False, rule) for rule in horizontal] + [(True, rule) for rule in vertical]
    while waiting:
        group = [waiting.pop(0)]
        for is_vertical, rule in group:  # the loop also processes added rules
            touching = [
                (other_is_vertical, other)
                for other_is_vertical, other in waiting
                if other_is_vertical != is_vertical
                and rule.reaches(other.at)
                and other.reaches(rule.at)
            ]
            waiting = [pair for pair in waiting if pair not in touching]
            group += touching
        rows = sorted(rule for is_vertical, rule in group if not is_vertical)
        columns = sorted(rule for is_vertical, rule in group if is_vertical)
        xs, ys = _positions(columns, rows), _positions(rows, columns)
        if len(xs) > 2 and len(ys) > 2:
            yield _Grid(rows, columns, xs, ys[::-1])


_MAX_OPEN_RULES = 30  # maximum of equal width

_MAX_CELL = 30  # mean characters of a cell between gaps; columns of prose have more


_Edges = tuple[float, float]  # left and right


def _open_grids(
    horizontal: Sequence[_Rule], vertical: Sequence[_Rule], textpage: Any, lines: Lines
) -> Iterator[_Grid]:
    """Yield tables with rules above, below the header, and below, but without vertical rules."""
    by_ends: dict[tuple[int, int], list[_Rule]] = {}
    for rule in horizontal:
        if not any(other.reaches(rule.at) and rule.reaches(other.at) for other in vertical):
            by_ends.setdefault((round(rule.start / 4), round(rule.end / 4)), []).append(rule)
    words = cache(partial(_word_boxes, textpage))
    for rules in by_ends.values():
        rules = rules[: -_MAX_OPEN_RULES - 1 : -1]  # from the top of the page
        first = 0
        while first < len(rules) - 2:
            for last in range(len(rules), first + 2, -1):
                if grid := _open_grid(rules[first:last], lines, words):
                    yield grid
                    first = last
                    break
            else:
                first += 1


def _open_grid(
    rules: Sequence[_Rule], lines: Lines, words: Callable[[TextLine], Sequence[_Edges]]
) -> _Grid | None:
    """Return the table between rules, from top to bottom. None: the text has no columns."""
    (top, left, right), head, bottom = rules[0], rules[1].at, rules[-1].at
    inside = [
        line
        for line in lines
        if bottom < line.baseline < top and line.x0 < right and line.x1 > left and line.is_placed
    ]
    body = sorted((x for x in inside if x.baseline < head), key=lambda x: -x.baseline)
    if not body or len(body) == len(inside):
        return None
    size = body[len(body) // 2].size
    boxes = [(x, x) for x in (min(x.x0 for x in body), max(x.x1 for x in body))]
    for line in sorted(body, key=lambda x: x.x0 - x.x1):  # one wide line of prose is enough
        boxes += words(line)
        if not _gaps(boxes, 0.6 * size):
            return None
    columns, of_all = (
        [left, *_gaps([box for line in some for box in words(line)], 0.6 * size), right]
        for some in (body, inside)
    )
    if len(of_all) == len(columns):  # no cell of the header spans columns
        columns = of_all
    if len(columns) < 3:
        return None
    firsts = [x.baseline for x in body if any(a < columns[1] for a, _ in words(x))]
    rows = [top, head]
    for baseline in firsts[1:]:
        if rows[-1] - baseline > 1.5 * size:
            rows.append(baseline + 0.9 * size)
    rows.append(bottom)
    cells = (len(rows) - 1) * (len(columns) - 1)
    if sum(len(line.text) for line in inside) > _MAX_CELL * cells:
        return None
    return _Grid(
        [_Rule(y, left, right) for y in reversed(rows)],
        [_Rule(x, bottom, top) for x in columns],
        columns,
        rows,
    )


def _gaps(boxes: Sequence[_Edges], width: float) -> list[float]:
    """Return the middles of the gaps between words that are wider than a width."""
    gaps: list[float] = []
    edge = inf
    for start, end in sorted(boxes):
        if start - edge > width:
            gaps.append((edge + start) / 2)
        edge = end if edge == inf else max(edge, end)
    return gaps


def _word_boxes(textpage: Any, line: TextLine) -> list[_Edges]:
    """Return the left and the right edge of each word of a line."""
    from pypdfium2 import raw

    box = raw.FS_RECTF()

    def edges(character: int) -> _Edges:
        raw.FPDFText_GetLooseCharBox(textpage.raw, line.start + character, box)
        return box.left, box.right

    spans = (word.span() for word in _WORD.finditer(line.text))
    return [(edges(start)[0], edges(end - 1)[1]) for start, end in spans]


def _positions(rules: Sequence[_Rule], across: Sequence[_Rule]) -> list[float]:
    """Return the positions of rules, and the outer ends of the crossing rules."""
    positions: list[float] = []
    ends = [end for rule in across for end in (rule.start, rule.end)]
    outer = (min(ends), max(ends)) if ends else ()
    for at in sorted([*(rule.at for rule in rules), *outer]):
        if not positions or at - positions[-1] > _NEAR:
            positions.append(at)
    return positions


def _filled(grid: _Grid, textpage: Any, lines: Sequence[TextLine]) -> list[_TableRow]:
    """Return the rows of a grid. Empty if the grid is not a table."""
    texts: dict[int, dict[int, list[tuple[float, str]]]] = {}  # by row and column
    cell_at = _cell_at(grid, textpage)
    for line in lines:
        for (row, column), text in _parts(line, cell_at):
            texts.setdefault(row, {}).setdefault(column, []).append((line.baseline, text))
    ruled = sorted(texts)
    columns = sorted({column for cells in texts.values() for column in cells})
    xs = [grid.columns[column] for column in columns] + [grid.columns[-1]]
    rows: list[_TableRow] = []
    for number, below in zip(ruled, [*ruled[1:], -1], strict=True):
        cells, top, bottom = texts[number], grid.rows[number], grid.rows[below]
        # A header and a body, or a body without rules between its rows.
        count = _count_rows(cells) if len(grid.rows) <= 3 else 1
        height = (top - bottom) / count
        for at in range(count):
            y = top - at * height
            lines_of = cells if count == 1 else {c: cells[c][at : at + 1] for c in cells}
            parts = [[text for _, text in lines_of.get(c, ())] or [""] for c in columns]
            boxes = [Rectangle(x0, y - height, x1, y) for x0, x1 in pairwise(xs)]
            rows.append(_TableRow([joined(part) for part in parts], boxes))
    filled = sum(text != "" for row in rows for text in row.texts)
    if min(len(rows), len(columns)) < 2 or filled < 0.4 * len(rows) * len(columns):
        return []
    return rows


def _count_rows(cells: Mapping[int, Sequence[tuple[float, str]]]) -> int:
    """Return the number of rows between two rules: all cells have lines at equal heights."""
    first, *others = ([height for height, _ in cell] for cell in cells.values())
    is_same = all(
        len(heights) == len(first)
        and all(abs(a - b) <= _NEAR for a, b in zip(heights, first, strict=True))
        for heights in others
    )
    return len(first) if is_same and others else 1


_Cell = tuple[int, int]


def _cell_at(grid: _Grid, textpage: Any) -> Callable[[int], _Cell]:
    """Return a function from a character of a page to its cell in a grid."""
    from pypdfium2 import raw

    handle, x, y = textpage.raw, c_double(), c_double()

    def cell_at(character: int) -> _Cell:
        raw.FPDFText_GetCharOrigin(handle, character, x, y)
        return grid.cell(x.value + 1, y.value + 1)

    return cell_at


def _parts(line: TextLine, cell_at: Callable[[int], _Cell]) -> Iterator[tuple[_Cell, str]]:
    """Yield the cells that a line crosses, with the text in each cell."""
    text, offset = line.text, line.start
    last: _Cell | None = None
    start = 0
    for word in _WORD.finditer(text):
        first, end = word.span()
        cell = cell_at(offset + first)
        is_within_cell = end == first + 1 or cell_at(offset + end - 1) == cell
        for at in (first,) if is_within_cell else range(first, end):
            if at > first:
                cell = cell_at(offset + at)
            if last is not None and cell != last:
                yield last, text[start:at].strip()
                start = at
            last = cell
    if last is not None:
        yield last, text[start:].strip()
