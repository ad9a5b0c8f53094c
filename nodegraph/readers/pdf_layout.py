"""From the lines of a PDF's pages to paragraphs and headings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..places import PAGE_BREAK

_HYPHEN = "\ufffe"  # what PDFium puts in the place of a hyphen at the end of a line, and the break

_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\u3000-\u303f\U00020000-\U0003ffff"

_CJK = re.compile(f"[{_UNSPACED}]")

_MEANINGLESS = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010fffd\x00-\x08\x0e-\x1f]")

# Radicals and compatibility forms, which fonts put where the usual character is meant.
_VARIANTS = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\ufb00-\ufb06]")

_SENTENCE_END = re.compile(r"[.!?。！？…:：；;][\"'”’」』）)\]]*$")

_ITEM = re.compile(
    r"(?:[-•▪◦‣·*–]|\(?\d{1,3}[.)]|[（(][一二三四五六七八九十\d]+[）)]|[a-z]\))\s|[•▪◦‣\ue000-\uf8ff]"
)

_BULLET = re.compile("[•▪◦‣●■□➢\uf0b7\uf0a7\uf0d8\uf076\uf0fc\uf02d\ue000-\uf8ff][ \u00a0]?")

# What stands before a heading on the page, and not in the outline.
_NUMBER = re.compile(r"(?:chapter|appendix|part|section)?\s*(?:\d+|[A-Z])(?:\.\d+)*[.:]?\s+", re.I)

_HYPHENATED = re.compile(f"([^\\W\\d_]+){_HYPHEN}([^\\W\\d_]*)")

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line, its place on the page and its size, in points; zeros if they are unknown.

    The baseline grows upwards.
    """

    text: str
    left: float = 0
    right: float = 0
    baseline: float = 0
    size: float = 0

    @property
    def is_placed(self) -> bool:
        """Whether its place is known."""
        return self.right > self.left and self.size > 0


@dataclass(frozen=True, slots=True)
class PageLines:
    """The lines of a page in reading order."""

    lines: tuple[TextLine, ...]
    height: float = 0

    @classmethod
    def of_text(cls, text: str) -> PageLines:
        """Return the lines of a text whose places are unknown."""
        return cls(tuple(TextLine(line.strip()) for line in text.splitlines() if line.strip()))


def normalized(text: str) -> str:
    """Return a text with usual characters in place of radicals and ligatures, each as many long.

    Example:
        >>> normalized("\u2f00\u4e2a \ufb01")
        '一个 \ufb01'
    """

    def usual(match: re.Match[str]) -> str:
        form = unicodedata.normalize("NFKC", match[0])
        return form if len(form) == 1 else match[0]

    return _VARIANTS.sub(usual, text)


_LIGATURES = re.compile("[\ufb00-\ufb06]")


def garbage_share(text: str) -> float:
    """Return which share of a text's characters have no meaning: replaced and private ones.

    Example:
        >>> garbage_share("ab\ue001\ufffd"), garbage_share("")
        (0.5, 0.0)
    """
    meaningless = len(_MEANINGLESS.findall(text))
    return meaningless / len("".join(text.split())) if meaningless else 0.0


def pages_as_text(pages: Sequence[PageLines], outline: Iterable[tuple[int, int, str]]) -> str:
    """Return the text of pages: a block for each paragraph, headings as in Markdown.

    A paragraph goes on from one column or page to the next where its last line is full and ends
    no sentence; there is one page break between two pages.

    Args:
        pages: The pages.
        outline: The headings that the file lists: page (from 0), level (from 1), title.
    """
    titles: dict[int, dict[str, int]] = {}
    for number, level, title in outline:
        titles.setdefault(number, {})[_squeezed(title)] = level
    levels = {} if titles else _levels_by_size(pages)
    parts: list[str] = []
    last: TextLine | None = None
    for number, page in enumerate(pages):
        blocks = list(_blocks(page, titles.get(number, {}), levels))
        if number:
            goes_on = (
                last is not None
                and bool(blocks)
                and not blocks[0].level
                and _may_go_on(last, blocks[0].lines[0])
            )
            parts.append(PAGE_BREAK if goes_on else f"\n\n{PAGE_BREAK}\n\n")
        parts.append("\n\n".join(block.text() for block in blocks))
        if blocks:
            last = None if blocks[-1].level else blocks[-1].lines[-1]
            if blocks[-1].level == 0 and not blocks[-1].is_full:
                last = None
    return _hyphens_resolved("".join(parts)).strip("\n ")


@dataclass(slots=True)
class _Paragraph:
    """A paragraph, or a heading of a level from 1; the line is full that reaches its right end."""

    lines: list[TextLine]
    level: int = 0
    is_full: bool = True
    margin: float = 0  # where the lines after the first begin

    def text(self) -> str:
        text = self.lines[0].text
        for line in self.lines[1:]:
            text = _joined(text, line.text)
        if self.level:
            return f"{'#' * min(self.level, 6)} {text}"
        return f"\\{text}" if text.startswith("#") else _BULLET.sub("- ", text)


def _joined(text: str, following: str) -> str:
    if text.endswith(_HYPHEN):
        return text + following
    if text[-1] == "-" and text[-2:-1].isalpha():
        return text[:-1] + _HYPHEN + following
    spaced = not (_CJK.match(text[-1]) and _CJK.match(following))
    return f"{text} {following}" if spaced else text + following


