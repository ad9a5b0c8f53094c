"""Write superscripts, subscripts and merged cells of HTML so that Markdown keeps their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable
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

_MAX_BASE = 100  # characters

_FUNCTIONS = frozenset("arccos arcsin arctan cos cosh cot log sin sinh tan tanh".split())

_ORDINALS = frozenset("st nd rd th er re ère e ème eme o a os as me mes lle lles r tm sm".split())

_SYMBOLS = re.compile(r"[*†‡§¶#™®©°ºª′″]+|\[.*\]")

_EXPONENT = re.compile(r"[+−-]?[\w.]*[+−-]?")

_CJK = "\u2e80"


def superscript(before: str, text: str, after: str = "", *, is_link: bool = False) -> str:
    """Return a superscript as text: a power (``^30``), a note mark (``[5]``) or an ordinal.

    Args:
        before: The text before the superscript.
        text: The superscript.
        after: The text after the superscript.
        is_link: Whether the superscript links to a note.

    Example:
        >>> superscript("about 2", "30"), superscript("the fee", "5"), superscript("19", "th")
        ('^30', '[5]', 'th')
    """
    is_number = _NUMBERS.fullmatch(text)
    if not is_number:
        is_ordinal = text.lower() in _ORDINALS and before[-1:].isalnum()
        if not text or is_ordinal or _SYMBOLS.fullmatch(text):
            return text
    if is_link or (is_number and not _is_power(before, text, after)):
        return f"[{text}] " if not before and after[:1].isalnum() else f"[{text}]"
    power = f"^{text}" if _EXPONENT.fullmatch(text) else f"^({text})"
    return f"{power} " if after[:1].isdigit() else power


def _is_power(before: str, number: str, after: str) -> bool:
    """Return whether a raised number is a power. Otherwise, it is a note mark."""
    # The end of a long word is enough. The search tries each of its letters.
    start = max(before.rfind(" ") + 1, len(before) - _MAX_BASE)
    match = _BASE.search(before, start)
    if match is None:  # "14C" is an isotope, "1A note" a note
        return len(number) > 1 and after[:1].isupper()
    base = match[0]
    if base[0].isdigit():  # 2^30 and 10^9, but not a year or an amount with a note
        is_usual_base = len(base) < 3 or base.strip("0,.") == "1"
        return is_usual_base and number not in ("0", "1")
    if base in ")|∥":
        return number in ("2", "3")
    if base[-1] >= _CJK:
        return False
    is_unit = len(base) == 2 and number.isdecimal() and int(number) < 5
    return len(base) == 1 or is_unit or base in _FUNCTIONS


RAISED = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
"""The raised forms of characters, for ``str.translate``."""

_LOWERED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

_RAISED_RUN = re.compile("[⁰¹²³⁴-⁹⁺⁻]+(?:[,–][⁰¹²³⁴-⁹]+)*")


def raised_as_text(text: str) -> str:
    """Replace raised digits by powers and note marks.

    Example:
        >>> raised_as_text("about 2³⁰ bytes; the tea.¹²")
        'about 2^30 bytes; the tea.[12]'
    """

    def as_text(match: re.Match[str]) -> str:
        start, end = match.span()
        return superscript(text[:start], match[0].translate(_LOWERED), text[end : end + 1])

    return text if text.isascii() else _RAISED_RUN.sub(as_text, text)


def subscript(before: str, text: str, after: str = "") -> str:
    """Return a subscript as text.

    Example:
        >>> subscript("H", "2", "O"), subscript("101", "2"), subscript("v", "max")
        ('2', '_2', '_max')
    """
    if not text:
        return ""
    follows_letter = not before[-1:].isdigit()
    lowered = text if text.isdecimal() and follows_letter else f"_{text}"
    has_space = after[:1].isdigit() and lowered[-1:].isdigit()
    return f"{lowered} " if has_space else lowered


class TextRun(NamedTuple):
    """A run of text, its height (raised: 1, lowered: -1), and whether it is struck through."""

    text: str
    height: int = 0
    is_struck: bool = False


def joined_runs(runs: Iterable[TextRun]) -> str:
    """Join runs of text. Scripts become text, struck runs get the marks of Markdown.

    Example:
        >>> joined_runs([TextRun("2"), TextRun("30", 1), TextRun(" or "), TextRun("5", 0, True)])
        '2^30 or ~~5~~'
    """
    runs = list(runs)
    if len(runs) == 1 and not runs[0].height:
        return struck(runs[0].text) if runs[0].is_struck else runs[0].text
    parts = [
        TextRun("".join(run.text for run in group), height, is_struck)
        for (height, is_struck), group in groupby(runs, _form)
    ]
    written: list[TextRun] = []
    before = ""
    for at, part in enumerate(parts):
        text = part.text
        if part.height:
            after = parts[at + 1].text if at + 1 < len(parts) else ""
            write = superscript if part.height > 0 else subscript
            text = write(before, text.strip(), after)
        before += text
        written.append(TextRun(text, is_struck=part.is_struck))
    if not any(run.is_struck for run in written):
        return before
    text = ""
    for (_, is_struck), group in groupby(written, _form):
        inner = "".join(run.text for run in group)
        text += struck(inner) if is_struck else inner
    return text


def _form(run: TextRun) -> tuple[int, bool]:
    return run.height, run.is_struck


_STRUCK_LINE = re.compile(r"\S(?:[^\n]*\S)?")


def struck(text: str) -> str:
    """Return a struck-through text in Markdown, with the marks in each line.

    Example:
        >>> struck(" 10 euros ")
        ' ~~10 euros~~ '
    """
    return _STRUCK_LINE.sub(r"~~\g<0>~~", text)


def with_scripts(html: str) -> str:
    """Replace the superscripts and subscripts of HTML by text.

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
                return match[3]  # a note mark whose brackets come with the link
            written = superscript(before, text, after, is_link='href="#' in match[3])
        return written.replace("&", "&amp;").replace("<", "&lt;")

    return _SCRIPT.sub(as_text, html)


