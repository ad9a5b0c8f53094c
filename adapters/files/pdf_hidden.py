"""Find text that is not visible on a PDF page because it is transparent, covered or camouflaged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ctypes import c_float, c_uint
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .office_xml import parser
from .pdf_calls import PageObjects, address, addresses, bounds, direct, draw_mode
from .pdf_layout import Rectangle

with parser("pypdfium2"):
    from pypdfium2 import raw

_object_of_form = direct(raw.FPDFFormObj_GetObject)
_count_objects = direct(raw.FPDFFormObj_CountObjects)
_kind = direct(raw.FPDFPageObj_GetType)
_form_matrix = direct(raw.FPDFPageObj_GetMatrix)
_mode = direct(raw.FPDFTextObj_GetTextRenderMode)
_fill = direct(raw.FPDFPageObj_GetFillColor)
_has_transparency = direct(raw.FPDFPageObj_HasTransparency)
_stroke_width = direct(raw.FPDFPageObj_GetStrokeWidth)
_count_segments = direct(raw.FPDFPath_CountSegments)
_segment = direct(raw.FPDFPath_GetPathSegment)
_segment_type = direct(raw.FPDFPathSegment_GetType)
_segment_point = direct(raw.FPDFPathSegment_GetPoint)
_clip_path = direct(raw.FPDFPageObj_GetClipPath)
_count_clips = direct(raw.FPDFClipPath_CountPaths)
_count_clip_segments = direct(raw.FPDFClipPath_CountPathSegments)
_clip_segment = direct(raw.FPDFClipPath_GetPathSegment)
_text_object = direct(raw.FPDFText_GetTextObject)

Color = tuple[int, int, int, int]
"""The red, green, blue and opacity components of a color, from 0 to 255."""

_PAPER: Color = (255, 255, 255, 255)

_NEAR = 16  # differences between color components up to this value are not visible

_FAINT = 13  # objects with a lower opacity (below 5 %) are not visible

_OPAQUE = 250

_MIN_BOX = 3.0  # in points; a thinner path is a line

_MAX_DEPTH = 5  # maximum nesting depth of forms

_SCAN = 0.5  # minimum share of a scanned page that is covered by pictures

_TEXT = raw.FPDF_PAGEOBJ_TEXT

_PATH = raw.FPDF_PAGEOBJ_PATH

_FORM = raw.FPDF_PAGEOBJ_FORM

_IMAGE = raw.FPDF_PAGEOBJ_IMAGE

_SHADING = raw.FPDF_PAGEOBJ_SHADING

_INVISIBLE = raw.FPDF_TEXTRENDERMODE_INVISIBLE

_FILLED = (raw.FPDF_TEXTRENDERMODE_FILL, raw.FPDF_TEXTRENDERMODE_FILL_CLIP)


def hidden_objects(page: Any, objects: PageObjects) -> set[int]:
    """Return the addresses of the text objects that are not visible on a page.

    These are texts in the invisible rendering mode (mode 3), texts in the color of their
    background, transparent texts, and texts that are covered by an opaque rectangle. Texts in mode
    3 that lie on a picture are not included, because scanned pages with OCR contain them.
    """
    if not _may_hide(objects):
        return set()
    texts: list[_Text] = []
    areas: list[_Area] = []
    for at, drawn in enumerate(_drawn(objects)):
        if drawn.kind == _TEXT:
            texts.append(_text(at, drawn))
        elif drawn.kind == _PATH:
            areas += _area_of_path(at, drawn)
        elif drawn.kind in (_IMAGE, _SHADING):
            areas.append(_Area(at, drawn, drawn.box()))
    suspects = _suspects(texts, areas)
    is_scan = bool(suspects) and _is_scan(page, areas)
    return {
        seen.text.drawn.address
        for seen in _with_surroundings(suspects, areas)
        if _is_hidden(seen, is_scan=is_scan)
    }


def _may_hide(objects: PageObjects) -> bool:
    """Return whether a page contains invisible or white text, filled areas, or forms.

    This is a fast check: most pages contain none of these, and it needs only one PDFium call for
    each text.
    """
    if _FORM in objects.kinds:
        return True
    if not objects.texts:
        return False
    if _INVISIBLE in objects.modes:
        return True
    if any(_may_be_unseen(color) for color in _colors(objects.texts)):
        return True
    return any(_is_wide(box) for box in objects.paths.values())


def _may_be_unseen(color: Color | None) -> bool:
    """Return whether a color is unknown, transparent or similar to white."""
    return color is None or color[3] < _FAINT or _is_near(color, _PAPER)


def _is_wide(box: Rectangle) -> bool:
    """Return whether a path is too wide and too high to be a line."""
    left, bottom, right, top = box
    return right - left >= _MIN_BOX and top - bottom >= _MIN_BOX


class _Drawn(NamedTuple):
    """An object on a page, with its address, its type and, if known, its bounding box.

    For objects in a form, ``matrix`` is the transformation of the form. ``is_opaque`` is True if
    the form is opaque.
    """

    address: int
    kind: int
    bounds: Rectangle | None = None
    matrix: Sequence[float] | None = None
    is_opaque: bool = True

    def box(self) -> Rectangle:
        """Return the bounding box of the object on the page."""
        box = self.bounds or bounds(self.address)
        if not self.matrix or not any(box):
            return box
        left, bottom, right, top = box
        a, b, c, d, e, f = self.matrix
        corners = ((left, bottom), (left, top), (right, bottom), (right, top))
        xs = [a * x + c * y + e for x, y in corners]
        ys = [b * x + d * y + f for x, y in corners]
        return min(xs), min(ys), max(xs), max(ys)


def _drawn(objects: PageObjects) -> Iterator[_Drawn]:
    """Yield the objects of a page in drawing order, including the contents of forms."""
    for item, kind in zip(objects.addresses, objects.kinds, strict=True):
        if kind == _FORM:
            yield from _drawn_by_form(item, _IDENTITY, 1, is_opaque=True)
        else:
            yield _Drawn(item, kind, objects.paths.get(item))


_IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def _drawn_by_form(
    form: int, outer: Sequence[float], depth: int, *, is_opaque: bool
) -> Iterator[_Drawn]:
    matrix = (c_float * 6)()
    _form_matrix(form, addresses(matrix)[0])
    inner = _product(tuple(matrix), outer)
    is_opaque = is_opaque and not _has_transparency(form)
    for index in range(_count_objects(form)):
        item = _object_of_form(form, index)
        kind = _kind(item)
        if kind != _FORM:
            yield _Drawn(item, kind, None, inner, is_opaque)
        elif depth < _MAX_DEPTH:
            yield from _drawn_by_form(item, inner, depth + 1, is_opaque=is_opaque)


def _product(first: Sequence[float], second: Sequence[float]) -> Sequence[float]:
    """Return the matrix that applies the first transformation and then the second."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        a * g + b * i,
        a * h + b * j,
        c * g + d * i,
        c * h + d * j,
        e * g + f * i + k,
        e * h + f * j + m,
    )