def _blocks(
    page: PageLines, titles: Mapping[str, int], levels: Mapping[float, int]
) -> Iterator[_Paragraph]:
    lines = page.lines
    edges = _right_edges(lines)
    at = 0
    while at < len(lines):
        heading = _heading(lines, at, titles, levels)
        if heading:
            level, count = heading
            yield _Paragraph(list(lines[at : at + count]), level)
            at += count
            continue
        block = _Paragraph([lines[at]])
        at += 1
        while (
            at < len(lines)
            and not _heading(lines, at, titles, levels)
            and _continues(block, lines[at - 1], lines[at], edges[at - 1])
        ):
            left = lines[at].left
            block.margin = left if len(block.lines) == 1 else min(block.margin, left)
            block.lines.append(lines[at])
            at += 1
        block.is_full = _is_full(lines[at - 1], lines[at - 1], edges[at - 1])
        yield block


def _heading(
    lines: Sequence[TextLine], at: int, titles: Mapping[str, int], levels: Mapping[float, int]
) -> tuple[int, int] | None:
    """Return the level of the heading that begins at a line, and how many lines it has."""
    if titles:
        number = _NUMBER.match(lines[at].text)
        for begin in (0, number.end()) if number else (0,):
            text = _squeezed(lines[at].text[begin:])
            for count in (1, 2, 3):
                if text in titles:
                    return titles[text], count
                if at + count >= len(lines) or not any(t.startswith(text) for t in titles):
                    break
                text += _squeezed(lines[at + count].text)
    line = lines[at]
    level = levels.get(_size(line)) if line.is_placed else None
    if level is None or len(line.text) > 150 or not any(c.isalpha() for c in line.text):
        return None
    count = 1
    while (
        at + count < len(lines)
        and count < 3
        and _size(lines[at + count]) == _size(line)
        and 0 < line.baseline - lines[at + count].baseline < 2 * line.size * count
    ):
        count += 1
    return level, count


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split()).casefold()


def _size(line: TextLine) -> float:
    return round(line.size * 2) / 2


def _levels_by_size(pages: Sequence[PageLines]) -> dict[float, int]:
    """Return which sizes are those of headings: larger than the text, and seldom."""
    characters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            if line.is_placed:
                characters[_size(line)] += len(line.text)
    if not characters:
        return {}
    total = characters.total()
    body = characters.most_common(1)[0][0]
    larger = [s for s, n in characters.items() if s >= body * 1.12 and n <= total * 0.15]
    if sum(characters[size] for size in larger) > total * 0.25:
        return {}
    return {size: level for level, size in enumerate(sorted(larger, reverse=True)[:6], start=1)}


def _right_edges(lines: Sequence[TextLine]) -> list[float]:
    """Return where the column ends to the right in which each line stands."""
    edges = [0.0] * len(lines)
    begin = 0
    for at in range(1, len(lines) + 1):
        if at < len(lines) and _same_column(lines[at - 1], lines[at]):
            continue
        edge = max((line.right for line in lines[begin:at]), default=0.0)
        edges[begin:at] = [edge] * (at - begin)
        begin = at
    return edges


def _same_column(line: TextLine, following: TextLine) -> bool:
    """Whether a line stands close below another."""
    if not (line.is_placed and following.is_placed):
        return False
    distance = line.baseline - following.baseline
    return (
        0.2 * line.size < distance < 1.9 * line.size
        and abs(line.size - following.size) <= line.size / 10
        and abs(following.left - line.left) < 5 * line.size
    )


def _continues(block: _Paragraph, line: TextLine, following: TextLine, edge: float) -> bool:
    """Whether the next line belongs to the paragraph."""
    if not (line.is_placed and following.is_placed):
        return not _SENTENCE_END.search(line.text) and not _ITEM.match(following.text)
    if abs(line.size - following.size) > line.size / 10 or _ITEM.match(following.text):
        return False
    if not _same_column(line, following):
        is_elsewhere = following.baseline > line.baseline  # at the top of another column
        return is_elsewhere and _is_full(line, following, edge) and _may_go_on(line, following)
    margin = block.margin if len(block.lines) > 1 else line.left
    if following.left > margin + 0.8 * line.size and not _ITEM.match(block.lines[0].text):
        return False  # the first line of a paragraph is indented
    return _is_full(line, following, edge)


def _is_full(line: TextLine, following: TextLine, edge: float) -> bool:
    """Whether the next line's first word had no room any more at the end of this one."""
    if not line.is_placed:
        return True
    advance = _advance(line)
    if max(advance, _advance(following)) > 1.3 * line.size:
        return False  # the row of a table, with gaps
    word = 1 if _CJK.match(following.text) else len(following.text.split(None, 1)[0]) + 1
    slack = line.size * (1.5 if _CJK.search(line.text[-3:]) else 0.3)
    return line.right + min(word, 30) * advance + slack >= edge


def _advance(line: TextLine) -> float:
    """Return how wide a character is."""
    return (line.right - line.left) / max(1, len(line.text))


def _may_go_on(line: TextLine, following: TextLine) -> bool:
    """Whether a paragraph may go on from one column or page to the next."""
    first = following.text[0]
    return (
        not _SENTENCE_END.search(line.text)
        and not _ITEM.match(following.text)
        and (first.islower() or bool(_CJK.match(first)) or line.text[-1] in ",，、-" + _HYPHEN)
        and abs(line.size - following.size) <= line.size / 10
    )


def _hyphens_resolved(text: str) -> str:
    """Join words that were parted at the end of a line, by how they are written elsewhere."""
    text = _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    if _HYPHEN not in text:
        return text
    words = set(_WORD.findall(text.replace(_HYPHEN, " ").casefold()))

    def resolved(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        with_hyphen = f"{first}-{second}"
        if f"{first}{second}".casefold() in words:
            return first + second
        if with_hyphen.casefold() in words or not second[:1].islower():
            return with_hyphen
        both = {first.casefold(), second.casefold()} <= words
        return with_hyphen if both and len(second) > 2 else first + second

    return _HYPHENATED.sub(resolved, text).replace(_HYPHEN, "-")
