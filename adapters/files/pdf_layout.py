"""Convert the lines of PDF pages to paragraphs and headings."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from ...nodegraph.readers.text import PAGE_BREAK
from .markup import RAISED, raised_as_text

HYPHEN = "\ufffe"  # PDFium's replacement for a hyphen and a line break

_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u3000-\u303f\U00020000-\U0003ffff"

_CJK = re.compile(f"[{_UNSPACED}]")

_FIRST_UNSPACED = "\u2e80"

_MEANINGLESS = re.compile("[^\t-\r -\udfff\uf900-\ufffc\ufffe-\U000effff]")

# Hyphens, radicals and compatibility forms, which some fonts use for the usual characters.
_VARIANTS = re.compile("[\u00ad\u2010\u2011\u2e80-\u2fdf\uf900-\ufb06]")

_SENTENCE_END = re.compile(r"[.!?。！？…:：；;][\"'”’」』）)\]]*$")

_ITEM = re.compile(
    r"(?:[-•▪◦‣·*–]|\(?\d{1,3}[.)]|[（(][一二三四五六七八九十\d]+[）)]|[a-z]\))\s|[•▪◦‣\ue000-\uf8ff]"
)

_BULLETS = "•▪◦‣●■□➢\ue000-\uf8ff"

_BULLET = re.compile(f"[{_BULLETS}][ \u00a0]?")

# The number of a heading, which the outline omits.
_NUMBER = re.compile(
    r"(?:chapter|appendix|part|section)?\s*(?:\d+|[A-Z])(?:\.\d+)*[.:]?\s+"
    r"|第\s*[\d〇一二三四五六七八九十百]+\s*[章节節回部篇编編卷条條]\s*",
    re.I,
)

# Lines that start a new block: captions, numbered headings, and numbers alone.
_NEW_START = re.compile(r"(?i:fig(?:ure|\.)|tab(?:le|\.))\s*\d|\d[\d.]*(?:\s+[^a-z]|\s*\Z)")

# The dots between an entry and its page number in a table of contents.
_LEADER = re.compile(r"\s*(?:(?:\. ?){5,}|…{3,})\s*")

_USUAL_PITCH = 1.2


BAR = re.compile(r"(?<!\\)\|")
"""A bar between the cells of a Markdown table."""


Rectangle = tuple[float, float, float, float]
"""Left, bottom, right and top of a rectangle on a page, in points. ``y`` grows upwards."""


class TextLine(NamedTuple):
    """A line with its position and size in points. Zeros: unknown.

    ``start`` is the index of its first character. ``baseline`` grows upwards. A table is one line
    with Markdown text, and with the spans and rectangles of its cells. A line that is rotated
    downwards (``turn`` 1) or upwards (-1) has the position of a rotated page. Only lines that
    may be numbered headings are examined for bold letters.
    """

    text: str
    start: int = 0
    x0: float = 0
    x1: float = 0
    baseline: float = 0
    size: float = 0
    is_table: bool = False
    turn: int = 0
    cells: Sequence[tuple[int, int, Rectangle]] = ()
    is_bold: bool = False

    @property
    def rectangle(self) -> Rectangle:
        """The rectangle of the line on the page, including ascenders and descenders."""
        _, _, x0, x1, baseline, size, _, turn, _, _ = self
        bottom, top = baseline - 0.25 * size, baseline + 0.9 * size
        if not turn:
            return x0, bottom, x1, top
        return (bottom, -x1, top, -x0) if turn > 0 else (-top, x0, -bottom, x1)

    @property
    def is_placed(self) -> bool:
        """Whether the position is available."""
        return self.x1 > self.x0 and self.size > 0


Lines = Sequence[TextLine]
"""The lines of a page in reading order."""


def lines_of_text(text: str) -> list[TextLine]:
    """Return the lines of a text without positions."""
    return [TextLine(line.strip()) for line in text.splitlines() if line.strip()]


def normalized(text: str) -> str:
    """Replace variants by usual characters, without changing the length.

    Example:
        >>> normalized("\u2f00\u4e2a \ufb01 C\u2010172")
        '一个 \ufb01 C-172'
    """

    def usual(match: re.Match[str]) -> str:
        if match[0] < "\u2e80":
            return "-"
        usual_form = unicodedata.normalize("NFKC", match[0])
        return usual_form if len(usual_form) == 1 else match[0]

    return _VARIANTS.sub(usual, text)


_ASTRAL = re.compile("[\U00010000-\U0010ffff]")

_FILLER = "\ufdd1"  # the second unit of a character that has two in UTF-16


def in_utf16_units(text: str) -> str:
    """Return a text with one character per UTF-16 unit, as PDFium counts. Letters are plain."""
    if text.isascii():
        return text
    return _ASTRAL.sub(lambda m: unicodedata.normalize("NFKC", m[0])[:1] + _FILLER, text)


_LIGATURE = re.compile(f"[\ufb00-\ufb06]|{_FILLER}")

# One class of characters is faster than alternatives.
_SPECIAL = re.compile(f"[{_BULLETS}\ufb00-\ufb06{_FILLER}{''.join(map(chr, RAISED.values()))}]")


def garbage_share(text: str) -> float:
    """Return the share of meaningless characters in a text: replacement and private characters.

    In a long text, about a thousand characters are sampled.

    Example:
        >>> garbage_share("ab\ue001\ufffd"), garbage_share("")
        (0.5, 0.0)
    """
    sample = text[:: len(text) // 1000 + 1]
    meaningless = len(_MEANINGLESS.findall(sample))
    return meaningless / len("".join(sample.split())) if meaningless else 0.0


def with_parts_joined(lines: Lines) -> Lines:
    """Join the parts of lines, which PDFium splits at superscripts."""
    result: list[TextLine] = []
    for line in lines:
        first = result[-1] if result else line
        size = max(first.size, line.size)
        if (
            result
            and -0.6 * size < first.baseline - line.baseline < 0.6 * size
            and -0.3 * size <= line.x0 - first.x1 <= 0.9 * size
            and first.is_placed
            and line.is_placed
        ):
            rise = line.baseline - first.baseline
            is_raised = line.size < 0.85 * first.size and rise > 0.15 * first.size
            text = line.text
            if is_raised and (number := _POWER.match(text)):
                text = number[0].translate(RAISED) + text[number.end() :]
            has_space = not is_raised and line.x0 - first.x1 > 0.15 * first.size
            text = joined([first.text, text]) if has_space else first.text + text
            larger = max(first, line, key=attrgetter("size"))
            line = larger._replace(text=text, start=first.start, x0=first.x0, x1=line.x1)
            result.pop()
        result.append(line)
    return result


_POWER = re.compile(r"[+−-]?\d+")

_PAGE_NUMBER = re.compile(
    r"[\W_]*(?:[ivxl]{1,7}|(?:page|p\.|seite|第)?\s*\d{1,5}\s*(?:(?:of|von|/|共)\s*\d{1,5})?)"
    r"\s*[页頁]?[\W_]*",
    re.I,
)

_FRONT_PAGES = 20  # maximum number of pages before page 1

_COUNTED = re.compile(r"(?<!\d)\d{1,5}(?!\d)")

_FIELD = re.compile(r":\s|[:：]\Z")  # after the name of a form field

_MAX_FIELDS = 3  # a line on more pages is a header, even with a colon


class _Found(NamedTuple):
    """A possible header or footer.

    Attributes:
        page: The page, from 0.
        beside: The text next to the number in the line.
        is_sure: Whether the number certainly counts pages.
    """

    page: int
    beside: str
    is_sure: bool


def _height(line: TextLine) -> int:
    """Return the rounded height of a line. Equal headers have equal heights."""
    return round(line.baseline / 4)


def _without_running_heads(pages: Sequence[Lines], pitch: float) -> Sequence[Lines]:
    """Remove page numbers, and headers and footers except for their first occurrence.

    If the first page contains a header elsewhere, such as a title, no occurrence is kept.

    A header or footer is separated from the text. It is at one height on more than half of all
    pages, or of all left or all right pages, and on at least three pages if available. Its text is
    constant and not a form field, or contains a page number, or consists of headings of the text. A
    page number may be alone at another height.
    """
    found: dict[tuple[str, int], list[_Found]] = {}
    margins: dict[int, list[tuple[int, str]]] = {}
    for number, lines in enumerate(pages):
        for line in _margin_lines(lines, pitch):
            margins.setdefault(_height(line), []).append((number, line.text))
            for key, one in _keys(line.text, number):
                found.setdefault((key, _height(line)), []).append(one)
    first = {place: on[0].page for place, on in found.items() if _is_head(place, on, len(pages))}
    numbered = {key for key, _ in first if key[0] == "\0"}
    for place, on in found.items():
        if place[0] in numbered and not any(one.beside for one in on):
            first[place] = on[0].page
    titles = _running_titles(pages, margins)
    heights = {height for _, height in first}.union(titles)
    if not heights:
        return pages
    start = _squeezed("".join(line.text for line in pages[0]))
    body = max(sizes := _sizes(pages), key=sizes.__getitem__, default=0.0)

    def kept(line: TextLine, number: int) -> TextLine | None:
        """Return a line, the first header in the size of the text, or None."""
        height = _height(line)
        if line.text in titles.get(height, ()):
            return None
        places = [(key, height) for key, _ in _keys(line.text, number)]
        on = [first[place] for place in places if place in first]
        if not on:
            return line
        is_first = number == min(on) and not _PAGE_NUMBER.fullmatch(line.text)
        is_new = is_first and (not number or _squeezed(line.text) not in start)
        return line._replace(size=min(line.size, body)) if is_new else None

    return [
        [
            stays
            for line in lines
            if (stays := line if _height(line) not in heights else kept(line, number))
        ]
        for number, lines in enumerate(pages)
    ]


def _running_titles(
    pages: Sequence[Lines], margins: Mapping[int, Sequence[tuple[int, str]]]
) -> dict[int, set[str]]:
    """Return the headers, by height, that consist of one or two headings of the text."""
    likely: dict[int, set[str]] = {}
    for height, on in margins.items():
        titled = [one for one in on if len(one[1]) < 160 and not _SENTENCE_END.search(one[1])]
        if _is_on_most([page for page, _ in titled], len(pages)):
            likely[height] = {text for _, text in titled}
    longest = max((len(text) for texts in likely.values() for text in texts), default=0)
    titles = {""}.union(
        _squeezed(line.text)
        for lines in (pages if likely else ())
        for line in lines
        if len(line.text) < min(80, 2 * longest) and _height(line) not in likely
    )
    found: dict[int, set[str]] = {}
    for height, texts in likely.items():
        for text in texts:
            squeezed = _squeezed(text)
            ends = range(1, len(squeezed) + 1)
            if any(squeezed[:n] in titles and squeezed[n:] in titles for n in ends):
                found.setdefault(height, set()).add(text)
    return {height: on for height, on in found.items() if 2 * len(on) > len(likely[height])}


def _keys(text: str, number: int) -> Iterator[tuple[str, _Found]]:
    """Yield the text of a line of a page (from 0), and its text for each number in it.

    Each number is replaced by its distance from the page's number. The text next to a number at the
    edge may be a chapter title.

    ``Invoice 1001`` and ``Question 1`` don't count pages. A number that certainly counts pages is
    alone, is in a line with another number, or is close to the page's number in a line with more
    than three words (more than five Chinese characters).
    """
    yield text, _Found(number, "", True)
    numbers = list(_COUNTED.finditer(text))
    is_counted = len(numbers) > 1 or _PAGE_NUMBER.fullmatch(text)
    is_sure = bool(is_counted or len(text.split()) > 3 or len(_CJK.findall(text)) > 5)
    for match in numbers:
        before, after = text[: match.start()], text[match.end() :]
        away = int(match[0]) - number
        if not is_counted and abs(away) > _FRONT_PAGES:
            continue
        if not (before and after):
            yield f"\0{away}", _Found(number, f"{before}{after}", is_sure)
        elif is_sure:
            yield f"{before}\0{away}{after}", _Found(number, "", True)


def _is_head(place: tuple[str, int], on: Sequence[_Found], count: int) -> bool:
    """Return whether lines with equal text at one height are headers or footers.

    A number counts pages if it is alone, or if the text next to it (such as a chapter title)
    changes, and each text is repeated on several pages.
    """
    beside = {one.beside for one in on}
    is_number = place[0][0] == "\0" and (beside == {""} or 1 < len(beside) < len(on) / 1.5)
    is_field = len(on) <= _MAX_FIELDS and _FIELD.search(place[0])
    return not is_field and _is_on_most([x.page for x in on if is_number or x.is_sure], count)


def _is_on_most(numbers: Sequence[int], count: int) -> bool:
    """Return whether most pages, or most left or right pages, are in a list of page numbers."""
    on = set(numbers)
    if len({number % 2 for number in on}) == 1 and len(on) >= max(2, min(3, (count + 1) // 2)):
        return len(on) > count // 4
    return len(on) >= max(2, min(3, count), count // 2 + 1)


def _margin_lines(lines: Lines, pitch: float) -> Iterator[TextLine]:
    """Yield possible headers and footers among the two highest and two lowest lines of a page.

    Candidates are numbers, and lines above or below a gap larger than the line pitch.
    """
    placed = sorted((x for x in lines if x.is_placed), key=attrgetter("baseline"))
    for from_edge in (placed[:3], placed[:-4:-1]):
        apart = [
            abs(line.baseline - inner.baseline) > max(2.0, 1.08 * pitch) * line.size
            for line, inner in pairwise(from_edge)
        ]
        for at, line in enumerate(from_edge[:2]):
            if any(apart[at:]) or _PAGE_NUMBER.fullmatch(line.text):
                yield line


def _line_pitch(pages: Sequence[Lines]) -> float:
    """Return the most frequent distance of lines, relative to the size of letters.

    If the file has many pages, some pages are sampled.
    """
    counts: Counter[float] = Counter()
    for lines in pages[:: len(pages) // 8 + 1]:
        for line, following in pairwise(lines):
            if line.is_placed and abs(line.size - following.size) <= 0.1 * line.size:
                counts[round((line.baseline - following.baseline) / line.size, 1)] += 1
    usual = {pitch: count for pitch, count in counts.items() if 0.9 <= pitch < 4}
    return max(usual, key=usual.__getitem__, default=_USUAL_PITCH)


class PlacedLine(NamedTuple):
    """A line of a page (from 0) with its span in the text of all pages."""

    start: int
    end: int
    page: int
    line: TextLine


def pages_as_text(
    pages: Sequence[Lines], outline: Iterable[tuple[int, int, str]]
) -> tuple[str, list[PlacedLine]]:
    """Return the text of pages as paragraphs and Markdown headings, and its lines with their spans.

    A paragraph continues in the next column or on the next page if its last line is full and does
    not end a sentence. There is one page break between pages.

    Args:
        pages: The lines of each page.
        outline: The outline of the file: page (from 0), level (from 1), title.
    """
    pitch = _line_pitch(pages)
    pages = _without_running_heads(pages, pitch)
    titles: dict[int, dict[str, int]] = {}
    for number, level, title in outline:
        titles.setdefault(number, {})[_squeezed(title)] = level
    levels = {} if titles else _levels_by_size(pages)
    numbered = {} if titles else _numbered_headings(pages, levels, pitch)
    parts: list[str] = []
    placed: list[PlacedLine] = []
    length = 0
    last: TextLine | None = None  # the full line or the table at the end of a page
    head = ""  # the first row of this table
    for number, lines in enumerate(pages):
        is_table = last is not None and bool(lines) and _continues_table(last, lines[0])
        if is_table:
            lines = [_without_head(lines[0], head), *lines[1:]]
        is_below = [False, *(_is_below(a, b, pitch) for a, b in pairwise(lines))]
        edges = _column_edges(lines, is_below)
        headings = _headings(lines, titles.get(number, {}), levels)
        if by_number := numbered.get(number):
            headings = _without_authors(lines, headings, min(by_number)) if not number else headings
            headings |= by_number
        blocks = _blocks(lines, headings, is_below, edges)
        if number:
            is_open = last is not None and bool(blocks) and not blocks[0][2]
            continues = is_open and last is not None and _may_continue(last, lines[0])
            between = f"\n{PAGE_BREAK}" if is_table else f"\n\n{PAGE_BREAK}\n\n"
            parts.append(PAGE_BREAK if continues else between)
            length += len(parts[-1])
        for block in blocks:
            prefix, *texts = _block_texts(lines, block)
            prefix = f"\n\n{prefix}" if block[0] else prefix
            parts += (prefix, *texts)
            length += len(prefix)
            for line, text in zip(lines[block[0] : block[1]], texts, strict=True):
                placed.append(PlacedLine(length, length + len(text.rstrip()), number, line))
                length += len(text)
        if blocks:
            end = lines[-1]
            is_full = end.is_table or _is_full(end, end, edges[-1])
            last = end if not blocks[-1][2] and is_full else None
            if end.is_table and not (is_table and len(lines) == 1):
                head = end.text.partition("\n")[0]
    text, removed = _hyphens_resolved("".join(parts))
    blanks = len(text) - len(text.lstrip("\n "))
    if removed or blanks:
        placed = [
            PlacedLine(
                start - blanks - bisect_left(removed, start),
                end - blanks - bisect_left(removed, end),
                page,
                line,
            )
            for start, end, page, line in placed
        ]
    return text.strip("\n "), placed


def _continues_table(table: TextLine, following: TextLine) -> bool:
    """Return whether a table at the top of a page continues a table of the previous page."""
    if not (table.cells and following.cells):
        return False
    (left, right), (next_left, next_right) = (
        (min(box[0] for _, _, box in one.cells), max(box[2] for _, _, box in one.cells))
        for one in (table, following)
    )
    columns = {len(BAR.findall(one.text.rpartition("\n")[2])) for one in (table, following)}
    return max(abs(left - next_left), abs(right - next_right)) <= 3 and len(columns) == 1


def _without_head(table: TextLine, head: str) -> TextLine:
    """Return the rows of a continued table, without a repeated header."""
    first, rule, _ = table.text.split("\n", 2)
    start, end = len(first) + 1, len(first) + len(rule) + 2
    start = 0 if first == head else start
    text = table.text[:start] + table.text[end:]
    above = [cell for cell in table.cells if cell[1] <= start]
    below = [(a - end + start, b - end + start, box) for a, b, box in table.cells if a >= end]
    return table._replace(text=text, cells=[*above, *below])


_Block = tuple[int, int, int]
"""The first line, the end and the level of a block: 0 for a paragraph, from 1 for a heading."""


def _block_texts(lines: Lines, block: _Block) -> list[str]:
    """Return the prefix of a block, and its lines with their separators."""
    start, end, level = block
    if lines[start].is_table:
        return ["", lines[start].text]
    usual = without_ligatures if level else without_bullets
    texts = _with_breaks([usual(_without_leader(line.text)) for line in lines[start:end]])
    if level:
        return [f"{'#' * min(level, 6)} ", *texts]
    return ["\\" if texts[0][0] == "#" else "", *texts]


def _has_leader(text: str) -> bool:
    return (". . . ." in text or "....." in text) if text.count(".") > 3 else "………" in text


def _without_leader(text: str) -> str:
    """Shorten the dots of an entry in a table of contents to four, which don't end a sentence.

    Example:
        >>> _without_leader("1.2 Tea . . . . . . . . . 12")
        '1.2 Tea .... 12'
    """
    return _LEADER.sub(" .... ", text).strip() if _has_leader(text) else text


def without_ligatures(text: str) -> str:
    """Replace each ligature by its letters, and raised digits by powers and note marks."""
    if text.isascii():
        return text
    letters = _LIGATURE.sub(lambda m: unicodedata.normalize("NFKC", m[0]).strip(_FILLER), text)
    return raised_as_text(letters)


def without_bullets(text: str) -> str:
    """Replace bullets by Markdown bullets, and ligatures and raised digits as above."""
    if text.isascii() or not _SPECIAL.search(text):
        return text
    return _BULLET.sub("- ", without_ligatures(text))


def joined(lines: Sequence[str]) -> str:
    """Join lines, with a space between words of scripts with spaces."""
    return "".join(_with_breaks(lines))


def _with_breaks(lines: Sequence[str]) -> list[str]:
    """Return lines, each with the separator before the next line."""
    parts: list[str] = []
    for line, following in pairwise(lines):
        end = line[-1]
        is_unspaced = end >= _FIRST_UNSPACED and _CJK.match(end) and _CJK.match(following)
        if end == "-" and line[-2:-1].isalpha():
            parts.append(line[:-1] + HYPHEN)
        else:
            parts.append(line if end in (HYPHEN, " ") or is_unspaced else f"{line} ")
    return [*parts, lines[-1]]


_Headings = dict[int, tuple[int, int]]
"""The level and the number of lines of each heading, by its first line."""


def _blocks(
    lines: Lines, headings: _Headings, is_below: Sequence[bool], edges: Sequence[float]
) -> list[_Block]:
    """Return the headings and paragraphs of a page."""
    blocks: list[_Block] = []
    at = 0
    while at < len(lines):
        start = at
        level, height = headings.get(at, (0, 1))
        at += height
        margin = lines[start].x0
        while not level and at < len(lines) and at not in headings:
            line, following, edge = lines[at - 1], lines[at], edges[at - 1]
            if not is_below[at]:
                if not _continues_elsewhere(line, following, edge):
                    break
                margin = following.x0
            else:
                is_indented = following.x0 - margin > 0.8 * line.size
                if (
                    not _is_full(line, following, edge)
                    or (is_indented and not _ITEM.match(lines[start].text))
                    or _begins_item(lines[start], line, following)
                ):
                    break
                margin = following.x0 if at == start + 1 else min(margin, following.x0)
            at += 1
        blocks.append((start, at, level))
    return blocks


def _begins_item(first: TextLine, line: TextLine, following: TextLine) -> bool:
    """Return whether a line begins an item.

    In a paragraph, a dash or an ordinal number (``7. Januar``) may be within a sentence.
    """
    if not _ITEM.match(following.text):
        return False
    may_be_inside = following.text[0] in "-–(" or following.text[0].isdigit()
    return not may_be_inside or bool(_ITEM.match(first.text) or _SENTENCE_END.search(line.text))


def _is_below(line: TextLine, following: TextLine, pitch: float) -> bool:
    """Return whether a line is close below another line of its size."""
    size = line.size
    return (
        line.is_placed
        and following.x1 > following.x0
        and 0.2 * size < line.baseline - following.baseline < 1.4 * pitch * size
        and abs(size - following.size) <= 0.1 * size
        and abs(following.x0 - line.x0) < 5 * size
    )


def _column_edges(lines: Lines, is_below: Sequence[bool]) -> list[float]:
    """Return for each line the right edge of its column."""
    edges = [line.x1 for line in lines]
    for at in range(1, len(lines)):
        if is_below[at]:
            edges[at] = max(edges[at - 1 : at + 1])
    for at in range(len(lines) - 1, 0, -1):
        if is_below[at]:
            edges[at - 1] = edges[at]
    return edges


def _is_full(line: TextLine, following: TextLine, edge: float) -> bool:
    """Return whether the next line's first word did not fit at the end of a line."""
    text, _, x0, x1, _, size, is_table, _, _, _ = line
    if x1 <= x0 or size <= 0:
        return not is_table
    advance = (x1 - x0) / len(text)  # average width of a character
    following_advance = (following.x1 - following.x0) / len(following.text)
    if advance > 1.3 * size or following_advance > 1.3 * size or _has_leader(text):
        return False  # a table row with gaps, or an entry in a table of contents
    if x1 + advance + 0.3 * size >= edge:  # no word would fit
        return True
    end = following.text.find(" ")
    is_unspaced = following.text >= _FIRST_UNSPACED and _CJK.match(following.text)
    word = 1 if is_unspaced else (end if end > 0 else len(following.text)) + 1
    slack = size * (1.5 if not text[-3:].isascii() and _CJK.search(text[-3:]) else 0.3)
    return x1 + min(word, 30) * advance + slack >= edge


