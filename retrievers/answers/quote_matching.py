"""Find quotations in texts: literally, or with equal letters."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal

from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans

_QUOTES = "\"'`´‘’‚‛“”„‟‹›«»「」『』〝〞〟′″＂＇｢｣"

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"

_HYPHENS = "-\u2010\u2011\ufe63\uff0d"  # between letters or digits, they join a compound

_RANGE_DASHES = "\u2012\u2013\u2212\uff5e~"  # between digits, they join the ends of a range

# Soft hyphens, zero-width and direction characters, byte order marks, Arabic and Hebrew points.
_INVISIBLE = (
    "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
)

_REMOVED = re.compile(f"[{_INVISIBLE}]+")

_COMBINING = "\u0300-\u036f\u0653-\u0655\u3099\u309a"

_RAISED = "²³¹⁰⁴-⁹₀-₉"  # superscripts and subscripts, which do not continue a number

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


@lru_cache(10_000)
def _normal(unit: str) -> str:
    """Return the normal form of a character with its combining marks."""
    if unit[0] in _QUOTES:
        return "'"
    if unit == "。":
        return "."
    return unicodedata.normalize("NFKC", _REMOVED.sub("", unit)).casefold()


class NormalText:
    """A text with its normal form, and the mapping from positions in the form to the text.

    The normal form ignores case, width, and the kinds of quotation marks and dashes. Superscript
    digits become plain digits, except after a digit ("10⁶"). White space between words becomes one
    space. Other white space, hyphens in words and invisible characters are removed.

    Attributes:
        text: The text.
        normalized: The normal form.

    Example:
        >>> normal = NormalText("He said:  “Re-\\ntrieval，ＯＫ？”")
        >>> normal.normalized, normal.span(9, 18)
        ("he said:'retrieval,ok?'", (11, 22))
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._spans: list[Span] = []  # the span of each character of the normalized text
        parts, last = [""], ""
        for match in _UNIT.finditer(text):
            unit, (start, stop) = match[0], match.span()
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
        """The words, and the pairs of Chinese characters."""
        tokens = _TOKEN.findall(self.normalized)
        pairs = map(str.__add__, tokens, tokens[1:])
        unspaced = [pair for pair in pairs if len(pair) == 2 and _IS_UNSPACED(pair)]
        return frozenset([*(token for token in tokens if len(token) > 1), *unspaced])

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """Return the span in the text of a non-empty part of the normal form."""
        return self._spans[start][0], self._spans[stop - 1][1]


ELISION = re.compile(r"[\[(（［【]?\s?(?:\.{3,}|\.(?:\s\.){2,}|…+|⋯+)\s?[\])）］】]?")
"""An ellipsis in a quotation."""

_MAX_ELIDED = 2_000  # characters of an elision

_MIN_PART = 8  # half words or Chinese characters of a part in another sentence

_MIN_SHARE = 0.4  # minimum share of a quotation's words in the nearest sentence

_EDGES = " \t\n\r.,;:!?…。，；：！？、·'\"“”‘’«»「」『』-–—"

_IS_WORD = re.compile(rf"[^\W{UNSPACED}]").match

_IS_UNSPACED = re.compile(f"[{UNSPACED}]").match

_MULTIPLIERS = "十百千万亿萬億拾佰仟"

_NUMERALS = f"〇零一二三四五六七八九两兩壹贰叁肆伍陆柒捌玖{_MULTIPLIERS}"

_MAX_NUMBER = 40  # characters

_IS_NUMERAL = re.compile(rf"[\d{_NUMERALS}]").match

# With its sign, groups of three digits ("10 000"), decimals or a fraction.
_NUMBER = (
    rf"(?:(?<![^\W{UNSPACED}])(?<!\d[{UNSPACED}])(?<![).])[-+−－–±.]|百分之)?"
    r"(?:(?<!\d)\d{1,3}(?:[ \u00a0\u2009\u202f'’]\d{3})+(?!\d)(?:[.,]\d+)?"
    rf"|\d+(?:[.,:/⁄]\d+)*(?:[{_MULTIPLIERS}]+\d*)*|[{_NUMERALS}]+(?:[点點][{_NUMERALS}]+)?)"
)

