"""Convert the lines of PDF pages to paragraphs and headings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.readers.text import PAGE_BREAK, markdown_table
from .markup import RAISED, raised_as_text

HYPHEN = "\ufffe"  # the character with which PDFium replaces a hyphen and a line break

_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u3000-\u303f\U00020000-\U0003ffff"

_CJK = re.compile(f"[{_UNSPACED}]")

_FIRST_UNSPACED = "\u2e80"

_MEANINGLESS = re.compile("[^\t-\r -\udfff\uf900-\ufffc\ufffe-\U000effff]")

# Special hyphens, radicals and compatibility forms that some fonts use instead of the usual
# characters, and characters that consist of two UTF-16 units.
_VARIANTS = re.compile("[\u00ad\u2010\u2011\u2e80-\u2fdf\uf900-\ufaff\U00010000-\U0010ffff]")

_FILLER = "\ufdd1"  # represents the second unit of a character with two UTF-16 units

_SENTENCE_END = re.compile(r"[.!?。！？…:：；;][\"'”’」』）)\]]*$")

_ITEM = re.compile(
    r"(?:[-•▪◦‣·*–]|\(?\d{1,3}[.)]|[（(][一二三四五六七八九十\d]+[）)]|[a-z]\))\s|[•▪◦‣\ue000-\uf8ff]"
)

_BULLETS = "•▪◦‣●■□➢\ue000-\uf8ff"

_BULLET = re.compile(f"[{_BULLETS}][ \u00a0]?")

_LIGATURE = re.compile(f"[\ufb00-\ufb06]|{_FILLER}")

# A single character class is faster than several alternatives.
_SPECIAL = re.compile(f"[{_BULLETS}\ufb00-\ufb06{_FILLER}{''.join(map(chr, RAISED.values()))}]")

# Captions, numbered headings, and lines that consist of a number start a new block.
_NEW_START = re.compile(r"(?i:fig(?:ure|\.)|tab(?:le|\.))\s*\d|\d[\d.]*(?:\s+[^a-z]|\s*\Z)")

# In a table of contents, these are the dots between an entry and its page number.
_LEADER = re.compile(r"\s*(?:(?:\. ?){5,}|…{3,})\s*")

_USUAL_PITCH = 1.2

Rectangle = tuple[float, float, float, float]
"""The left, bottom, right and top edges of a rectangle on a page, in points.

