"""Write a text in a normal form, so that copies are found that differ in how they are written."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...nodegraph.splitters.chunking import UNSPACED

_QUOTES = "\"'`´‘’‚‛“”„‟‹›«»「」『』〝〞〟′″＂＇｢｣"

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

# Soft hyphen, zero width, direction, byte order, and what Arabic and Hebrew write above letters.
_INVISIBLE = (
    "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
)

_REMOVED = re.compile(f"[{_INVISIBLE}]+")

_COMBINING = "\u0300-\u036f\u0653-\u0655\u3099\u309a"

_RAISED = "²³¹⁰⁴-⁹₀-₉"  # above or below the line: digits, but of no number before them

_IS_RAISED = re.compile(f"[{_RAISED}]").match

_LETTER = rf"[^\W\d_{UNSPACED}]"

# A character of a word, in scripts with spaces between words. Combining marks are some, too.
_SPACED = (
    rf"[^\s{UNSPACED}!-/:-@\[-^`{{-~\u00a1-\u00b1\u00b4-\u00b8\u00ba-\u00bf\u060c\u061b\u061f\u06d4\u0964\u0965"
    r"\u2010-\u205e\u3000-\u303f\uff00-\uff0f]"
)


class _Characters(dict[int, int]):
    """Map each character to the one that the normal form has, if it is one."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        normal = unicodedata.normalize("NFKC", character).casefold()
        if _IS_RAISED(character):
            normal = character
        elif character in _QUOTES:
            normal = "'"
        elif character in _DASHES:
            normal = "-"
        elif character in _LINE_BREAKS:
            normal = "\n"
        elif character.isspace():
            normal = " "
        elif character == "。":
            normal = "."
        self[code] = result = ord(normal) if len(normal) == 1 else code
        return result


_CHARACTERS = _Characters()


class _Replacements(dict[str, str]):
    """Map characters to forms of several or of none: ligatures, units, what is invisible."""

    def __missing__(self, part: str) -> str:
        normal = unicodedata.normalize("NFKC", _REMOVED.sub("", part)).casefold()
        if len(self) < 10_000:
            self[part] = normal
        return normal


_REPLACEMENTS = _Replacements()

_LONG = r"\x80-\xbf\xdf\u0100-\u02ff\u1e00-\u3040\u3190-\u33ff\ud800-\U0010ffff"  # perhaps

# What may have another form, looked at one by one. Most spaces stand between words.
_SPECIAL = re.compile(
    rf"(?<![a-z0-9])[ \n]+|\n[ \n]*|[ ](?![a-z0-9])[ \n]*|-[ \n]*|'{{2,}}"
    rf"|(?<=[0-9])[{_RAISED}]+|[{_INVISIBLE}]+|[{_COMBINING}]+|[\u1100-\u11ff]+|[{_LONG}]"
)

_COMBINES = re.compile(f"[{_COMBINING}]").match

_IS_SPACED = re.compile(_SPACED).match

_IS_LETTER = re.compile(_LETTER).match


class NormalText:
    """Hold a text in its normal form, and where in the text each part of the form stands.

    In the normal form the case of letters is gone, full width and half width are the same, and all
    quotation marks, and all dashes. Raised digits are plain ones, except behind a digit ("10⁶").
    White space stands only between words, as one space. A hyphen within a word is left out, with
    the line break behind it, and so are invisible characters.

    Attributes:
        text: The text.
        normalized: Its normal form.

    Example:
        >>> normal = NormalText("He said:  “Re-\\ntrieval，ＯＫ？”")
        >>> normal.normalized, normal.span(9, 18)
        ("he said:'retrieval,ok?'", (11, 22))
    """

    __slots__ = ("_edits", "_normal_stops", "normalized", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._edits: list[tuple[int, int, int]] = []  # start in the form; start, stop in the text
        self._normal_stops: list[int] = []
        translated = text.translate(_CHARACTERS)
        parts: list[str] = []
        at = size = 0
        for match in _SPECIAL.finditer(translated):
            start, stop = match.span()
            if _COMBINES(translated, start) and start > at:
                start -= 1
            new = _replacement(translated, start, stop)
            if new == translated[start:stop]:
                continue
            parts += (translated[at:start], new)
            size += start - at
            self._edits.append((size, start, stop))
            size += len(new)
            self._normal_stops.append(size)
            at = stop
        self.normalized = "".join([*parts, translated[at:]]) if parts else translated

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return where a part of the form stands in the text. It is not empty."""
        return self._character(start)[0], self._character(stop - 1)[1]

    def _character(self, at: int) -> tuple[int, int]:
        """Return where a character of the form stands in the text."""
        index = bisect_right(self._normal_stops, at)  # of the first edit that ends behind it
        if index < len(self._edits) and self._edits[index][0] <= at:
            return self._edits[index][1:]
        offset = at
        if index:
            offset += self._edits[index - 1][2] - self._normal_stops[index - 1]
        return offset, offset + 1


def _replacement(text: str, start: int, stop: int) -> str:
    """Return the form of a part that may have another one."""
    part = text[start:stop]
    first = part[0]
    if first == "'":
        return "'"
    if first == "-":
        return "" if start and _IS_LETTER(text[start - 1]) and _IS_LETTER(text, stop) else "-"
    if first in " \n":
        return " " if start and _IS_SPACED(text[start - 1]) and _IS_SPACED(text, stop) else ""
    if _IS_RAISED(first) and start and text[start - 1].isdecimal():
        return part
    return _REPLACEMENTS[part]


_IGNORE: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "case": str.casefold,
        "width": lambda text: unicodedata.normalize("NFKC", _REMOVED.sub("", text)),
        "spaces": lambda text: re.sub(r"\s+", "", text),
        "quotation marks": lambda text: re.sub(f"[{_QUOTES}]", "", text),
        "hyphens": lambda text: re.sub(f"[{_DASHES}\u00ad]", "", text),
    }
)
"""What takes each difference out of a text."""


def differences(text: str, other: str) -> tuple[str, ...]:
    """Return in what two texts differ whose normal form is the same.

    Example:
        >>> differences("Green  tea", "green tea")
        ('case', 'spaces')
    """
    if text == other:
        return ()
    names = []
    for name in _IGNORE:
        one, two = text, other
        for different, ignore in _IGNORE.items():
            if different != name:
                one, two = ignore(one), ignore(two)
        if one != two:
            names.append(name)
    return tuple(names) or ("width",)
