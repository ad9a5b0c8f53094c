"""Read PDF: its text in reading order, its pages and headings; tell where there is no text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.readers.source_file import SourceFile
from .packed_files import parser
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

_MAX_GARBAGE = 0.25  # the share of a page's characters that mean nothing, above which it is no text

# How many characters of a page are asked whether they are turned, or have no meaning: the first
# number; where one of them is, the second.
_SAMPLES = (12, 48)

_UPRIGHT = {90: 3, 180: 2, 270: 1}  # how many times a page is turned whose text is turned so

_line_of = partial(tuple.__new__, TextLine)  # in a third of the time of TextLine(...)

_PASSWORD = 4  # FPDF_ERR_PASSWORD

_IMAGE, _FORM = 3, 5  # FPDF_PAGEOBJ_IMAGE, FPDF_PAGEOBJ_FORM


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
            lines, is_readable = _read_page(pdf, number, source)
            if not is_readable:
                unread.append(number + 1)
            pages.append(lines)
        outline = list(_outline(pdf.raw))
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
    return source.document(pages_as_text(pages, outline), metadata)


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
    named = {name: pdf.get_metadata_value(name.title()).strip() for name in ("title", "author")}
    return {name: value for name, value in named.items() if value}


def _outline(document: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the entries of the outline, of six levels: page (from 0), level (from 1), title."""
    functions, seen = pdfium(), set[int]()

    def below(bookmark: Any, level: int) -> Iterator[tuple[int, int, str]]:
        bookmark = functions.first_bookmark(document, bookmark)
        while bookmark and bookmark.value not in seen:
            seen.add(bookmark.value)
            target = functions.get_destination(document, bookmark)
            page = functions.page_of_destination(document, target) if target else -1
            if page >= 0:
                yield page, level, _title(bookmark)
            if level < 6:
                yield from below(bookmark, level + 1)
            bookmark = functions.next_bookmark(document, bookmark)

    return below(None, 1)


def _title(bookmark: Any) -> str:
    from ctypes import byref, c_char, c_ulong

    room, size = 0, 256
    while size > room:
        room, buffer = size, bytearray(size)
        to_buffer = byref(c_char.from_buffer(buffer))
        size = pdfium().get_title(bookmark, to_buffer, c_ulong(room))
    return buffer[: max(size - 2, 0)].decode("utf-16-le", "ignore")


def _read_page(pdf: Any, number: int, source: SourceFile) -> tuple[Lines, bool]:
    """Return the lines of a page, and whether it could be read."""
    from pypdfium2 import PdfiumError, raw

    page = raw.FPDF_LoadPage(pdf.raw, number)  # quicker by itself than as an object of pypdfium2
    if not page:
        raise PdfiumError("Failed to load page.")
    try:
        lines = _lines_of_page(page)
        if lines is not None:
            return lines, True
        if source.ocr is None:
            return (), False
        recognized = source.ocr(_png(pdf[number]))
        return lines_of_text(recognized), bool(recognized.strip())
    finally:
        raw.FPDF_ClosePage(page)


def _lines_of_page(page: Any) -> Lines | None:
    """Return the lines of a page, None if it has no text that means something."""
    from pypdfium2 import raw

    textpage = _textpage(page)
    try:
        text = _text(textpage)
        angle = _angle(textpage, text)
        if angle in _UPRIGHT and not raw.FPDFPage_GetRotation(page):
            raw.FPDFPage_SetRotation(page, _UPRIGHT[angle])  # else each letter may be a line
            textpage, turned = _textpage(page), textpage
            raw.FPDFText_ClosePage(turned)
            text = _text(textpage)
        text = normalized(text)
        if not text.strip():
            return None if _has_image(page) else ()
        if max(garbage_share(text), _unmapped_share(textpage)) > _MAX_GARBAGE:
            return None
        lines: Lines = _lines(textpage, text, is_upward=angle == 270)
        return lines if angle else with_tables(page, textpage, lines)
    finally:
        raw.FPDFText_ClosePage(textpage)