def _continues_elsewhere(line: TextLine, following: TextLine, edge: float) -> bool:
    """Return whether a line continues the paragraph of a line that is not directly above it."""
    if line.is_table or following.is_table:
        return False
    if not (line.is_placed and following.is_placed):
        return not _SENTENCE_END.search(line.text) and not _ITEM.match(following.text)
    is_above = following.baseline > line.baseline  # at the top of another column
    return is_above and _may_continue(line, following) and _is_full(line, following, edge)


def _may_continue(line: TextLine, following: TextLine) -> bool:
    """Return whether a paragraph may continue in the next column or on the next page."""
    text, first = line.text, following.text[0]
    if (
        abs(line.size - following.size) > line.size / 10
        or line.is_table
        or following.is_table
        or _SENTENCE_END.search(text)
        or _ITEM.match(following.text)
    ):
        return False
    if first.islower() or _CJK.match(first) or text[-1] in ",，、-" + HYPHEN:
        return True
    return (
        text.count(" ") > 4
        and text[-1].isalpha()
        and (first.isalnum() or first in '("“‘')
        and not following.text[-1].isdigit()  # digits end a running header
        and not _NEW_START.match(following.text)
    )


def _headings(lines: Lines, titles: Mapping[str, int], levels: Mapping[float, int]) -> _Headings:
    """Return the headings of a page by the outline of the file, or by their sizes."""
    found: _Headings = {}
    initials = {title[:1] for title in titles}
    for at, line in enumerate(lines if titles or levels else ()):
        if titles:
            number = _NUMBER.match(line.text)
            if number or line.text[0].casefold() in initials:
                starts = {0, number.end() if number else 0}
                for start in sorted(starts, reverse=True):
                    if heading := _heading_by_title(lines, at, start, titles):
                        found[at] = heading
        elif (
            (level := levels.get(_rounded(line.size)))
            and line.is_placed
            and len(line.text) <= 150
            and any(map(str.isalpha, line.text))
        ):
            found[at] = level, _heading_height(lines, at)
    return found