_PERCENT = r"\s?[%％‰]"

_WHOLE_NUMBER = re.compile(rf"{_NUMBER}(?:{_PERCENT})?")

_TOKEN = re.compile(rf"{_NUMBER}|[^\W{UNSPACED}]+|[{UNSPACED}]")

_SIGN = re.compile(r"(?<![\w.])[-–.]\Z")


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """The text and the spans of a quotation.

    Attributes:
        text: The index of the text with the quotation.
        exact: Whether the text contains the quotation literally. Otherwise case, width, spaces,
            quotation marks, hyphens or outer punctuation differ, or the quotation has an ellipsis.
        spans: One span, or one span per part of a quotation with ellipses.
        shortened: Whether an ellipsis leaves out a part of a sentence. The part may be a negation
            or a unit, so a reader has to compare the quotation with the text.
    """

    text: int
    exact: bool
    spans: tuple[Span, ...]
    shortened: bool = False

    @property
    def status(self) -> Literal["exact", "same_letters", "shortened"]:
        """The status of the quotation in its text."""
        if self.exact:
            return "exact"
        return "shortened" if self.shortened else "same_letters"


class QuoteIndex:
    """An index of texts for finding quotations. Texts are normalized on first use.

    Args:
        texts: The texts, such as those of sources.

    Example:
        >>> index = QuoteIndex(["Green tea is steamed. It grows in Japan.", "Black tea is not."])
        >>> index.find("black tea … not")
        QuoteMatch(text=1, exact=False, spans=((0, 9), (13, 16)), shortened=True)
        >>> index.find("Green tea is roasted.") is None, index.nearest("Green tea is roasted.")
        (True, (0, (0, 21)))
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._normal: dict[int, NormalText] = {}

    def find(self, quote: str, first: Iterable[int] = ()) -> QuoteMatch | None:
        """Return the text and the spans of a quotation. None: not found, or no words.

        Args:
            quote: The quotation without quotation marks.
            first: The indexes of the cited texts, which are searched first.
        """
        stripped = quote.strip()
        if not re.search(r"\w", stripped):
            return None
        whole_forms = NormalText(stripped).normalized, _inner_form(stripped)
        parts = [part for part in map(_inner_form, ELISION.split(stripped)) if _units(part)]
        cited = [at for at in dict.fromkeys(first) if 0 <= at < len(self.texts)]
        others = [at for at in range(len(self.texts)) if at not in set(cited)]
        for indexes in (cited, others):
            for at in indexes:
                text = self.texts[at]
                for span in _occurrences(stripped, text):
                    if not _cuts(text, *span):
                        return QuoteMatch(at, True, (span,))
            for at in indexes:
                source = self._normal_text(at)
                whole = _find(whole_forms[0], source) or _find(whole_forms[1], source)
                found = [whole] if whole else _find_in_order(parts, source)
                if found:
                    spans = tuple(source.span(*span) for span in found)
                    return QuoteMatch(at, False, spans, _is_shortened(source.text, spans))
        return None

    def nearest(self, quote: str) -> tuple[int, Span] | None:
        """Return the index of a text and the span of its sentence that is most similar.

        The text with most words of the quotation is chosen first, then the sentence. Of equal
        sentences, the shortest is returned. None: no sentence has enough words of the quotation.
        """
        terms = NormalText(quote).terms
        shared = [len(terms & self._normal_text(at).terms) for at in range(len(self.texts))]
        if not any(shared):
            return None
        at = shared.index(max(shared))
        best, nearest = (max(1, _MIN_SHARE * len(terms)), -math.inf), None
        for start, stop in sentence_spans(self.texts[at]):
            others = NormalText(self.texts[at][start:stop]).terms
            alike = len(terms & others), -len(others)
            if alike > best:
                best, nearest = alike, (at, (start, stop))
        return nearest

    def _normal_text(self, at: int) -> NormalText:
        if at not in self._normal:
            self._normal[at] = NormalText(self.texts[at])
        return self._normal[at]


def _inner_form(text: str) -> str:
    """Return the normal form of a text without punctuation at its edges."""
    return _inner(NormalText(_inner(text)).normalized)


def _units(part: str) -> int:
    """Return the size of a part in half words or Chinese characters."""
    return sum(len(token) if _IS_UNSPACED(token) else 2 for token in _TOKEN.findall(part))


def _inner(text: str) -> str:
    """Return a text without punctuation at its edges. A number keeps its sign."""
    start = len(text) - len(text.lstrip(_EDGES))
    if text[start : start + 1].isdecimal() and _SIGN.search(text, max(0, start - 1), start):
        start -= 1
    return text[start:].rstrip(_EDGES)


def _occurrences(part: str, text: str, start: int = 0) -> Iterator[Span]:
    """Yield the spans of a part in a text, from an offset on."""
    at = text.find(part, start) if part else -1
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


def _find(part: str, source: NormalText, start: int = 0) -> Span | None:
    """Return the first span of a part in a normal form that cuts no word and no number."""
    for span in _occurrences(part, source.normalized, start):
        if not _cuts(source.text, *source.span(*span)):
            return span
    return None


def _cuts(text: str, start: int, stop: int) -> bool:
    """Return whether a span starts or ends inside a word, a compound or a number."""
    if start and _IS_WORD(text, start) and _IS_WORD(text, start - 1):
        return True
    if stop < len(text) and _IS_WORD(text, stop) and _IS_WORD(text, stop - 1):
        return True
    if _cuts_compound(text, start - 1) or _cuts_compound(text, stop):
        return True
    return _cuts_number(text, start) or _cuts_number(text, stop)


def _cuts_compound(text: str, at: int) -> bool:
    """Return whether the character at an offset is a hyphen in a compound, or a dash in a range."""
    if not 0 < at < len(text) - 1:
        return False
    before = text[at - 1]
    behind = text[at + 1]
    if text[at] in _HYPHENS:
        return before.isalnum() and behind.isalnum()
    return text[at] in _RANGE_DASHES and before.isdecimal() and behind.isdecimal()


def _cuts_number(text: str, at: int) -> bool:
    """Return whether an offset is within a number, its sign, or its percent sign."""
    if not (_IS_NUMERAL(text, at) or (at and _IS_NUMERAL(text, at - 1))):
        return False
    numbers = _WHOLE_NUMBER.finditer(text, max(0, at - _MAX_NUMBER), at + _MAX_NUMBER)
    return any(number.start() < at < number.end() for number in numbers)


def _find_in_order(parts: Sequence[str], source: NormalText) -> list[Span]:
    """Return the spans of the parts around ellipses, in order. Empty: not found, or unfair."""
    if len(parts) < 2 or not all(part in source.normalized for part in parts):
        return []
    first = _find(parts[0], source)
    for _ in range(20):  # further occurrences of the first part
        if first is None:
            break
        spans = [first]
        for before, part in pairwise(parts):
            stop = spans[-1][1]
            span = _find(part, source, stop)
            if span is None:
                return []
            elided = source.text[source.span(*spans[-1])[1] : source.span(*span)[0]]
            if span[0] - stop > _MAX_ELIDED or not _is_fair(before, elided, part):
                break
            spans.append(span)
        if len(spans) == len(parts):
            return spans
        first = _find(parts[0], source, first[0] + 1)
    return []


def _is_fair(before: str, elided: str, behind: str) -> bool:
    """Return whether an ellipsis may leave out a text between two parts.

    Short parts occur anywhere, so they must be in one sentence.
    """
    sentences = sentence_spans(elided)
    return len(sentences) < 2 or min(_units(before), _units(behind)) >= _MIN_PART


def _is_shortened(text: str, spans: Sequence[Span]) -> bool:
    """Return whether a part of a sentence is left out between two spans.

    Only whole sentences may be left out without changing the meaning of the sentences around them.
    """
    edges = [edge for span in sentence_spans(text) for edge in span]
    for before, behind in pairwise(spans):
        starts = [edge for edge in edges if edge <= behind[0]]
        stops = [edge for edge in edges if edge >= before[1]]
        left_of_part = text[max(starts, default=0) : behind[0]]
        right_of_part = text[before[1] : min(stops, default=len(text))]
        if re.search(r"\w", left_of_part) or re.search(r"\w", right_of_part):
            return True
    return False
