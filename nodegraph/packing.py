"""Cut a text into pieces that fit a size, and pack pieces into overlapping chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .spans import Span

Length = Callable[[str], int]
"""Measures a text: tokens, characters, whatever chunks are to be limited by."""

CLAUSES = re.compile(r"[，、；：,;:—]+[”’」』）)\]】]*\s*|\n+")
WORDS = re.compile(r"\s+")


def check_sizes(chunk_size: int, chunk_overlap: int) -> None:
    """Check what a splitter is given.

    Raises:
        ValueError: If the size is below 1, the overlap negative or not below the size.
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be 1 or more, not {chunk_size!r}")
    if not 0 <= chunk_overlap < chunk_size:
        raise ValueError(
            f"chunk_overlap must be 0 or more and less than chunk_size ({chunk_size}), "
            f"not {chunk_overlap!r}"
        )


def strip_span(text: str, span: Span) -> Span:
    """Leave out the white space at both ends of a span."""
    begin, end = span
    piece = text[begin:end]
    content = piece.strip()
    begin += len(piece) - len(piece.lstrip())
    return begin, begin + len(content)


def cut_at(text: str, span: Span, separator: re.Pattern[str]) -> list[Span]:
    """Cut a span behind every match of a separator; the pieces join up without gaps."""
    pieces, begin = [], span[0]
    for match in separator.finditer(text, *span):
        if begin < match.end() < span[1]:
            pieces.append((begin, match.end()))
            begin = match.end()
    return [*pieces, (begin, span[1])]


def cut_to_fit(
    text: str, span: Span, size: int, length: Length, separators: Sequence[re.Pattern[str]]
) -> list[Span]:
    """Cut a span that is too long: at the first separator that helps, at last anywhere."""
    if length(text[slice(*span)]) <= size:
        return [span]
    for level, separator in enumerate(separators):
        pieces = cut_at(text, span, separator)
        if len(pieces) > 1:
            rest = separators[level + 1 :]
            return [p for piece in pieces for p in cut_to_fit(text, piece, size, length, rest)]
    pieces, (begin, end) = [], span
    while begin < end:
        cut = begin + _longest_prefix(text, begin, end, size, length)
        pieces.append((begin, cut))
        begin = cut
    return pieces


def _longest_prefix(text: str, begin: int, end: int, size: int, length: Length) -> int:
    """Return how many characters fit, at least one; the length is taken to grow with the text."""
    reach = 1
    while begin + reach < end and length(text[begin : begin + 2 * reach]) <= size:
        reach *= 2
    low, high = reach, min(2 * reach, end - begin)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[begin : begin + middle]) <= size:
            low = middle
        else:
            high = middle - 1
    return low


def pack(text: str, pieces: Sequence[Span], size: int, overlap: int, length: Length) -> list[Span]:
    """Join neighbouring pieces into chunks of at most ``size``.

    Each chunk but the first begins with whole pieces of the one before, at most ``overlap``
    long together, and reaches at least one piece further. A chunk's length is that of its text:
    pieces are dropped from its end while a length that does not add up makes it too long.
    """
    lengths = [length(text[begin:end]) for begin, end in pieces]
    chunks: list[Span] = []
    first = after = 0
    total = 0  # of the pieces from first up to after
    while after < len(pieces):
        while after < len(pieces) and (first == after or total + lengths[after] <= size):
            total += lengths[after]
            after += 1
        covered = chunks[-1][1] if chunks else -1
        while (
            after - first > 1
            and pieces[after - 2][1] > covered
            and length(text[pieces[first][0] : pieces[after - 1][1]]) > size
        ):
            after -= 1
            total -= lengths[after]
        chunks.append((pieces[first][0], pieces[after - 1][1]))
        if after == len(pieces):
            break
        while first < after and (total > overlap or total + lengths[after] > size):
            total -= lengths[first]
            first += 1
    return chunks
