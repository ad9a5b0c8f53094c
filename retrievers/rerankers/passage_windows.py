"""Split a passage that is too long for a model into overlapping windows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from ...nodegraph.splitters.chunking import CLAUSES, WORDS, Length, Span
from ...nodegraph.splitters.sentences import sentence_spans
from ...nodegraph.splitters.tokens import count_tokens
from ..validation import whole


def passage_windows(
    text: str, limit: int, overlap: int | None = None, length: Length = count_tokens
) -> list[Span]:
    """Return the start and end of the windows that cover a text; one for a text within the limit.

    A window ends at the end of a sentence if one is in its second half, else of a clause, else
    of a word, else anywhere; it begins by the same rule. White space at its ends is left out.

    Args:
        text: The passage.
        limit: How long a window is at most; a single character is a window even if it is longer.
        overlap: How much of a window the next one repeats, at most; seldom less than half of
            that. None for ``default_overlap(limit)``.
        length: Measures a text, by default in tokens (an estimate); it should grow with the text.

    Raises:
        ValueError: If the limit is below 1, the overlap negative or not below the limit.

    Example:
        >>> text = "Tea is a leaf. It is picked by hand. It is dried."
        >>> [text[start:end] for start, end in passage_windows(text, 11, 6)]
        ['Tea is a leaf. It is picked by hand.', 'It is picked by hand. It is dried.']
    """
    whole(limit, "limit", 1)
    overlap = default_overlap(limit) if overlap is None else overlap
    if not 0 <= overlap < limit:
        raise ValueError(
            f"overlap must be 0 or more and less than limit ({limit}), not {overlap!r}"
        )
    total = length(text)
    if total <= limit:
        return [(0, len(text))]
    return list(_windows(text, limit, overlap, length, total)) or [(0, 0)]


def default_overlap(limit: int) -> int:
    """Return two sevenths of a window, at most 80 (as in QAnything)."""
    return min(80, 2 * limit // 7)


def _windows(text: str, limit: int, overlap: int, length: Length, total: int) -> Iterator[Span]:
    levels = [  # where sentences, clauses and words end, in this order of preference
        [end for _, end in sentence_spans(text)],
        *([match.end() for match in level.finditer(text)] for level in (CLAUSES, WORDS)),
    ]
    ratio = len(text) / max(1, total)  # roughly the characters of a unit of length
    stop = len(text.rstrip())
    start, end = _past_space(text, 0), 0
    while end < stop:
        uncovered = _past_space(text, end)
        reach = start + max(1, _longest(text[start:stop], limit, length, int(ratio * limit)))
        if reach <= uncovered:  # the overlap leaves no room for new text
            start = uncovered
            continue
        if reach < stop:
            reach = _last(levels, max(uncovered, (start + reach) // 2), reach)
        end = start + len(text[start:reach].rstrip())
        yield start, end
        back = _longest(text[start + 1 : end], overlap, length, int(ratio * overlap), at_end=True)
        start = _past_space(text, _first(levels, end - back, end - back // 2))


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


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


def _longest(text: str, size: int, length: Length, guess: int, *, at_end: bool = False) -> int:
    """Return how many characters of a text are short enough, at most, or up to 1/32 less.

    Measuring may call a model's tokenizer: a few trials near a guess are enough.
    """
    low, high = 0, len(text) + 1  # low is short enough, high is not
    trial, step = guess, 1 + guess // 8
    while high - low > 1 + low // 32:
        trial = min(max(trial, low + 1), high - 1)
        if length(text[len(text) - trial :] if at_end else text[:trial]) <= size:
            low = trial
        else:
            high = trial
        trial = low + step if high > len(text) else (low + high) // 2
        step *= 2
    return low
