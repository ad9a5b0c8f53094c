"""The lines of the command line: two languages, and output without control characters."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import click


def message(name: str, **values: object) -> str:
    """Return one of the most frequent lines, in the language of the locale.

    Example:
        >>> message("more sources", count=5)  # doctest: +SKIP
        '+ 5 more read, not cited'
    """
    plural = "" if values.get("count") == 1 else "s"
    return _lines()[name][is_chinese()].format(s=plural, **values)


@cache
def _lines() -> dict[str, tuple[str, str]]:
    lines: dict[str, tuple[str, str]]
    lines = json.loads(Path(__file__).with_name("messages.json").read_text("utf-8"))
    return lines


def is_chinese() -> bool:
    """Return whether the locale is Chinese."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, names), "").lower().startswith("zh")


def warn(text: object) -> None:
    """Print a line to stderr."""
    click.echo(f"nodekin: {printable(' '.join(str(text).split()))}", err=True)


_CONTROLS = {c: "\ufffd" for c in (*range(32), *range(127, 160)) if chr(c) not in "\n\t"}
_CONTROLS[ord("\f")] = " "  # a page break
# Characters that change the direction of writing can disguise a text.
_CONTROLS.update(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"))

_MARKS = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029)  # direction marks and line ends

_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_MARKS) if code > 31}


def printable(text: str) -> str:
    """Replace control characters, since terminals execute some of them.

    Example:
        >>> printable("tea\\x1b[2J"), printable("one\\ftwo")
        ('tea\ufffd[2J', 'one two')
    """
    return text.translate(_CONTROLS)


def escaped(text: str) -> str:
    r"""Return JSON with control characters as escapes of the same meaning.

    Example:
        >>> escaped('"\u202e"')
        '"\\u202e"'
    """
    return text.translate(_ESCAPES)