_COLOR = (c_uint * 4)()

_COLOR_AT = addresses(_COLOR)


def _color(item: int) -> Color | None:
    """Return the fill color of an object, or None if the object is filled with a pattern."""
    if not _fill(item, *_COLOR_AT):
        return None
    return _COLOR[0], _COLOR[1], _COLOR[2], _COLOR[3]


def _colors(items: Sequence[int]) -> set[Color | None]:
    """Return the set of fill colors of objects.

    This is faster than calling ``_color`` repeatedly.
    """
    colors: set[Color | None] = set()
    for item in items:
        is_known = _fill(item, *_COLOR_AT)
        colors.add((_COLOR[0], _COLOR[1], _COLOR[2], _COLOR[3]) if is_known else None)
    return colors


def _is_near(first: Color, second: Color) -> bool:
    """Return whether two colors cannot be distinguished."""
    red, green, blue, _ = first
    other_red, other_green, other_blue, _ = second
    difference = max(abs(red - other_red), abs(green - other_green), abs(blue - other_blue))
    return difference <= _NEAR


class _Text(NamedTuple):
    """A text object, with its position in the drawing order, its rendering mode and its color.

    The color is None if the text is filled with a pattern or not filled at all.
    """

    at: int
    drawn: _Drawn
    mode: int
    color: Color | None


def _text(at: int, drawn: _Drawn) -> _Text:
    mode = _mode(drawn.address)
    color = _color(drawn.address) if mode in _FILLED else None
    return _Text(at, drawn, mode, color)


class _Area:
    """A painted area, which may be the background of a text or may cover it.

    Args:
        at: The position in the drawing order.
        drawn: The object.
        box: The bounding box.
        color: The color, or None if the color is unknown, as it is for pictures, shadings, patterns
            and transparent areas.
    """

    def __init__(self, at: int, drawn: _Drawn, box: Rectangle, color: Color | None = None) -> None:
        self.at = at
        self.drawn = drawn
        self.box = box
        self.color = color

    @cached_property
    def is_opaque_rectangle(self) -> bool:
        """Whether the area completely hides everything below it."""
        return self.color is not None and _is_rectangle(self.drawn.address)


