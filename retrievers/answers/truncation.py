"""Cut a text that is too long: at the ends of sentences, around what matched, or into parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...nodegraph.splitters import sentence_spans

Fits = Callable[[str], bool]
"""Whether a text is short enough."""


def cut(text: str, fits: Fits, at: int = 0) -> str:
    """Return as many whole sentences of a text as fit, around a place; empty if nothing fits.

    Of a sentence that is too long itself, its beginning.

    Args:
        text: The text.
        fits: Whether a text is short enough. Every text that is returned has been asked for.
        at: The place, in characters, that matters: what stands before it is the first to go.

    Example:
        >>> cut("One. Two. Three. Four.", lambda text: len(text) <= 12, at=12)
        'Three. Four.'
    """
    if fits(text):
        return text
    spans = sentence_spans(text)
    if not spans:
        return ""
    middle = max((n for n, (begin, _) in enumerate(spans) if begin <= at), default=0)

    def piece(before: int, after: int) -> str:
        first, last = max(0, middle - before), min(len(spans) - 1, middle + after)
        return text[spans[first][0] : spans[last][1]]

    if not fits(piece(0, 0)):
        return _beginning(piece(0, 0), fits)
    around = _most(lambda n: fits(piece(n, n)), len(spans))
    after = around + _most(lambda n: fits(piece(around, around + n)), len(spans))
    before = around + _most(lambda n: fits(piece(around + n, after)), len(spans))
    return piece(before, after)


def split(text: str, fits: Fits) -> list[str]:
    """Return a text in parts that fit, cut at the ends of sentences where that is possible.

    The parts have all of the text but white space between them; what can't fit at all (not one
    character does) ends them.

    Example:
        >>> split("One. Two. Three. Four.", lambda text: len(text) <= 12)
        ['One. Two.', 'Three. Four.']
    """
    if fits(text):
        return [text]
    parts: list[str] = []
    spans = sentence_spans(text)
    at = 0
    while at < len(spans):
        begin = spans[at][0]
        ends = [end for _, end in spans[at:]]
        taken = _sentences(text, begin, ends, fits)
        if taken:
            parts.append(text[begin : ends[taken - 1]])
            at += taken
            continue
        part = _beginning(text[begin : spans[at][1]], fits)
        if not part:
            break
        parts.append(part)
        rest = begin + len(part)
        rest += len(text[rest : spans[at][1]]) - len(text[rest : spans[at][1]].lstrip())
        spans[at] = (rest, spans[at][1])
    return parts


def _sentences(text: str, begin: int, ends: Sequence[int], fits: Fits) -> int:
    """Return how many of the sentences from a place on fit."""
    return _most(lambda n: fits(text[begin : ends[n - 1]]), len(ends))


def _beginning(text: str, fits: Fits) -> str:
    """Return the beginning of a sentence, up to the end of a word where there is one."""
    length = _most(lambda n: fits(text[:n]), len(text))
    if not length or not fits(text[:length]):
        return ""
    for end in range(length, max(length // 2, length - 40), -1):
        if text[end - 1 : end + 1].isascii() and text[end - 1 : end + 1].isalnum():
            continue  # within a word in letters
        if fits(text[:end].rstrip()) and text[:end].strip():
            return text[:end].rstrip()
    return text[:length]


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number up to a limit for which it is true; it is taken to be for 0."""
    low, high = 0, 1
    while high < limit and fits(high):
        low, high = high, 2 * high
    high = min(high, limit)
    if low < high and fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
