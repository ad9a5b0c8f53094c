"""Read PDF: text in reading order, pages, headings, and pages without text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from ctypes import addressof, c_double, c_int, c_void_p, cast, create_string_buffer
from functools import partial
from itertools import repeat
from math import atan2, degrees, hypot
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.locations import SCALE
from ...nodegraph.readers.source_files import SourceFile
from .hidden_text import HIDDEN_TEXT
from .markup import RAISED
from .office_xml import parser
from .pdf_hidden import blanked, hidden_objects
from .pdf_layout import (
    HEADING_NUMBER,
    HYPHEN,
    Lines,
    TextLine,
    garbage_share,
    lines_of_text,
    normalized,
    pages_as_text,
    with_parts_joined,
)
from .pdf_tables import direct, with_tables

with parser("pypdfium2"):
    from pypdfium2 import PdfDocument, PdfiumError, raw

_MAX_GARBAGE = 0.25  # maximum share of meaningless characters in a readable page

_LINE = re.compile(r"\S(?:[^\r\n\ufffe]*\S)?")  # a hyphen ends a line

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

_ALEF_LAM = re.compile("[\u0622\u0623\u0625\u0627]\u0644")

_UNREAD = "pages without readable text, which ReadOptions(ocr=...) may read"

_PASSWORD = 4  # FPDF_ERR_PASSWORD


_object = direct(raw.FPDFPage_GetObject)
_kind = direct(raw.FPDFPageObj_GetType)
_origin = direct(raw.FPDFText_GetCharOrigin)
_font_size = direct(raw.FPDFText_GetFontSize)
_matrix = direct(raw.FPDFText_GetMatrix)
_loose_box = direct(raw.FPDFText_GetLooseCharBox)
_box = direct(raw.FPDFText_GetCharBox)


def read_pdf(source: SourceFile) -> Document:
    """Read a PDF, with a page break between pages.

    Headings come from the outline of the file. Without an outline, lines with large letters are
    headings. ``ReadOptions.ocr`` reads pages with images and no text, or with meaningless text
    (fonts without Unicode mapping). Without OCR, these pages are listed in ``unread_pages``.

    Raises:
        ReadError: If the file is damaged or encrypted, or no page has text.
    """
    try:
        # The bytes are faster than reading parts of a file.
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
    for number in range(1, len(pdf) + 1):
        projection: Sequence[float] = (0, 0, 0, 0, 0, 0)
        try:
            page = page_with_fields(pdf, number)
            projection = _projection(page)
            lines = _lines_of_page(page, source, number)
            if lines is None:
                lines = lines_of_text(source.ocr(_png(page)), number - 1) if source.ocr else []
                if not lines:
                    unread.append(number)
                    source.note(_UNREAD, f"page {number}")
        except PdfiumError as error:
            damage, lines = error, []
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
    named = {name: pdf.get_metadata_value(name.title()).strip() for name in ("title", "author")}
    metadata = {name: value for name, value in {**named, "unread_pages": unread}.items() if value}
    metadata |= {"page_unit": "page", "page_count": len(pages)}
    text, placed = pages_as_text(pages, list(_outline(pdf)))
    return source.document(text, metadata, _layout(placed, projections))


def _projection(page: Any) -> Sequence[float]:
    """Return the projection of a page as displayed, cropped and rotated.

    The upper left corner has the coordinates 0, a point has 1,000 times the units of ``SCALE``.

    Returns:
        The origin (x and y), the change per point to the right, and per point upwards.
    """
    size, column, row = 1000 * SCALE, c_int(), c_int()
    corners: list[tuple[float, float]] = []
    for x, y in ((0, 0), (100, 0), (0, 100)):
        raw.FPDF_PageToDevice(page, 0, 0, size, size, 0, x, y, column, row)
        corners.append((column.value / 1000, row.value / 1000))
    (x0, y0), (x1, y1), (x2, y2) = corners
    return x0, y0, (x1 - x0) / 100, (y1 - y0) / 100, (x2 - x0) / 100, (y2 - y0) / 100


_FARTHEST = 2**31 - 1  # the largest number of a layout


def _layout(placed: Any, projections: Sequence[Sequence[float]]) -> Any:
    """Return the fields of the ``TextBox`` of each line and cell, as the rows of an array."""
    starts, ends, pages, left, bottom, right, top, is_line = placed
    x0, y0, a, b, c, d = np.reshape(projections, (-1, 6))[pages.astype(int)].T
    xs = x0 + a * left + c * top, x0 + a * right + c * bottom
    ys = y0 + b * left + d * top, y0 + b * right + d * bottom
    edges = [np.minimum(*xs), np.minimum(*ys), np.maximum(*xs), np.maximum(*ys)]
    corners = np.clip(np.nan_to_num(edges, nan=-_FARTHEST), -_FARTHEST, _FARTHEST)
    is_upright = (b == 0) & (c == 0) & (a > 0) & (is_line > 0)
    return np.vstack([starts, ends, *corners, is_upright]).T


def page_with_fields(pdf: Any, number: int) -> Any:
    """Return a page, counted from 1, including the contents of form fields."""
    if pdf.get_formtype():
        pdf.init_forms()
        pdf[number - 1].flatten()
    return pdf[number - 1]


def _outline(pdf: Any) -> Iterator[tuple[int, int, str]]:
    """Yield up to six levels of the outline: page (from 0), level (from 1), title."""
    for bookmark in pdf.get_toc(max_depth=6):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        with suppress(UnicodeDecodeError):
            if page is not None:
                yield page, bookmark.level + 1, bookmark.get_title()


def _lines_of_page(page: Any, source: SourceFile, number: int) -> Lines | None:
    """Return the lines of a page. None: no meaningful text."""
    textpage = page.get_textpage()
    text = _text(textpage)
    angles = _samples(len(text), partial(raw.FPDFText_GetCharAngle, textpage.raw))
    angle = round(degrees(sorted(angles)[len(angles) // 2])) if angles else 0
    if angle in (90, 180, 270) and not page.get_rotation():
        page.set_rotation(360 - angle)  # otherwise each letter may be a line
        textpage = page.get_textpage()
        text = _text(textpage)
    text = _with_ligatures_in_order(textpage, text)
    objects, kinds = _page_objects(page)
    hidden = hidden_objects(page, objects, kinds)
    if hidden:
        text, passages = blanked(textpage, text, hidden)
        _note_hidden(passages, source, number)
    if not text.strip():
        images = page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return () if next(images, None) is None else None
    unmapped = _samples(len(text), partial(raw.FPDFText_HasUnicodeMapError, textpage.raw))
    if max(garbage_share(text), unmapped.count(1) / max(1, len(unmapped))) > _MAX_GARBAGE:
        return None
    if unreadable := text.count("\ufffd"):
        source.note("unreadable characters", f"page {number}", unreadable)
    _note_left_out(page, kinds, source, number)
    paths = [item for item, kind in zip(objects, kinds, strict=True) if kind == _PATH]
    lines, turned = _lines(textpage, text, number - 1)
    lines = _displayed_lines(page, textpage, lines, source)
    starts = {line.start for line in lines}
    turned = [line for line in turned if line.start in starts]
    if angle:
        return lines
    # Vertical text, as in old Chinese books.
    is_vertical = 2 * sum(line.turn != 0 for line in lines) > len(lines)
    if turned and not is_vertical:
        words = " ".join(line.text for line in turned)
        source.note("turned lines left out", f"page {number}: {words[:40]}", len(turned))
        lines = [line for line in lines if line not in turned]
    with_rows = with_tables(paths, textpage, lines)
    if hidden:  # spaces stand for hidden characters
        with_rows = [line._replace(text=" ".join(line.text.split())) for line in with_rows]
    return with_parts_joined(with_rows)


def _note_hidden(passages: Sequence[str], source: SourceFile, number: int) -> None:
    if passages:
        source.note(HIDDEN_TEXT, f"page {number}: {passages[0][:40]}", len(passages))


_MIN_SIZE = 2.0  # points; smaller letters can't be read


def _displayed_lines(
    page: Any, textpage: Any, lines: list[TextLine], source: SourceFile
) -> list[TextLine]:
    """Return the lines without those beyond the edges of the page, and without tiny letters."""
    edges = page.get_bbox()
    left, bottom, right, top = edges
    lost: list[TextLine] = []
    for line in lines:
        is_inside = left <= line.x0 < right and bottom <= line.baseline <= top
        if is_inside and line.size >= _MIN_SIZE and not line.turn:
            continue  # nearly all lines
        if line.is_placed and (_is_outside(line, edges) or _is_tiny(textpage, line)):
            lost.append(line)
    if not lost:
        return lines
    _note_hidden([line.text for line in lost], source, lost[0].page + 1)
    starts = {line.start for line in lost}
    return [line for line in lines if line.start not in starts]


def _is_outside(line: TextLine, edges: Sequence[float]) -> bool:
    """Return whether a line is beyond the edges of a page: left, bottom, right, top."""
    x0, y0, x1, y1 = line.rectangle
    return x1 < edges[0] or x0 > edges[2] or y1 < edges[1] or y0 > edges[3]


def _is_tiny(textpage: Any, line: TextLine) -> bool:
    """Return whether the letters of a line are too small to be read, and so is its font."""
    if line.size >= _MIN_SIZE:
        return False
    boxes = (textpage.get_charbox(line.start + at) for at in range(min(20, len(line.text))))
    return all(top - bottom < _MIN_SIZE for _, bottom, _, top in boxes)


def _text(textpage: Any) -> str:
    """Return the text of a page, with a character for each index of PDFium."""
    text = normalized(textpage.get_text_range())
    count = textpage.count_chars()
    if len(text) != count:  # PDFium omits characters without a code
        codes = [raw.FPDFText_GetUnicode(textpage.raw, index) for index in range(count)]
        units = "".join(map(chr, codes)).translate(_CONTROLS)
        text = units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = normalized(text)
    return text


_CONTROLS = {0: "\ufffd", 2: HYPHEN}
"""The codes of unreadable characters and of hyphens at line ends."""


_PATH = raw.FPDF_PAGEOBJ_PATH


def _page_objects(page: Any) -> tuple[list[int], list[int]]:
    """Return the addresses and the kinds of the objects of a page."""
    address = cast(page.raw, c_void_p).value
    count = raw.FPDFPage_CountObjects(page.raw)
    objects = list(map(_object, repeat(address), range(count)))
    return objects, list(map(_kind, objects))


def _note_left_out(page: Any, kinds: Sequence[int], source: SourceFile, number: int) -> None:
    """Note the pictures and the comments of a page."""
    for index in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, index)
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        raw.FPDFPage_CloseAnnot(annotation)
        if kind in (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT):
            source.note("comments left out", f"page {number}")
    if pictures := kinds.count(raw.FPDF_PAGEOBJ_IMAGE):
        source.note("pictures left out", f"page {number}", pictures)


def _samples(length: int, measure: Callable[[int], float]) -> list[float]:
    """Measure 12 characters of a page."""
    return list(map(measure, range(0, length, length // 12 + 1)))


def _with_ligatures_in_order(textpage: Any, text: str) -> str:
    """Restore the order of letters in Arabic ligatures, which PDFium reverses."""
    if "\u0644" not in text:
        return text

    def in_order(match: re.Match[str]) -> str:
        places = {_point(textpage.raw, index) for index in range(*match.span())}
        return match[0][::-1] if len(places) == 1 else match[0]

    return _ALEF_LAM.sub(in_order, text)


def _point(handle: Any, index: int) -> tuple[float, float]:
    """Return the origin of a character."""
    x, y = c_double(), c_double()
    raw.FPDFText_GetCharOrigin(handle, index, x, y)
    return x.value, y.value


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


_MAX_SLOPE = 0.1  # radians


class Measured(NamedTuple):
    """The position of a line. ``turn`` is 1 if it runs downwards, -1 if upwards, as in TextLine."""

    x0: float
    right: float
    baseline: float
    turn: int = 0


def _lines(textpage: Any, text: str, page: int) -> tuple[list[TextLine], list[TextLine]]:
    """Return the lines of a page with positions, measured at their first and last characters.

    Downward and upward lines have the positions of a rotated page. The positions of right-to-left
    lines are unknown.

    Returns:
        All lines, and the lines turned against the page, such as stamps and watermarks.
    """
    handle = cast(textpage.raw, c_void_p).value or 0
    box = raw.FS_RECTF()  # these buffers are used again for each line
    matrix = raw.FS_MATRIX()
    x = c_double()
    y = c_double()
    at_box, at_matrix, at_x, at_y = map(addressof, (box, matrix, x, y))
    has_outline = bool(raw.FPDFBookmark_GetFirstChild(textpage.page.pdf, None))
    lines: list[TextLine] = []
    turned: list[TextLine] = []
    text = _with_raised_digits(handle, text)
    pending = [match.span() for match in _LINE.finditer(text)][::-1]
    while pending:
        start, stop = pending.pop()
        _origin(handle, start, at_x, at_y)
        size = abs(_font_size(handle, start))
        if _matrix(handle, start, at_matrix):
            size *= hypot(matrix.c, matrix.d)
        is_turned = matrix.b != 0 and abs(atan2(matrix.b, matrix.a)) > _MAX_SLOPE
        _loose_box(handle, stop - 1, at_box)
        measured = Measured(x.value, box.right, y.value)
        if not 0 <= measured.baseline - box.bottom <= 0.5 * size:  # not the usual descent
            if at := _parting(textpage.raw, text, start, stop, size):
                pending += [(at, stop), (start, start + len(text[start:at].rstrip()))]
                continue
            measured = _turned(measured, box, is_turned=is_turned)
        if measured.right <= measured.x0 and not measured.turn:
            measured = _widened(handle, text, start, stop, measured)
        line = text[start:stop]
        may_be_heading = not has_outline and line[0].isdigit() and HEADING_NUMBER.match(line)
        is_bold = bool(may_be_heading) and _is_bold(textpage.raw, start)
        x0, right, baseline, turn = measured
        lines.append(TextLine(line, start, x0, right, baseline, size, turn, (), is_bold, page))
        if is_turned and right > x0:
            turned.append(lines[-1])
    return lines, turned


def _turned(measured: Measured, last: Any, *, is_turned: bool) -> Measured:
    """Return the position of a line that may run downwards or upwards.

    Args:
        measured: Its position as a level line.
        last: The box of its last character.
        is_turned: Whether its letters are turned.
    """
    x0, _, baseline, _ = measured
    width = abs(last.left - x0)
    if baseline - last.top > width:
        return Measured(-baseline, -last.bottom, x0, 1)
    if is_turned and last.bottom - baseline > width:
        return Measured(baseline, last.top, -x0, -1)
    return measured


def _widened(handle: int, text: str, start: int, stop: int, measured: Measured) -> Measured:
    """Return the position of a line whose last character is before its first one.

    A page number may be displayed before the text that precedes it. Right-to-left lines keep
    their unknown position.
    """
    if _RIGHT_TO_LEFT.search(text, start, stop):
        return measured
    box = raw.FS_RECTF()
    x0, right, baseline, turn = measured
    for index in range(start, stop):
        _loose_box(handle, index, addressof(box))
        x0 = min(x0, box.left)
        right = max(right, box.right)
    return Measured(x0, right, baseline, turn)


_BOLD = re.compile("bold|black|heavy|cmbx|cmb10|-bd|demi", re.I)


def _is_bold(handle: Any, index: int) -> bool:
    """Return whether a character is bold, according to the name or the weight of its font."""
    name, flags = create_string_buffer(200), c_int()
    raw.FPDFText_GetFontInfo(handle, index, name, 200, flags)
    is_named = _BOLD.search(name.value.decode("utf-8", "replace"))
    return bool(is_named) or raw.FPDFText_GetFontWeight(handle, index) >= 600


# Also "2,030" or "12,13". A digit after a space is not raised.
_NUMBERS = re.compile("[0-9](?:[0-9,–-]*[0-9]|(?<! [0-9]))")


def _size(handle: int, index: int) -> float:
    """Return the size of a character in points."""
    size: float = abs(_font_size(handle, index))
    matrix = raw.FS_MATRIX()
    if _matrix(handle, index, addressof(matrix)):
        size *= hypot(matrix.c, matrix.d)
    return size


def _with_raised_digits(handle: Any, text: str) -> str:
    """Replace digits that are raised above the character next to them by their raised forms.

    They are smaller letters at a higher position, or glyphs of the font for superscripts.
    """
    measures = (c_double * 6)()  # x and y of an origin, left, right, bottom and top of a box
    x, y, *edges = range(addressof(measures), addressof(measures) + 48, 8)

    def first_raised(start: int, end: int, beside: int) -> int:
        """Return the start of the raised characters at the end of a number."""
        _origin(handle, beside, x, y)
        while end > start:
            _box(handle, end - 1, *edges)
            rise, character = measures[4] - measures[1], text[end - 1]
            if rise < 0.5 and character != ",":
                break
            size = _size(handle, beside)
            if character.isdigit():
                is_raised = 0.18 * size < rise < 0.8 * size > 1.4 * (measures[5] - measures[4])
            else:  # a sign is in the middle of a line
                is_raised = character == "," or rise > 0.42 * size
            if not is_raised:
                break
            end -= 1
        return end

    for match in _NUMBERS.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if before in "+−–-":
            start -= 1
            before = text[start - 1] if start else "\n"
        first = first_raised(start, end, start if before.isspace() else start - 1)
        if before in "\r\n" and end < len(text) and not text[end].isspace():
            first = min(first, first_raised(start, end, end))
        is_fraction = text[end : end + 1] == "\u2044"
        if first < end and not is_fraction and not _is_turned(handle, first):
            text = text[:first] + text[first:end].translate(RAISED) + text[end:]
    return text


def _is_turned(handle: int, index: int) -> bool:
    """Return whether a character is turned against the page, so that its line rises."""
    matrix = raw.FS_MATRIX()
    if not _matrix(handle, index, addressof(matrix)):
        return False
    return abs(atan2(matrix.b, matrix.a)) > _MAX_SLOPE


def _parting(handle: Any, text: str, start: int, stop: int, size: float) -> int:
    """Return the index at which a line must be split. 0: no split.

    PDFium merges several lines if a later line contains a superscript, even from the foot of a
    column to the head of the next column. Such a line ends at another height than its start and
    turns back before its end.
    """
    (x0, first), (_, last) = _point(handle, start), _point(handle, stop - 1)
    quarters = (_point(handle, start + (stop - start) * n // 4) for n in (1, 2, 3))
    if abs(first - last) <= 0.6 * size or not any(abs(x - x0) > size for x, _ in quarters):
        return 0
    before, after = start, stop - 1
    while after - before > 1:
        middle = (before + after) // 2
        height = _point(handle, middle)[1]
        if not text[middle].isspace() and abs(height - last) < abs(height - first):
            after = middle
        else:
            before = middle
    return after
