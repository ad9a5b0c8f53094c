"""Cut a text that is too long: at the ends of sentences, near its best match, or into parts."""

from __future__ import annotations

from collections.abc import Callable

from ...nodegraph.splitters.sentences import sentence_spans

LengthCheck = Callable[[str], bool]
"""Returns whether a text is short enough."""


def cut(text: str, is_short: LengthCheck, at: int = 0) -> str:
    """Return as many complete sentences of a text as are short enough, near a place, or nothing.

    Of a sentence that is too long itself, its beginning.

    Args:
        text: The text.
        is_short: Whether a text is short enough. It is called with every text that is returned.
        at: The place, in characters, that matters: the text before it is the first to go.

    Example:
        >>> cut("One. Two. Three. Four.", lambda text: len(text) <= 12, at=12)
        'Three. Four.'
    """
    if is_short(text):
        return text
    spans = sentence_spans(text)
    if not spans:
        return ""
    middle = max((n for n, (start, _) in enumerate(spans) if start <= at), default=0)

    def sentences(before: int, after: int) -> str:
        first, last = max(0, middle - before), min(len(spans) - 1, middle + after)
        return text[spans[first][0] : spans[last][1]]

    if not is_short(sentences(0, 0)):
        return _beginning(sentences(0, 0), is_short)
    both = _largest(lambda n: is_short(sentences(n, n)), len(spans))
    after = both + _largest(lambda n: is_short(sentences(both, both + n)), len(spans))
    before = both + _largest(lambda n: is_short(sentences(both + n, after)), len(spans))
    return sentences(before, after)


def split(text: str, is_short: LengthCheck) -> list[str]:
    """Return a text in parts that are short enough, cut at the ends of sentences if possible.

    The parts have all of the text but white space between them. Where not even one character is
    short enough they end.

    Example:
        >>> split("One. Two. Three. Four.", lambda text: len(text) <= 12)
        ['One. Two.', 'Three. Four.']
    """
    if is_short(text):
        return [text]
    parts: list[str] = []
    spans = sentence_spans(text)
    at = 0
    while at < len(spans):
        start = spans[at][0]
        ends = [end for _, end in spans[at:]]
        count = _sentence_count(text, start, ends, is_short)
        if count:
            parts.append(text[start : ends[count - 1]])
            at += count
            continue
        part = _beginning(text[start : ends[0]], is_short)
        if not part:
            break
        parts.append(part)
        remaining = text[start + len(part) : ends[0]]
        spans[at] = (ends[0] - len(remaining.lstrip()), ends[0])
    return parts


def _sentence_count(text: str, start: int, ends: list[int], is_short: LengthCheck) -> int:
    """Return how many sentences from a place on are short enough together."""
    return _largest(lambda n: is_short(text[start : ends[n - 1]]), len(ends))


def _beginning(text: str, is_short: LengthCheck) -> str:
    """Return the beginning of a sentence, up to the end of a word where there is one."""
    length = _largest(lambda n: is_short(text[:n]), len(text))
    if not length or not is_short(text[:length]):
        return ""
    for end in range(length, max(length // 2, length - 40), -1):
        if text[end - 1 : end + 1].isascii() and text[end - 1 : end + 1].isalnum():
            continue  # inside a word of letters
        if is_short(text[:end].rstrip()) and text[:end].strip():
            return text[:end].rstrip()
    return text[:length]


def _largest(condition: Callable[[int], bool], limit: int) -> int:
    """Return the largest number up to a limit that meets a condition. 0 is taken to meet it."""
    low, high = 0, 1
    while high < limit and condition(high):
        low, high = high, 2 * high
    high = min(high, limit)
    if low < high and condition(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if condition(middle) else (low, middle)
    return low
