"""Read PDF: its text in reading order, its pages and headings; tell where there is no text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..document import Document
from ..errors import ReadError
from .pdf_layout import PageLines, TextLine, garbage_share, normalized, pages_as_text
from .source_file import SourceFile, parser

_MAX_GARBAGE = 0.25  # the share of a page's characters that mean nothing, above which it is no text

_SAMPLE = 120  # characters of a page that are asked whether they have a meaning

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
        pages: list[PageLines] = []
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
    if unread and not any(page.lines for page in pages):
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
        pdf = PdfDocument(source.path)
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


def _read_page(page: Any, source: SourceFile) -> tuple[PageLines, bool]:
    """Return the lines of a page, and whether it could be read."""
    textpage = page.get_textpage()
    text = normalized(textpage.get_text_range())
    garbage = max(garbage_share(text), _unmapped_share(textpage))
    has_text = bool(text.strip()) and garbage <= _MAX_GARBAGE
    if has_text:
        lines = PageLines(tuple(_lines(textpage, text)), page.get_height())
        textpage.close()
        return lines, True
    textpage.close()
    if not text.strip() and not _has_content(page):
        return PageLines((), page.get_height()), True  # a blank one
    if source.ocr is not None:
        recognized = source.ocr(_png(page))
        return PageLines.of_text(recognized), bool(recognized.strip())
    return PageLines((), page.get_height()), False


def _has_content(page: Any) -> bool:
    return any(True for _ in page.get_objects(filter=[_IMAGE], max_depth=3))


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def _unmapped_share(textpage: Any) -> float:
    """Return which share of a page's characters have no meaning that their font knows of."""
    from pypdfium2 import raw

    count = textpage.count_chars()
    places = range(0, count, max(1, count // _SAMPLE))
    bad = sum(raw.FPDFText_HasUnicodeMapError(textpage.raw, i) == 1 for i in places)
    return bad / len(places) if count else 0


def _lines(textpage: Any, text: str) -> Iterator[TextLine]:
    """Yield the lines of a page with their places, measured at their first and last characters.

    Of vertical lines the places are those that they would have if the page were turned.
    """
    from ctypes import byref, c_double
    from math import hypot

    from pypdfium2 import raw

    is_aligned = len(text) == textpage.count_chars()
    handle = textpage.raw
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    box_pointer, matrix_pointer, x_pointer, y_pointer = map(byref, (box, matrix, x, y))
    get_origin, get_box = raw.FPDFText_GetCharOrigin, raw.FPDFText_GetLooseCharBox
    at = 0
    for line in text.split("\r\n"):
        begin, at = at, at + len(line) + 2
        stripped = line.strip()
        if not stripped:
            continue
        first = begin + len(line) - len(line.lstrip())
        last = begin + len(line.rstrip()) - 1
        if not is_aligned or not get_origin(handle, first, x_pointer, y_pointer):
            yield TextLine(stripped)
            continue
        left, baseline = x.value, y.value
        size = raw.FPDFText_GetFontSize(handle, first)
        if raw.FPDFText_GetMatrix(handle, first, matrix_pointer):
            size *= hypot(matrix.c, matrix.d)
        get_origin(handle, last, x_pointer, y_pointer)
        get_box(handle, last, box_pointer)
        if last > first and baseline - y.value > abs(x.value - left):
            yield TextLine(stripped, -baseline, size - y.value, left, size)
        else:
            yield TextLine(stripped, left, max(box.right, x.value), baseline, size)
