"""Read PDF: its text in reading order, its pages and headings; tell where there is no text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..document import Document
from ..errors import ReadError
from .pdf_layout import (
    Lines,
    TextLine,
    garbage_share,
    lines_of_text,
    normalized,
    pages_as_text,
)
from .pdf_tables import with_tables
from .pdfium import pdfium
from .source_file import SourceFile, parser

_MAX_GARBAGE = 0.25  # the share of a page's characters that mean nothing, above which it is no text

# How many characters of a page are asked whether they are turned, or have no meaning: the first
# number; where one of them is, the second.
_SAMPLES = (12, 48)

_UPRIGHT = {90: 270, 180: 180, 270: 90}  # how a page is turned whose text is turned so

_PASSWORD = 4  # FPDF_ERR_PASSWORD

_IMAGE = 3  # FPDF_PAGEOBJ_IMAGE


def read_pdf(source: SourceFile) -> Document:
    """Read a PDF, with a page break between two pages.

    Headings are those of its outline; without one, lines that are set larger than the text.
    Pages with images and no text, or with a text that means nothing (fonts that don't say which
    characters they show), are read by ``ReadOptions.ocr``, or else named in ``unread_pages``.

    Raises:
        ReadError: If it is damaged, encrypted, or no page has a text.
    """
    with _opened(source) as pdf:
        pages: list[Lines] = []
        unread: list[int] = []
        for number in range(len(pdf)):
            page = pdf[number]
            lines, is_readable = _read_page(page, source)
            if not is_readable:
                unread.append(number + 1)
            pages.append(lines)
            page.close()
        outline = list(_outline(pdf))
        metadata = _properties(pdf)
    if unread and not any(pages):
        raise ReadError(
            f"{source.path} has no text on its {len(pages):,} pages, only images or characters "
            "without a meaning, as a scan has: give ReadOptions(ocr=...) to read them, or put a "
            "text layer into it with an OCR program",
            "scanned PDF",
            skippable=True,
        )
    if unread:
        metadata["unread_pages"] = unread
    metadata["page_unit"] = "page"
    metadata["page_count"] = len(pages)
    return Document(pages_as_text(pages, outline), metadata)


@contextmanager
def _opened(source: SourceFile) -> Iterator[Any]:
    with parser("pypdfium2"):
        from pypdfium2 import PdfDocument, PdfiumError
    try:
        pdf = PdfDocument(source.path.read_bytes())  # which is quicker than parts of a file
    except PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD:
            raise source.encrypted("PDF") from error
        raise source.damaged(f"it is no whole PDF: {error}") from error
    try:
        if not len(pdf):
            raise source.damaged("it is a PDF without a page")
        yield pdf
    except PdfiumError as error:
        raise source.damaged(f"it is a damaged PDF: {error}") from error
    finally:
        pdf.close()


def _properties(pdf: Any) -> dict[str, Any]:
    values = pdf.get_metadata_dict(skip_empty=True)
    named = {"title": values.get("Title"), "author": values.get("Author")}
    return {name: value.strip() for name, value in named.items() if value and value.strip()}


def _outline(pdf: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the entries of the outline: page (from 0), level (from 1), title."""
    for bookmark in pdf.get_toc(max_depth=6):
        target = bookmark.get_dest()
        page = None if target is None else target.get_index()
        if page is not None:
            yield page, bookmark.level + 1, bookmark.get_title()


def _read_page(page: Any, source: SourceFile) -> tuple[Lines, bool]:
    """Return the lines of a page, and whether it could be read."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    angle = _angle(textpage, text)
    if angle in _UPRIGHT and not page.get_rotation():  # else each of its letters may be a line
        page.set_rotation(_UPRIGHT[angle])
        textpage.close()
        textpage = page.get_textpage()
        text = textpage.get_text_range()
    text = normalized(text)
    garbage = max(garbage_share(text), _unmapped_share(textpage))
    has_text = bool(text.strip()) and garbage <= _MAX_GARBAGE
    if has_text:
        lines: Lines = _lines(textpage, text, is_upward=angle == 270)
        if not angle:
            lines = with_tables(page, textpage, lines)
        textpage.close()
        return lines, True
    textpage.close()
    if not text.strip() and not _has_content(page):
        return (), True  # a blank one
    if source.ocr is not None:
        recognized = source.ocr(_png(page))
        return lines_of_text(recognized), bool(recognized.strip())
    return (), False


def _has_content(page: Any) -> bool:
    return any(True for _ in page.get_objects(filter=[_IMAGE], max_depth=3))


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def _angle(textpage: Any, text: str) -> int:
    """Return by how much most characters of a page are turned, in degrees, clockwise."""
    from math import degrees

    get_angle, handle = pdfium().get_angle, textpage.raw
    for count in _SAMPLES:
        places = range(0, len(text), len(text) // count + 1)
        angles = [get_angle(handle, i) for i in places if not text[i].isspace()]
        if not any(angles):
            return 0
    return round(degrees(sorted(angles)[len(angles) // 2]))


def _unmapped_share(textpage: Any) -> float:
    """Return which share of a page's characters have no meaning that their font knows of."""
    has_no_meaning, handle, share = pdfium().has_no_meaning, textpage.raw, 0.0
    length = textpage.count_chars()
    for count in _SAMPLES:
        asked = [has_no_meaning(handle, i) == 1 for i in range(0, length, length // count + 1)]
        if not any(asked):
            return 0.0
        share = sum(asked) / len(asked)
    return share


def _lines(textpage: Any, text: str, *, is_upward: bool = False) -> list[TextLine]:
    """Return the lines of a page with their places, measured at their first and last characters.

    Of vertical lines, and of those that go upward, the places are those that they would have if
    the page were turned.
    """
    from ctypes import byref, c_double
    from math import hypot

    from pypdfium2 import raw

    if len(text) != textpage.count_chars():  # it is not known which character is which
        return lines_of_text(text)
    functions, handle = pdfium(), textpage.raw
    get_origin, get_box = functions.get_origin, functions.get_box
    get_matrix, get_size = functions.get_matrix, functions.get_size
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    to_box, to_matrix, to_x, to_y = map(byref, (box, matrix, x, y))
    lines, following = [], 0
    line_of = partial(tuple.__new__, TextLine)  # in a third of the time of TextLine(...)
    for line in text.split("\r\n"):
        begin, following = following, following + len(line) + 2
        stripped = line.strip()
        if not stripped:
            continue
        if len(stripped) < len(line):
            begin += line.index(stripped)
        get_origin(handle, begin, to_x, to_y)
        left, baseline, size = x.value, y.value, get_size(handle, begin)
        if get_matrix(handle, begin, to_matrix):
            size *= matrix.d if matrix.c == 0 < matrix.d else hypot(matrix.c, matrix.d)
        get_box(handle, begin + len(stripped) - 1, to_box)
        if (top := box.top) < baseline and baseline - top > abs(box.left - left):
            lines.append(line_of((stripped, begin, -baseline, -box.bottom, left, size, False)))
        elif is_upward:
            lines.append(line_of((stripped, begin, baseline, box.top, -left, size, False)))
        else:
            lines.append(line_of((stripped, begin, left, box.right, baseline, size, False)))
    return lines
