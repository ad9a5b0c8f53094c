"""Measure, cut and wrap text by the columns it takes in a terminal."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Iterator

_ANSI = re.compile("\x1b\\[[0-9;]*m")
_WORD = "[!-~\u00a0-\u02af]"
# Words, white space, single characters of other scripts; each with the colours it is given.
_UNBROKEN = re.compile(
    f"(?:{_ANSI.pattern}|{_WORD})*{_WORD}(?:\x1b\\[0m)?|[ \t]+|(?:{_ANSI.pattern})*.(?:\x1b\\[0m)?",
    re.DOTALL,
)
_NEVER_FIRST = frozenset("，。、；：？！”’」』）》】…,.;:?!)]}%")


def columns(text: str) -> int:
    """Return how many columns a text takes: two for Chinese, none for combining marks and colour.

    Example:
        >>> columns("tea"), columns("绿茶"), columns("e\\u0301")
        (3, 4, 1)
    """
    if text.isascii():
        return len(_ANSI.sub("", text))
    return sum(map(_columns_of, _ANSI.sub("", text)))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    """Fill a text up with spaces to a number of columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int) -> str:
    """Shorten a text to a number of columns, an ellipsis saying so.

    Example:
        >>> cut("绿茶是不发酵的", 9)
        '绿茶是不…'
    """
    if columns(text) <= width:
        return text
    taken, used = "", 0
    for character in text:
        used += _columns_of(character)
        if used > width - 1:
            break
        taken += character
    return taken + "…"


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of a number of columns: at spaces, and anywhere in Chinese.

    A closing mark does not begin a line, but hangs over its end, once; what has no place to
    break is broken anyway.

    Example:
        >>> wrap("绿茶是茶，green tea", 10)
        ['绿茶是茶，', 'green tea']
    """
    return list(_lines(text, width))


def _lines(text: str, width: int) -> Iterator[str]:
    line, used = "", 0
    for piece in _UNBROKEN.findall(" ".join(text.split())):
        size = columns(piece)
        bare = _ANSI.sub("", piece)
        hangs = bare in _NEVER_FIRST and used <= width
        if used + size > width and used and bare.strip() and not hangs:
            yield line.rstrip()
            line, used = "", 0
        while size > width:  # a word longer than the line, which loses its colour
            yield bare[:width]
            piece = bare = bare[width:]
            size = columns(bare)
        if used or piece.strip():
            line, used = line + piece, used + size
    if line.strip():
        yield line.rstrip()


def terminal_columns() -> int:
    """Return the width of the terminal, 80 where there is none, 120 at most for reading."""
    return max(40, min(120, shutil.get_terminal_size((80, 24)).columns))
