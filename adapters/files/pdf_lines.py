"""Measure the positions and font sizes of the lines on a PDF page."""

from __future__ import annotations

import re
from ctypes import addressof, c_double, c_int, create_string_buffer
from math import atan2, hypot
from typing import Any, NamedTuple

from .markup import RAISED
from .office_xml import parser
from .pdf_calls import address, addresses, direct
from .pdf_layout import HEADING_NUMBER, TextLine

with parser("pypdfium2"):
    from pypdfium2 import raw

_LINE = re.compile(r"\S(?:[^\r\n\ufffe]*\S)?")  # a hyphen ends the line

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

_ALEF_LAM = re.compile("[\u0622\u0623\u0625\u0627]\u0644")

_origin = direct(raw.FPDFText_GetCharOrigin)
_font_size = direct(raw.FPDFText_GetFontSize)
_matrix = direct(raw.FPDFText_GetMatrix)
_loose_box = direct(raw.FPDFText_GetLooseCharBox)
_box = direct(raw.FPDFText_GetCharBox)
_font_info = direct(raw.FPDFText_GetFontInfo)
_font_weight = direct(raw.FPDFText_GetFontWeight)


class Ruler:
    """Measures the characters of a page. Its buffers are reused for each character."""

    def __init__(self, textpage: Any) -> None:
        self.handle = address(textpage.raw)
        self._textpage = textpage  # this reference keeps the handle valid
        self._loose = raw.FS_RECTF()
        self._matrix = raw.FS_MATRIX()
        self._origin = (c_double * 2)()
        self._edges = (c_double * 4)()  # left, right, bottom, top
        self._at_loose = addressof(self._loose)
        self._at_matrix = addressof(self._matrix)
        self._at_origin = addresses(self._origin)
        self._at_edges = addresses(self._edges)

    def point(self, index: int) -> tuple[float, float]:
        """Return the coordinates of a character's origin."""
        _origin(self.handle, index, *self._at_origin)
        return self._origin[0], self._origin[1]

    def rise(self, index: int, beside: int) -> float:
        """Return how far the bottom of a character lies above the origin of another character."""
        _origin(self.handle, beside, *self._at_origin)
        _box(self.handle, index, *self._at_edges)
        return self._edges[2] - self._origin[1]

    def height(self, index: int) -> float:
        """Return the height of the visible shape of a character."""
        _box(self.handle, index, *self._at_edges)
        return self._edges[3] - self._edges[2]

    def loose_box(self, index: int) -> Any:
        """Return the font box of a character. The result is only valid until the next call."""
        _loose_box(self.handle, index, self._at_loose)
        return self._loose

    def letter(self, index: int) -> tuple[float, bool]:
        """Return the font size of a character in points, and whether its line is rotated."""
        size = abs(_font_size(self.handle, index))
        if not _matrix(self.handle, index, self._at_matrix):
            return size, False
        matrix = self._matrix
        is_turned = matrix.b != 0 and abs(atan2(matrix.b, matrix.a)) > _MAX_SLOPE
        return size * hypot(matrix.c, matrix.d), is_turned


def with_ligatures_in_order(ruler: Ruler, text: str) -> str:
    """Correct the order of letters in Arabic ligatures, which PDFium returns in reverse order."""
    if "\u0644" not in text:
        return text

    def in_order(match: re.Match[str]) -> str:
        start = match.start()
        is_ligature = ruler.point(start) == ruler.point(start + 1)
        return match[0][::-1] if is_ligature else match[0]

    return _ALEF_LAM.sub(in_order, text)


_MAX_SLOPE = 0.1  # maximum slope of a horizontal line, in radians


class Measured(NamedTuple):
    """The measured position of a line.

    ``turn`` is 1 for lines that run downwards and -1 for lines that run upwards, as in
    ``TextLine``.
    """

    x0: float
    right: float
    baseline: float
    turn: int = 0

    def rotated(self, quarter_turns: int, end: float) -> Measured:
        """Return the position of the line on a rotated page.

        Args:
            quarter_turns: 1 if the line runs downwards, or -1 if it runs upwards.
            end: The y coordinate at which the line ends.
        """
        return Measured(
            x0=-quarter_turns * self.baseline,
            right=-quarter_turns * end,
            baseline=quarter_turns * self.x0,
            turn=quarter_turns,
        )