The y coordinates increase upwards.
"""

TableRow = Sequence[tuple[str, Rectangle]]
"""The cells of a table row, as pairs of text and rectangle."""


class TextLine(NamedTuple):
    """A line of text with its position and its font size in points, or 0 if they are unknown.

    ``start`` is the index of the first character of the line, and ``page`` is the index of the
    page. ``baseline`` increases upwards. A table is represented by a single line with ``rows`` and
    without text. Lines that run downwards have ``turn`` 1, lines that run upwards have ``turn`` -1,
    and both have the position that they would have on a rotated page. ``is_bold`` is determined
    only for lines that may be numbered headings.
    """

    text: str
    start: int = 0
    x0: float = 0
    x1: float = 0
    baseline: float = 0
    size: float = 0
    turn: int = 0
    rows: Sequence[TableRow] = ()
    is_bold: bool = False
    page: int = 0

    @property
    def rectangle(self) -> Rectangle:
        """The rectangle of the line on the page, including ascenders and descenders."""
        bottom = self.baseline - 0.25 * self.size
        top = self.baseline + 0.9 * self.size
        if not self.turn:
            return self.x0, bottom, self.x1, top
        if self.turn > 0:
            return bottom, -self.x1, top, -self.x0
        return -top, self.x0, -bottom, self.x1

    @property
    def is_placed(self) -> bool:
        """Whether the position of the line is known."""
        return self.x1 > self.x0 and self.size > 0


Lines = Sequence[TextLine]
"""Lines in reading order."""


def lines_of_text(text: str, page: int = 0) -> list[TextLine]:
    """Split a text into lines whose positions are unknown."""
    return [TextLine(line.strip(), page=page) for line in text.splitlines() if line.strip()]


def normalized(text: str) -> str:
    """Replace variants of characters with the usual characters.

    The result contains one character for each UTF-16 unit, because PDFium counts these units. A
    character with two units is followed by a filler character.

    Example:
        >>> normalized("\u2f00\u4e2a \ufb01 C\u2010172 \U0001d465")
        '一个 \ufb01 C-172 x\ufdd1'
    """

    def usual(match: re.Match[str]) -> str:
        character = match[0]
        if character < "\u2e80":
            return "-"
        form = unicodedata.normalize("NFKC", character)
        if character > "\uffff":
            return form[:1] + _FILLER
        return form if len(form) == 1 else character

    return text if text.isascii() else _VARIANTS.sub(usual, text)


def garbage_share(text: str) -> float:
    """Return the share of replacement characters and private-use characters in a text.

    In a long text, only about a thousand characters are sampled.

    Example:
        >>> garbage_share("ab\ue001\ufffd"), garbage_share("")
        (0.5, 0.0)
    """
    sample = text[:: len(text) // 1000 + 1]
    meaningless = len(_MEANINGLESS.findall(sample))
    return meaningless / len("".join(sample.split())) if meaningless else 0.0


def with_parts_joined(lines: Lines) -> Lines:
    """Join the parts of lines that PDFium split at superscripts and subscripts."""
    result: list[TextLine] = []
    above = 0.0
    size = 0.0
    for line in lines:
        # most consecutive lines have different heights
        is_near = abs(above - line.baseline) < max(size, line.size)
        if is_near and result and _is_part(result[-1], line):
            line = _joined_part(result.pop(), line)
        result.append(line)
        above = line.baseline
        size = line.size
    return result


def _is_part(first: TextLine, line: TextLine) -> bool:
    """Return whether a line continues the previous line at nearly the same height.

    A subscript below a superscript starts to the left of the superscript's end.
    """
    if not (first.is_placed and line.is_placed):
        return False
    size = max(first.size, line.size)
    smaller = min(first.size, line.size)
    # a superscript of another superscript is higher
    farthest = 0.6 if smaller > 0.6 * size else 0.85
    gap = line.x0 - first.x1
    if abs(first.baseline - line.baseline) >= farthest * size or gap > 0.9 * size:
        return False
    if gap >= -0.3 * size:
        return True
    return smaller < _SCRIPT_SIZE * size and first.x0 + 0.3 * size < line.x0


_SCRIPT_SIZE = 0.85  # maximum relative size of the letters of superscripts and subscripts


def _joined_part(first: TextLine, line: TextLine) -> TextLine:
    """Join a line with its next part. The part with the larger letters determines the height."""
    rise = line.baseline - first.baseline
    gap = line.x0 - first.x1
    text = line.text
    is_script = line.size < _SCRIPT_SIZE * first.size
    is_raised = is_script and rise > 0.15 * first.size
    if is_raised and (number := _POWER.match(text)):
        text = number[0].translate(RAISED) + text[number.end() :]
    elif is_script and gap < -0.3 * first.size and rise < 0 and text[0].isalnum():
        text = f"_{text}"  # this is a subscript below a superscript
    has_space = not is_raised and gap > 0.15 * first.size
    text = joined([first.text, text]) if has_space else first.text + text
    larger = first if first.size >= line.size else line
    return larger._replace(
        text=text,
        start=first.start,
        x0=first.x0,
        x1=max(first.x1, line.x1),
    )


_POWER = re.compile(r"[+−-]?\d+")

_PAGE_NUMBER = re.compile(
    r"[\W_]*(?:page|p\.|seite|第)?\s*\d{1,5}\s*(?:(?:of|von|/|共)\s*\d{1,5})?\s*[页頁]?[\W_]*", re.I
)

_MAX_HEADER = 400  # maximum number of characters in a header that contains a page number


def _is_page_number(text: str) -> bool:
    if len(text) > _MAX_HEADER:
        return False
    return _PAGE_NUMBER.fullmatch(text) is not None


_NUMBER = re.compile(r"(?<!\d)\d{1,5}(?!\d)")

_OUTER_NUMBER = re.compile(r"^\d{1,5}\s|\s\d{1,5}$")

_Margins = Mapping[int, Sequence[tuple[int, str]]]
"""The page indexes and texts of possible headers and footers, keyed by rounded height."""


def _height(line: TextLine) -> int:
    """Return the rounded height of a line on its page. Repeated headers have equal heights."""
    return round(line.baseline / 4)


def _without_running_heads(pages: Sequence[Lines], pitch: float) -> Sequence[Lines]:
    """Remove page numbers, and all but the first occurrence of page headers and footers.

    If the text of a header also appears elsewhere on the first page, for example as a title, all of
    its occurrences are removed.

    A header or footer is separated from the body text. It appears at the same height on more than
    half of all pages, or on more than half of the left or right pages, and on at least three pages
    if the document is long enough. Its text is constant, contains a page number, or consists of
    headings of the document. Page numbers that stand alone may be at different heights.
    """
    margins: dict[int, list[tuple[int, str]]] = {}
    found: dict[tuple[int, str], list[int]] = {}
    for page, lines in enumerate(pages):
        for line in _margin_lines(lines, pitch):
            height = _height(line)
            margins.setdefault(height, []).append((page, line.text))
            places = [(height, key) for key in _keys(line.text, page)]
            for place in (*places, *_counted(line.text, page)):
                found.setdefault(place, []).append(page)
    first_pages = {place: on[0] for place, on in found.items() if _is_on_most(on, len(pages))}
    heads = _RunningHeads(pages, margins, first_pages)
    return [list(heads.without(lines, page)) for page, lines in enumerate(pages)]


class _RunningHeads:
    """The page numbers, page headers and footers of a document.

    Args:
        pages: The lines of the pages.
        margins: The lines that may be headers or footers.
        first_pages: The first page of each header or footer, keyed by height and text.
    """

    def __init__(
        self,
        pages: Sequence[Lines],
        margins: _Margins,
        first_pages: Mapping[tuple[int, str], int],
    ) -> None:
        self._margins = margins
        self._first_pages = first_pages
        self._heights = {height for height, _ in first_pages}
        self._titles = _running_titles(pages, margins)
        self._first_page = ""
        self._body_size = 0.0
        if first_pages:
            self._first_page = _squeezed("".join(line.text for line in pages[0]))
            sizes = _sizes(chain(*pages))
            self._body_size = max(sizes, key=sizes.__getitem__, default=0.0)

    def without(self, lines: Lines, page: int) -> Iterator[TextLine]:
        """Yield the lines of a page without headers and footers.

        The first occurrence of a header is kept, but in the font size of the body text.
        """
        for line in lines:
            height = _height(line)
            if height not in self._margins:
                yield line
            elif kept := self._kept(line, page, height):
                yield kept

    def _kept(self, line: TextLine, page: int, height: int) -> TextLine | None:
        text = line.text
        is_number = _is_page_number(text)
        if is_number and any(place in self._first_pages for place in _counted(text, page)):
            return None
        if text in self._titles.get(height, ()):
            return None
        if height not in self._heights:
            return line
        places = [(height, key) for key in _keys(text, page)]
        on = [self._first_pages[place] for place in places if place in self._first_pages]
        if not on:
            return line
        if is_number or page != min(on):
            return None
        is_title = page > 0 and _squeezed(text) in self._first_page
        return None if is_title else line._replace(size=min(line.size, self._body_size))


def _running_titles(pages: Sequence[Lines], margins: _Margins) -> dict[int, set[str]]:
    """Return a dictionary of headers that consist of headings of the document, keyed by height.

    Such a header consists of one or two headings.
    """
    likely: dict[int, set[str]] = {}
    for height, on in margins.items():
        if _is_on_most([page for page, _ in on], len(pages)):
            likely[height] = {text for _, text in on}
    if not likely:
        return {}
    longest = max(len(text) for text in chain(*likely.values()))
    limit = min(80, 2 * longest)
    short = [line for line in chain(*pages) if len(line.text) < limit]
    others = [line.text for line in short if _height(line) not in likely]
    titles = {"", *_unspaced("\0".join(others)).split("\0")}

    def is_of_titles(text: str) -> bool:
        text = _unspaced(text)
        return any(text[:n] in titles and text[n:] in titles for n in range(1, len(text) + 1))

    found: dict[int, set[str]] = {}
    for height, texts in likely.items():
        of_titles = {text for text in texts if is_of_titles(text)}
        if 2 * len(of_titles) > len(texts):
            found[height] = of_titles
    return found


def _unspaced(text: str) -> str:
    return text.replace(" ", "").casefold()


_ANYWHERE = -10_000
"""A value that replaces the height of page numbers, because they may be at different heights."""


def _counted(text: str, page: int) -> Iterator[tuple[int, str]]:
    """Yield the numbers in a header that may be page numbers.

    Such a number stands alone or at the start or end of the text. The difference between the number
    and the page index, which starts at 0, is yielded.
    """
    if len(text) > _MAX_HEADER:
        return
    finder = _NUMBER if _is_page_number(text) else _OUTER_NUMBER
    for number in finder.findall(text):
        yield _ANYWHERE, str(int(number) - page)


def _keys(text: str, page: int) -> Iterator[str]:
    """Yield the text of a header, and a variant for each number in it that may be a page number.

    In each variant, the number is replaced by its difference from the page index, which starts at
    0. Numbers in lines such as ``Invoice 1001`` and ``Question 1`` are not page numbers. Therefore,
    the line must contain a second number, or more than three words (or five Chinese characters).
    """
    yield text
    if len(text) > _MAX_HEADER:
        return
    numbers = list(_NUMBER.finditer(text))
    words = len(text.split())
    chinese = len(_CJK.findall(text))
    is_sentence = words > 3 or chinese > 5
    if is_sentence or len(numbers) > 1:
        for number in numbers:
            before = text[: number.start()]
            after = text[number.end() :]
            # otherwise, the text is the title of a chapter
            beside = before + "\0" + after if before and after else ""
            yield f"{beside}\0{int(number[0]) - page}"


def _is_on_most(numbers: Sequence[int], count: int) -> bool:
    """Return whether a list of page indexes contains most pages, or most left or right pages."""
    on = set(numbers)
    is_one_side = len({number % 2 for number in on}) == 1
    least = max(2, min(3, (count + 1) // 2))
    if is_one_side and len(on) >= least:
        return len(on) > count // 4
    return len(on) >= max(2, min(3, count), count // 2 + 1)


def _margin_lines(lines: Lines, pitch: float) -> Iterator[TextLine]:
    """Yield the lines of a page that may be headers or footers.

    Only the two highest and the two lowest lines are considered. They must be page numbers, or be
    separated from the text by a gap that is larger than the line spacing.
    """
    placed = sorted((x for x in lines if x.is_placed), key=attrgetter("baseline"))
    body = median(line.size for line in placed) if placed else 0.0
    for from_edge in (placed[:3], placed[:-4:-1]):
        apart = [
            abs(line.baseline - inner.baseline) > max(2.0, 1.08 * pitch) * min(line.size, body)
            for line, inner in pairwise(from_edge)
        ]
        for at, line in enumerate(from_edge[:2]):
            if any(apart[at:]) or _is_page_number(line.text):
                yield line


def _line_pitch(pages: Sequence[Lines]) -> float:
    """Return the most frequent line spacing, relative to the font size.

    In documents with many pages, only some pages are sampled.
    """
    counts: Counter[float] = Counter()
    for lines in pages[:: len(pages) // 8 + 1]:
        for line, following in pairwise(lines):
            if line.is_placed and abs(line.size - following.size) <= 0.1 * line.size:
                counts[round((line.baseline - following.baseline) / line.size, 1)] += 1
    usual = {pitch: count for pitch, count in counts.items() if 0.9 <= pitch < 4}
    return max(usual, key=usual.__getitem__, default=_USUAL_PITCH)


_Part = tuple[str, int, float, float, float, float, bool]
"""A part of the text: its characters, page, rectangle, and whether it is a single line.