def _area_of_path(at: int, drawn: _Drawn) -> Sequence[_Area]:
    """Return the area that a path paints. Thin lines and clipping paths do not paint any area."""
    box = drawn.box()
    if not _is_wide(box):
        left, bottom, right, top = box
        is_long = max(right - left, top - bottom) > _MIN_BOX
        return _thick_line(at, drawn, box) if is_long else ()
    is_filled, is_stroked = draw_mode(drawn.address)
    if is_filled:
        return (_Area(at, drawn, box, _opaque_color(drawn)),)
    return _thick_line(at, drawn, box) if is_stroked else ()


def _opaque_color(drawn: _Drawn) -> Color | None:
    """Return the color of a filled path, or None if the path is transparent or has a pattern."""
    color = _color(drawn.address)
    if color is None or color[3] < _OPAQUE:
        return None
    is_opaque = drawn.is_opaque and not _has_transparency(drawn.address)
    return color if is_opaque else None


_WIDTH = (c_float * 1)()

_WIDTH_AT = addresses(_WIDTH)


def _thick_line(at: int, drawn: _Drawn, box: Rectangle) -> Sequence[_Area]:
    """Return the area of a line that is as thick as a box. Its color is unknown."""
    _stroke_width(drawn.address, *_WIDTH_AT)
    width = _WIDTH[0]
    if width < _MIN_BOX:
        return ()
    half = width / 2
    left, bottom, right, top = box
    return (_Area(at, drawn, (left - half, bottom - half, right + half, top + half)),)


def _is_rectangle(path: int) -> bool:
    """Return whether a path is a rectangle with horizontal and vertical sides."""
    count = _count_segments(path)
    if not 4 <= count <= 6:
        return False
    segments = [_segment(path, index) for index in range(count)]
    if raw.FPDF_SEGMENT_BEZIERTO in [_segment_type(segment) for segment in segments]:
        return False
    points = {_point(segment) for segment in segments}
    xs = {x for x, _ in points}
    ys = {y for _, y in points}
    return (len(points), len(xs), len(ys)) == (4, 2, 2)


_POINT = (c_float * 2)()

_POINT_AT = addresses(_POINT)


def _point(segment: int) -> tuple[float, float]:
    _segment_point(segment, *_POINT_AT)
    return round(_POINT[0], 2), round(_POINT[1], 2)


def _is_scan(page: Any, areas: Sequence[_Area]) -> bool:
    """Return whether most of a page is covered by pictures."""
    covered = 0.0
    for area in areas:
        if area.drawn.kind == _IMAGE:
            left, bottom, right, top = area.box
            covered += (right - left) * (top - bottom)
    width, height = page.get_size()
    return bool(covered >= _SCAN * width * height)


def _suspects(texts: Sequence[_Text], areas: Sequence[_Area]) -> list[_Text]:
    """Return the texts that may be hidden.

    These texts are invisible, lie below an area, or have the same color as an area.
    """
    backgrounds = {area.color for area in areas if area.color} | {_PAPER}
    unclear: set[Color | None] = set()
    for color in {text.color for text in texts if text.color}:
        is_like_background = any(_is_near(color, other) for other in backgrounds)
        if is_like_background or color[3] < _FAINT:
            unclear.add(color)
    last = max((area.at for area in areas if area.color), default=-1)
    return [
        text for text in texts if text.at < last or text.color in unclear or text.mode == _INVISIBLE
    ]


class _Seen(NamedTuple):
    """A text with its bounding box and the areas that contain its center, in drawing order."""

    text: _Text
    box: Rectangle
    around: Sequence[_Area]


_MAX_PAIRS = 100_000  # maximum number of pairs of texts and areas that are compared in one step


def _with_surroundings(texts: Sequence[_Text], areas: Sequence[_Area]) -> Iterator[_Seen]:
    """Yield each text together with the areas that contain its center (within one point)."""
    outer = np.reshape([area.box for area in areas], (-1, 4)).T
    step = 1 + _MAX_PAIRS // max(1, len(areas))
    for start in range(0, len(texts), step):
        some = texts[start : start + step]
        boxes = [text.drawn.box() for text in some]
        inner = np.transpose(boxes)[:, :, None]
        around: list[list[_Area]] = [[] for _ in some]
        for number, at in np.argwhere(_are_around(outer, inner)).tolist():
            around[number].append(areas[at])
        for text, box, its_areas in zip(some, boxes, around, strict=True):
            yield _Seen(text, box, its_areas)


