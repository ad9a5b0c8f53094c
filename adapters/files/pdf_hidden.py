"""Find the text of a PDF page that is not displayed: invisible, covered, without contrast."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from ctypes import addressof, c_float, c_int, c_uint, c_void_p, cast
from typing import Any, NamedTuple

import numpy as np

from .office_xml import parser
from .pdf_tables import direct

with parser("pypdfium2"):
    from pypdfium2 import raw

_object = direct(raw.FPDFPage_GetObject)
_object_of_form = direct(raw.FPDFFormObj_GetObject)
_kind = direct(raw.FPDFPageObj_GetType)
_mode = direct(raw.FPDFTextObj_GetTextRenderMode)
_fill = direct(raw.FPDFPageObj_GetFillColor)
_bounds = direct(raw.FPDFPageObj_GetBounds)
_text_object = direct(raw.FPDFText_GetTextObject)

Color = tuple[int, int, int, int]
"""Red, green, blue and opacity, from 0 to 255."""

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""

_PAPER: Color = (255, 255, 255, 255)

_NEAR = 16  # a smaller difference of a color's parts is not visible

_FAINT = 13  # an opacity of 5 %

_OPAQUE = 250

_MIN_BOX = 3.0  # points; a smaller path is a line

_MAX_DEPTH = 5  # forms in forms

_SCAN = 0.5  # the share of a page that is a picture


class _Drawn(NamedTuple):
    """An object of a page: its address, its kind, and the matrix of the form around it."""

    address: int
    kind: int
    matrix: Sequence[float]
    is_opaque_form: bool = True


_IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def hidden_objects(page: Any, addresses: Sequence[int], kinds: Sequence[int]) -> set[int]:
    """Return the addresses of the text objects that are not displayed on a page.

    These are texts of the rendering mode 3 that no picture covers (a scan has such a text), texts
    in the color of their background, transparent texts, and texts under an opaque rectangle.

    Args:
        page: The page.
        addresses: The addresses of its objects.
        kinds: The kinds of its objects.
    """
    if not _may_hide(addresses, kinds):
        return set()
    objects = list(_objects(page))
    texts = [at for at, drawn in enumerate(objects) if drawn.kind == raw.FPDF_PAGEOBJ_TEXT]
    if not texts:
        return set()
    modes = [_mode(objects[at].address) for at in texts]
    colors = [_color(objects[at].address) for at in texts]
    boxes = _boxes(objects)
    backgrounds = {_PAPER, *(box.color for box in boxes if box.color)}
    first_box_after = max((box.at for box in boxes if box.covers), default=-1)
    hidden: set[int] = set()
    scene: _Scene | None = None
    for at, mode, color in zip(texts, modes, colors, strict=True):
        is_drawn = mode in _FILLED and color is not None
        is_suspect = mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE or at < first_box_after
        if not is_suspect and is_drawn:
            is_suspect = _is_unclear(color, backgrounds)
        if not is_suspect:
            continue
        scene = scene or _Scene(page, objects, boxes)
        if scene.hides(at, mode, color if is_drawn else None):
            hidden.add(objects[at].address)
    return hidden


def _is_unclear(color: Color | None, backgrounds: set[Color]) -> bool:
    """Return whether a color is like a background, or transparent."""
    if any(_is_near(color, background) for background in backgrounds):
        return True
    return color is not None and color[3] < _FAINT


def _may_hide(addresses: Sequence[int], kinds: Sequence[int]) -> bool:
    """Return whether a page has invisible or white texts, filled areas, or forms.

    Most pages have none. They cost only two calls of PDFium per text and one per path.
    """
    if raw.FPDF_PAGEOBJ_FORM in kinds:
        return True
    texts = [at for at, kind in zip(addresses, kinds, strict=True) if kind == raw.FPDF_PAGEOBJ_TEXT]
    if not texts:
        return False
    if raw.FPDF_TEXTRENDERMODE_INVISIBLE in map(_mode, texts):
        return True
    colors = np.zeros((len(texts), 4), np.uint32)
    deque(map(_fill, texts, *_cells(colors)), maxlen=0)
    opacity = colors[:, 3]
    is_white = colors[:, :3].min(axis=1) >= 255 - _NEAR
    if is_white.any() or opacity.min() < _FAINT:
        return True
    paths = [at for at, kind in zip(addresses, kinds, strict=True) if kind == raw.FPDF_PAGEOBJ_PATH]
    if not paths:
        return False
    edges = np.zeros((len(paths), 4), np.float32)
    deque(map(_bounds, paths, *_cells(edges)), maxlen=0)
    sizes = edges[:, 2:] - edges[:, :2]
    return bool((sizes.min(axis=1) >= _MIN_BOX).any())


def _cells(values: Any) -> list[range]:
    """Return the addresses of the cells of an array with four columns of four bytes."""
    start = values.ctypes.data
    return [range(start + 4 * column, start + values.nbytes, 16) for column in range(4)]


_FILLED = (raw.FPDF_TEXTRENDERMODE_FILL, raw.FPDF_TEXTRENDERMODE_FILL_CLIP)


def _objects(page: Any) -> Iterator[_Drawn]:
    """Yield the objects of a page in the order of drawing, including those of forms."""
    address = cast(page.raw, c_void_p).value
    count = raw.FPDFPage_CountObjects(page.raw)
    for index in range(count):
        item = _object(address, index)
        kind = _kind(item)
        if kind == raw.FPDF_PAGEOBJ_FORM:
            yield from _objects_of_form(item, _IDENTITY, 1, is_opaque=True)
        else:
            yield _Drawn(item, kind, _IDENTITY)


def _objects_of_form(
    form: int, outer: Sequence[float], depth: int, *, is_opaque: bool
) -> Iterator[_Drawn]:
    handle = cast(c_void_p(form), raw.FPDF_PAGEOBJECT)
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(handle, matrix)
    inner = _product((matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f), outer)
    is_opaque = is_opaque and not raw.FPDFPageObj_HasTransparency(handle)
    for index in range(raw.FPDFFormObj_CountObjects(handle)):
        item = _object_of_form(form, index)
        kind = _kind(item)
        if kind != raw.FPDF_PAGEOBJ_FORM:
            yield _Drawn(item, kind, inner, is_opaque)
        elif depth < _MAX_DEPTH:
            yield from _objects_of_form(item, inner, depth + 1, is_opaque=is_opaque)


def _product(first: Sequence[float], second: Sequence[float]) -> Sequence[float]:
    """Return the matrix that applies the first matrix, then the second."""
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

_COLOR_PARTS = [addressof(_COLOR) + 4 * n for n in range(4)]


def _color(address: int) -> Color | None:
    """Return the fill color of an object, or None if it is a pattern."""
    if not _fill(address, *_COLOR_PARTS):
        return None
    return (_COLOR[0], _COLOR[1], _COLOR[2], _COLOR[3])


def _is_near(first: Color | None, second: Color) -> bool:
    """Return whether two colors look alike."""
    if first is None:
        return False
    return (
        abs(first[0] - second[0]) <= _NEAR
        and abs(first[1] - second[1]) <= _NEAR
        and abs(first[2] - second[2]) <= _NEAR
    )


_EDGES = (c_float * 4)()

_EDGES_PARTS = [addressof(_EDGES) + 4 * n for n in range(4)]


def _box(drawn: _Drawn) -> Box:
    """Return the bounds of an object on the page."""
    if not _bounds(drawn.address, *_EDGES_PARTS):
        return 0, 0, 0, 0
    left, bottom, right, top = _EDGES
    if drawn.matrix is _IDENTITY:
        return left, bottom, right, top
    a, b, c, d, e, f = drawn.matrix
    corners = ((left, bottom), (left, top), (right, bottom), (right, top))
    xs = [a * x + c * y + e for x, y in corners]
    ys = [b * x + d * y + f for x, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


class _Painted(NamedTuple):
    """A painted area: its place in the order of drawing, its bounds and its color.

    A color of None is unknown: a picture, a shading or a pattern. ``covers`` says whether the area
    is an opaque rectangle.
    """

    at: int
    box: Box
    color: Color | None
    covers: bool


def _boxes(objects: Sequence[_Drawn]) -> list[_Painted]:
    """Return the areas of a page that may be backgrounds or may cover a text."""
    found: list[_Painted] = []
    for at, drawn in enumerate(objects):
        if drawn.kind in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING):
            found.append(_Painted(at, _box(drawn), None, covers=False))
        elif drawn.kind == raw.FPDF_PAGEOBJ_PATH:
            left, bottom, right, top = _box(drawn)
            is_line = right - left < _MIN_BOX or top - bottom < _MIN_BOX
            painted = None if is_line else _painted(at, drawn, (left, bottom, right, top))
            if is_line and max(right - left, top - bottom) > _MIN_BOX:
                painted = _thick_line(at, drawn, (left, bottom, right, top))
            if painted:
                found.append(painted)
    return found


def _painted(at: int, drawn: _Drawn, box: Box) -> _Painted | None:
    """Return the area of a filled path."""
    handle = cast(c_void_p(drawn.address), raw.FPDF_PAGEOBJECT)
    fill = c_int()
    stroke = c_int()
    raw.FPDFPath_GetDrawMode(handle, fill, stroke)
    if not fill.value:
        return _thick_line(at, drawn, box) if stroke.value else None
    color = _color(drawn.address)
    is_opaque = drawn.is_opaque_form and color is not None and color[3] >= _OPAQUE
    if not is_opaque or raw.FPDFPageObj_HasTransparency(handle):
        return _Painted(at, box, None, covers=False)
    return _Painted(at, box, color, covers=_is_rectangle(handle))


def _thick_line(at: int, drawn: _Drawn, box: Box) -> _Painted | None:
    """Return the area of a line that is as thick as a box, with an unknown color."""
    handle = cast(c_void_p(drawn.address), raw.FPDF_PAGEOBJECT)
    width = c_float()
    raw.FPDFPageObj_GetStrokeWidth(handle, width)
    half = width.value / 2
    if width.value < _MIN_BOX:
        return None
    wider = (box[0] - half, box[1] - half, box[2] + half, box[3] + half)
    return _Painted(at, wider, None, covers=False)


def _is_rectangle(path: Any) -> bool:
    """Return whether a path is a rectangle with horizontal and vertical sides."""
    count = raw.FPDFPath_CountSegments(path)
    if not 4 <= count <= 6:
        return False
    points: set[tuple[float, float]] = set()
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        if raw.FPDFPathSegment_GetType(segment) == raw.FPDF_SEGMENT_BEZIERTO:
            return False
        points.add(_point(segment))
    return len(points) == 4 and len({x for x, _ in points}) == 2 == len({y for _, y in points})


def _point(segment: Any) -> tuple[float, float]:
    x = c_float()
    y = c_float()
    raw.FPDFPathSegment_GetPoint(segment, x, y)
    return round(x.value, 2), round(y.value, 2)


class _Scene:
    """The objects of a page that is examined."""

    def __init__(self, page: Any, objects: Sequence[_Drawn], boxes: Sequence[_Painted]) -> None:
        self._objects = objects
        self._boxes = boxes
        pictures = [at for at, drawn in enumerate(objects) if drawn.kind == raw.FPDF_PAGEOBJ_IMAGE]
        self._pictures = [_box(objects[at]) for at in pictures]
        width, height = page.get_size()
        covered = sum((box[2] - box[0]) * (box[3] - box[1]) for box in self._pictures)
        self._is_scan = covered >= _SCAN * width * height

    def hides(self, at: int, mode: int, color: Color | None) -> bool:
        """Return whether a text, with its fill color or None, is not displayed."""
        box = _box(self._objects[at])
        if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
            is_on_picture = any(_contains(picture, box) for picture in self._pictures)
            return not self._is_scan and not is_on_picture
        if color is not None and color[3] < _FAINT:
            return True
        return self._is_covered(at, box) or (color is not None and self._is_lost(at, box, color))

    def _is_covered(self, at: int, box: Box) -> bool:
        """Return whether an opaque rectangle is drawn over a text."""
        left, bottom, right, top = box
        inner = (left, bottom + 0.2 * (top - bottom), right, top - 0.2 * (top - bottom))
        for painted in reversed(self._boxes):
            if painted.at < at:
                return False
            if painted.covers and _surrounds(painted.box, inner):
                clip = _clip_box(self._objects[painted.at])
                if clip is None or _surrounds(clip, inner):
                    return True
        return False

    def _is_lost(self, at: int, box: Box, color: Color) -> bool:
        """Return whether a text has the color of its background."""
        for painted in reversed(self._boxes):
            if painted.at > at or not _contains(painted.box, box):
                continue
            if painted.color is None or not _is_near(color, painted.color):
                return False
            if painted.covers:
                return True
        return _is_near(color, _PAPER)


def _contains(outer: Box, inner: Box) -> bool:
    """Return whether the center of a box is in another box."""
    x = (inner[0] + inner[2]) / 2
    y = (inner[1] + inner[3]) / 2
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


def _surrounds(outer: Box, inner: Box) -> bool:
    """Return whether a box is in another box, up to a point."""
    is_wide = outer[0] - 1 <= inner[0] and inner[2] <= outer[2] + 1
    return is_wide and outer[1] - 1 <= inner[1] and inner[3] <= outer[3] + 1


def _clip_box(drawn: _Drawn) -> Box | None:
    """Return the bounds of the paths that clip an object. None means that it is not clipped."""
    clip = raw.FPDFPageObj_GetClipPath(cast(c_void_p(drawn.address), raw.FPDF_PAGEOBJECT))
    count = raw.FPDFClipPath_CountPaths(clip) if clip else 0
    if count <= 0:
        return None
    boxes: list[Box] = []
    for path in range(count):
        segments = range(raw.FPDFClipPath_CountPathSegments(clip, path))
        points = [_point(raw.FPDFClipPath_GetPathSegment(clip, path, n)) for n in segments]
        if points:
            xs = [x for x, _ in points]
            ys = [y for _, y in points]
            boxes.append((min(xs), min(ys), max(xs), max(ys)))
    if not boxes:
        return None
    return (
        max(box[0] for box in boxes),
        max(box[1] for box in boxes),
        min(box[2] for box in boxes),
        min(box[3] for box in boxes),
    )


_PRINTED = re.compile(r"\S+(?: \S+)*")


def blanked(textpage: Any, text: str, hidden: set[int]) -> tuple[str, list[str]]:
    """Replace the characters of hidden objects by spaces.

    Args:
        textpage: The text page of PDFium.
        text: Its text, with one character per index.
        hidden: The addresses of the hidden objects.

    Returns:
        The text, and the hidden passages.
    """
    handle = cast(textpage.raw, c_void_p).value
    is_hidden = [_text_object(handle, index) in hidden for index in range(len(text))]
    shown = "".join(
        " " if lost and not character.isspace() else character
        for character, lost in zip(text, is_hidden, strict=True)
    )
    lost_text = "".join(
        character if lost else "\n" for character, lost in zip(text, is_hidden, strict=True)
    )
    return shown, _PRINTED.findall(lost_text)
