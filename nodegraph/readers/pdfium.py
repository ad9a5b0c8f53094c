"""Functions of PDFium that are called for each page, line, character or object."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from math import hypot
from types import SimpleNamespace
from typing import Any

_ROOM = 512  # how many characters PDFium is asked about in a row


@lru_cache(maxsize=1)
def pdfium() -> Any:
    """Return functions of PDFium that take their arguments unchecked, in a third of the time.

    They take a document, a page, a page of text or an object as ``raw`` of pypdfium2's has it,
    integers, and ``ctypes.byref`` of what they write to.
    """
    from ctypes import PYFUNCTYPE, c_double, c_float, c_int, c_ulong, c_void_p, cast

    from pypdfium2 import raw

    class Pointer(c_void_p):  # which is not made an integer when it is returned
        pass

    def unchecked(name: str, result: Any = c_int) -> Any:
        return PYFUNCTYPE(result)(cast(getattr(raw, name), c_void_p).value or 0)

    return SimpleNamespace(
        count_characters=unchecked("FPDFText_CountChars"),
        get_text=unchecked("FPDFText_GetText"),
        index_in_text=unchecked("FPDFText_GetTextIndexFromCharIndex"),
        has_no_meaning=unchecked("FPDFText_HasUnicodeMapError"),
        get_angle=unchecked("FPDFText_GetCharAngle", c_float),
        get_origin=unchecked("FPDFText_GetCharOrigin"),
        get_box=unchecked("FPDFText_GetLooseCharBox"),
        get_matrix=unchecked("FPDFText_GetMatrix"),
        get_size=unchecked("FPDFText_GetFontSize", c_double),
        count_objects=unchecked("FPDFPage_CountObjects"),
        get_object=unchecked("FPDFPage_GetObject", Pointer),
        count_objects_within=unchecked("FPDFFormObj_CountObjects"),
        get_object_within=unchecked("FPDFFormObj_GetObject", Pointer),
        get_type=unchecked("FPDFPageObj_GetType"),
        get_bounds=unchecked("FPDFPageObj_GetBounds"),
        get_object_matrix=unchecked("FPDFPageObj_GetMatrix"),
        get_draw_mode=unchecked("FPDFPath_GetDrawMode"),
        count_segments=unchecked("FPDFPath_CountSegments"),
        get_segment=unchecked("FPDFPath_GetPathSegment", Pointer),
        get_point=unchecked("FPDFPathSegment_GetPoint"),
        get_segment_type=unchecked("FPDFPathSegment_GetType"),
        is_closed=unchecked("FPDFPathSegment_GetClose"),
        first_bookmark=unchecked("FPDFBookmark_GetFirstChild", Pointer),
        next_bookmark=unchecked("FPDFBookmark_GetNextSibling", Pointer),
        get_title=unchecked("FPDFBookmark_GetTitle", c_ulong),
        get_destination=unchecked("FPDFBookmark_GetDest", Pointer),
        page_of_destination=unchecked("FPDFDest_GetDestPageIndex"),
    )


def origins(textpage: Any, characters: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return where characters of a page stand: their lefts and their baselines, in points."""
    room, lefts, baselines = _room(), list[float](), list[float]()
    for part in _parts(characters):
        _ask(pdfium().get_origin, textpage, part, room.to_left, room.to_baseline)
        lefts += room.left[: len(part)]
        baselines += room.baseline[: len(part)]
    return lefts, baselines


def boxes(textpage: Any, characters: Sequence[int]) -> tuple[list[float], ...]:
    """Return the lefts, tops, rights and bottoms of characters of a page, in points."""
    room = _room()
    edges: tuple[list[float], ...] = ([], [], [], [])
    for part in _parts(characters):
        _ask(pdfium().get_box, textpage, part, room.to_box)
        for number, values in enumerate(edges):
            values += room.box[number : 4 * len(part) : 4]
    return edges


def sizes(textpage: Any, characters: Sequence[int]) -> list[float]:
    """Return how large characters of a page are, in points."""
    from ctypes import memmove

    room, get_size = _room(), pdfium().get_size
    found: list[float] = []
    for part in _parts(characters):
        memmove(room.matrix, room.upright, 24 * len(part))  # where a character has none
        _ask(pdfium().get_matrix, textpage, part, room.to_matrix)
        c, d = room.matrix[2 : 6 * len(part) : 6], room.matrix[3 : 6 * len(part) : 6]
        found += [
            size * (height if slant == 0 < height else hypot(slant, height))
            for size, slant, height in zip(map(get_size, repeat(textpage), part), c, d, strict=True)
        ]
    return found


def _ask(function: Callable[..., Any], *arguments: Any) -> None:
    handle, *others = arguments
    deque(map(function, repeat(handle), *others), maxlen=0)


def _parts(characters: Sequence[int]) -> list[Sequence[int]]:
    return [characters[at : at + _ROOM] for at in range(0, len(characters), _ROOM)]


@lru_cache(maxsize=1)
def _room() -> Any:
    """Return what PDFium writes places to, with a pointer for each character."""
    from ctypes import byref, c_double, c_float

    left, baseline = (c_double * _ROOM)(), (c_double * _ROOM)()
    box, matrix = (c_float * (4 * _ROOM))(), (c_float * (6 * _ROOM))()
    return SimpleNamespace(
        left=left,
        baseline=baseline,
        box=box,
        matrix=matrix,
        upright=(c_float * (6 * _ROOM))(*(1.0, 0.0, 0.0, 1.0, 0.0, 0.0) * _ROOM),
        to_left=[byref(left, 8 * number) for number in range(_ROOM)],
        to_baseline=[byref(baseline, 8 * number) for number in range(_ROOM)],
        to_box=[byref(box, 16 * number) for number in range(_ROOM)],
        to_matrix=[byref(matrix, 24 * number) for number in range(_ROOM)],
    )