def _are_around(outer: Any, inner: Any) -> Any:
    """Return a boolean array that is True where an outer box contains the center of an inner box.

    The comparison has a tolerance of one point.
    """
    left, bottom, right, top = outer
    x0, y0, x1, y1 = inner
    x = (x0 + x1) / 2
    y = (y0 + y1) / 2
    is_across = (left - 1 <= x) & (x <= right + 1)
    return is_across & (bottom - 1 <= y) & (y <= top + 1)


def _is_hidden(seen: _Seen, *, is_scan: bool) -> bool:
    """Return whether a text is not visible."""
    text, box, around = seen
    if text.mode == _INVISIBLE:
        pictures = [area for area in around if area.drawn.kind == _IMAGE]
        return not is_scan and not any(_has_center(area.box, box) for area in pictures)
    if any(area.at > text.at and _covers(area, box) for area in around):
        return True
    if text.color is None:
        return False
    return text.color[3] < _FAINT or _is_lost(seen, text.color)


def _covers(area: _Area, box: Rectangle) -> bool:
    """Return whether an area that is drawn after a text covers the middle of its letters."""
    if not (_surrounds(area.box, box) and area.is_opaque_rectangle):
        return False
    clip = _clip_box(area.drawn)
    return clip is None or _surrounds(clip, box)


def _is_lost(seen: _Seen, color: Color) -> bool:
    """Return whether a text has the same color as its background."""
    for area in reversed(seen.around):
        if area.at > seen.text.at or not _has_center(area.box, seen.box):
            continue
        if area.color is None or not _is_near(color, area.color):
            return False
        if area.is_opaque_rectangle:
            return True
    return _is_near(color, _PAPER)


def _has_center(outer: Rectangle, inner: Rectangle) -> bool:
    """Return whether the outer box contains the center of the inner box."""
    x = (inner[0] + inner[2]) / 2
    y = (inner[1] + inner[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


def _surrounds(outer: Rectangle, inner: Rectangle) -> bool:
    """Return whether a box contains the middle of the letters in another box (within one point)."""
    left, bottom, right, top = outer
    margin = 0.2 * (inner[3] - inner[1])
    is_wide = left - 1 <= inner[0] and inner[2] <= right + 1
    return is_wide and bottom - 1 <= inner[1] + margin and inner[3] - margin <= top + 1


def _clip_box(drawn: _Drawn) -> Rectangle | None:
    """Return the bounding box of the clipping paths of an object, or None if it is not clipped."""
    clip = _clip_path(drawn.address)
    boxes: list[Rectangle] = []
    for path in range(_count_clips(clip) if clip else 0):
        segments = range(_count_clip_segments(clip, path))
        points = [_point(_clip_segment(clip, path, index)) for index in segments]
        if points:
            xs = [x for x, _ in points]
            ys = [y for _, y in points]
            boxes.append((min(xs), min(ys), max(xs), max(ys)))
    if not boxes:
        return None
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return max(lefts), max(bottoms), min(rights), min(tops)


_WORD = re.compile(r"\S+")

_PRINTED = re.compile(r"\S+(?: \S+)*")


def blanked(textpage: Any, text: str, hidden: set[int]) -> tuple[str, list[str]]:
    """Replace the characters of hidden text objects with spaces.

    Args:
        textpage: The text page of PDFium.
        text: The text of the page, with one character for each index.
        hidden: The addresses of the hidden text objects.

    Returns:
        The remaining text, and the hidden passages.
    """
    handle = address(textpage.raw)
    shown = list(text)
    lost = ["\n"] * len(text)
    for index in _hidden_indexes(handle, text, hidden):
        shown[index] = " "
        lost[index] = text[index]
    for index, character in enumerate(text):
        is_between = character == " " and lost[index - 1] != "\n"
        if is_between and _text_object(handle, index) in hidden:
            lost[index] = " "
    return "".join(shown), _PRINTED.findall("".join(lost))


def _hidden_indexes(handle: int, text: str, hidden: set[int]) -> Iterator[int]:
    """Yield the indexes of hidden characters, excluding white space.

    If the first and the last character of a word belong to the same object, all its characters do.
    """
    for word in _WORD.finditer(text):
        start, end = word.span()
        first = _text_object(handle, start)
        is_whole = first == _text_object(handle, end - 1)
        if is_whole and first in hidden:
            yield from range(start, end)
        elif not is_whole:
            for index in range(start, end):
                if _text_object(handle, index) in hidden:
                    yield index
