"""Read PDF files, including their reading order, pages and headings."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from ctypes import c_int
from math import degrees
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.locations import SCALE
from ...nodegraph.readers.source_files import SourceFile
from .hidden_text import HIDDEN_TEXT
from .office_xml import parser
from .pdf_calls import PageObjects, address, addresses, direct, page_objects
from .pdf_hidden import blanked, hidden_objects
from .pdf_layout import (
    HYPHEN,
    Lines,
    TextLine,
    garbage_share,
    lines_of_text,
    normalized,
    pages_as_text,
    with_parts_joined,
)
from .pdf_lines import Ruler, lines_of_page, with_ligatures_in_order
from .pdf_tables import with_tables

with parser("pypdfium2"):
    from pypdfium2 import PdfDocument, PdfiumError, raw

_MAX_GARBAGE = 0.25  # maximum share of meaningless characters on a page that counts as readable

_UNREAD = "pages without readable text, which ReadOptions(ocr=...) may read"

_PASSWORD = 4  # FPDF_ERR_PASSWORD


_char_angle = direct(raw.FPDFText_GetCharAngle)
_has_map_error = direct(raw.FPDFText_HasUnicodeMapError)
_unicode = direct(raw.FPDFText_GetUnicode)
_to_device = direct(raw.FPDF_PageToDevice)
_count_annotations = direct(raw.FPDFPage_GetAnnotCount)
_annotation = direct(raw.FPDFPage_GetAnnot)
_annotation_kind = direct(raw.FPDFAnnot_GetSubtype)
_close_annotation = direct(raw.FPDFPage_CloseAnnot)


def read_pdf(source: SourceFile) -> Document:
    """Read a PDF file, with page breaks between its pages.

    Headings are taken from the outline of the file. If there is no outline, lines with a larger
    font size become headings. ``ReadOptions.ocr`` is applied to pages that contain images but no
    text, and to pages whose text is meaningless because their fonts have no Unicode mapping.
    Without OCR, these pages are listed in the metadata field ``unread_pages``.

    Raises:
        ReadError: If the file is damaged or encrypted, or no page contains text.
    """
    try:
        # PDFium reads faster from memory than from a file.
        with closing(PdfDocument(source.path.read_bytes())) as pdf:
            return _document(pdf, source)
    except PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD:
            raise source.encrypted("PDF") from error
        raise source.damaged(f"it is a damaged PDF: {error}") from error


def _document(pdf: Any, source: SourceFile) -> Document:
    pages: list[Lines] = []
    projections: list[Sequence[float]] = []
    unread: list[int] = []
    damage: PdfiumError | None = None
    has_outline = bool(raw.FPDFBookmark_GetFirstChild(pdf, None))
    for number in range(1, len(pdf) + 1):
        projection: Sequence[float] = (0, 0, 0, 0, 0, 0)
        try:
            page = page_with_fields(pdf, number)
            projection = _projection(page)
            lines = _lines_of_page(page, source, number, has_outline=has_outline)
            if lines is None:
                lines = _scanned_lines(page, source, number)
                if not lines:
                    unread.append(number)
        except PdfiumError as error:
            damage = error
            lines = ()
            source.note("damaged pages left out", f"page {number}")
        pages.append(lines)
        projections.append(projection)
    if damage and not any(pages):
        raise damage
    if unread and not any(pages):
        raise ReadError(
            f"{source.path} has no text on its pages ({len(pages):,}), only pictures or unreadable "
            "characters: give ReadOptions(ocr=...), such as tesseract() of "
            "nodekin.adapters.files.ocr",
            "scanned PDF",
            skippable=True,
        )
    metadata = _metadata(pdf, unread)
    text, placed = pages_as_text(pages, list(_outline(pdf)))
    return source.document(text, metadata, _layout(placed, projections))


def _scanned_lines(page: Any, source: SourceFile, number: int) -> Lines:
    """Recognize the lines of a page with OCR. If no lines are found, a note is recorded."""
    lines: Lines = ()
    if source.ocr:
        lines = lines_of_text(source.ocr(_png(page)), number - 1)
    if not lines:
        source.note(_UNREAD, f"page {number}")
    return lines


def _metadata(pdf: Any, unread: Sequence[int]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for name in ("title", "author"):
        if value := pdf.get_metadata_value(name.title()).strip():
            metadata[name] = value
    if unread:
        metadata["unread_pages"] = unread
    return {**metadata, "page_unit": "page", "page_count": len(pdf)}


_DEVICE = (c_int * 2)()

_DEVICE_AT = addresses(_DEVICE)


def _projection(page: Any) -> Sequence[float]:
    """Return the transformation from PDF coordinates to the displayed page.

    The displayed page may be cropped and rotated. Its upper left corner has the coordinates (0, 0),
    and one point corresponds to 1,000 units of ``SCALE``.

    Returns:
        The origin (x and y), and the changes of the coordinates per point to the right and per
        point upwards.
    """
    size = 1000 * SCALE
    handle = address(page.raw)
    corners: list[tuple[float, float]] = []
    for x, y in ((0, 0), (100, 0), (0, 100)):
        _to_device(handle, 0, 0, size, size, 0, x, y, *_DEVICE_AT)
        corners.append((_DEVICE[0] / 1000, _DEVICE[1] / 1000))
    (x0, y0), (x1, y1), (x2, y2) = corners
    return x0, y0, (x1 - x0) / 100, (y1 - y0) / 100, (x2 - x0) / 100, (y2 - y0) / 100


_FARTHEST = 2**31 - 1  # the largest number that a layout can contain


def _layout(placed: Any, projections: Sequence[Sequence[float]]) -> Any:
    """Return an array in which each row contains the ``TextBox`` fields of one line or cell."""
    starts, ends, pages, left, bottom, right, top, is_line = placed
    x0, y0, a, b, c, d = np.reshape(projections, (-1, 6))[pages.astype(int)].T
    xs = x0 + a * left + c * top, x0 + a * right + c * bottom
    ys = y0 + b * left + d * top, y0 + b * right + d * bottom
    edges = [np.minimum(*xs), np.minimum(*ys), np.maximum(*xs), np.maximum(*ys)]
    corners = np.minimum(np.maximum(edges, -_FARTHEST), _FARTHEST)
    corners[np.isnan(corners)] = -_FARTHEST
    is_upright = (b == 0) & (c == 0) & (a > 0) & (is_line > 0)
    return np.vstack([starts, ends, *corners, is_upright]).T


def page_with_fields(pdf: Any, number: int) -> Any:
    """Return a page, including the contents of its form fields. The first page has the number 1."""
    if pdf.get_formtype():
        pdf.init_forms()
        pdf[number - 1].flatten()
    return pdf[number - 1]


def _outline(pdf: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the page (starting at 0), level (1 to 6) and title of each outline entry."""
    for bookmark in pdf.get_toc(max_depth=6):
        target = bookmark.get_dest()
        if not target:
            continue
        page = target.get_index()
        with suppress(UnicodeDecodeError):
            if page is not None:
                yield page, bookmark.level + 1, bookmark.get_title()


