"""Read PDF: text in reading order, pages, headings, and pages without text."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from ctypes import addressof, c_double, c_int, c_void_p, cast, create_string_buffer, sizeof
from functools import partial
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
                lines = []
                if source.ocr:
                    lines = lines_of_text(source.ocr(_png(page)), number - 1)
                if not lines:
                    unread.append(number)
                    source.note(_UNREAD, f"page {number}")
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
    size = 1000 * SCALE
    column = c_int()
    row = c_int()
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
        if not target:
            continue
        page = target.get_index()
        with suppress(UnicodeDecodeError):
            if page is not None:
                yield page, bookmark.level + 1, bookmark.get_title()


def _lines_of_page(page: Any, source: SourceFile, number: int) -> Lines | None:
    """Return the lines of a page, or None if the page has no meaningful text."""
    upright = _upright_text(page)
    ruler = _Ruler(upright.textpage)
    text = _with_ligatures_in_order(ruler, upright.text)
    objects = _page_objects(page)
    hidden = hidden_objects(page, objects.addresses, objects.kinds)
    if hidden:
        text, passages = blanked(upright.textpage, text, hidden)
        _note_hidden(passages, source, number)
    if not text.strip():
        images = page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return () if next(images, None) is None else None
    if _is_meaningless(upright.textpage, text):
        return None
    if unreadable := text.count("\ufffd"):
        source.note("unreadable characters", f"page {number}", unreadable)
    _note_left_out(page, objects.kinds, source, number)
    lines, turned = _lines(ruler, text, number - 1)
    displayed = _displayed_lines(page, upright.textpage, lines, source)
    if upright.angle:
        return displayed
    level = _without_turned_lines(displayed, turned, source, number)
    with_rows = with_tables(objects.paths(), upright.textpage, level)
    if hidden:  # spaces stand for hidden characters
        with_rows = [line._replace(text=" ".join(line.text.split())) for line in with_rows]
    return with_parts_joined(with_rows)


class _PageText(NamedTuple):
    """The text of a page, and the angle of its letters before the page was rotated."""

    textpage: Any
    text: str
    angle: int


def _upright_text(page: Any) -> _PageText:
    """Return the text of a page. If most letters are turned, the page is rotated first."""
    textpage = page.get_textpage()
    text = _text(textpage)
    angles = _samples(len(text), partial(raw.FPDFText_GetCharAngle, textpage.raw))
    angle = round(degrees(sorted(angles)[len(angles) // 2])) if angles else 0
    if angle in (90, 180, 270) and not page.get_rotation():
        page.set_rotation(360 - angle)  # otherwise each letter may be a line
        textpage = page.get_textpage()
        text = _text(textpage)
    return _PageText(textpage, text, angle)


def _is_meaningless(textpage: Any, text: str) -> bool:
    """Return whether too many characters of a page are unreadable."""
    unmapped = _samples(len(text), partial(raw.FPDFText_HasUnicodeMapError, textpage.raw))
    share_unmapped = unmapped.count(1) / max(1, len(unmapped))
    return max(garbage_share(text), share_unmapped) > _MAX_GARBAGE


def _without_turned_lines(
    lines: list[TextLine], turned: Sequence[TextLine], source: SourceFile, number: int
) -> list[TextLine]:
    """Return the lines without those turned against the page. Such lines are noted."""
    is_vertical = 2 * sum(line.turn != 0 for line in lines) > len(lines)
    if is_vertical or not turned:  # old Chinese books are vertical
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
        units = "".join(chr(code) for code in codes).translate(_CONTROLS)
        text = units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = normalized(text)
    return text


_CONTROLS = {0: "\ufffd", 2: HYPHEN}
"""The codes of unreadable characters and of hyphens at line ends."""


_PATH = raw.FPDF_PAGEOBJ_PATH


class _PageObjects(NamedTuple):
    """The addresses and the kinds of the objects of a page."""

    addresses: list[int]
    kinds: list[int]

    def paths(self) -> list[int]:
        """Return the addresses of the drawn paths."""
        pairs = zip(self.addresses, self.kinds, strict=True)
        return [address for address, kind in pairs if kind == _PATH]


def _page_objects(page: Any) -> _PageObjects:
    page_address = cast(page.raw, c_void_p).value
    count = raw.FPDFPage_CountObjects(page.raw)
    addresses = [_object(page_address, index) for index in range(count)]
    return _PageObjects(addresses, [_kind(address) for address in addresses])


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
    return [measure(index) for index in range(0, length, length // 12 + 1)]


class _Ruler:
    """The measures of the characters of a page. The buffers are used again for each character."""

    def __init__(self, textpage: Any) -> None:
        self.textpage = textpage
        self.handle = cast(textpage.raw, c_void_p).value or 0
        self._loose = raw.FS_RECTF()
        self._matrix = raw.FS_MATRIX()
        self._origin = (c_double * 2)()
        self._edges = (c_double * 4)()  # left, right, bottom, top
        self._at_loose = addressof(self._loose)
        self._at_matrix = addressof(self._matrix)
        self._at_origin = _addresses(self._origin)
        self._at_edges = _addresses(self._edges)

    def point(self, index: int) -> tuple[float, float]:
        """Return the origin of a character."""
        _origin(self.handle, index, *self._at_origin)
        return self._origin[0], self._origin[1]

    def rise(self, index: int, beside: int) -> float:
        """Return the height of the ink of a character above the origin of another one."""
        _origin(self.handle, beside, *self._at_origin)
        _box(self.handle, index, *self._at_edges)
        return self._edges[2] - self._origin[1]

    def height(self, index: int) -> float:
        """Return the height of the ink of a character."""
        _box(self.handle, index, *self._at_edges)
        return self._edges[3] - self._edges[2]

    def loose_box(self, index: int) -> Any:
        """Return the box of a character in its font, which is valid until the next call."""
        _loose_box(self.handle, index, self._at_loose)
        return self._loose

    def letter(self, index: int) -> tuple[float, bool]:
        """Return the size of a character in points, and whether its line rises or falls."""
        size = abs(_font_size(self.handle, index))
        if not _matrix(self.handle, index, self._at_matrix):
            return size, False
        matrix = self._matrix
        is_turned = matrix.b != 0 and abs(atan2(matrix.b, matrix.a)) > _MAX_SLOPE
        return size * hypot(matrix.c, matrix.d), is_turned


def _addresses(numbers: Any) -> tuple[int, ...]:
    """Return the addresses of the numbers of an array."""
    first = addressof(numbers)
    return tuple(range(first, first + sizeof(numbers), sizeof(c_double)))


def _with_ligatures_in_order(ruler: _Ruler, text: str) -> str:
    """Restore the order of letters in Arabic ligatures, which PDFium reverses."""
    if "\u0644" not in text:
        return text

    def in_order(match: re.Match[str]) -> str:
        places = {ruler.point(index) for index in range(*match.span())}
        return match[0][::-1] if len(places) == 1 else match[0]

    return _ALEF_LAM.sub(in_order, text)


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

    def rotated(self, quarter_turns: int, end: float) -> Measured:
        """Return the position on a rotated page.

        Args:
            quarter_turns: 1 if the line runs downwards, -1 if it runs upwards.
            end: The height at which the line ends.
        """
        return Measured(
            x0=-quarter_turns * self.baseline,
            right=-quarter_turns * end,
            baseline=quarter_turns * self.x0,
            turn=quarter_turns,
        )


def _lines(ruler: _Ruler, text: str, page: int) -> tuple[list[TextLine], list[TextLine]]:
    """Return the lines of a page with positions, measured at their first and last characters.

    Downward and upward lines have the positions of a rotated page. The positions of right-to-left
    lines are unknown.

    Returns:
        All lines, and the lines turned against the page, such as stamps and watermarks.
    """
    has_outline = bool(raw.FPDFBookmark_GetFirstChild(ruler.textpage.page.pdf, None))
    lines: list[TextLine] = []
    turned: list[TextLine] = []
    text = _with_raised_digits(ruler, text)
    pending = [match.span() for match in _LINE.finditer(text)][::-1]
    while pending:
        start, stop = pending.pop()
        size, is_turned = ruler.letter(start)
        x, y = ruler.point(start)
        last = ruler.loose_box(stop - 1)
        measured = Measured(x, last.right, y)
        descent = y - last.bottom
        if not 0 <= descent <= 0.5 * size:  # not the usual descent
            if at := _parting(ruler, text, start, stop, size):
                first_stop = start + len(text[start:at].rstrip())
                pending += [(at, stop), (start, first_stop)]
                continue
            measured = _turned(measured, last, is_turned=is_turned)
        if measured.right <= measured.x0 and not measured.turn:
            measured = _widened(ruler, text, start, stop, measured)
        line = text[start:stop]
        x0, right, baseline, turn = measured
        is_bold = not has_outline and _is_bold_number(ruler, start, line)
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
    width = abs(last.left - measured.x0)
    if measured.baseline - last.top > width:
        return measured.rotated(quarter_turns=1, end=last.bottom)
    if is_turned and last.bottom - measured.baseline > width:
        return measured.rotated(quarter_turns=-1, end=last.top)
    return measured


def _widened(ruler: _Ruler, text: str, start: int, stop: int, measured: Measured) -> Measured:
    """Return the position of a line whose last character is before its first one.

    A page number may be displayed before the text that precedes it. Right-to-left lines keep
    their unknown position.
    """
    if _RIGHT_TO_LEFT.search(text, start, stop):
        return measured
    x0 = measured.x0
    right = measured.right
    for index in range(start, stop):
        box = ruler.loose_box(index)
        x0 = min(x0, box.left)
        right = max(right, box.right)
    return measured._replace(x0=x0, right=right)


_BOLD = re.compile("bold|black|heavy|cmbx|cmb10|-bd|demi", re.I)


def _is_bold_number(ruler: _Ruler, start: int, line: str) -> bool:
    """Return whether a line begins with the number of a heading in bold letters."""
    may_be_heading = line[0].isdigit() and HEADING_NUMBER.match(line)
    return bool(may_be_heading) and _is_bold(ruler.textpage.raw, start)


def _is_bold(handle: Any, index: int) -> bool:
    """Return whether a character is bold, according to the name or the weight of its font."""
    name = create_string_buffer(200)
    raw.FPDFText_GetFontInfo(handle, index, name, 200, c_int())
    is_named = _BOLD.search(name.value.decode("utf-8", "replace"))
    return bool(is_named) or raw.FPDFText_GetFontWeight(handle, index) >= 600


# Also "2,030" or "12,13". A digit after a space is not raised.
_NUMBERS = re.compile("[0-9](?:[0-9,–-]*[0-9]|(?<! [0-9]))")


def _with_raised_digits(ruler: _Ruler, text: str) -> str:
    """Replace digits that are raised above the character next to them by their raised forms.

    They are smaller letters at a higher position, or glyphs of the font for superscripts.
    """
    for match in _NUMBERS.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if before in "+−–-":
            start -= 1
            before = text[start - 1] if start else "\n"
        beside = start if before.isspace() else start - 1
        first = _first_raised(ruler, text, start, end, beside)
        if before in "\r\n" and end < len(text) and not text[end].isspace():
            first = min(first, _first_raised(ruler, text, start, end, end))
        if first < end and _may_be_raised(ruler, text, first, end):
            text = text[:first] + text[first:end].translate(RAISED) + text[end:]
    return text


def _may_be_raised(ruler: _Ruler, text: str, start: int, end: int) -> bool:
    """Return whether the digits are neither the upper part of a fraction nor in a turned line."""
    _, is_turned = ruler.letter(start)
    is_fraction = text[end : end + 1] == "\u2044"
    return not is_fraction and not is_turned


def _first_raised(ruler: _Ruler, text: str, start: int, end: int, beside: int) -> int:
    """Return the start of the raised characters at the end of a number.

    Args:
        ruler: The measures of the page.
        text: The text of the page.
        start: The start of the number.
        end: The end of the number.
        beside: The index of a character next to the number, which is not raised.
    """
    while end > start:
        character = text[end - 1]
        rise = ruler.rise(end - 1, beside)
        if rise < 0.5 and character != ",":
            break
        size, _ = ruler.letter(beside)
        if character.isdigit():
            is_small = 0.8 * size > 1.4 * ruler.height(end - 1)
            is_raised = is_small and 0.18 * size < rise < 0.8 * size
        else:  # a sign is in the middle of a line
            is_raised = character == "," or rise > 0.42 * size
        if not is_raised:
            break
        end -= 1
    return end


def _parting(ruler: _Ruler, text: str, start: int, stop: int, size: float) -> int:
    """Return the index at which a line must be split, or 0 if it stays whole.

    PDFium merges several lines if a later line contains a superscript, even from the foot of a
    column to the head of the next column. Such a line ends at another height than its start and
    turns back before its end.
    """
    x0, first = ruler.point(start)
    _, last = ruler.point(stop - 1)
    quarters = (ruler.point(start + (stop - start) * n // 4) for n in (1, 2, 3))
    if abs(first - last) <= 0.6 * size or not any(abs(x - x0) > size for x, _ in quarters):
        return 0
    before = start
    after = stop - 1
    while after - before > 1:
        middle = (before + after) // 2
        _, height = ruler.point(middle)
        if not text[middle].isspace() and abs(height - last) < abs(height - first):
            after = middle
        else:
            before = middle
    return after