def _heading_by_title(
    lines: Lines, at: int, start: int, titles: Mapping[str, int]
) -> tuple[int, int] | None:
    """Return the level and the number of lines of the outline heading at a position, if any."""
    text = _squeezed(lines[at].text[start:])
    for count in (1, 2, 3):
        if text in titles:
            return titles[text], count
        if at + count >= len(lines) or not any(title.startswith(text) for title in titles):
            break
        text += _squeezed(lines[at + count].text)
    return None


def _heading_height(lines: Lines, at: int) -> int:
    """Return the number of lines of a heading, by their size: up to three."""
    first = lines[at]
    for count, line in enumerate(lines[at + 1 : at + 3], 1):
        is_near = 0 < first.baseline - line.baseline < 2 * first.size * count
        if _rounded(line.size) != _rounded(first.size) or not is_near:
            return count
    return min(3, len(lines) - at)


# "1 Tea", "1.2. Tea", "1茶"; "1. Tea" may be an item.
HEADING_NUMBER = re.compile(
    rf"(\d{{1,2}}(?:\.\d{{1,2}}){{0,3}})(\.?)(?:\s+(?=[^\W\d_]{{2}}|[{_UNSPACED}])|(?=[{_UNSPACED}]))"
)

_NO_TITLE = re.compile(r"\d\Z|[\\{}=]")  # from a table of contents, or code


