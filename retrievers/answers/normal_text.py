"""Text normalization for finding quotations."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property, lru_cache
from itertools import pairwise

from ...nodegraph.splitters.chunking import UNSPACED, Span

_QUOTES = "\"'`´‘’‚‛“”„‟‹›«»「」『』〝〞〟′″＂＇｢｣"

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"

# Between letters or digits, these join the parts of a compound.
HYPHENS = "-\u2010\u2011\ufe63\uff0d"

RANGE_DASHES = "\u2012\u2013\u2212\uff5e~"  # between digits, these join the ends of a range

# Soft hyphens, zero-width and direction characters, byte order marks, Arabic and Hebrew points.
_INVISIBLE = (
    "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
)

_REMOVED = re.compile(f"[{_INVISIBLE}]+")

_COMBINING = "\u0300-\u036f\u0653-\u0655\u3099\u309a"

_RAISED = "²³¹⁰⁴-⁹₀-₉"  # superscripts and subscripts do not continue a number

_LETTER = rf"[^\W\d_{UNSPACED}]"

# A character of a word in scripts with spaces, including combining marks.
_SPACED = (
    rf"[^\s{UNSPACED}!-/:-@\[-^`{{-~\u00a1-\u00b1\u00b4-\u00b8\u00ba-\u00bf\u060c\u061b\u061f\u06d4\u0964\u0965"
    r"\u2010-\u205e\u3000-\u303f\uff00-\uff0f]"
)


# White space, a dash before white space, or a character with its combining marks.
_UNIT = re.compile(
    rf"\s+|[{re.escape(_DASHES)}]\s*|[{re.escape(_QUOTES)}]+|(?<=\d)[{_RAISED}]+|[\u1100-\u11ff]+"
    rf"|.[{_COMBINING}]*",
    re.S,
)

_IS_RAISED = re.compile(f"[{_RAISED}]").match

_IS_SPACED = re.compile(_SPACED).match

_IS_LETTER = re.compile(_LETTER).match


is_unspaced = re.compile(f"[{UNSPACED}]").match

_MULTIPLIERS = "十百千万亿萬億拾佰仟"

NUMERALS = f"〇零一二三四五六七八九两兩壹贰叁肆伍陆柒捌玖{_MULTIPLIERS}"

# A number with its sign, groups of three digits ("10 000"), decimals or a fraction.
NUMBER = (
    rf"(?:(?<![^\W{UNSPACED}])(?<!\d[{UNSPACED}])(?<![).])[-+−－–±.]|百分之)?"
    r"(?:(?<!\d)\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?!\d)(?:[.,]\d+)?"
    rf"|\d+(?:[.,:/⁄]\d+)*(?:[{_MULTIPLIERS}]+\d*)*|[{NUMERALS}]+(?:[点點][{NUMERALS}]+)?)"
)

TOKEN = re.compile(rf"{NUMBER}|[^\W{UNSPACED}]+|[{UNSPACED}]")


@lru_cache(10_000)
def _normal(unit: str) -> str:
    """Return the normalized form of a character and its combining marks."""
    if unit[0] in _QUOTES:
        return "'"
    if unit == "。":
        return "."
    return unicodedata.normalize("NFKC", _REMOVED.sub("", unit)).casefold()


class NormalText:
    """A text with its normalized form, and a mapping from normalized to original positions.

    Normalization ignores case, character width, and the kinds of quotation marks and dashes.
    Superscript digits become plain digits, except after another digit ("10⁶"). White space between
    words is reduced to one space. Other white space, hyphens in words and invisible characters are
    removed.

    Attributes:
        text: The original text.
        normalized: The normalized text.

    Example:
        >>> normal = NormalText("He said:  “Re-\\ntrieval，ＯＫ？”")
        >>> normal.normalized, normal.span(9, 18)
        ("he said:'retrieval,ok?'", (11, 22))
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._spans: list[Span] = []  # the original span of each normalized character
        parts = [""]
        last = ""
        for match in _UNIT.finditer(text):
            unit = match[0]
            start, stop = match.span()
            if unit.isspace():
                behind = _normal(text[stop]) if stop < len(text) else " "
                normal = " " if _IS_SPACED(last) and _IS_SPACED(behind or "x") else ""
            elif unit[0] in _DASHES:
                inside = start and _IS_LETTER(text[start - 1]) and _IS_LETTER(text, stop)
                normal = "" if inside else "-"
            elif start and text[start - 1].isdecimal() and _IS_RAISED(unit):
                normal = unit
            else:
                normal = _normal(unit)
            parts.append(normal)
            self._spans += [(start, stop)] * len(normal)
            last = normal[-1:] or last
        self.normalized = "".join(parts)

    @cached_property
    def terms(self) -> frozenset[str]:
        """The words of the text, and all pairs of adjacent Chinese characters."""
        tokens = TOKEN.findall(self.normalized)
        pairs = [first + second for first, second in pairwise(tokens)]
        unspaced = [pair for pair in pairs if len(pair) == 2 and is_unspaced(pair)]
        return frozenset([*(token for token in tokens if len(token) > 1), *unspaced])

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the span in the original text for a non-empty span of the normalized text."""
        return self._spans[start][0], self._spans[stop - 1][1]
