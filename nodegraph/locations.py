"""Locate passages in their files, by page and rectangle."""

from __future__ import annotations

import unicodedata
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .splitters.chunking import strip_span

SCALE = 10_000
"""The width and height of a page, in the units that layouts use."""

_MAX_LAYOUT = 1 << 28  # maximum number of bytes; a larger layout must have been forged

LAYOUTS = "layout"
"""The kind under which layouts are stored. The keys are document ids."""


class TextBox(NamedTuple):
    """A part of a text, with the rectangle that it covers on a page of the file.

    The origin of the coordinates is the upper left corner of the page, and a page measures
    ``SCALE`` by ``SCALE`` units.

    Attributes:
        start: The start offset in the text.
        end: The end offset in the text (exclusive).
        left: The left edge of the rectangle.
        top: The upper edge of the rectangle.
        right: The right edge of the rectangle.
        bottom: The lower edge of the rectangle.
        is_line: Whether the box is a single line of left-to-right text, so that rectangles of parts
            of the line can be estimated.
    """

    start: int
    end: int
    left: int
    top: int
    right: int
    bottom: int
    is_line: bool = True


Layout: TypeAlias = Sequence[TextBox]
"""The boxes of a text in text order. Their offsets do not overlap."""


def pack_layout(layout: Layout) -> bytes:
    """Convert a layout to compressed bytes that ``unpack_layout`` can read."""
    import numpy as np  # NumPy is imported here, since few programs read PDFs.

    columns = np.array(layout, dtype="<i4").reshape(-1, len(TextBox._fields)).T
    return zlib.compress(np.diff(columns, prepend=np.int32(0)).tobytes(), 1)


def unpack_layout(value: bytes) -> Layout:
    """Restore a layout from the bytes that ``pack_layout`` returned."""
    import numpy as np

    unpacked = zlib.decompressobj().decompress(value, _MAX_LAYOUT)
    steps = np.frombuffer(unpacked, dtype="<i4").reshape(len(TextBox._fields), -1)
    # Differences and sums wrap around at 32 bits, so the original values are restored.
    columns = np.cumsum(steps, axis=1, dtype=np.int32)
    return [TextBox(*values) for values in columns.T.tolist()]


@dataclass(frozen=True, slots=True)
class Location:
    """The location of a passage in its file.

    Attributes:
        page: The number of the page, slide, sheet, cell or chapter, starting at 1. It is None if
            the file has no pages.
        rectangle: The left, top, right and bottom edges of a line or table cell, as fractions of
            the page's width and height, measured from the upper left corner. For a part of a line,
            the left and right edges are estimated from its characters. It is None if the rectangle
            is unknown.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea.\\fBlack tea.", {"page_unit": "page"}))
        >>> graph.create_node_group("page", lambda text: text.split("\\f"))
        >>> [node.locations for node in graph.nodes("page")]
        [[Location(page=1, rectangle=None)], [Location(page=2, rectangle=None)]]
    """

    page: int | None = None
    rectangle: tuple[float, float, float, float] | None = None


def locations_in(
    text: str, start: int, end: int, layout: Layout | None, page_break: str | None
) -> list[Location]:
    """Return the locations of a part of a text in its file, in text order.

    Args:
        text: The whole text.
        start: The start offset of the part.
        end: The end offset of the part (exclusive).
        layout: The boxes of the text, or None if they are unknown.
        page_break: The separator between two pages, or None if the text has no pages.
    """
    locations: list[Location] = []
    for page, first, last in _page_spans(text, start, end, page_break):
        boxes = _boxes(layout or (), first, last)
        if boxes:
            locations += (Location(page, _rectangle(text, p, first, last)) for p in boxes)
        elif page is not None:
            locations.append(Location(page))
    return locations


def _page_spans(
    text: str, start: int, end: int, page_break: str | None
) -> Iterator[tuple[int | None, int, int]]:
    """Yield each page that a part of a text covers, and the part's offsets on that page.

    Whitespace at the start and end is not included. The page is None if the file has no pages.
    """
    if page_break is None:
        span = strip_span(text, (start, end))
        if span[0] < span[1]:
            yield None, *span
        return
    page = text.count(page_break, 0, start) + 1
    for part in text[start:end].split(page_break):
        first, last = strip_span(text, (start, start + len(part)))
        if first < last:
            yield page, first, last
        start += len(part) + len(page_break)
        page += 1


def _boxes(layout: Layout, start: int, end: int) -> Layout:
    """Return the boxes that overlap a part of the text."""
    first = bisect_right(layout, start, key=lambda box: box.end)
    return layout[first : bisect_left(layout, end, key=lambda box: box.start)]


def _rectangle(text: str, box: TextBox, start: int, end: int) -> tuple[float, float, float, float]:
    """Return the rectangle in which a box and a part of the text overlap."""
    first = max(start, box.start)
    last = min(end, box.end)
    left = float(box.left)
    right = float(box.right)
    if box.is_line and (first > box.start or last < box.end):
        advance = (right - left) / (_width(text[box.start : box.end]) or 1)
        left += advance * _width(text[box.start : first])
        right = left + advance * _width(text[first:last])
    return (
        _fraction(round(left)),
        _fraction(box.top),
        _fraction(round(right)),
        _fraction(box.bottom),
    )


def _fraction(edge: int) -> float:
    """Convert a coordinate to a fraction of the page size."""
    return min(max(edge / SCALE, 0.0), 1.0)


_NARROW = dict.fromkeys("iljtfrI.,;:'|!()[]{}\"- ", 0.6)

_CHARACTER_WIDTHS = {**_NARROW, **dict.fromkeys("mwMWABCDEGHKNOPQRSUVXYZ%@", 1.4)}


def _width(text: str) -> float:
    """Estimate the width of a text as a multiple of the average letter width."""
    return sum([_character_width(character) for character in text])


def _character_width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 2.0
    return _CHARACTER_WIDTHS.get(character, 1.0)