def _numbered_headings(
    pages: Sequence[Lines], levels: Mapping[float, int], pitch: float
) -> dict[int, _Headings]:
    """Return the numbered headings by page, if the file has at least three.

    Numbered headings have space above or bold letters, and consecutive numbers (1, 1.1, 1.2, 2),
    where one may be missing.
    """
    found = [
        (number, page, at)
        for page, lines in enumerate(pages)
        for at, line in enumerate(lines)
        if line.text[0].isdigit() and (number := _heading_number(lines, at, levels, pitch))
    ]
    longest: list[tuple[tuple[int, ...], int, int]] = []
    for first, heading in enumerate(found):
        if heading[0] == (1,):
            counted = [heading]
            for following in found[first + 1 :]:
                last, number = counted[-1][0], following[0]
                common, end = number[:-1], number[-1]
                if number == (*last, 1) or (
                    common == last[: len(common)]
                    and len(common) < len(last)
                    and 0 < end - last[len(common)] < 3  # a heading may be unrecognized
                ):
                    counted.append(following)
            longest = max(longest, counted, key=len)
    headings: dict[int, _Headings] = {}
    for number, page, at in longest if len(longest) > 2 else ():
        top = levels.get(_rounded(pages[longest[0][1]][longest[0][2]].size), 1)
        headings.setdefault(page, {})[at] = (top + len(number) - 1, 1)
    return headings


