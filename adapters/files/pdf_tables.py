"""Find tables on a PDF page whose cells are separated by drawn lines."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from math import inf
from operator import neg
from typing import NamedTuple

from .office_xml import parser
from .pdf_calls import PageObjects, direct, draw_mode
from .pdf_layout import Lines, Rectangle, TableRow, TextLine, as_markdown, joined
from .pdf_lines import Ruler

with parser("pypdfium2"):
    from pypdfium2 import raw

_NEAR = 3.0  # two rules that are closer than this, in points, count as one

_MIN_WIDTH = 30.0  # in points; fraction bars and underscores are shorter than the rules of tables

_MIN_RULES = 3  # a table without vertical rules has rules above and below its header and at its end

_MAX_RULES = 300  # maximum number of rules per direction, which drawings exceed

# maximum mean number of characters per cell between gaps, which columns of prose exceed
_MAX_CELL = 30

_WORD = re.compile(r"\S+")


_count_segments = direct(raw.FPDFPath_CountSegments)


def with_tables(objects: PageObjects, ruler: Ruler, lines: Lines) -> Lines:
    """Replace the lines of each table with drawn rules by a single line that contains its rows.

    A table has at least two rows and two columns that are separated by drawn lines. Alternatively,
    it has at least three horizontal rules of equal width, and its columns are separated by gaps.
    Each text in a table is included exactly once. If a line of text crosses the border of a table,
    the table is ignored.
    """
    horizontal, vertical = _rules(objects)
    may_be_ruled = horizontal and vertical
    if not may_be_ruled and len(horizontal) < _MIN_RULES:
        return lines

    @cache
    def words(line: TextLine) -> list[_Word]:
        found: list[_Word] = []
        for match in _WORD.finditer(line.text):
            start, end = match.span()
            left = ruler.loose_box(line.start + start).left
            right = ruler.loose_box(line.start + end - 1).right
            found.append((left, right, start))
        return found

    for grid in (*_grids(horizontal, vertical), *_open_grids(horizontal, vertical, lines, words)):
        inside = _lines_inside(grid, lines)
        rows = _rows(grid, inside, words)
        if rows:
            starts = {line.start for line in inside[1:]}
            table = TextLine("", inside[0].start, rows=rows, page=inside[0].page)
            kept = (line for line in lines if line.start not in starts)
            lines = [table if line is inside[0] else line for line in kept]
    return lines


_Word = tuple[float, float, int]
"""The left and right edges of a word, and its start index in the line."""

_Words = Callable[[TextLine], Sequence[_Word]]


class _Rule(NamedTuple):
    """A straight horizontal or vertical line.

    It is described by its position on the other axis, its start and its end.
    """

    at: float
    start: float
    end: float

    def crosses(self, other: _Rule) -> bool:
        """Return whether a perpendicular rule crosses or touches this rule."""
        return (
            self.start - _NEAR <= other.at <= self.end + _NEAR
            and other.start - _NEAR <= self.at <= other.end + _NEAR
        )


class _Grid(NamedTuple):
    """Connected rules that form a grid.

    ``columns`` contains the starts of the columns from left to right, and ``rows`` the starts of
    the rows from top to bottom.
    """

    horizontal: Sequence[_Rule]
    vertical: Sequence[_Rule]
    columns: Sequence[float]
    rows: Sequence[float]


def _rules(objects: PageObjects) -> tuple[list[_Rule], list[_Rule]]:
    """Return the straight horizontal and vertical lines that are drawn on a page.

    A path counts if it is a line or a frame that consists of four lines.
    """
    horizontal: list[_Rule] = []
    vertical: list[_Rule] = []
    if len(objects.paths) > 10 * _MAX_RULES:
        return [], []
    for path, box in objects.paths.items():
        x0, bottom, x1, top = box
        if top - bottom <= _NEAR < x1 - x0:
            horizontal.append(_Rule((top + bottom) / 2, x0, x1))
        elif x1 - x0 <= _NEAR < top - bottom:
            vertical.append(_Rule((x0 + x1) / 2, bottom, top))
        elif x1 - x0 > _NEAR and _is_frame(path):
            horizontal += (_Rule(y, x0, x1) for y in (bottom, top))
            vertical += (_Rule(x, bottom, top) for x in (x0, x1))
    return _merged(horizontal), _merged(vertical)


def _is_frame(path: int) -> bool:
    """Return whether a path is a stroked frame that consists of four lines."""
    if _count_segments(path) not in (4, 5):
        return False
    _, is_stroked = draw_mode(path)
    return is_stroked


def _merged(rules: Sequence[_Rule]) -> list[_Rule]:
    """Merge rules on the same line that touch or overlap."""
    positions = _distinct(rule.at for rule in rules)
    aligned = (
        _Rule(positions[bisect_right(positions, at) - 1], start, end) for at, start, end in rules
    )
    merged: list[_Rule] = []
    for rule in sorted(aligned):
        last = merged[-1] if merged else rule
        if merged and rule.at == last.at and rule.start <= last.end + _NEAR:
            merged[-1] = last._replace(end=max(last.end, rule.end))
        else:
            merged.append(rule)
    return merged


def _grids(horizontal: Sequence[_Rule], vertical: Sequence[_Rule]) -> Iterator[_Grid]:
    """Yield groups of connected rules that form at least two rows and two columns."""
    most = max(len(horizontal), len(vertical))
    if not vertical or most > _MAX_RULES:
        return
    waiting = [[*horizontal], [*vertical]]
    while waiting[0]:
        groups: list[list[_Rule]] = [[waiting[0].pop(0)], []]
        queue = [(0, groups[0][0])]
        for direction, rule in queue:  # the loop also processes rules that are added to the queue
            other = 1 - direction
            touching = [one for one in waiting[other] if rule.crosses(one)]
            waiting[other] = [one for one in waiting[other] if one not in touching]
            groups[other] += touching
            queue += [(other, one) for one in touching]
        rows, columns = (sorted(group) for group in groups)
        xs = _positions(columns, rows)
        ys = _positions(rows, columns)
        if min(len(xs), len(ys)) > 2:
            yield _Grid(rows, columns, xs, ys[::-1])


def _positions(rules: Sequence[_Rule], across: Sequence[_Rule]) -> list[float]:
    """Return the positions of rules and of the outermost ends of the rules that cross them."""
    positions = [rule.at for rule in rules]
    if across:
        positions += (min(rule.start for rule in across), max(rule.end for rule in across))
    return _distinct(positions)


def _distinct(positions: Iterable[float]) -> list[float]:
    """Sort positions, and omit each position that is close to the previous one."""
    distinct: list[float] = []
    for at in sorted(positions):
        if not distinct or at - distinct[-1] > _NEAR:
            distinct.append(at)
    return distinct


def _open_grids(
    horizontal: Sequence[_Rule], vertical: Sequence[_Rule], lines: Lines, words: _Words
) -> Iterator[_Grid]:
    """Yield tables without vertical rules.

    They have horizontal rules above and below the header and at the end.
    """
    by_ends: dict[tuple[int, int], list[_Rule]] = {}
    for rule in reversed(horizontal):  # this goes from the top of the page to the bottom
        is_wide = rule.end - rule.start > _MIN_WIDTH
        if is_wide and not any(rule.crosses(other) for other in vertical):
            by_ends.setdefault((round(rule.start / 4), round(rule.end / 4)), []).append(rule)
    placed = [line for line in lines if line.is_placed]
    for rules in by_ends.values():
        if len(rules) < _MIN_RULES:  # this avoids measuring all words
            continue
        bands = [
            _within(placed, rule.start, rule.end, below.at, rule.at)
            for rule, below in pairwise(rules)
        ]
        start = 0
        for end, band in enumerate([*bands, []], start=1):
            if not _gaps(band, words):
                if end - start > 2:
                    yield from _open_grid(rules[start:end], bands[start : end - 1], words)
                start = end


def _open_grid(rules: Sequence[_Rule], bands: Sequence[Lines], words: _Words) -> Iterator[_Grid]:
    """Yield the table between the given rules, unless its columns contain prose.

    The rules must be sorted from top to bottom.
    """
    top, left, right = rules[0]
    bottom = rules[-1].at
    inside = [*chain(*bands)]
    body = sorted(chain(*bands[1:]), key=lambda line: -line.baseline)
    gaps = _gaps(inside, words)
    gaps_of_body = _gaps(body, words)
    if len(gaps) != len(gaps_of_body):  # a cell of the header spans several columns
        gaps = gaps_of_body
    columns = [left, *gaps, right]
    rows = [top, rules[1].at]
    for line in body[1:]:
        is_first = any(left < columns[1] for left, _, _ in words(line))
        if is_first and rows[-1] - line.baseline > 1.5 * line.size:
            rows.append(line.baseline + 0.9 * line.size)
    rows.append(bottom)
    cells = (len(rows) - 1) * (len(columns) - 1)
    letters = sum(len(line.text) for line in inside)
    if len(columns) > 2 and letters <= _MAX_CELL * cells:
        horizontal = [_Rule(y, left, right) for y in reversed(rows)]
        yield _Grid(horizontal, [_Rule(x, bottom, top) for x in columns], columns, rows)


def _gaps(lines: Lines, words: _Words) -> list[float]:
    """Return the centers of the gaps between words that all lines have in common."""
    gaps: list[float] = []
    edge = inf
    width = 0.6 * lines[len(lines) // 2].size if lines else 0
    measured = [words(line) for line in lines]
    for left, right, _ in sorted(chain(*measured)):
        if left - edge > width:
            gaps.append((edge + left) / 2)
        if right > edge or edge == inf:
            edge = right
    return gaps


def _within(lines: Lines, left: float, right: float, bottom: float, top: float) -> list[TextLine]:
    """Return the lines whose baselines lie at least partly inside a rectangle."""
    return [
        line
        for line in lines
        if bottom < line.baseline < top and line.x0 < right and line.x1 > left
    ]


def _lines_inside(grid: _Grid, lines: Lines) -> list[TextLine]:
    """Return the lines inside a grid, or an empty list if a line crosses its border."""
    left = grid.columns[0] - _NEAR
    right = grid.columns[-1] + _NEAR
    inside = _within(lines, left, right, grid.rows[-1], grid.rows[0])
    is_crossed = any(line.x0 < left or line.x1 > right or line.rows for line in inside)
    return [] if is_crossed else inside


_CellLines = Sequence[tuple[float, str]]
"""The baselines and texts of the lines in a cell."""


def _rows(grid: _Grid, lines: Lines, words: _Words) -> list[TableRow]:
    """Return the rows of a grid, or an empty list if the grid is not a table."""
    texts: dict[int, dict[int, list[tuple[float, str]]]] = {}  # by row and column
    for line in lines:
        for (row, column), text in _parts(line, grid, words):
            texts.setdefault(row, {}).setdefault(column, []).append((line.baseline, text))
    columns = sorted({column for cells in texts.values() for column in cells})
    edges = [grid.columns[column] for column in columns]
    edges.append(grid.columns[-1])
    rows: list[TableRow] = []
    for number, below in pairwise([*sorted(texts), -1]):
        cells = [texts[number].get(column, []) for column in columns]
        # These cells belong to a header and a body, or to a body without rules between its rows.
        count = _count_rows([cell for cell in cells if cell]) if len(grid.rows) <= 3 else 1
        top = grid.rows[number]
        height = (top - grid.rows[below]) / count
        for at in range(count):
            y = top - at * height
            parts = cells if count == 1 else [cell[at : at + 1] for cell in cells]
            rows.append(_row(parts, edges, y - height, y))
    return rows if min(len(rows), len(columns)) > 1 else []


def _row(
    cells: Sequence[_CellLines], edges: Sequence[float], bottom: float, top: float
) -> TableRow:
    row: list[tuple[str, Rectangle]] = []
    for lines, (left, right) in zip(cells, pairwise(edges), strict=True):
        text = joined([text for _, text in lines] or [""])
        row.append((as_markdown(text), (left, bottom, right, top)))
    return row


def _count_rows(cells: Sequence[_CellLines]) -> int:
    """Return the number of table rows between two rules.

    This is 1 if the lines of the cells are at different heights.
    """
    has_equal_lengths = len({len(cell) for cell in cells}) == 1
    if len(cells) < 2 or not has_equal_lengths:
        return 1
    for row in zip(*cells, strict=True):
        if max(row)[0] - min(row)[0] > _NEAR:
            return 1
    return len(cells[0])


def _parts(line: TextLine, grid: _Grid, words: _Words) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the cells that a line crosses, as pairs of row and column, and the text in each cell.

    For merged cells, the upper left cell is yielded.
    """
    parts: list[tuple[tuple[int, int], int]] = []
    for left, _, start in words(line):
        row = bisect_right(grid.rows, -line.baseline - 1, key=neg) - 1
        column = bisect_right(grid.columns, left + 1) - 1
        row = min(max(row, 0), len(grid.rows) - 2)
        column = min(max(column, 0), len(grid.columns) - 2)
        x = sum(grid.columns[column : column + 2]) / 2
        y = sum(grid.rows[row : row + 2]) / 2
        while column and not _is_ruled(grid.vertical, grid.columns[column], y):
            column -= 1
        while row and not _is_ruled(grid.horizontal, grid.rows[row], x):
            row -= 1
        if not parts or parts[-1][0] != (row, column):
            parts.append(((row, column), start))
    ends = [*(start for _, start in parts[1:]), len(line.text)]
    for (cell, start), end in zip(parts, ends, strict=True):
        yield cell, line.text[start:end].strip()


def _is_ruled(rules: Sequence[_Rule], at: float, position: float) -> bool:
    """Return whether one of the sorted rules crosses the given position."""
    first = bisect_left(rules, (at - _NEAR,))
    end = bisect_right(rules, (at + _NEAR, inf))
    return any(x.start - _NEAR <= position <= x.end + _NEAR for x in rules[first:end])
