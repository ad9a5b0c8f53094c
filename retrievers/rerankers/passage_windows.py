"""Cut a passage that is too long for a model into windows that overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from ...nodegraph import count_tokens
from ...nodegraph.splitters import CLAUSES, WORDS, Length, Span, sentence_spans


def passage_windows(
    text: str, limit: int, overlap: int | None = None, length: Length = count_tokens
) -> list[Span]:
    """Return the begin and end of windows that cover a text; one for a text that fits.

    A window ends at a sentence's end where one lies in its second half, else at a clause's, else
    between words, else anywhere; it begins likewise. The white space around it is left out.

    Args:
        text: The passage.
        limit: How long a window is at most; a single character that measures more is taken.
        overlap: How much of a window the next one has again, at most; seldom less than half of
            that. None for ``default_overlap(limit)``.
        length: Measures a text, by default in tokens (an estimate); it should grow with the text.

    Raises:
        ValueError: If the limit is below 1, the overlap negative or not below the limit.

    Example:
        >>> text = "Tea is a leaf. It is picked by hand. It is dried."
        >>> [text[begin:end] for begin, end in passage_windows(text, 11, 6)]
        ['Tea is a leaf. It is picked by hand.', 'It is picked by hand. It is dried.']
    """
    if limit < 1:
        raise ValueError(f"limit must be 1 or more, not {limit!r}")
    overlap = default_overlap(limit) if overlap is None else overlap
    if not 0 <= overlap < limit:
        raise ValueError(
            f"overlap must be 0 or more and less than limit ({limit}), not {overlap!r}"
        )
    whole = length(text)
    if whole <= limit:
        return [(0, len(text))]
    return list(_cut(text, limit, overlap, length, whole)) or [(0, 0)]


def default_overlap(limit: int) -> int:
    """Return two sevenths of a window, at most 80 (as QAnything has it)."""
    return min(80, 2 * limit // 7)


def _cut(text: str, limit: int, overlap: int, length: Length, whole: int) -> Iterator[Span]:
    levels = _boundaries(text)
    share = len(text) / max(1, whole)  # how many characters a unit of length takes, roughly
    stop = len(text.rstrip())
    begin, end = _past_space(text, 0), 0
    while end < stop:
        new = _past_space(text, end)  # where that begins which no window has
        reach = begin + max(1, _prefix(text[begin:stop], limit, length, int(share * limit)))
        if reach <= new:  # the overlap leaves no room for it
            begin = new
            continue
        if reach < stop:
            reach = _last(levels, max(new, (begin + reach) // 2), reach)
        end = begin + len(text[begin:reach].rstrip())
        yield begin, end
        back = _suffix(text[begin + 1 : end], overlap, length, int(share * overlap))
        begin = _past_space(text, _first(levels, end - back, end - back // 2))


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _boundaries(text: str) -> list[list[int]]:
    """Return where sentences, clauses and words end, in this order of preference."""
    return [
        [end for _, end in sentence_spans(text)],
        *([match.end() for match in level.finditer(text)] for level in (CLAUSES, WORDS)),
    ]


def _last(levels: list[list[int]], low: int, high: int) -> int:
    """Return the last good boundary above ``low`` and not above ``high``, else ``high``."""
    for ends in levels:
        at = bisect_right(ends, high) - 1
        if at >= 0 and ends[at] > low:
            return ends[at]
    return high


def _first(levels: list[list[int]], low: int, high: int) -> int:
    """Return the first good boundary from ``low`` to below ``high``, else ``low``."""
    for ends in levels:
        at = bisect_left(ends, low)
        if at < len(ends) and ends[at] < high:
            return ends[at]
    return low


def _prefix(text: str, size: int, length: Length, guess: int) -> int:
    return _longest(lambda count: length(text[:count]) <= size, len(text), guess)


def _suffix(text: str, size: int, length: Length, guess: int) -> int:
    return _longest(lambda count: length(text[len(text) - count :]) <= size, len(text), guess)


def _longest(fits: Callable[[int], bool], most: int, guess: int) -> int:
    """Return how many characters fit, at most ``most``; up to a thirty-second part less.

    Measuring may be a model's tokenizer: a few trials around a guess are all it takes.
    """
    low, high = 0, most + 1  # low fits, high does not
    trial, step = guess, 1 + guess // 8
    while high - low > 1 + low // 32:
        trial = min(max(trial, low + 1), high - 1)
        if fits(trial):
            low = trial
        else:
            high = trial
        trial = low + step if high > most else (low + high) // 2
        step *= 2
    return low
