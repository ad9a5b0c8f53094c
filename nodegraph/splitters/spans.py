"""Find out where pieces were cut from a text."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int]
"""Begin and end (exclusive) in characters."""


def locate(pieces: Sequence[str], text: str) -> list[Span | None]:
    """Find each piece in the text, in order; None for a piece that is not a part of it.

    A piece is looked for where the last one ended, past separators; then, since chunks may
    overlap, from just behind where the last one began; then, since a transform may reorder,
    anywhere. Every span returned is true: ``text[start:end] == piece``. The search for pieces
    that are not there is bounded, so that a transform that rewrites a long text costs a few
    scans of it, not one for each piece.

    Example:
        >>> locate(["a b", "b c", "new"], "a b c")
        [(0, 3), (2, 5), None]
    """
    spans: list[Span | None] = []
    budget = 16 * len(text) + 1_000_000
    begin, end = -1, 0
    for piece in pieces:
        window = end + 4 * len(piece) + 4096
        at = text.find(piece, end, window)
        if at < 0 or any(c.isalnum() for c in text[end:at]):
            overlapping = text.find(piece, begin + 1, window)
            at = overlapping if overlapping >= 0 else at
        if at < 0 and budget > 0:
            at = text.find(piece, end)
            if at < 0:
                at = text.find(piece)
            budget -= len(text) if at < 0 else abs(at - end)
        if at < 0 or not piece:
            spans.append(None)
            continue
        begin, end = at, at + len(piece)
        spans.append((begin, end))
    return spans