def lines_of_page(
    ruler: Ruler, text: str, page: int, *, has_outline: bool
) -> tuple[list[TextLine], list[TextLine]]:
    """Return the lines of a page with their positions, measured at their first and last characters.

    Lines that run downwards or upwards have the positions that they would have on a rotated page.
    The positions of right-to-left lines are unknown.

    Returns:
        All lines, and a second list that contains only the rotated lines, such as stamps and
        watermarks.
    """
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
        if not 0 <= descent <= 0.5 * size:  # the descent is unusual
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
        measured: The position of the line, measured like a horizontal line.
        last: The box of the last character.
        is_turned: Whether the letters are rotated.
    """
    width = abs(last.left - measured.x0)
    if measured.baseline - last.top > width:
        return measured.rotated(quarter_turns=1, end=last.bottom)
    if is_turned and last.bottom - measured.baseline > width:
        return measured.rotated(quarter_turns=-1, end=last.top)
    return measured


def _widened(ruler: Ruler, text: str, start: int, stop: int, measured: Measured) -> Measured:
    """Return the position of a line whose last character is displayed to the left of the first one.

    This happens if a page number is displayed before the text that precedes it in the file. The
    positions of right-to-left lines remain unknown.
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


def _is_bold_number(ruler: Ruler, start: int, line: str) -> bool:
    """Return whether a line starts with a bold heading number."""
    may_be_heading = line[0].isdigit() and HEADING_NUMBER.match(line)
    return bool(may_be_heading) and _is_bold(ruler.handle, start)


def _is_bold(handle: int, index: int) -> bool:
    """Return whether a character is bold, according to the name or the weight of its font."""
    name = create_string_buffer(200)
    _font_info(handle, index, addressof(name), len(name), addressof(c_int()))
    is_named = _BOLD.search(name.value.decode("utf-8", "replace"))
    return bool(is_named) or _font_weight(handle, index) >= 600


# This also matches "2,030" and "12,13". A digit after a space is never a superscript.
_NUMBERS = re.compile("[0-9](?:[0-9,–-]*[0-9]|(?<! [0-9]))")


def _with_raised_digits(ruler: Ruler, text: str) -> str:
    """Replace digits that are displayed as superscripts with superscript characters.

    Such digits are either smaller and higher than the character next to them, or the font has
    special glyphs for them.
    """
    for match in _NUMBERS.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if before in "+−–-":
            start -= 1
            before = text[start - 1] if start else "\n"
        beside = start if before.isspace() else start - 1
        first = _first_raised(ruler, text, start, end, beside)
        following = text[end : end + 1].strip()
        if following and before in "\r\n":
            first = min(first, _first_raised(ruler, text, start, end, end))
        if first < end and _may_be_raised(ruler, text, first, end):
            text = text[:first] + text[first:end].translate(RAISED) + text[end:]
    return text


def _may_be_raised(ruler: Ruler, text: str, start: int, end: int) -> bool:
    """Return whether the position of digits allows superscripts.

    Digits in the numerator of a fraction or in a rotated line are not superscripts.
    """
    _, is_turned = ruler.letter(start)
    is_fraction = text[end : end + 1] == "\u2044"
    return not is_fraction and not is_turned


def _first_raised(ruler: Ruler, text: str, start: int, end: int, beside: int) -> int:
    """Find the superscript characters at the end of a number.

    Return the index of the first of these characters, or the end of the number if there are none.

    Args:
        ruler: The measurements of the page.
        text: The text of the page.
        start: The start of the number.
        end: The end of the number.
        beside: The index of a character next to the number, with which its characters are compared.
    """
    first = end
    while first > start and _is_raised(ruler, text[first - 1], first - 1, beside):
        first -= 1
    return first


def _is_raised(ruler: Ruler, character: str, index: int, beside: int) -> bool:
    """Return whether a character of a number is a superscript.

    Args:
        ruler: The measurements of the page.
        character: A digit or a sign within the number.
        index: The index of the character.
        beside: The index of a character next to the number.
    """
    if character == ",":  # commas hang low, so their position tells nothing
        return True
    rise = ruler.rise(index, beside)
    if rise < 0.5:  # most characters, for which the size is not needed
        return False
    size, _ = ruler.letter(beside)
    if not character.isdigit():  # dashes are placed at mid-height
        return rise > 0.42 * size
    is_small = 1.4 * ruler.height(index) < 0.8 * size
    return is_small and 0.18 * size < rise < 0.8 * size


def _parting(ruler: Ruler, text: str, start: int, stop: int, size: float) -> int:
    """Return the index at which a line must be split, or 0 if it should not be split.

    If a line contains a superscript, PDFium may merge it with previous lines, even across columns.
    Such a merged line ends at a different height from where it started, and goes back to the left
    before its end.
    """
    x0, first = ruler.point(start)
    _, last = ruler.point(stop - 1)
    if abs(first - last) <= 0.6 * size:
        return 0
    quarters = [ruler.point(start + (stop - start) * n // 4) for n in (1, 2, 3)]
    if not any(abs(x - x0) > size for x, _ in quarters):
        return 0
    before = start
    after = stop - 1
    while after - before > 1:
        middle = (before + after) // 2
        _, height = ruler.point(middle)
        is_nearer_to_end = abs(height - last) < abs(height - first)
        if is_nearer_to_end and not text[middle].isspace():
            after = middle
        else:
            before = middle
    return after