def _heading_number(
    lines: Lines, at: int, levels: Mapping[float, int], pitch: float
) -> tuple[int, ...]:
    """Return the number of a line that may be a heading. Empty: not a heading."""
    line = lines[at]
    match = HEADING_NUMBER.match(line.text)
    if not match or len(line.text) > 80 or _NO_TITLE.search(line.text):
        return ()
    number = tuple(map(int, match[1].split(".")))
    near = 1.3 * pitch * line.size
    above = lines[at - 1].baseline - line.baseline if at else 0.0
    following = lines[at + 1] if at + 1 < len(lines) else line
    is_wrapped = (
        0 < line.baseline - following.baseline < near
        and abs(following.size - line.size) < 0.05 * line.size
        and abs(following.x0 - line.x0) < 3 * line.size
        and line.x1 > following.x1 - 2 * line.size
    )
    is_item = match[2] and len(number) == 1 and _rounded(line.size) not in levels
    is_text = not line.is_bold and (0 < above < near or is_wrapped or is_item)
    return () if is_text or _SENTENCE_END.search(line.text) else number


_SUMMARY = re.compile(r"abstract|summary|contents|摘\s*要|目\s*[录錄次]", re.I)


def _without_authors(lines: Lines, headings: _Headings, first: int) -> _Headings:
    """Remove unnumbered headings smaller than the title on the first page: authors and dates."""
    title = max((lines[at].size for at in headings if at < first), default=0.0)
    return {
        at: heading
        for at, heading in headings.items()
        if at >= first or lines[at].size >= title - 0.5 or _SUMMARY.match(lines[at].text)
    }


