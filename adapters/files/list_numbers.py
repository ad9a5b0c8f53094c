"""Count the items of lists and headings, as office programs show them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LABEL = re.compile("(?m)(^ *(?:(?:\\d+\\.|[-*+]) +)?)?\ue020(.*?)\ue021")
"""A label, with the number or the bullet that Markdown gives the item."""


def labeled(label: str) -> str:
    """Return a label in marks for ``with_labels``."""
    return f"\ue020{label}\ue021"


def with_labels(text: str) -> str:
    """Write the marked labels of a Markdown text instead of the numbers of Markdown."""

    def shown(match: re.Match[str]) -> str:
        prefix = match[1] or ""
        return f"{' ' * (len(prefix) - len(prefix.lstrip()))}{match[2]} "

    return _LABEL.sub(shown, text)


Level = tuple[str, str, int]
"""The format of a level's numbers, the pattern of its label (``%1.%2``), and the first number."""


class ListCounts:
    """The numbers of list items.

    Args:
        lists: The levels of each list, from 0.
    """

    def __init__(self, lists: Mapping[str, Mapping[int, Level]]) -> None:
        self._lists = lists
        self._counts: dict[str, dict[int, int]] = {}

    def restart(self, name: str, level: int = 0, start: int | None = None) -> None:
        """Restart a list at a level, with its first number or another number."""
        counts = self._counts.setdefault(name, {})
        for deeper in [n for n in counts if n >= level]:
            del counts[deeper]
        if start is not None:
            counts[level] = start - 1

    def next_label(self, name: str, level: int) -> str:
        """Return the label of the next item. Empty: a bullet or none."""
        levels = self._lists.get(name, {})
        if level not in levels:
            return ""
        kind, pattern, start = levels[level]
        counts = self._counts.setdefault(name, {})
        counts[level] = counts.get(level, start - 1) + 1
        for deeper in [n for n in counts if n > level]:
            del counts[deeper]
        if kind in ("bullet", "none", ""):
            return ""

        def shown(match: re.Match[str]) -> str:
            its_kind, _, first = levels.get(int(match[1]) - 1, ("decimal", "", 1))
            return number_text(counts.get(int(match[1]) - 1, first), its_kind)

        return re.sub(r"%([1-9])", shown, pattern).strip()


def number_text(number: int, kind: str) -> str:
    """Return a number in a format of Word, such as ``lowerRoman``.

    Example:
        >>> [number_text(n, "lowerRoman") for n in (4, 9)], number_text(28, "upperLetter")
        (['iv', 'ix'], 'BB')
    """
    if "Letter" in kind and 0 < number < 1_000:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif "Roman" in kind and 0 < number < 5_000:
        text, rest = "", number
        for value, letters in _ROMAN:
            text += letters * (rest // value)
            rest %= value
    elif kind.startswith(("chinese", "japanese", "ideograph", "taiwanese")) and 0 < number < 100:
        tens, ones = divmod(number, 10)
        text = f"{_CHINESE[tens] if tens > 1 else ''}{'十' if tens else ''}{_CHINESE[ones]}"
    else:
        text = f"{number:02}" if kind == "decimalZero" else str(number)
    return text.upper() if kind.startswith("upper") else text


_ROMAN_VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)

_ROMAN = list(zip(_ROMAN_VALUES, "m cm d cd c xc l xl x ix v iv i".split(), strict=True))

_CHINESE = ["", *"一二三四五六七八九"]