_MERGED_CELL = re.compile(r"<(t[dh])\b[^<>]*\b(?:col|row)span\b[^<>]*>", re.I)

_SPAN = re.compile(r"\b(col|row)span\s*=\s*[\"']?(\d{1,5})", re.I)

_MAX_SPAN = 100  # columns

_MAX_REPEATED = 1_000  # characters of a cell

_MARK = re.compile("\ue026(\\d+),(\\d+)\ue027")
"""The numbers of rows and columns of a merged cell, at its start."""


def mark_merged_cells(html: str) -> str:
    """Mark the merged cells of a page for ``repeat_merged_cells``."""

    def marked(cell: re.Match[str]) -> str:
        spans = {kind.lower(): int(number) for kind, number in _SPAN.findall(cell[0])}
        height = spans.get("row", 1) or 65_535
        width = min(spans.get("col", 1), _MAX_SPAN)
        return f"<{cell[1]} rowspan={height} colspan={width}>\ue026{height},{width}\ue027"

    return _MERGED_CELL.sub(marked, html)


def repeat_merged_cells(text: str) -> str:
    """Write marked cells of Markdown tables into each of their rows and columns.

    Example:
        >>> repeat_merged_cells("| \\ue0262,1\\ue027a | b |\\n| --- | --- |\\n|  | c |")
        '| a | b |\\n| --- | --- |\\n| a | c |'
    """
    if not _MARK.search(text):
        return text
    lines: list[str] = []
    row = 0
    merged: dict[int, tuple[int, str]] = {}  # by column: the first row below the cell, and its text
    for line in text.split("\n"):
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) < 3:
            merged = {}
        elif cells[1].strip() != "---":
            row += 1
            for column, cell in enumerate(cells[1:-1], start=1):
                if mark := _MARK.match(cell.strip()):
                    cells[column] = f" {cell.strip()[mark.end() :].strip()} "
                    repeated = cells[column] if len(cell) <= _MAX_REPEATED else "  "
                    for at in range(column, column + int(mark[2])):
                        merged[at] = row + int(mark[1]), repeated
                elif not cell.strip() and row < merged.get(column, (0,))[0]:
                    cells[column] = merged[column][1]
        lines.append("|".join(cells))
    return _MARK.sub("", "\n".join(lines))