def _lines_of_page(
    page: Any, source: SourceFile, number: int, *, has_outline: bool
) -> Lines | None:
    """Return the lines of a page, or None if the page does not contain meaningful text."""
    upright = _upright_text(page)
    ruler = Ruler(upright.textpage)
    text = with_ligatures_in_order(ruler, upright.text)
    if not text.strip():
        return _lines_without_text(page)
    objects = page_objects(page)
    hidden = hidden_objects(page, objects)
    if hidden:
        text, passages = blanked(upright.textpage, text, hidden)
        _note_hidden(passages, source, number)
        if not text.strip():
            return _lines_without_text(page)
    if _is_meaningless(ruler, text):
        return None
    if unreadable := text.count("\ufffd"):
        source.note("unreadable characters", f"page {number}", unreadable)
    _note_left_out(page, objects, source, number)
    lines, turned = lines_of_page(ruler, text, number - 1, has_outline=has_outline)
    displayed = _displayed_lines(page, upright.textpage, lines, source)
    if upright.angle:
        return displayed
    level = _without_turned_lines(displayed, turned, source, number)
    with_rows = with_tables(objects, ruler, level)
    if hidden:  # hidden characters were replaced with spaces
        with_rows = [line._replace(text=" ".join(line.text.split())) for line in with_rows]
    return with_parts_joined(with_rows)


def _lines_without_text(page: Any) -> Lines | None:
    """Return an empty list, or None if the page contains pictures that may contain text."""
    images = page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
    return () if next(images, None) is None else None


class _PageText(NamedTuple):
    """The text of a page, and the angle by which its letters were rotated."""

    textpage: Any
    text: str
    angle: int


