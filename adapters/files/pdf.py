"""Read PDF: text in reading order, pages, headings, and pages without text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_double, c_int, create_string_buffer
from math import atan2, degrees, hypot
from typing import Any, NamedTuple

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.locations import SCALE, Layout, TextBox
from ...nodegraph.readers.source_files import SourceFile
from .markup import RAISED
from .packed_files import parser
from .pdf_layout import (
    HEADING_NUMBER,
    Lines,
    PlacedLine,
    Rectangle,
    TextLine,
    garbage_share,
    in_utf16_units,
    lines_of_text,
    normalized,
    pages_as_text,
    with_parts_joined,
)
from .pdf_tables import may_have_rows, with_tables

_MAX_GARBAGE = 0.25  # maximum share of meaningless characters in a readable page

# Numbers of characters of a page that are checked for rotation or missing meaning: first 12; if any
# is affected, 48.
_SAMPLES = (12, 48)

_MAX_FOOT = 4  # maximum number of lines below a table that continues on the next page

_LINE = re.compile(r"\S(?:[^\r\n\ufffe]*\S)?")  # a hyphen ends a line

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

_ALEF_LAM = re.compile("[\u0622\u0623\u0625\u0627]\u0644")

_PASSWORD = 4  # FPDF_ERR_PASSWORD


def read_pdf(source: SourceFile) -> Document:
    """Read a PDF, with a page break between pages.

    Headings come from the outline of the file. Without an outline, lines with large letters are
    headings. ``ReadOptions.ocr`` reads pages with images and no text, or with meaningless text
    (fonts without Unicode mapping). Without OCR, these pages are listed in ``unread_pages``.

    Raises:
        ReadError: If the file is damaged or encrypted, or no page has text.
    """
    with parser("pypdfium2"):
        from pypdfium2 import PdfiumError
    damage: PdfiumError | None = None
    with _opened(source) as pdf:
        pages: list[Lines] = []
        projections: list[_Projection] = []
        unreadable: list[int] = []
        for number in range(1, len(pdf) + 1):
            above = pages[-1][-_MAX_FOOT:] if pages else ()
            try:
                page = page_with_fields(pdf, number)
                projections.append(_Projection.of(page))
                lines = _lines_of_page(page, source, number, any(line.is_table for line in above))
                if lines is None:
                    lines = lines_of_text(source.ocr(_png(page))) if source.ocr else []
                    if not lines:
                        unreadable.append(number)
            except PdfiumError as error:
                damage, lines = error, []
                source.note("damaged pages left out", f"page {number}")
                projections[number - 1 :] = [_Projection(0, 0, 0, 0, 0, 0, False)]
            pages.append(lines)
        outline = list(_outline(pdf))
        metadata = _properties(pdf)
    if damage and not any(pages):
        raise source.damaged(f"it is a damaged PDF: {damage}") from damage
    if unreadable and not any(pages):
        raise ReadError(
            f"{source.path} has no text on its pages ({len(pages):,}), only pictures or unreadable "
            "characters: give ReadOptions(ocr=...), such as tesseract() of "
            "nodekin.adapters.files.ocr",
            "scanned PDF",
            skippable=True,
        )
    if unreadable:
        metadata["unread_pages"] = unreadable
        kind = "pages without readable text, which ReadOptions(ocr=...) may read"
        source.note(kind, f"page {unreadable[0]}", len(unreadable))
    metadata["page_unit"] = "page"
    metadata["page_count"] = len(pages)
    text, placed = pages_as_text(pages, outline)
    return source.document(text, metadata, Layout(list(_boxes(placed, projections))))


class _Projection(NamedTuple):
    """A mapping from page points to units of ``SCALE`` from the image's upper left corner."""

    x0: float
    y0: float
    x_by_x: float
    y_by_x: float
    x_by_y: float
    y_by_y: float
    is_upright: bool  # without rotation, like most pages

    @classmethod
    def of(cls, page: Any) -> _Projection:
        """Return the projection of a page as displayed, cropped and rotated."""
        from pypdfium2 import raw

        size, column, row = 1000 * SCALE, c_int(), c_int()
        corners: list[tuple[float, float]] = []
        for x, y in ((0, 0), (100, 0), (0, 100)):
            raw.FPDF_PageToDevice(page, 0, 0, size, size, 0, x, y, column, row)
            corners.append((column.value / 1000, row.value / 1000))
        (x0, y0), (x1, y1), (x2, y2) = corners
        a, b, c, d = (d / 100 for d in (x1 - x0, y1 - y0, x2 - x0, y2 - y0))
        return cls(x0, y0, a, b, c, d, not b and not c and a > 0 > d)

    def __call__(self, box: Rectangle) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom."""
        left, bottom, right, top = box
        x0, y0, a, b, c, d, is_upright = self
        if is_upright:
            return _clamped(x0 + a * left, y0 + d * top, x0 + a * right, y0 + d * bottom)
        xs = sorted((x0 + a * left + c * top, x0 + a * right + c * bottom))
        ys = sorted((y0 + b * left + d * top, y0 + b * right + d * bottom))
        return _clamped(xs[0], ys[0], xs[1], ys[1])


_FARTHEST = 2**31 - 1  # the largest number of a layout


def _clamped(left: float, top: float, right: float, bottom: float) -> tuple[int, int, int, int]:
    """Return coordinates as integers that a layout can store; not a number becomes the least."""
    if -_FARTHEST < left <= right < _FARTHEST and -_FARTHEST < top <= bottom < _FARTHEST:
        return int(left), int(top), int(right), int(bottom)
    left, top, right, bottom = (
        min(max(-_FARTHEST, value), _FARTHEST) for value in (left, top, right, bottom)
    )
    return int(left), int(top), int(right), int(bottom)


def _boxes(placed: Iterable[PlacedLine], projections: Sequence[_Projection]) -> Iterator[TextBox]:
    """Yield the boxes of lines. For tables, yield the boxes of the cells."""
    for start, end, page, line in placed:
        project = projections[page]
        _, _, x0, x1, _, size, _, turn, cells, _ = line
        if x1 > x0 and size > 0:
            is_line = not turn and project.is_upright
            yield TextBox(start, end, *project(line.rectangle), is_line)
        for first, last, box in cells:
            yield TextBox(start + first, start + last, *project(box), is_line=False)


@contextmanager
def _opened(source: SourceFile) -> Iterator[Any]:
    with parser("pypdfium2"):
        from pypdfium2 import PdfDocument, PdfiumError
    try:
        pdf = PdfDocument(source.path.read_bytes())  # faster than reading parts of a file
    except PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD:
            raise source.encrypted("PDF") from error
        raise source.damaged(f"it is not a complete PDF: {error}") from error
    try:
        if not len(pdf):
            raise source.damaged("it is a PDF without a page")
        yield pdf
    except PdfiumError as error:
        raise source.damaged(f"it is a damaged PDF: {error}") from error
    finally:
        pdf.close()


def page_with_fields(pdf: Any, number: int) -> Any:
    """Return a page, counted from 1, including the contents of form fields."""
    if pdf.get_formtype():
        pdf.init_forms()
        pdf[number - 1].flatten()
    return pdf[number - 1]


def _properties(pdf: Any) -> dict[str, Any]:
    named = {name: pdf.get_metadata_value(name.title()).strip() for name in ("title", "author")}
    return {name: value for name, value in named.items() if value}


def _outline(pdf: Any) -> Iterator[tuple[int, int, str]]:
    """Yield up to six levels of the outline: page (from 0), level (from 1), title."""
    for bookmark in pdf.get_toc(max_depth=6):
        target = bookmark.get_dest()
        page = target.get_index() if target else None
        with suppress(UnicodeDecodeError):
            if page is not None:
                yield page, bookmark.level + 1, bookmark.get_title()


def _lines_of_page(
    page: Any, source: SourceFile, number: int, below_table: bool = False
) -> Lines | None:
    """Return the lines of a page. None: no meaningful text."""
    from pypdfium2 import raw

    textpage = page.get_textpage()
    text = in_utf16_units(textpage.get_text_range())
    angle = _angle(textpage, text)
    if angle in (90, 180, 270) and not page.get_rotation():
        page.set_rotation(360 - angle)  # otherwise each letter may be a line
        textpage = page.get_textpage()
        text = in_utf16_units(textpage.get_text_range())
    text = _with_ligatures_in_order(textpage, normalized(text))
    if not text.strip():
        images = page.get_objects([raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
        return () if next(images, None) is None else None
    if max(garbage_share(text), _unmapped_share(textpage)) > _MAX_GARBAGE:
        return None
    lines, turned = _lines(textpage, text, is_upward=angle == 270)
    if angle:
        return lines
    is_vertical = 2 * sum(line.turn != 0 for line in lines) > len(lines)  # as in old Chinese books
    if turned and not is_vertical:
        words = " ".join(line.text for line in turned)
        source.note("turned lines left out", f"page {number}: {words[:40]}", len(turned))
        starts = {line.start for line in turned}
        lines = [line for line in lines if line.start not in starts]
    joined = with_parts_joined(lines)
    if not (below_table or may_have_rows(joined)):
        return joined
    tabled = with_tables(page, textpage, lines)
    return joined if tabled is lines else with_parts_joined(tabled)


def _with_ligatures_in_order(textpage: Any, text: str) -> str:
    """Restore the order of letters in Arabic ligatures, which PDFium reverses."""
    from pypdfium2 import raw

    if "\u0644" not in text or len(text) != textpage.count_chars():
        return text
    handle, x, y = textpage.raw, c_double(), c_double()

    def in_order(match: re.Match[str]) -> str:
        places = set()
        for index in range(*match.span()):
            raw.FPDFText_GetCharOrigin(handle, index, x, y)
            places.add((x.value, y.value))
        return match[0][::-1] if len(places) == 1 else match[0]

    return _ALEF_LAM.sub(in_order, text)


def _png(page: Any) -> bytes:
    buffer = io.BytesIO()
    page.render(scale=200 / 72).to_pil().save(buffer, "PNG")
    return buffer.getvalue()


def _angle(textpage: Any, text: str) -> int:
    """Return the rotation of most characters of a page, in degrees clockwise."""
    from pypdfium2 import raw

    handle = textpage.raw
    for count in _SAMPLES:
        indexes = range(0, len(text), len(text) // count + 1)
        angles = [raw.FPDFText_GetCharAngle(handle, i) for i in indexes if not text[i].isspace()]
        if not any(angles):
            return 0
    return round(degrees(sorted(angles)[len(angles) // 2]))


def _unmapped_share(textpage: Any) -> float:
    """Return the share of a page's characters without a Unicode mapping in their font."""
    from pypdfium2 import raw

    length: int = textpage.count_chars()
    handle = textpage.raw
    for count in _SAMPLES:
        indexes = range(0, length, length // count + 1)
        unmapped = [bool(raw.FPDFText_HasUnicodeMapError(handle, i) == 1) for i in indexes]
        if not any(unmapped):
            return 0.0
    return sum(unmapped) / len(unmapped)


_MAX_SLOPE = 0.1  # radians


def _lines(
    textpage: Any, text: str, *, is_upward: bool = False
) -> tuple[list[TextLine], list[TextLine]]:
    """Return the lines of a page with positions, measured at their first and last characters.

    Vertical and upward lines have the positions of a rotated page. The positions of
    right-to-left lines are unknown.

    Returns:
        All lines, and the lines turned against the page, such as stamps and watermarks.
    """
    from pypdfium2 import raw

    if len(text) != textpage.count_chars():  # characters can't be matched to indexes
        return lines_of_text(text), []
    handle = textpage.raw
    box, matrix, x, y = raw.FS_RECTF(), raw.FS_MATRIX(), c_double(), c_double()
    lines: list[TextLine] = []
    turned: list[TextLine] = []
    text = _with_raised_digits(handle, text)
    pending = [match.span() for match in _LINE.finditer(text)][::-1]
    while pending:
        start, stop = pending.pop()
        raw.FPDFText_GetCharOrigin(handle, start, x, y)
        x0, baseline = x.value, y.value
        size: float = abs(raw.FPDFText_GetFontSize(handle, start))
        is_turned = False
        if raw.FPDFText_GetMatrix(handle, start, matrix):
            size *= hypot(matrix.c, matrix.d)
            is_turned = matrix.b != 0 and abs(atan2(matrix.b, matrix.a)) > _MAX_SLOPE
        raw.FPDFText_GetLooseCharBox(handle, stop - 1, box)
        depth = baseline - box.bottom
        if not 0 <= depth <= 0.5 * size:  # the usual descent of letters
            if at := _parting(handle, text, start, stop, size):
                pending += [(at, stop), (start, start + len(text[start:at].rstrip()))]
                continue
            if box.top < baseline and baseline - box.top > abs(box.left - x0):
                position = (-baseline, -box.bottom, x0)
                lines.append(TextLine(text[start:stop], start, *position, size, False, 1))
                turned += lines[-1:] if is_turned else ()
                continue
        right = box.right
        if right <= x0 and not (is_upward or _RIGHT_TO_LEFT.search(text, start, stop)):
            # A page number may be displayed before the text that precedes it.
            for index in range(start, stop):
                raw.FPDFText_GetLooseCharBox(handle, index, box)
                x0, right = min(x0, box.left), max(right, box.right)
        if is_upward:
            position = (baseline, box.top, -x0)
            lines.append(TextLine(text[start:stop], start, *position, size, False, -1))
        else:
            line = TextLine(text[start:stop], start, x0, right, baseline, size)
            may_be_heading = text[start].isdigit() and HEADING_NUMBER.match(text, start, stop)
            if may_be_heading and _is_bold(handle, start):
                line = line._replace(is_bold=True)
            lines.append(line)
            if is_turned and line.is_placed:
                turned.append(line)
    return lines, turned


_BOLD = re.compile("bold|black|heavy|cmbx|cmb10|-bd|demi", re.I)


def _is_bold(handle: Any, index: int) -> bool:
    """Return whether a character is bold, according to the name or the weight of its font."""
    from pypdfium2 import raw

    name, flags = create_string_buffer(200), c_int()
    raw.FPDFText_GetFontInfo(handle, index, name, 200, flags)
    is_named = _BOLD.search(name.value.decode("utf-8", "replace"))
    return bool(is_named) or raw.FPDFText_GetFontWeight(handle, index) >= 600


_NUMBERS = re.compile("[0-9][0-9,–-]*")  # with punctuation, such as "2,030" or "12,13"


def _with_raised_digits(handle: Any, text: str) -> str:
    """Replace digits that are raised above the character next to them by their raised forms.

    They are smaller letters at a higher position, or glyphs of the font for superscripts.
    """
    from pypdfium2 import raw

    x, y = c_double(), c_double()
    left, right, bottom, top = (c_double() for _ in range(4))
    matrix = raw.FS_MATRIX()

    def first_raised(start: int, end: int, beside: int) -> int:
        """Return the start of the raised characters at the end of a number."""
        raw.FPDFText_GetCharOrigin(handle, beside, x, y)
        baseline, size = y.value, 0.0
        while end > start:
            if text[end - 1] != ",":
                raw.FPDFText_GetCharBox(handle, end - 1, left, right, bottom, top)
                rise = bottom.value - baseline
                if rise < 0.5:
                    break
                if not size:
                    size = raw.FPDFText_GetFontSize(handle, beside)
                    if raw.FPDFText_GetMatrix(handle, beside, matrix):
                        size *= hypot(matrix.c, matrix.d)
                if not text[end - 1].isdigit():  # a sign, in the middle of a line
                    if rise <= 0.42 * size:
                        break
                elif not 0.18 * size < rise < 0.8 * size > 1.4 * (top.value - bottom.value):
                    break
            end -= 1
        return end

    parts: list[str] = []
    done = 0
    for match in _NUMBERS.finditer(text):
        start, end = match.span()
        while text[end - 1] in ",–-":
            end -= 1
        if start and text[start - 1] in "+−–-":
            start -= 1
        before = text[start - 1] if start else "\n"
        first = first_raised(start, end, start if before.isspace() else start - 1)
        if before in "\r\n" and end < len(text) and not text[end].isspace():
            first = min(first, first_raised(start, end, end))
        if first < end:
            parts += (text[done:first], text[first:end].translate(RAISED))
            done = end
    return "".join([*parts, text[done:]]) if parts else text


def _parting(handle: Any, text: str, start: int, stop: int, size: float) -> int:
    """Return the index at which a line must be split. 0: no split.

    PDFium merges several lines if a later line contains a superscript, even from the foot of a
    column to the head of the next column. Such a line ends at another height than its start and
    turns back before its end.
    """
    from pypdfium2 import raw

    x, y = c_double(), c_double()

    def origin(index: int) -> tuple[float, float]:
        raw.FPDFText_GetCharOrigin(handle, index, x, y)
        return x.value, y.value

    (x0, first), (_, last) = origin(start), origin(stop - 1)
    quarters = (start + (stop - start) * n // 4 for n in (1, 2, 3))
    if abs(first - last) <= 0.6 * size or not any(abs(origin(n)[0] - x0) > size for n in quarters):
        return 0
    before, after = start, stop - 1
    while after - before > 1:
        middle = (before + after) // 2
        height = origin(middle)[1]
        if not text[middle].isspace() and abs(height - last) < abs(height - first):
            after = middle
        else:
            before = middle
    return after
