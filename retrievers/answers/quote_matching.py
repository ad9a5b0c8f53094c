"""Look a quotation up in texts: exactly, in its normal form, in parts. No model, no guess."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans

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
        translated = _translated(text, _CHARACTERS)
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


class _Letters(dict[int, str | None]):
    """Map each character to its letters and digits, without case, width and marks."""

    def __missing__(self, code: int) -> str | None:
        text = chr(code)
        for _ in range(2):  # what is decomposed may have another case
            text = unicodedata.normalize("NFKD", text.casefold())
        self[code] = letters = "".join(filter(str.isalnum, _REMOVED.sub("", text))) or None
        return letters


_LETTERS = _Letters()


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, which are those of its normal form.

    A text whose normal form has that of another one in it has its letters in it, too: a fast
    check that leaves little to look at.

    Example:
        >>> letters_of("“Re-\\ntrieval，ＯＫ？”")
        'retrievalok'
    """
    return _translated(text, _LETTERS)


_ASCII = re.compile(r"([\x00-\x7f]{16,})")


def _translated(text: str, table: Mapping[int, Any]) -> str:
    """Translate a text. Parts in ASCII take a tenth of the time by themselves."""
    return "".join([part.translate(table) for part in _ASCII.split(text)])


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


ELISION = re.compile(r"[\[(（［【]?\s?(?:\.{3,}|\.(?:\s\.){2,}|…+|⋯+)\s?[\])）］】]?")
"""What stands in a quotation for words that it leaves out."""

_MAX_ELIDED = 2_000  # characters that an elision may stand for

_MAX_STITCHED = 2_000  # characters of a quotation that is taken to parts

_MIN_PART = 8  # units of a part: four words, or eight Chinese characters

_AVERAGE_PART = 10  # units of the parts of a long quotation

_MIN_SHARE = 0.4  # of a quotation's words, which the nearest sentence has at least

_EDGES = " \t\n\r.,;:!?…。，；：！？、·'\"“”‘’«»「」『』-–—"

_IS_WORD = re.compile(rf"[^\W{UNSPACED}]").match

_IS_UNSPACED = re.compile(f"[{UNSPACED}]")

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

# Words, numbers, characters of scripts without spaces, marks: of a normal form.
_TOKEN = re.compile(
    rf"{_NUMBER}(?:{_PERCENT}|(?![^\W{UNSPACED}]))|[^\W{UNSPACED}]+|[{UNSPACED}]|[^\w\s]"
)

NEGATION = re.compile(
    r"(?i)\b(?:not?|nor|never|none|neither|nobody|nothing|cannot|without|nicht|kein\w*|nie|ohne"
    r"|pas|jamais|sans|nunca|sin|não|non|لا|لم|لن|ليس)\b|n['’]t\b|[不没沒无無]|未(?!来)|非(?![常洲])|ない|ません"
)
"""A word that turns what is said into its opposite, in the languages that are common."""

_SIGN = re.compile(r"(?<![\w.])[-–.]\Z")

MatchStatus = Literal["exact", "repaired", "stitched"]


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """Tell where a quotation stands.

    Attributes:
        text: Which text it stands in, by its index.
        status: How: ``"exact"``, ``"repaired"`` or ``"stitched"``.
        spans: Where, in characters: one span, or those of its parts.
        repairs: What had to be ignored: case, width, spaces, quotation marks, hyphens,
            punctuation (at either edge), elision.
    """

    text: int
    status: MatchStatus
    spans: tuple[Span, ...]
    repairs: tuple[str, ...] = ()


