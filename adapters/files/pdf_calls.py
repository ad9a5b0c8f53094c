"""Fast access to the characters and objects of a PDF page through PDFium."""

from __future__ import annotations

from ctypes import (
    PYFUNCTYPE,
    addressof,
    c_double,
    c_float,
    c_int,
    c_uint,
    c_void_p,
    cast,
    sizeof,
)
from typing import Any, NamedTuple

from .office_xml import parser
from .pdf_layout import Rectangle

with parser("pypdfium2"):
    from pypdfium2 import raw

_FRACTIONS = (c_float, c_double)

_RESULTS = (None, c_int, c_uint, *_FRACTIONS)  # results of other types are pointers


def direct(function: Any) -> Any:
    """Return a version of a PDFium function that takes addresses instead of pointer objects.

    Integers are passed as addresses as well, because ctypes converts ``c_void_p`` faster than
    ``c_int``. PDFium uses only the lower half of such a value.
    """
    result = function.restype if function.restype in _RESULTS else c_void_p
    parameters = [kind if kind in _FRACTIONS else c_void_p for kind in function.argtypes]
    return PYFUNCTYPE(result, *parameters)(address(function))


def address(handle: Any) -> int:
    """Return the address of a pointer or function, or 0 for a null pointer."""
    return cast(handle, c_void_p).value or 0


def addresses(numbers: Any) -> list[int]:
    """Return the addresses of all numbers in an array."""
    first = addressof(numbers)
    step = sizeof(numbers) // len(numbers)
    return list(range(first, first + sizeof(numbers), step))


_object = direct(raw.FPDFPage_GetObject)
_kind = direct(raw.FPDFPageObj_GetType)
_bounds = direct(raw.FPDFPageObj_GetBounds)

_EDGES = (c_float * 4)()

_EDGES_AT = addresses(_EDGES)


def bounds(item: int) -> Rectangle:
    """Return the bounding box of an object on its page or form. If it is unknown, it is empty."""
    if not _bounds(item, *_EDGES_AT):
        return 0, 0, 0, 0
    return _EDGES[0], _EDGES[1], _EDGES[2], _EDGES[3]


_draw_mode = direct(raw.FPDFPath_GetDrawMode)

_MODES = (c_int * 2)()

_MODES_AT = addresses(_MODES)


def draw_mode(path: int) -> tuple[bool, bool]:
    """Return whether a path is filled and whether it is stroked.

    A path that is neither filled nor stroked is only used for clipping.
    """
    _draw_mode(path, *_MODES_AT)
    return _MODES[0] > 0, _MODES[1] > 0


class PageObjects(NamedTuple):
    """The addresses and types of all objects on a page, in drawing order.

    Text objects are also listed separately with their rendering modes, and the bounding boxes of
    paths are listed by address.
    """

    addresses: list[int]
    kinds: list[int]
    texts: list[int]
    modes: list[int]
    paths: dict[int, Rectangle]


_count_objects = direct(raw.FPDFPage_CountObjects)
_mode = direct(raw.FPDFTextObj_GetTextRenderMode)

_TEXT = raw.FPDF_PAGEOBJ_TEXT

_PATH = raw.FPDF_PAGEOBJ_PATH

_NO_TEXT = raw.FPDF_TEXTRENDERMODE_UNKNOWN


def page_objects(page: Any) -> PageObjects:
    """Return the objects that a page contains."""
    handle = address(page.raw)
    items = [_object(handle, at) for at in range(_count_objects(handle))]
    kinds: list[int] = []
    texts: list[int] = []
    modes: list[int] = []
    paths: dict[int, Rectangle] = {}
    for item in items:
        mode = _mode(item)
        if mode != _NO_TEXT:
            texts.append(item)
            modes.append(mode)
            kinds.append(_TEXT)
            continue
        kind = _kind(item)
        kinds.append(kind)
        if kind == _PATH:
            paths[item] = bounds(item)
    return PageObjects(items, kinds, texts, modes, paths)
