"""Find ruled tables of a PDF page: tables whose cells are between drawn lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_double, c_float, c_int
from functools import cache
from itertools import pairwise
from math import inf
from operator import attrgetter, neg
from typing import Any, NamedTuple

from .pdf_layout import Lines, TableRow, TextLine, joined, without_bullets

_NEAR = 3.0  # points between rules that count as one rule

_MAX_RULES = 300  # maximum per direction; drawings have more

_MAX_OPEN_RULES = 30  # maximum of equal width

_MAX_CELL = 30  # mean characters of a cell between gaps; columns of prose have more

_WORD = re.compile(r"\S+")


def with_tables(paths: Sequence[Any], textpage: Any, lines: Lines) -> Lines:
    """Replace the lines of each ruled table by one line with its Markdown.

    A table has at least two rows and two columns between drawn lines, or at least three rules of
    equal width and columns between gaps. Each text in it is included once. If a line of text
    crosses its border, the lines are unchanged.
    """
    horizontal, vertical = _rules(paths)
    if not horizontal:
        return lines
    open_grids = _open_grids(horizontal, vertical, textpage, lines)
    for grid in (*_grids(horizontal, vertical), *open_grids):
        inside = _lines_inside(grid, lines)
        rows = _rows(grid, textpage, inside)
        if rows:
            starts = {line.start for line in inside[1:]}
            table = TextLine("", inside[0].start, rows=rows)
            kept = (line for line in lines if line.start not in starts)
            lines = [table if line is inside[0] else line for line in kept]
    return lines


class _Rule(NamedTuple):
    """A straight line: its position across its direction, its start and its end."""

    at: float
    start: float
    end: float

    def crosses(self, other: _Rule) -> bool:
        """Return whether a rule of the other direction crosses or touches this rule."""
        return (
            self.start - _NEAR <= other.at <= self.end + _NEAR
            and other.start - _NEAR <= self.at <= other.end + _NEAR
        )


class _Grid(NamedTuple):
    """Connected rules, with the starts of columns (to the right) and rows (down)."""

    horizontal: Sequence[_Rule]
    vertical: Sequence[_Rule]
    columns: Sequence[float]
    rows: Sequence[float]


def _rules(paths: Sequence[Any]) -> tuple[list[_Rule], list[_Rule]]:
    """Return the straight horizontal and vertical lines among the paths of a page."""
    from pypdfium2 import raw

    horizontal: list[_Rule] = []
    vertical: list[_Rule] = []
    if len(paths) > 10 * _MAX_RULES:
        return [], []
    edges = [c_float() for _ in range(4)]
    for path in paths:
        if not raw.FPDFPageObj_GetBounds(path, *edges):
            continue
        x0, bottom, x1, top = (edge.value for edge in edges)
        strokes: Sequence[tuple[float, ...]] | Iterator[tuple[float, ...]] = ()
        if top - bottom <= _NEAR < x1 - x0:
            strokes = [(x0, (top + bottom) / 2, x1, (top + bottom) / 2)]
        elif x1 - x0 <= _NEAR < top - bottom:
            strokes = [((x0 + x1) / 2, bottom, (x0 + x1) / 2, top)]
        elif x1 - x0 > _NEAR:
            strokes = _strokes(path)
        for x, y, to_x, to_y in strokes:
            if abs(y - to_y) < 1:
                horizontal.append(_Rule((y + to_y) / 2, min(x, to_x), max(x, to_x)))
            elif abs(x - to_x) < 1:
                vertical.append(_Rule((x + to_x) / 2, min(y, to_y), max(y, to_y)))
    return _merged(horizontal), _merged(vertical)


def _strokes(path: Any) -> Iterator[tuple[float, float, float, float]]:
    """Yield the straight lines of a path: start and end."""
    from pypdfium2 import raw

    mode, is_stroked = c_int(), c_int()
    raw.FPDFPath_GetDrawMode(path, mode, is_stroked)
    count = raw.FPDFPath_CountSegments(path)
    if not is_stroked.value or count > _MAX_RULES:
        return
    matrix, x, y = raw.FS_MATRIX(), c_float(), c_float()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    a, b, c, d, e, f = (getattr(matrix, name) for name in "abcdef")
    start = before = (0.0, 0.0)
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = a * x.value + c * y.value + e, b * x.value + d * y.value + f
        if raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_LINETO:
            yield *before, *point
        else:
            start = point
        if raw.FPDFPathSegment_GetClose(segment):
            yield *point, *start
        before = point


def _merged(rules: list[_Rule]) -> list[_Rule]:
    """Merge rules that touch or overlap on one line."""
    merged: list[_Rule] = []
    rules.sort()
    first = 0
    while first < len(rules):
        at = rules[first].at
        last = bisect_right(rules, (at + _NEAR, inf))
        start, end = inf, -inf
        for rule in sorted(rules[first:last], key=attrgetter("start")):
            if rule.start > end + _NEAR:
                start, end = rule.start, rule.end
                merged.append(rule)
            end = max(end, rule.end)
            merged[-1] = _Rule(at, start, end)
        first = last
    return merged


def _grids(horizontal: Sequence[_Rule], vertical: Sequence[_Rule]) -> Iterator[_Grid]:
    """Yield groups of connected rules with at least two rows and two columns."""
    if not vertical or max(len(horizontal), len(vertical)) > _MAX_RULES:
        return
    waiting = [[*horizontal], [*vertical]]
    while waiting[0]:
        groups: list[list[_Rule]] = [[waiting[0].pop(0)], []]
        queue = [(0, groups[0][0])]
        for direction, rule in queue:  # the loop also processes added rules
            other = 1 - direction
            touching = [one for one in waiting[other] if rule.crosses(one)]
            waiting[other] = [one for one in waiting[other] if one not in touching]
            groups[other] += touching
            queue += [(other, one) for one in touching]
        rows, columns = map(sorted, groups)
        xs, ys = _positions(columns, rows), _positions(rows, columns)
        if len(xs) > 2 and len(ys) > 2:
            yield _Grid(rows, columns, xs, ys[::-1])


def _positions(rules: Sequence[_Rule], across: Sequence[_Rule]) -> list[float]:
    """Return the positions of rules, and the outer ends of the crossing rules."""
    positions = [rule.at for rule in rules]
    if across:
        positions += (min(rule.start for rule in across), max(rule.end for rule in across))
    distinct: list[float] = []
    for at in sorted(positions):
        if not distinct or at - distinct[-1] > _NEAR:
            distinct.append(at)
    return distinct


def _open_grids(
    horizontal: Sequence[_Rule], vertical: Sequence[_Rule], textpage: Any, lines: Lines
) -> Iterator[_Grid]:
    """Yield tables with rules above, below the header, and below, but without vertical rules."""
    from pypdfium2 import raw

    box = raw.FS_RECTF()

    @cache
    def words(start: int, text: str) -> list[tuple[float, float]]:
        """Return the left and the right edge of each word of a line."""
        edges: list[float] = []
        for word in _WORD.finditer(text):
            for character, side in ((word.start(), "left"), (word.end() - 1, "right")):
                raw.FPDFText_GetLooseCharBox(textpage.raw, start + character, box)
                edges.append(getattr(box, side))
        return list(zip(edges[::2], edges[1::2], strict=True))

    by_ends: dict[tuple[int, int], list[_Rule]] = {}
    for rule in horizontal:
        if not any(map(rule.crosses, vertical)):
            by_ends.setdefault((round(rule.start / 4), round(rule.end / 4)), []).append(rule)
    for rules in by_ends.values():
        rules = rules[: -_MAX_OPEN_RULES - 1 : -1]  # from the top of the page
        while len(rules) > 2:
            for last in range(len(rules), 2, -1):
                if grid := _open_grid(rules[:last], lines, words):
                    yield grid
                    break
            else:
                last = 1
            rules = rules[last:]


def _open_grid(rules: Sequence[_Rule], lines: Lines, words: Any) -> _Grid | None:
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
    boxes = [box for x in body for box in words(x.start, x.text)]
    of_body = _gaps(boxes, 0.6 * size)
    boxes += (box for x in inside if x.baseline >= head for box in words(x.start, x.text))
    of_all = _gaps(boxes, 0.6 * size)
    # If as many columns remain, no cell of the header spans columns.
    columns = [left, *(of_all if len(of_all) == len(of_body) else of_body), right]
    rows = [top, head]
    for line in body:
        is_first = any(start < columns[1] for start, _ in words(line.start, line.text))
        if is_first and rows[-1] - line.baseline > 1.5 * size and line is not body[0]:
            rows.append(line.baseline + 0.9 * size)
    rows.append(bottom)
    cells = (len(rows) - 1) * (len(columns) - 1)
    if len(columns) < 3 or sum(len(line.text) for line in inside) > _MAX_CELL * cells:
        return None
    return _Grid(
        [_Rule(y, left, right) for y in reversed(rows)],
        [_Rule(x, bottom, top) for x in columns],
        columns,
        rows,
    )


def _gaps(boxes: Sequence[tuple[float, float]], width: float) -> list[float]:
    """Return the middles of the gaps between words that are wider than a width."""
    gaps: list[float] = []
    edge = inf
    for start, end in sorted(boxes):
        if start - edge > width:
            gaps.append((edge + start) / 2)
        edge = end if edge == inf else max(edge, end)
    return gaps


def _lines_inside(grid: _Grid, lines: Lines) -> list[TextLine]:
    """Return the lines inside a grid. Empty if a line crosses the border."""
    left, right = grid.columns[0] - _NEAR, grid.columns[-1] + _NEAR
    inside = [
        line
        for line in lines
        if grid.rows[-1] < line.baseline < grid.rows[0] and line.x1 > left and line.x0 < right
    ]
    is_crossed = any(line.x0 < left or line.x1 > right or line.rows for line in inside)
    return [] if is_crossed else inside


def _rows(grid: _Grid, textpage: Any, lines: Sequence[TextLine]) -> list[TableRow]:
    """Return the rows of a grid. Empty if the grid is not a table."""
    texts: dict[int, dict[int, list[tuple[float, str]]]] = {}  # by row and column
    for line in lines:
        for (row, column), text in _parts(line, grid, textpage):
            texts.setdefault(row, {}).setdefault(column, []).append((line.baseline, text))
    columns = sorted({column for cells in texts.values() for column in cells})
    xs = [*(grid.columns[column] for column in columns), grid.columns[-1]]
    rows: list[TableRow] = []
    for number, below in pairwise([*sorted(texts), -1]):
        cells, top, bottom = texts[number], grid.rows[number], grid.rows[below]
        # A header and a body, or a body without rules between its rows.
        count = _count_rows(cells) if len(grid.rows) <= 3 else 1
        height = (top - bottom) / count
        for at in range(count):
            y = top - at * height
            lines_of = cells if count == 1 else {c: cells[c][at : at + 1] for c in cells}
            parts = [[text for _, text in lines_of.get(c, ())] or [""] for c in columns]
            boxes = [(x0, y - height, x1, y) for x0, x1 in pairwise(xs)]
            rows.append(
                [(without_bullets(joined(p)), b) for p, b in zip(parts, boxes, strict=True)]
            )
    filled = sum(text != "" for row in rows for text, _ in row)
    if min(len(rows), len(columns)) < 2 or filled < 0.4 * len(rows) * len(columns):
        return []
    return rows


def _count_rows(cells: Mapping[int, Sequence[tuple[float, str]]]) -> int:
    """Return the number of rows between two rules: all cells have lines at equal heights."""
    heights = [[height for height, _ in cell] for cell in cells.values()]
    is_same = len({len(cell) for cell in heights}) == 1 and all(
        max(row) - min(row) <= _NEAR for row in zip(*heights, strict=True)
    )
    return len(heights[0]) if is_same and len(heights) > 1 else 1


def _parts(line: TextLine, grid: _Grid, textpage: Any) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the cells (row, column) that a line crosses, with the text in each cell.

    For merged cells, yield the first cell, to the left and above.
    """
    from pypdfium2 import raw

    x, y = c_double(), c_double()

    def cell_at(character: int) -> tuple[int, int]:
        raw.FPDFText_GetCharOrigin(textpage.raw, line.start + character, x, y)
        row = bisect_right(grid.rows, -y.value - 1, key=neg) - 1
        column = bisect_right(grid.columns, x.value + 1) - 1
        row = min(max(row, 0), len(grid.rows) - 2)
        column = min(max(column, 0), len(grid.columns) - 2)
        middle = sum(grid.columns[column : column + 2]) / 2, sum(grid.rows[row : row + 2]) / 2
        while column and not _is_ruled(grid.vertical, grid.columns[column], middle[1]):
            column -= 1
        while row and not _is_ruled(grid.horizontal, grid.rows[row], middle[0]):
            row -= 1
        return row, column

    last: tuple[int, int] | None = None
    start = 0
    for word in _WORD.finditer(line.text):
        first, end = word.span()
        cell = cell_at(first)
        is_within_cell = end == first + 1 or cell_at(end - 1) == cell
        for at in (first,) if is_within_cell else range(first, end):
            cell = cell_at(at) if at > first else cell
            if last is not None and cell != last:
                yield last, line.text[start:at].strip()
                start = at
            last = cell
    if last is not None:
        yield last, line.text[start:].strip()


def _is_ruled(rules: Sequence[_Rule], at: float, position: float) -> bool:
    """Return whether any of these sorted rules is at a position."""
    first, end = bisect_left(rules, (at - _NEAR,)), bisect_right(rules, (at + _NEAR, inf))
    return any(x.start - _NEAR <= position <= x.end + _NEAR for x in rules[first:end])
