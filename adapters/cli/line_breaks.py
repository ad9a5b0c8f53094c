"""Wrap lines in the columns of a terminal, also between Chinese letters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.text import Text

from ...nodegraph.splitters.chunking import UNSPACED

# A word, or a letter of a script without spaces. Closing marks do not begin a line, and opening
# marks do not end a line.
_UNIT = re.compile(
    rf"[（《「『“‘【]*(?:[{UNSPACED}]|[^\s{UNSPACED}（《「『“‘【]+?(?=[{UNSPACED}（《「『“‘【]|\s|$))"
    r"[，。；：、！？）》」』”’】…]*|\s+|."
)


def line_starts(text: str, width: int) -> Iterator[int]:
    """Yield the positions at which a line begins, except for the first line.

    A word that is wider than a line is broken anywhere.

    Example:
        >>> list(line_starts("green tea 绿茶和红茶", 11))
        [10]
    """
    column = 0
    for unit in _UNIT.finditer(text):
        cells = cell_len(unit[0])
        if unit[0].isspace():
            column += cells
            continue
        if column and column + cells > width:
            yield unit.start()
            column = 0
        for position, letter in enumerate(unit[0], unit.start()):
            if column and column + cell_len(letter) > width:
                yield position
                column = 0
            column += cell_len(letter)


def wrapped(row: Text, width: int) -> list[Text]:
    """Return the lines of a row, without spaces at their ends."""
    lines = row.divide(line_starts(row.plain, width))
    for line in lines:
        line.rstrip()
    return list(lines)