def _textpage(page: Any) -> Any:
    from pypdfium2 import PdfiumError, raw

    textpage = raw.FPDFText_LoadPage(page)
    if not textpage:
        raise PdfiumError("Failed to load text page.")
    return textpage


def _text(textpage: Any) -> str:
    """Return the text of a page, without what PDFium leaves out where it begins and ends."""
    from ctypes import byref, c_char

    functions = pdfium()
    begin, end = 0, functions.count_characters(textpage)
    while begin < end and functions.index_in_text(textpage, begin) < 0:
        begin += 1
    while begin < end and functions.index_in_text(textpage, end - 1) < 0:
        end -= 1
    if begin == end:
        return ""
    buffer = bytearray(2 * (end - begin + 1))
    to_buffer = byref(c_char.from_buffer(buffer))
    length = functions.get_text(textpage, begin, end - begin, to_buffer) - 1
    return buffer[: 2 * length].decode("utf-16-le", "ignore")


def _has_image(page: Any) -> bool:
    functions = pdfium()

    def is_in(count: Any, get: Any, parent: Any, depth: int) -> bool:
        for number in range(count(parent)):
            part = get(parent, number)
            kind = functions.get_type(part)
            if kind == _IMAGE or (
                kind == _FORM
                and depth > 1
                and is_in(
                    functions.count_objects_within, functions.get_object_within, part, depth - 1
                )
            ):
                return True
        return False

    return is_in(functions.count_objects, functions.get_object, page, 3)


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def _angle(textpage: Any, text: str) -> int:
    """Return by how much most characters of a page are turned, in degrees, clockwise."""
    from math import degrees

    for count in _SAMPLES:
        places = range(0, len(text), len(text) // count + 1)
        shown = [place for place in places if not text[place].isspace()]
        angles = list(map(pdfium().get_angle, repeat(textpage), shown))
        if not any(angles):
            return 0
    return round(degrees(sorted(angles)[len(angles) // 2]))


def _unmapped_share(textpage: Any) -> float:
    """Return which share of a page's characters have no meaning that their font knows of."""
    functions, share = pdfium(), 0.0
    length = functions.count_characters(textpage)
    for count in _SAMPLES:
        places = range(0, length, length // count + 1)
        answers = list(map(functions.has_no_meaning, repeat(textpage), places))
        if 1 not in answers:
            return 0.0
        share = answers.count(1) / len(answers)
    return share


def _lines(textpage: Any, text: str, *, is_upward: bool = False) -> list[TextLine]:
    """Return the lines of a page with their places, measured at their first and last characters.

    Of vertical lines, and of those that go upward, the places are those that they would have if
    the page were turned.
    """
    from ctypes import byref, c_double
    from math import hypot

    from pypdfium2 import raw

    functions = pdfium()
    if len(text) != functions.count_characters(textpage):  # which character is which is not known
        return lines_of_text(text)
    get_origin, get_box = functions.get_origin, functions.get_box
    get_matrix, get_size = functions.get_matrix, functions.get_size
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    to_box, to_matrix, to_x, to_y = map(byref, (box, matrix, x, y))
    lines, following = [], 0
    line_of = _line_of
    for line in text.split("\r\n"):
        begin, following = following, following + len(line) + 2
        stripped = line.strip()
        if not stripped:
            continue
        if len(stripped) < len(line):
            begin += line.index(stripped[0])
        get_origin(textpage, begin, to_x, to_y)
        left, baseline, size = x.value, y.value, get_size(textpage, begin)
        if get_matrix(textpage, begin, to_matrix):
            size *= matrix.d if matrix.c == 0 < matrix.d else hypot(matrix.c, matrix.d)
        get_box(textpage, begin + len(stripped) - 1, to_box)
        if (top := box.top) < baseline and baseline - top > abs(box.left - left):
            lines.append(line_of((stripped, begin, -baseline, -box.bottom, left, size, False)))
        elif is_upward:
            lines.append(line_of((stripped, begin, baseline, top, -left, size, False)))
        else:
            lines.append(line_of((stripped, begin, left, box.right, baseline, size, False)))
    return lines