The page is -1 if the position of the part is unknown.
"""


def pages_as_text(
    pages: Sequence[Lines], outline: Iterable[tuple[int, int, str]]
) -> tuple[str, Any]:
    """Convert pages to paragraphs and Markdown headings, and return the positions of all parts.

    A paragraph continues in the next column or on the next page if its last line is full and does
    not end with the end of a sentence. Pages are separated by page breaks.

    Args:
        pages: The lines of each page.
        outline: The entries of the outline, each with its page (starting at 0), level (starting at
            1) and title.

    Returns:
        The text, and an array with one column for each line or table cell. Its rows are the start,
        end, page, left, bottom, right, top, and whether the part is a single line.
    """
    pitch = _line_pitch(pages)
    lines = list(chain(*_without_running_heads(pages, pitch)))
    is_below, edges = _columns(lines, pitch)
    headings = _headings(lines, is_below, outline)
    parts: list[_Part] = []
    page = 0
    for start, end, level in _blocks(lines, headings, is_below, edges):
        between = f"\n\n{PAGE_BREAK}\n\n" * (lines[start].page - page) or "\n\n"
        parts.append(_unplaced(between if start else between.lstrip("\n")))
        parts += _block_parts(lines[start:end], level)
        page = lines[end - 1].page
    parts.append(_unplaced(f"\n\n{PAGE_BREAK}\n\n" * (len(pages) - 1 - page)))
    texts, *places = zip(*parts, strict=True)
    text, removed = _hyphens_resolved("".join(texts))
    lengths = [len(part) for part in texts]
    starts = np.cumsum([0, *lengths[:-1]])
    ends = starts + [len(part.rstrip()) for part in texts]
    offsets = np.array([starts, ends])
    offsets -= np.searchsorted(removed, offsets)
    placed = np.vstack([offsets, places])
    return text.strip("\n "), placed[:, placed[2] >= 0]


def _unplaced(text: str) -> _Part:
    return text, -1, 0, 0, 0, 0, False


def _block_parts(lines: Lines, level: int) -> Iterator[_Part]:
    """Yield the parts of the text of a block, with their positions."""
    if lines[0].rows:
        yield from _table_parts(lines)
        return
    texts = [as_markdown(line.text, bullets=not level) for line in lines]
    if level:
        yield _unplaced(f"{'#' * min(level, 6)} ")
    elif texts[0][0] == "#":
        yield _unplaced("\\")
    for at, (line, text) in enumerate(zip(lines, texts, strict=True), start=1):
        if at < len(lines):
            pages = lines[at].page - line.page
            text = text + PAGE_BREAK * pages if pages else _with_break(text, texts[at])
        yield text, line.page if line.is_placed else -1, *line.rectangle, not line.turn


def _table_parts(tables: Lines) -> Iterator[_Part]:
    """Yield the cells of a table and its continuations on later pages, with their positions.

    Repeated table headers on later pages are left out.
    """
    head = [text for text, _ in tables[0].rows[0]]
    rows = [(tables[0].page, tables[0].rows[0])]
    for table in tables:
        is_repeated = [text for text, _ in table.rows[0]] == head
        rows += ((table.page, row) for row in table.rows[is_repeated:])
    cells = [[text for text, _ in row] for _, row in rows]
    first, rule, *others = markdown_table(cells).split("\n")
    previous = tables[0].page
    for at, ((page, row), text) in enumerate(zip(rows, [first, *others], strict=True)):
        if at:
            yield _unplaced("\n" + PAGE_BREAK * (page - previous))
        separator = "| "
        for (_, box), cell in zip(row, text[2:-2].split(" | "), strict=False):
            yield _unplaced(separator)
            yield cell, page if cell else -1, *box, False
            separator = " | "
        yield _unplaced(" |" if at else f" |\n{rule}")
        previous = page


def _has_leader(text: str) -> bool:
    return ". . . ." in text or "....." in text or "………" in text


def as_markdown(text: str, *, bullets: bool = True) -> str:
    """Convert ligatures, bullets and superscript digits in a line to Markdown or plain text.

    In a table of contents, the dots before a page number are shortened to four dots, which do not
    look like the end of a sentence.

    Example:
        >>> as_markdown("1.2 Tea . . . . . . . . . 12")
        '1.2 Tea .... 12'
    """
    if _has_leader(text):
        text = _LEADER.sub(" .... ", text).strip()
    if text.isascii() or not _SPECIAL.search(text):
        return text
    text = _LIGATURE.sub(lambda m: unicodedata.normalize("NFKC", m[0]).strip(_FILLER), text)
    return raised_as_text(_BULLET.sub("- ", text) if bullets else text)


def joined(texts: Sequence[str]) -> str:
    """Join lines. In writing systems that use spaces, a space is inserted between words."""
    with_breaks = [_with_break(text, following) for text, following in pairwise(texts)]
    return "".join([*with_breaks, texts[-1]])


def _with_break(text: str, following: str) -> str:
    """Return a line followed by the separator that belongs between this line and the next one."""
    end = text[-1]
    if end == "-" and text[-2:-1].isalpha():
        return text[:-1] + HYPHEN
    is_unspaced = end >= _FIRST_UNSPACED and _CJK.match(end) and _CJK.match(following)
    return text if end in (HYPHEN, " ") or is_unspaced else f"{text} "


_Headings = dict[int, tuple[int, int]]
"""The level and the number of lines of each heading, keyed by the index of its first line."""


def _blocks(
    lines: Lines, headings: _Headings, is_below: Sequence[bool], edges: Sequence[float]
) -> Iterator[tuple[int, int, int]]:
    """Divide lines into headings, paragraphs and tables.

    Yields:
        The index of the first line, the end index, and the level. The level is 0 for paragraphs and
        tables, and 1 or more for headings.
    """
    at = 0
    while at < len(lines):
        start = at
        level, height = headings.get(at, (0, 1))
        at += height
        margin = lines[start].x0
        while not level and at < len(lines) and at not in headings:
            line = lines[at - 1]
            following = lines[at]
            edge = edges[at - 1]
            if not is_below[at]:
                if not _continues_elsewhere(line, following, edge):
                    break
                margin = following.x0
            else:
                is_indented = following.x0 - margin > 0.8 * line.size
                if is_indented and not _ITEM.match(lines[start].text):
                    break
                if not _continues_below(lines[start], line, following, edge):
                    break
                margin = following.x0 if at == start + 1 else min(margin, following.x0)
            at += 1
        yield start, at, level


def _continues_below(first: TextLine, line: TextLine, following: TextLine, edge: float) -> bool:
    """Return whether the next line below continues the block that starts with ``first``."""
    return _is_full(line, following, edge) and not _begins_item(first, line, following)


def _begins_item(first: TextLine, line: TextLine, following: TextLine) -> bool:
    """Return whether a line starts a new list item.

    Inside a paragraph, a dash or an ordinal number (``7. Januar``) may be part of a sentence.
    """
    if not _ITEM.match(following.text):
        return False
    may_be_inside = following.text[0] in "-–(" or following.text[0].isdigit()
    if not may_be_inside:
        return True
    return bool(_ITEM.match(first.text) or _SENTENCE_END.search(line.text))


def _columns(lines: Lines, pitch: float) -> tuple[list[bool], list[float]]:
    """Return whether each line directly follows the line above it, and the right edges of columns.

    Such a line is close to the previous line and has the same font size. The list of right edges
    contains one value for each line.
    """
    if not lines:
        return [], []
    _, _, *edges_and_sizes, _, _, _, page = zip(*lines, strict=True)
    x0, x1, baseline, size = np.array(edges_and_sizes)
    above = size[:-1]
    fall = -np.diff(baseline)
    is_placed = x1 > x0
    is_below = (
        (np.diff(page) == 0)
        & is_placed[:-1]
        & is_placed[1:]
        & (0.2 * above < fall)
        & (fall < 1.4 * pitch * above)
        & (abs(np.diff(size)) <= 0.1 * above)
        & (abs(np.diff(x0)) < 5 * above)
    )
    starts = np.flatnonzero(np.append(True, ~is_below))
    edges = np.repeat(np.maximum.reduceat(x1, starts), np.diff(starts, append=len(lines)))
    return [False, *is_below.tolist()], edges.tolist()


def _is_full(line: TextLine, following: TextLine, edge: float) -> bool:
    """Return whether the first word of the next line would not have fit on a line."""
    text, _, x0, x1, _, size, *_ = line
    if x1 <= x0 or size <= 0:
        return True
    advance = (x1 - x0) / len(text)  # the average width of a character
    following_advance = (following.x1 - following.x0) / len(following.text)
    if advance > 1.3 * size or following_advance > 1.3 * size or _has_leader(text):
        return False  # this is a table row with gaps, or an entry in a table of contents
    if x1 + advance + 0.3 * size >= edge:  # there is no space for another word
        return True
    end = following.text.find(" ")
    is_unspaced = following.text >= _FIRST_UNSPACED and _CJK.match(following.text)
    if is_unspaced:
        word = 1
    elif end > 0:
        word = end + 1
    else:
        word = len(following.text) + 1
    last = text[-3:]
    is_chinese = not last.isascii() and _CJK.search(last)
    slack = size * (1.5 if is_chinese else 0.3)
    return x1 + min(word, 30) * advance + slack >= edge


def _continues_elsewhere(line: TextLine, following: TextLine, edge: float) -> bool:
    """Return whether the next line continues a block in the next column or on the next page."""
    is_next_page = following.page > line.page
    if line.rows and following.rows:
        return is_next_page and _have_same_columns(line.rows[0], following.rows[0])
    text = line.text
    if line.rows or following.rows or _SENTENCE_END.search(text) or _ITEM.match(following.text):
        return False
    if not is_next_page:
        if not (line.is_placed and following.is_placed):
            return True
        if following.baseline <= line.baseline:  # the next line is not at the top of another column
            return False
    if abs(line.size - following.size) > line.size / 10 or not _is_full(line, following, edge):
        return False
    first = following.text[0]
    if first.islower() or _CJK.match(first) or text[-1] in ",，、-" + HYPHEN:
        return True
    is_sentence = text.count(" ") > 4 and text[-1].isalpha()
    may_continue = first.isalnum() or first in '("“‘'
    return is_sentence and may_continue and not _NEW_START.match(following.text)


def _have_same_columns(row: TableRow, other: TableRow) -> bool:
    """Return whether two table rows start at the same position and have equally many cells."""
    _, (left, *_) = row[0]
    _, (other_left, *_) = other[0]
    is_aligned = abs(left - other_left) <= 3
    return is_aligned and len(row) == len(other)


def _headings(
    lines: Lines, is_below: Sequence[bool], outline: Iterable[tuple[int, int, str]]
) -> _Headings:
    """Find the headings.

    Without an outline, they are recognized by their font sizes and numbers.
    """
    titles: dict[int, dict[str, int]] = {}
    for page, depth, title in outline:
        if squeezed := _squeezed(title):
            titles.setdefault(page, {})[squeezed] = depth
    if titles:
        return _headings_by_title(lines, titles)
    levels = _levels_by_size(lines)
    for size in _sizes_of_authors(lines, levels):
        del levels[size]
    found: _Headings = {}
    level_of = {size: levels.get(_rounded(size)) for size in {line.size for line in lines}}
    for at, line in enumerate(lines):
        level = level_of[line.size]
        if level and line.is_placed and _may_be_title(line.text):
            found[at] = level, _heading_height(lines, at)
    return found | _numbered_headings(lines, is_below, levels)


def _may_be_title(text: str) -> bool:
    has_letters = any(character.isalpha() for character in text)
    return has_letters and len(text) <= 150


# The number of a heading, without spaces. The outline may not contain this number.
_TITLE_NUMBER = re.compile(
    r"(?:(?:chapter|appendix|part|section)?(?:\d+|[a-z])(?:\.\d+)*[.:]?"
    r"|第[\d〇一二三四五六七八九十百]+[章节節回部篇編编卷条條])?"
)


def _headings_by_title(lines: Lines, titles: Mapping[int, Mapping[str, int]]) -> _Headings:
    """Return the headings that match titles in the outline.

    A heading may have up to three lines.
    """
    found: _Headings = {}
    ends: dict[int, set[str]] = {}
    for page, of_page in titles.items():
        ends[page] = {title[-1] for title in of_page}
    for last, line in enumerate(lines):
        if line.page not in titles or _squeezed(line.text[-1:])[-1:] not in ends[line.page]:
            continue
        for at in range(max(last - 2, 0), last + 1):
            text = "".join(_squeezed(part.text) for part in lines[at : last + 1])
            if not lines[at].text or (at < last and lines[at].text.isdecimal()):
                continue
            for title, level in titles[line.page].items():
                number_end = len(text) - len(title)
                if text.endswith(title) and _TITLE_NUMBER.fullmatch(text, 0, number_end):
                    found[at] = level, last + 1 - at
    return found


def _heading_height(lines: Lines, at: int) -> int:
    """Return the number of lines of a heading, up to three, according to their font sizes."""
    first = lines[at]
    for count, line in enumerate(lines[at + 1 : at + 3], 1):
        is_near = 0 < first.baseline - line.baseline < 2 * first.size * count
        if _rounded(line.size) != _rounded(first.size) or not is_near:
            return count
    return min(3, len(lines) - at)


# Examples are "1 Tea", "1.2. Tea" and "1茶". However, "1. Tea" may be a list item.
HEADING_NUMBER = re.compile(
    rf"(\d{{1,2}}(?:\.\d{{1,2}}){{0,3}})(\.?)(?:\s+(?=[^\W\d_]{{2}}|[{_UNSPACED}])|(?=[{_UNSPACED}]))"
)

_NO_TITLE = re.compile(r"\d\Z|[\\{}=]")  # such a line belongs to a table of contents or to code


def _numbered_headings(
    lines: Lines, is_below: Sequence[bool], levels: Mapping[float, int]
) -> _Headings:
    """Return the numbered headings if the file contains at least three of them.

    Numbered headings are bold or have space above them. Their numbers must be consecutive (1, 1.1,
    1.2, 2), but single numbers may be missing.
    """
    found = [
        (number, at)
        for at, line in enumerate(lines)
        if line.text[:1].isdigit() and (number := _heading_number(lines, at, is_below, levels))
    ]
    longest: list[tuple[tuple[int, ...], int]] = []
    for start, heading in enumerate(found):
        if heading[0] == (1,):
            counted = [heading]
            for following in found[start + 1 :]:
                if _is_next(following[0], counted[-1][0]):
                    counted.append(following)
            longest = max(longest, counted, key=len)
    if len(longest) < 3:
        return {}
    top = levels.get(_rounded(lines[longest[0][1]].size), 1)
    return {at: (top + len(number) - 1, 1) for number, at in longest}


def _is_next(number: tuple[int, ...], last: tuple[int, ...]) -> bool:
    """Return whether a heading number may follow another number.

    One number may be missing between.
    """
    *common, end = number
    depth = len(common)
    is_near = depth < len(last) and 0 < end - last[depth] < 3
    return number == (*last, 1) or (is_near and number[:depth] == last[:depth])


def _heading_number(
    lines: Lines, at: int, is_below: Sequence[bool], levels: Mapping[float, int]
) -> tuple[int, ...]:
    """Return the number of a line that may be a heading. For other lines, return an empty tuple."""
    line = lines[at]
    match = HEADING_NUMBER.match(line.text)
    if not match or len(line.text) > 80 or _NO_TITLE.search(line.text):
        return ()
    number = tuple(int(part) for part in match[1].split("."))
    is_wrapped = (
        at + 1 < len(lines) and is_below[at + 1] and line.x1 > lines[at + 1].x1 - 2 * line.size
    )
    is_usual_size = _rounded(line.size) not in levels
    is_item = is_usual_size and match[2] and len(number) == 1
    is_text = not line.is_bold and (is_below[at] or is_wrapped or is_item)
    return () if is_text or _SENTENCE_END.search(line.text) else number


@lru_cache(maxsize=256)  # the cache is useful because each line is compared with several titles
def _squeezed(text: str) -> str:
    text = "".join(text.split())
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace(_FILLER, ""))
    return text.casefold()


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _sizes(lines: Iterable[TextLine]) -> Counter[float]:
    """Count the characters of each rounded font size. The size 0 means that the size is unknown."""
    by_size: dict[float, int] = {}
    for line in lines:
        by_size[line.size] = by_size.get(line.size, 0) + len(line.text)
    characters: Counter[float] = Counter()
    for size, count in by_size.items():
        characters[_rounded(size)] += count if size else 0
    return characters


def _levels_by_size(lines: Lines) -> dict[float, int]:
    """Return the heading levels of font sizes that are rare and larger than the body text."""
    characters = _sizes(lines)
    rare = characters.total() * 0.15
    body = max(characters, key=characters.__getitem__, default=0.0)
    larger = [size for size, n in characters.items() if size >= body * 1.12 and n <= rare]
    return {size: n for n, size in enumerate(sorted(larger, reverse=True)[:6], start=1)}


def _sizes_of_authors(lines: Lines, levels: Mapping[float, int]) -> set[float]:
    """Return the font sizes that only occur between the title and the text, as in author names.

    This requires that the text after these lines contains headings of a different size.
    """
    body_start = next(
        (at for at, line in enumerate(lines) if line.size and _rounded(line.size) not in levels),
        len(lines),
    )
    if not lines or not levels or any(line.page for line in lines[: body_start + 1]):
        return set()
    title = max(levels)
    sizes = {line.size for line in lines[body_start:]}
    later = {_rounded(size) for size in sizes} & levels.keys()
    # this line may be the first heading of the text
    last = _rounded(lines[max(0, body_start - 1)].size)
    above = {_rounded(line.size) for line in lines[:body_start] if line.size}
    return above - later - {title, last} if later or last != title else set()


_WORD_END = re.compile(r"[\w-]*\Z")

_WORD = re.compile(r"[\w-]*")

_MARKS = "!\"'(),.:;?“”„‘’«»（），。：；？！"

_LONGEST_WORD = 60


def _hyphens_resolved(text: str) -> tuple[str, list[int]]:
    """Join words that were hyphenated at the ends of lines.

    Whether the hyphen is removed depends on other occurrences of the words in the text.

    Returns:
        The text, and the offsets of removed hyphens.
    """
    if HYPHEN not in text:
        return text, []
    words = _words(text.casefold())
    removed: list[int] = []

    def resolved(match: re.Match[str]) -> str:
        at = match.start()
        before = _found(_WORD_END.search(text[max(0, at - _LONGEST_WORD) : at].rpartition(" ")[2]))
        following = _found(_WORD.match(text, at + 1, at + _LONGEST_WORD))
        if not _is_joined(before.casefold(), following, words):
            return "-"
        removed.append(at)
        return ""

    return re.sub(HYPHEN, resolved, text), removed


def _found(match: re.Match[str] | None) -> str:
    return match[0] if match else ""


def _words(text: str) -> set[str]:
    """Return the words of a text, except for words that are hyphenated at the end of a line.

    The parts of compounds such as "low-cost" and "high-dose" are included, because they show that a
    word such as "low-dose" is written with a hyphen.
    """
    found = set(text.split())
    plain = {word for word in found if word.isalnum()}
    stripped = {word.strip(_MARKS) for word in found - plain}
    others = " ".join(word for word in stripped if not word.isalnum())
    whole = _WORD.findall(re.sub(rf"(?<![\w-])[\w-]*{HYPHEN}[\w-]*", " ", others))
    compounds = [word.split("-") for word in whole if word.strip("-").count("-") == 1]
    parts = [part for part in chain(*compounds) if len(part) > 2]
    return plain.union(stripped, whole, parts)


def _is_joined(before: str, following: str, words: set[str]) -> bool:
    """Return whether two parts form a word without a hyphen, according to the words of the text."""
    parts = before, following.casefold()
    is_word = before[-1:].isalpha() and following[:1].isalpha()
    if not is_word or "-".join(parts) in words:
        return False
    is_chinese = _CJK.match(before[-1]) and _CJK.match(following)
    if is_chinese or "".join(parts) in words:
        return True
    are_words = words.issuperset(parts) and len(following) > 2
    return following[0].islower() and not are_words