def _upright_text(page: Any) -> _PageText:
    """Return the text of a page. If most of its letters are rotated, the page is rotated first."""
    textpage = page.get_textpage()
    text = _text(textpage)
    handle = address(textpage.raw)
    angles = [_char_angle(handle, index) for index in _samples(text)]
    angle = round(degrees(sorted(angles)[len(angles) // 2])) if angles else 0
    if angle in (90, 180, 270) and not page.get_rotation():
        page.set_rotation(360 - angle)  # otherwise, each letter could be read as a separate line
        textpage = page.get_textpage()
        text = _text(textpage)
    return _PageText(textpage, text, angle)


def _is_meaningless(ruler: Ruler, text: str) -> bool:
    """Return whether a page contains too many unreadable characters."""
    unmapped = [_has_map_error(ruler.handle, index) for index in _samples(text)]
    share_unmapped = unmapped.count(1) / max(1, len(unmapped))
    return max(garbage_share(text), share_unmapped) > _MAX_GARBAGE


def _without_turned_lines(
    lines: list[TextLine], turned: Sequence[TextLine], source: SourceFile, number: int
) -> list[TextLine]:
    """Remove lines that are rotated relative to the page, and record a note about them."""
    if not turned:
        return lines
    is_vertical = 2 * sum(line.turn != 0 for line in lines) > len(lines)
    if is_vertical:  # such pages occur in old Chinese books
        return lines
    starts = {line.start for line in lines}
    left_out = [line for line in turned if line.start in starts]
    if not left_out:
        return lines
    words = " ".join(line.text for line in left_out)
    source.note("turned lines left out", f"page {number}: {words[:40]}", len(left_out))
    return [line for line in lines if line not in left_out]


def _note_hidden(passages: Sequence[str], source: SourceFile, number: int) -> None:
    if passages:
        source.note(HIDDEN_TEXT, f"page {number}: {passages[0][:40]}", len(passages))


_MIN_SIZE = 2.0  # in points; smaller letters cannot be read


def _displayed_lines(
    page: Any, textpage: Any, lines: list[TextLine], source: SourceFile
) -> list[TextLine]:
    """Remove lines that are outside the visible page or too small to read."""
    edges = page.get_bbox()
    left, bottom, right, top = edges
    lost: list[TextLine] = []
    for line in lines:
        is_inside = left <= line.x0 < right and bottom <= line.baseline <= top
        if is_inside and line.size >= _MIN_SIZE and not line.turn:
            continue  # this applies to nearly all lines
        if line.is_placed and (_is_outside(line, edges) or _is_tiny(textpage, line)):
            lost.append(line)
    if not lost:
        return lines
    _note_hidden([line.text for line in lost], source, lost[0].page + 1)
    starts = {line.start for line in lost}
    return [line for line in lines if line.start not in starts]


def _is_outside(line: TextLine, edges: Sequence[float]) -> bool:
    """Return whether a line is outside the edges of a page (left, bottom, right, top)."""
    x0, y0, x1, y1 = line.rectangle
    left, bottom, right, top = edges
    is_beside = x1 < left or x0 > right
    return is_beside or y1 < bottom or y0 > top


def _is_tiny(textpage: Any, line: TextLine) -> bool:
    """Return whether the letters and the font size of a line are too small to read."""
    if line.size >= _MIN_SIZE:
        return False
    boxes = (textpage.get_charbox(line.start + at) for at in range(min(20, len(line.text))))
    return all(top - bottom < _MIN_SIZE for _, bottom, _, top in boxes)


def _text(textpage: Any) -> str:
    """Return the text of a page, with exactly one character for each PDFium index."""
    text = normalized(textpage.get_text_range())
    count = textpage.count_chars()
    if len(text) != count:  # PDFium omits characters that have no code
        handle = address(textpage.raw)
        codes = [_unicode(handle, index) for index in range(count)]
        units = "".join(chr(code) for code in codes).translate(_CONTROLS)
        text = units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = normalized(text)
    return text


_CONTROLS = {0: "\ufffd", 2: HYPHEN}
"""The codes of unreadable characters and of hyphens at the ends of lines."""


def _note_left_out(page: Any, objects: PageObjects, source: SourceFile, number: int) -> None:
    """Record notes about pictures and comments on a page."""
    handle = address(page.raw)
    for index in range(_count_annotations(handle)):
        annotation = _annotation(handle, index)
        kind = _annotation_kind(annotation)
        _close_annotation(annotation)
        if kind in (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT):
            source.note("comments left out", f"page {number}")
    if pictures := objects.kinds.count(raw.FPDF_PAGEOBJ_IMAGE):
        source.note("pictures left out", f"page {number}", pictures)


def _samples(text: str) -> range:
    """Return the indexes of 12 characters that are distributed over a page."""
    return range(0, len(text), len(text) // 12 + 1)


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()
