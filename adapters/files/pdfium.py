"""Functions of PDFium that are called for each page, line, character or object."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any


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