class QuoteIndex:
    """Look quotations up in texts.

    A text is brought to its normal form when a quotation may stand in it that is written otherwise:
    when it has the letters of the quotation, or of a part of it.

    Args:
        texts: The texts, those of sources.

    Example:
        >>> index = QuoteIndex(["Green tea is steamed. It grows in Japan.", "Black tea is not."])
        >>> index.find("black tea … not")
        QuoteMatch(text=1, status='repaired', spans=((0, 9), (13, 16)), repairs=('case', 'elision'))
        >>> index.find("It grows in Japan. Green tea is steamed.").status
        'stitched'
        >>> index.find("Green tea is roasted.") is None, index.nearest("Green tea is roasted.")
        (True, (0, (0, 21)))
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._letters: list[str | None] = [None] * len(texts)
        self._normal: list[NormalText | None] = [None] * len(texts)
        self._terms: list[frozenset[str] | None] = [None] * len(texts)

    def find(self, quote: str, first: Iterable[int] = ()) -> QuoteMatch | None:
        """Return where a quotation stands. None if it stands nowhere, or has no word.

        Args:
            quote: The quotation, without its marks.
            first: Texts that are looked at before the others, by index: those that it cites.
        """
        stripped = quote.strip()
        if not re.search(r"\w", stripped):
            return None
        normal = _NormalQuote(stripped)
        cited = [at for at in dict.fromkeys(first) if 0 <= at < len(self.texts)]
        others = [at for at in range(len(self.texts)) if at not in set(cited)]
        for indexes in (cited, others):
            for at in indexes:
                span = _find(stripped, self.texts[at])
                if span is not None:
                    return QuoteMatch(at, "exact", (span,))
            for at in indexes:
                match = self._repaired(normal, at)
                if match is not None:
                    return match
        for at in (*cited, *others):
            match = self._stitched(normal, at)
            if match is not None:
                return match
        return None

    def nearest(self, quote: str) -> tuple[int, Span] | None:
        """Return the sentence that has most of a quotation's words, of the text that has most.

        Of those that have as many it is the shortest.
        """
        terms = _terms(NormalText(quote).normalized)
        letters = [*map(letters_of, terms)]
        most = [
            sum(map(self._letters_of(at).__contains__, letters))
            if known is None
            else len(terms & known)
            for at, known in enumerate(self._terms)
        ]
        at, shared = 0, 0
        least = max(1, _MIN_SHARE * len(terms))
        for other in sorted(range(len(self.texts)), key=lambda other: -most[other]):
            if most[other] < max(shared, least):
                break
            count = len(terms & self._terms_of(other))
            if count > shared or (count == shared and other < at):
                at, shared = other, count
        best, nearest = (least, -math.inf), None
        for start, stop in sentence_spans(text := self.texts[at]) if shared else ():
            others = _terms(NormalText(text[start:stop]).normalized)
            alike = len(terms & others), -len(others)
            if alike > best:
                best, nearest = alike, (at, (start, stop))
        return nearest

    def _letters_of(self, at: int) -> str:
        letters = self._letters[at]
        if letters is None:
            letters = self._letters[at] = letters_of(self.texts[at])
        return letters

    def _normal_text(self, at: int) -> NormalText:
        normal = self._normal[at]
        if normal is None:
            normal = self._normal[at] = NormalText(self.texts[at])
        return normal

    def _terms_of(self, at: int) -> frozenset[str]:
        terms = self._terms[at]
        if terms is None:
            terms = self._terms[at] = _terms(self._normal_text(at).normalized)
        return terms

    def _repaired(self, quote: _NormalQuote, at: int) -> QuoteMatch | None:
        letters = self._letters_of(at)
        if not all(part.letters in letters for part in quote.parts):
            return None
        source = self._normal_text(at)
        for normal in dict.fromkeys([quote.full_normalized, quote.normalized]):
            if (span := _find_normalized(normal, source)) is not None:
                start, stop = source.span(*span)
                is_all = normal == quote.full_normalized
                text = quote.text if is_all else quote.inner
                repairs = differences(text, source.text[start:stop])
                if not is_all:
                    repairs = (*repairs, "punctuation")
                return QuoteMatch(at, "repaired", ((start, stop),), repairs)
        spans = _find_in_order(quote.parts, source, _is_fair)
        if spans is None:
            return None
        in_text = tuple(source.span(*span) for span in spans)
        repairs = tuple(
            dict.fromkeys(
                name
                for part, (start, stop) in zip(quote.parts, in_text, strict=True)
                for name in differences(part.inner, source.text[start:stop])
            )
        )
        return QuoteMatch(at, "repaired", in_text, (*repairs, "elision"))

    def _stitched(self, quote: _NormalQuote, at: int) -> QuoteMatch | None:
        letters = self._letters_of(at)
        if not all(part.first_letters in letters for part in quote.parts):
            return None
        source = self._normal_text(at)
        spans = _find_in_order(quote.parts, source) or self._covered(quote, source)
        if not spans:
            return None
        return QuoteMatch(at, "stitched", tuple(source.span(*span) for span in spans))

    def _covered(self, quote: _NormalQuote, source: NormalText) -> list[Span] | None:
        """Return the places of parts that a quotation is put together from, in any order."""
        if len(quote.text) > _MAX_STITCHED:
            return None
        spans: list[Span] = []
        for part in quote.parts:
            span = _find_normalized(part.normalized, source) if part.units >= _MIN_PART else None
            covered = [span] if span is not None else _cover(part, source)
            if covered is None:
                return None
            spans += covered
        units = sum(part.units for part in quote.parts)
        if len(spans) > max(2, len(quote.parts), 1 + units // _AVERAGE_PART):
            return None
        return spans


class _NormalPart:
    """A part of a quotation, without the punctuation at its edges."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.full_normalized = NormalText(text).normalized
        self.inner = _inner(text)
        self.normalized = _inner(NormalText(self.inner).normalized)
        self.tokens = [match.span() for match in _TOKEN.finditer(self.normalized)]
        self.sizes = [_units(self.normalized[a:b]) for a, b in self.tokens]
        self.units = sum(self.sizes)
        self.least_stops = _least_stops(self.sizes)
        self.letters = letters_of(self.normalized)
        first = self.least_stops[0] if self.tokens else None  # of the shortest part at its start
        stop = len(self.normalized) if first is None else self.tokens[first - 1][1]
        self.first_letters = letters_of(self.normalized[:stop])