def _squeezed(text: str) -> str:
    text = "".join(text.split())
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.replace(_FILLER, ""))
    return text.casefold()


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _sizes(pages: Sequence[Lines]) -> Counter[float]:
    """Return the number of characters by rounded size."""
    exact: dict[float, int] = {}
    for line in chain.from_iterable(pages):
        if line.x1 > line.x0:
            exact[line.size] = exact.get(line.size, 0) + len(line.text)
    characters: Counter[float] = Counter()
    for size, count in exact.items():
        characters[_rounded(size)] += count
    return characters


def _levels_by_size(pages: Sequence[Lines]) -> dict[float, int]:
    """Return the heading levels of rounded sizes that are rare and larger than the text."""
    characters = _sizes(pages)
    total = characters.total()
    body = max(characters, key=characters.__getitem__, default=0.0)
    larger = [s for s, n in characters.items() if s >= body * 1.12 and n <= total * 0.15]
    if sum(characters[size] for size in larger) > total * 0.25:
        return {}
    return {size: n for n, size in enumerate(sorted(larger, reverse=True)[:6], start=1)}


def _hyphens_resolved(text: str) -> tuple[str, list[int]]:
    """Join words split at line ends, according to their other occurrences.

    The offsets of removed hyphens are returned.
    """
    if HYPHEN not in text:
        return text, []
    whole: set[str] = set()
    for between in text.casefold().split(HYPHEN):  # without the parts of split words
        whole.update(*(inner.split() for inner in _INNER_WORDS.findall(between)))
    words = {word.strip(_MARKS) for word in whole}
    removed: list[int] = []

    def resolved(hyphen: re.Match[str]) -> str:
        at = hyphen.start()
        before = _NO_COMPOUND.split(text[max(0, at - 60) : at])[-1]
        if not _is_joined(before, _NO_COMPOUND.split(text[at + 1 : at + 60], maxsplit=1)[0], words):
            return "-"
        removed.append(at)
        return ""

    return re.sub(HYPHEN, resolved, text), removed


_INNER_WORDS = re.compile(r"(?s)[\W\d_].*[\W\d_]")

_NO_COMPOUND = re.compile(r"[^\w-]")

_NO_LETTER = re.compile(r"[\W\d_]")

_MARKS = "!\"#$%&'()*+,./:;<=>?@[\\]^_`{|}~"  # ASCII punctuation without hyphens


def _is_joined(before: str, following: str, words: set[str]) -> bool:
    """Return whether two parts form one word without a hyphen, according to the text."""
    first, second = _NO_LETTER.split(before)[-1], _NO_LETTER.split(following)[0]
    if f"{before}-{following}".casefold() in words or not (first and second):
        return False
    if _CJK.match(first[-1]) and _CJK.match(second[0]):
        return True
    parts = first.casefold(), second.casefold()
    if "".join(parts) in words:
        return True
    if "-".join(parts) in words or not second[0].islower():
        return False
    return not (words.issuperset(parts) and len(second) > 2)
