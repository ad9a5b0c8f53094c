"""Convert superscripts, subscripts and merged cells in HTML to forms that Markdown can express."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import groupby
from typing import NamedTuple

_SCRIPT = re.compile(
    r"<(sup|sub|(?:span|font)(?=[^<>]*vertical-align:\s*(sup|sub)))\b[^>]*>(.{0,400}?)</\1\s*>",
    re.I | re.S,
)

_BLOCK = re.compile(r"</?(?:p|h\d|div|li|d[dt]|t[dhr]|br)\b", re.I)

_TAG = re.compile(r"<[^<>]*>")

_OPEN_LINK = re.compile(r"<a\b[^<>]*\bhref=[\"']?#[^<>]*>\s*\Z", re.I)

_NUMBERS = re.compile(r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*")

_BASE = re.compile(r"(?:\d[\d.,]*|[^\W\d_]+|[)|∥])\Z")

_MAX_BASE = 100  # maximum number of characters

_FUNCTIONS = frozenset("arccos arcsin arctan cos cosh cot log sin sinh tan tanh".split())

_ORDINALS = frozenset("st nd rd th er re ère e ème eme o a os as me mes lle lles r tm sm".split())

_SYMBOLS = re.compile(r"[*†‡§¶#™®©°ºª′″]+|\[.*\]")

_EXPONENT = re.compile(r"[+−-]?[\w.]*[+−-]?")

_CJK = "\u2e80"


def superscript(before: str, text: str, after: str = "", *, is_link: bool = False) -> str:
    """Convert a superscript to plain text: a power (``^30``), a note mark (``[5]``) or an ordinal.

    Args:
        before: The text before the superscript.
        text: The text of the superscript.
        after: The text after the superscript.
        is_link: Whether the superscript is a link to a note.

    Example:
        >>> superscript("about 2", "30"), superscript("the fee", "5"), superscript("19", "th")
        ('^30', '[5]', 'th')
    """
    if not text:
        return ""
    is_number = _NUMBERS.fullmatch(text) is not None
    if not is_number and (_is_ordinal(before, text) or _SYMBOLS.fullmatch(text)):
        return text
    if is_link or (is_number and not _is_power(before, text, after)):
        mark = f"[{text}]"
        begins_word = not before and after[:1].isalnum()
        return f"{mark} " if begins_word else mark
    power = f"^{text}" if _EXPONENT.fullmatch(text) else f"^({text})"
    return _before_digit(power, after)


def _is_ordinal(before: str, text: str) -> bool:
    """Return whether a superscript ends an ordinal or a title, as in ``19th`` or ``Mme``."""
    return text.lower() in _ORDINALS and before[-1:].isalnum()


def _before_digit(text: str, after: str) -> str:
    """Append a space to a text if the text after it starts with a digit."""
    if after[:1].isdigit():
        return f"{text} "
    return text


def _is_power(before: str, number: str, after: str) -> bool:
    """Return whether a superscript number is a power. Otherwise, it refers to a note."""
    # Only the end of a long word is searched, because the search would start at each letter.
    start = max(before.rfind(" ") + 1, len(before) - _MAX_BASE)
    match = _BASE.search(before, start)
    if match is None:  # "14C" is an isotope, but "1A note" is a note
        return len(number) > 1 and after[:1].isupper()
    base = match[0]
    if base[0].isdigit():  # 2^30 and 10^9, but not a year or an amount followed by a note mark
        if number in ("0", "1"):
            return False
        is_power_of_ten = base.strip("0,.") == "1"
        return len(base) < 3 or is_power_of_ten
    if base in ")|∥":
        return number in ("2", "3")
    if base[-1] >= _CJK:
        return False
    if len(base) == 1 or base in _FUNCTIONS:
        return True
    is_small = number.isdecimal() and int(number) < 5
    return len(base) == 2 and is_small  # km^2, cm^3


RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
"""A translation table from digits and signs to superscript characters, for ``str.translate``."""

_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

_RAISED_RUN = re.compile("[⁰¹²³⁴-⁹⁺⁻]+(?:[,–][⁰¹²³⁴-⁹]+)*")


def raised_as_text(text: str) -> str:
    """Convert superscript digits to powers (``^30``) and note marks (``[12]``).

    Example:
        >>> raised_as_text("about 2³⁰ bytes; the tea.¹²")
        'about 2^30 bytes; the tea.[12]'
    """

    def as_text(match: re.Match[str]) -> str:
        start, end = match.span()
        return superscript(text[:start], match[0].translate(_LOWERED), text[end : end + 1])

    if text.isascii():
        return text
    return _RAISED_RUN.sub(as_text, text)


def subscript(before: str, text: str, after: str = "") -> str:
    """Convert a subscript to plain text.

    Example:
        >>> subscript("H", "2", "O"), subscript("101", "2"), subscript("v", "max")
        ('2', '_2', '_max')
    """
    if not text:
        return ""
    is_index = text.isdecimal() and not before[-1:].isdigit()
    lowered = text if is_index else f"_{text}"
    if lowered[-1].isdigit():
        return _before_digit(lowered, after)
    return lowered


class TextRun(NamedTuple):
    """A run of text with the same formatting.

    ``height`` is 1 for superscripts, -1 for subscripts and 0 for normal text. ``is_struck`` is True
    for strikethrough text.
    """

    text: str
    height: int = 0
    is_struck: bool = False

    def marked(self) -> str:
        """Return the text, with Markdown marks if it is struck through."""
        return struck(self.text) if self.is_struck else self.text


def joined_runs(runs: Iterable[TextRun]) -> str:
    """Join runs of text, converting superscripts, subscripts and strikethrough to plain text.

    Example:
        >>> joined_runs([TextRun("2"), TextRun("30", 1), TextRun(" or "), TextRun("5", 0, True)])
        '2^30 or ~~5~~'
    """
    runs = list(runs)
    if len(runs) == 1 and not runs[0].height:
        return runs[0].marked()
    written = list(_written_scripts(_merged_runs(runs)))
    if not any(run.is_struck for run in written):
        return "".join(run.text for run in written)
    return "".join(run.marked() for run in _merged_runs(written))


def _merged_runs(runs: Iterable[TextRun]) -> list[TextRun]:
    """Merge consecutive runs that have the same formatting."""
    merged: list[TextRun] = []
    for (height, is_struck), group in groupby(runs, _form):
        text = "".join(run.text for run in group)
        merged.append(TextRun(text, height, is_struck))
    return merged


def _form(run: TextRun) -> tuple[int, bool]:
    return run.height, run.is_struck


def _written_scripts(runs: Sequence[TextRun]) -> Iterator[TextRun]:
    """Yield runs in which superscripts and subscripts are converted to plain text."""
    before = ""
    for at, run in enumerate(runs):
        text, height, is_struck = run
        if height:
            after = "".join(following.text for following in runs[at + 1 : at + 2])
            write = superscript if height > 0 else subscript
            text = write(before, text.strip(), after)
        before += text
        yield TextRun(text, 0, is_struck)


_STRUCK_LINE = re.compile(r"\S(?:[^\n]*\S)?")


def struck(text: str) -> str:
    """Mark a text as struck through in Markdown. Each line is marked separately.

    Example:
        >>> struck(" 10 euros ")
        ' ~~10 euros~~ '
    """
    return _STRUCK_LINE.sub(r"~~\g<0>~~", text)


def with_scripts(html: str) -> str:
    """Convert superscripts and subscripts in HTML to plain text.

    Example:
        >>> with_scripts("2<sup>30</sup> and H<sub>2</sub>O, 5<sup>1</sup> euros")
        '2^30 and H2O, 5[1] euros'
    """

    def as_text(match: re.Match[str]) -> str:
        start, end = match.span()
        text = unescape(_TAG.sub("", match[3])).strip()
        before = unescape(_TAG.sub("", _BLOCK.split(html[max(0, start - 200) : start])[-1]))
        after = unescape(_TAG.sub("", html[end : end + 100]))
        if (match[2] or match[1]).lower() == "sub":
            written = subscript(before, text, after)
        else:
            if _OPEN_LINK.search(html, max(0, start - 300), start):
                return match[3]  # the brackets of this note mark are added with the link
            written = superscript(before, text, after, is_link='href="#' in match[3])
        return written.replace("&", "&amp;").replace("<", "&lt;")

    return _SCRIPT.sub(as_text, html)


_MERGED_CELL = re.compile(r"<(t[dh])\b[^<>]*\b(?:col|row)span\b[^<>]*>", re.I)

_SPAN = re.compile(r"\b(col|row)span\s*=\s*[\"']?(\d{1,5})", re.I)

_MAX_SPAN = 100  # maximum number of columns that a cell may span

_MAX_REPEATED = 1_000  # maximum number of characters in a cell that is repeated

_MARK = re.compile("\ue026(\\d+),(\\d+)\ue027")
"""The mark at the start of a merged cell, which contains the numbers of spanned rows and columns.
"""


def mark_merged_cells(html: str) -> str:
    """Mark the merged cells of a page so that ``repeat_merged_cells`` finds them later."""

    def marked(cell: re.Match[str]) -> str:
        spans = {kind.lower(): int(number) for kind, number in _SPAN.findall(cell[0])}
        height = spans.get("row", 1) or 65_535
        width = min(spans.get("col", 1), _MAX_SPAN)
        return f"<{cell[1]} rowspan={height} colspan={width}>\ue026{height},{width}\ue027"

    return _MERGED_CELL.sub(marked, html)


class _MergedCells:
    """The merged cells of a table that continue in the following rows."""

    def __init__(self) -> None:
        self._row = 0
        self._ends: dict[int, int] = {}  # the first row below the merged cell, by column
        self._texts: dict[int, str] = {}

    def next_row(self, cells: Sequence[str]) -> list[str]:
        """Return the cells of the next row, including merged cells that started in earlier rows."""
        self._row += 1
        row: list[str] = []
        for column, cell in enumerate(cells):
            text = cell.strip()
            if mark := _MARK.match(text):
                row.append(f" {text[mark.end() :].strip()} ")
                repeated = row[-1] if len(cell) <= _MAX_REPEATED else "  "
                self._add(column, height=int(mark[1]), width=int(mark[2]), text=repeated)
            elif not text and self._row < self._ends.get(column, 0):
                row.append(self._texts[column])
            else:
                row.append(cell)
        return row

    def _add(self, column: int, height: int, width: int, text: str) -> None:
        for at in range(column, column + width):
            self._ends[at] = self._row + height
            self._texts[at] = text


def repeat_merged_cells(text: str) -> str:
    """Copy the text of marked cells in Markdown tables to all rows and columns that they span.

    Example:
        >>> repeat_merged_cells("| \\ue0262,1\\ue027a | b |\\n| --- | --- |\\n|  | c |")
        '| a | b |\\n| --- | --- |\\n| a | c |'
    """
    if not _MARK.search(text):
        return text
    lines: list[str] = []
    merged = _MergedCells()
    for line in text.split("\n"):
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) < 3:
            merged = _MergedCells()
        elif cells[1].strip() != "---":
            cells[1:-1] = merged.next_row(cells[1:-1])
        lines.append("|".join(cells))
    return _MARK.sub("", "\n".join(lines))