class _NormalQuote(_NormalPart):
    """A quotation, and what it has between its elisions."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        parts = [_NormalPart(part) for part in ELISION.split(text)]
        parts = [part for part in parts if part.units]
        self.parts: list[_NormalPart] = parts if len(parts) > 1 else [self]


def _inner(text: str) -> str:
    """Return a text without the punctuation at its edges. A number keeps its sign."""
    start = len(text) - len(text.lstrip(_EDGES))
    if text[start : start + 1].isdecimal() and _SIGN.search(text, max(0, start - 1), start):
        start -= 1
    return text[start:].rstrip(_EDGES)


def _units(token: str) -> int:
    """Return what a token counts: a word 2, a character of Chinese 1, a mark nothing."""
    if _IS_WORD(token) or token[-1:].isdigit() or token[-1:] == "%":
        return 2
    return sum(map(str.isalnum, token))


def _find(quote: str, text: str) -> Span | None:
    """Return the first place where a quotation stands in a text, not within a word or number."""
    at = text.find(quote)
    while at >= 0:
        stop = at + len(quote)
        if not _cuts(text, at, stop):
            return at, stop
        at = text.find(quote, at + 1)
    return None


def _find_normalized(quote: str, source: NormalText, start: int = 0) -> Span | None:
    """Return the first place of a normal form from an offset on, as a span of the normal form."""
    at = source.normalized.find(quote, start) if quote else -1
    while at >= 0:
        stop = at + len(quote)
        if not _cuts(source.text, *source.span(at, stop)):
            return at, stop
        at = source.normalized.find(quote, at + 1)
    return None


def _cuts(text: str, start: int, stop: int) -> bool:
    """Return whether a word or a number goes on beyond a span, on either side."""
    if start and _IS_WORD(text, start) and _IS_WORD(text, start - 1):
        return True
    if stop < len(text) and _IS_WORD(text, stop) and _IS_WORD(text, stop - 1):
        return True
    return _cuts_number(text, start) or _cuts_number(text, stop)


def _cuts_number(text: str, at: int) -> bool:
    """Return whether an offset is within a number, its sign, or its percent sign."""
    if not (_IS_NUMERAL(text, at) or (at and _IS_NUMERAL(text, at - 1))):
        return False
    numbers = _WHOLE_NUMBER.finditer(text, max(0, at - _MAX_NUMBER), at + _MAX_NUMBER)
    return any(number.start() < at < number.end() for number in numbers)


def _find_in_order(
    parts: Sequence[_NormalPart],
    source: NormalText,
    is_right: Callable[[_NormalPart, str, _NormalPart], bool] = lambda *_: True,
) -> list[Span] | None:
    """Return where parts stand one behind the other, with not too much between two of them."""
    if len(parts) < 2 or not all(part.normalized in source.normalized for part in parts):
        return None
    first = _find_normalized(parts[0].normalized, source)
    for _ in range(20):  # further places of the first part
        if first is None:
            return None
        spans = [first]
        for before, part in pairwise(parts):
            stop = spans[-1][1]
            span = _find_normalized(part.normalized, source, stop)
            if span is None:
                return None
            elided = source.text[source.span(*spans[-1])[1] : source.span(*span)[0]]
            if span[0] - stop > _MAX_ELIDED or not is_right(before, elided, part):
                break
            spans.append(span)
        if len(spans) == len(parts):
            return spans
        first = _find_normalized(parts[0].normalized, source, first[0] + 1)
    return None


def _is_fair(before: _NormalPart, elided: str, behind: _NormalPart) -> bool:
    """Return whether two parts may have an elision between them without a change of the meaning.

    Short ones may come from anywhere, so that they have to be in one sentence. What is left out of
    the sentences of either may not have a negation.
    """
    sentences = [elided[start:stop] for start, stop in sentence_spans(elided)]
    if len(sentences) > 1 and min(before.units, behind.units) < _MIN_PART:
        return False
    return not any(NEGATION.search(sentence) for sentence in (*sentences[:1], *sentences[-1:]))


def _cover(part: _NormalPart, source: NormalText) -> list[Span] | None:
    """Return the places of parts of a text that a quotation is put together from, few and long.

    None if it has something that no part is long enough for.
    """
    sizes, count = part.sizes, len(part.tokens)
    if part.units < 2 * _MIN_PART:
        return None
    least = part.least_stops
    if least[0] is None or not _has(part, 0, least[0], source):
        return None
    before: list[int | None] = [None] * (count + 1)  # where the part starts that ends there
    before[0] = 0
    filled = stop = 0
    for start in range(count):
        if before[start] is None:
            continue
        if not sizes[start]:  # a mark between two parts
            if before[start + 1] is None:
                before[start + 1] = start
                filled = max(filled, start + 1)
            continue
        shortest = least[start]
        if shortest is None:
            break
        stop = max(stop, shortest)
        if not _has(part, start, stop, source):
            continue
        while stop < count and _has(part, start, stop + 1, source):
            stop += 1
        for at in range(max(shortest, filled + 1), stop + 1):
            before[at] = start
        filled = max(filled, stop)
    return _spans_back(part, before, source)


def _least_stops(sizes: Sequence[int]) -> list[int | None]:
    """Return for each token behind which one a part from it on is long enough."""
    result: list[int | None] = []
    stop = total = 0
    for size in sizes:
        while total < _MIN_PART and stop < len(sizes):
            total += sizes[stop]
            stop += 1
        result.append(stop if total >= _MIN_PART else None)
        total -= size
    return result


def _has(part: _NormalPart, start: int, stop: int, source: NormalText) -> bool:
    """Return whether a source has some tokens of a quotation in a row."""
    tokens = part.normalized[part.tokens[start][0] : part.tokens[stop - 1][1]]
    return _find_normalized(tokens, source) is not None


def _spans_back(
    part: _NormalPart, before: Sequence[int | None], source: NormalText
) -> list[Span] | None:
    """Return the places of the parts, from the last one back to the first."""
    spans: list[Span] = []
    at = len(part.tokens)
    while at:
        start = before[at]
        if start is None:
            return None
        if part.sizes[start] or at - start > 1:
            part_text = part.normalized[part.tokens[start][0] : part.tokens[at - 1][1]]
            span = _find_normalized(_inner(part_text), source)
            if span is None:
                return None
            spans.append(span)
        at = start
    return spans[::-1]


def _terms(normalized: str) -> frozenset[str]:
    """Return the words of a normal form, and the pairs of characters of Chinese."""
    tokens = _TOKEN.findall(normalized)
    words = [token for token in set(tokens) if len(token) > 1]
    if _IS_UNSPACED.search(normalized):
        words += {pair for pair in map(str.__add__, tokens, tokens[1:]) if len(pair) == 2}
    return frozenset(words)
