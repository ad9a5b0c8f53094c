"""Find quotations in texts, either literally or ignoring case, spaces and punctuation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal

from ...nodegraph.splitters.chunking import UNSPACED, Span
from ...nodegraph.splitters.sentences import sentence_spans
from .normal_text import HYPHENS, NUMBER, NUMERALS, RANGE_DASHES, TOKEN, NormalText, is_unspaced

ELISION = re.compile(r"[\[(（［【]?\s?(?:\.{3,}|\.(?:\s\.){2,}|…+|⋯+)\s?[\])）］】]?")
"""A pattern that matches an ellipsis in a quotation."""

_MAX_ELIDED = 2_000  # the maximum number of characters that an ellipsis may omit

_MIN_PART = 8  # the minimum size of a part in a different sentence, in units of ``_units``

# The minimum share of a quotation's words that the most similar sentence must contain.
_MIN_SHARE = 0.4

_EDGES = " \t\n\r.,;:!?…。，；：！？、·'\"“”‘’«»「」『』-–—"

_IS_WORD = re.compile(rf"[^\W{UNSPACED}]").match

_MAX_NUMBER = 40  # the maximum length of a number, in characters

_IS_NUMERAL = re.compile(rf"[\d{NUMERALS}]").match

_PERCENT = r"\s?[%％‰]"

_WHOLE_NUMBER = re.compile(rf"{NUMBER}(?:{_PERCENT})?")

_SIGN = re.compile(r"(?<![\w.])[-–.]\Z")


@dataclass(frozen=True, slots=True)
class QuoteMatch:
    """A match of a quotation in a list of texts.

    Attributes:
        text: The index of the text that contains the quotation.
        exact: Whether the text contains the quotation literally. If False, the quotation contains
            an ellipsis, or the text differs in case, width, spaces, quotation marks, hyphens or
            outer punctuation.
        spans: The span of the quotation. If the quotation contains ellipses, each of its parts has
            a span.
        shortened: Whether an ellipsis omits a part of a sentence. The omitted part may be a
            negation or a unit, so the quotation should be compared with the text.
    """

    text: int
    exact: bool
    spans: tuple[Span, ...]
    shortened: bool = False

    @property
    def status(self) -> Literal["exact", "same_letters", "shortened"]:
        """The status of the quotation with regard to its text."""
        if self.exact:
            return "exact"
        return "shortened" if self.shortened else "same_letters"


class QuoteIndex:
    """An index that finds quotations in texts. The texts are normalized when they are first needed.

    Args:
        texts: The texts in which quotations are searched, such as the texts of sources.

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
        """Return the match of a quotation, or None if no text contains it.

        Args:
            quote: The quotation without quotation marks.
            first: The indexes of the cited texts, which are searched before the other texts.
        """
        stripped = quote.strip()
        if not re.search(r"\w", stripped):
            return None
        whole_forms = NormalText(stripped).normalized, _inner_form(stripped)
        forms = [_inner_form(part) for part in ELISION.split(stripped)]
        parts = [part for part in forms if _units(part)]
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
        """Return the index of the most similar text, and the span of its most similar sentence.

        The text that contains the most words of the quotation is chosen first, and then a sentence
        in it. Among equally similar sentences, the shortest is chosen. If no sentence contains
        enough words of the quotation, None is returned.
        """
        terms = NormalText(quote).terms
        shared = [len(terms & self._normal_text(at).terms) for at in range(len(self.texts))]
        if not any(shared):
            return None
        at = shared.index(max(shared))
        best = (max(1, _MIN_SHARE * len(terms)), -math.inf)
        nearest = None
        for start, stop in sentence_spans(self.texts[at]):
            others = NormalText(self.texts[at][start:stop]).terms
            alike = len(terms & others), -len(others)
            if alike > best:
                best = alike
                nearest = (at, (start, stop))
        return nearest

    def _normal_text(self, at: int) -> NormalText:
        if at not in self._normal:
            self._normal[at] = NormalText(self.texts[at])
        return self._normal[at]


def _inner_form(text: str) -> str:
    """Normalize a text, and remove punctuation at both ends."""
    return _inner(NormalText(_inner(text)).normalized)


def _units(part: str) -> int:
    """Return the size of a text, in which a word counts as 2 and a Chinese character as 1."""
    return sum(len(token) if is_unspaced(token) else 2 for token in TOKEN.findall(part))


def _inner(text: str) -> str:
    """Remove punctuation at both ends of a text. The sign of a number is kept."""
    start = len(text) - len(text.lstrip(_EDGES))
    if text[start : start + 1].isdecimal() and _SIGN.search(text, max(0, start - 1), start):
        start -= 1
    return text[start:].rstrip(_EDGES)


def _occurrences(part: str, text: str, start: int = 0) -> Iterator[Span]:
    """Yield all spans of a string in a text, starting from an offset."""
    if not part:
        return
    at = text.find(part, start)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + 1)


def _find(part: str, source: NormalText, start: int = 0) -> Span | None:
    """Return the first span of a string in a normalized text that does not cut words or numbers."""
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
    """Return whether the character at an offset is a hyphen in a compound or a dash in a range."""
    if not 0 < at < len(text) - 1:
        return False
    before = text[at - 1]
    behind = text[at + 1]
    if text[at] in HYPHENS:
        return before.isalnum() and behind.isalnum()
    return text[at] in RANGE_DASHES and before.isdecimal() and behind.isdecimal()


def _cuts_number(text: str, at: int) -> bool:
    """Return whether an offset is inside a number, including its sign and percent sign."""
    if not (_IS_NUMERAL(text, at) or (at and _IS_NUMERAL(text, at - 1))):
        return False
    numbers = _WHOLE_NUMBER.finditer(text, max(0, at - _MAX_NUMBER), at + _MAX_NUMBER)
    return any(number.start() < at < number.end() for number in numbers)


def _find_in_order(parts: Sequence[str], source: NormalText) -> list[Span]:
    """Return the spans of the parts of a quotation with ellipses, in order.

    The result is empty if a part is missing, or if the text between two parts is too long to be
    omitted.
    """
    missing = [part for part in parts if part not in source.normalized]
    if missing or len(parts) < 2:
        return []
    first = _find(parts[0], source)
    for _ in range(20):  # try up to 20 occurrences of the first part
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
    """Return whether a quotation may omit the text between two of its parts.

    If the omitted text extends over several sentences, both parts must be long, since short parts
    can occur anywhere.
    """
    sentences = sentence_spans(elided)
    if len(sentences) < 2:
        return True
    return min(_units(before), _units(behind)) >= _MIN_PART


def _is_shortened(text: str, spans: Sequence[Span]) -> bool:
    """Return whether a part of a sentence is missing between two spans.

    Omitting whole sentences does not change the meaning of the remaining sentences, but omitting a
    part of a sentence can change its meaning.
    """
    edges = [*chain.from_iterable(sentence_spans(text))]
    for before, behind in pairwise(spans):
        starts = [edge for edge in edges if edge <= behind[0]]
        stops = [edge for edge in edges if edge >= before[1]]
        left_of_part = text[max(starts, default=0) : behind[0]]
        right_of_part = text[before[1] : min(stops, default=len(text))]
        if re.search(r"\w", left_of_part) or re.search(r"\w", right_of_part):
            return True
    return False
