"""Split texts into passages that are large enough to answer questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, ClassVar, TypeAlias

from ..errors import check_bool
from ..node import Node
from ..source_names import file_name_of
from .chunking import (
    Length,
    Measure,
    RecursiveSplitter,
    Span,
    check_sizes,
    count_tokens,
    measured,
    pack,
    strip_span,
)
from .headings import TABLE, Section, columns_of, headings_in, sections_of
from .sentences import block_spans

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")

LIST_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s|(?:\d{1,3}|[一二三四五六七八九十]+)、")

_UNDERLINED = re.compile(r"[^\n]+\n([*=~^\"+#-])\1{2,}\s*")

_ATX_HEADING = re.compile(r" {0,3}#{1,6}(?![^ \t\n])[^\n]*")

# maximum number of characters in the first row of a table, or in the introduction to a table
_MAX_HEAD = 300

_TWO_LINES = re.compile(r"[^\n]*\n[^\n]*")


Part: TypeAlias = tuple[int, int, dict[str, Any]]
"""The start and end of a part of a text, in characters, and the metadata of this part."""


@dataclass(frozen=True, slots=True)
class PassageSplitter:
    """Splits texts into passages of about 250 tokens that can be understood on their own.

    Adjacent paragraphs are joined into passages of up to ``chunk_size``. Related blocks are kept
    together up to one and a half times this size: a whole text, a section and its heading, a code
    block, list or table and its introduction (a paragraph that ends with a colon, or a short
    paragraph above a table), the items of a list, and indented blocks. Small adjacent sections are
    joined. Larger blocks are split at blank lines, line breaks or sentences, in this order. With
    the default size, no passage exceeds 480 tokens, so it fits embedding models with a window of
    512 tokens.

    Passages are intended as the context for a language model. For the search itself, derive smaller
    nodes from them, for example with ``split_sentences``. The metadata field ``headings`` lists the
    headings that apply to the whole passage, which are searched together with the text. The field
    ``page`` is the first page of the passage. If a passage continues a table, the field
    ``table_head`` contains the first row of the table, which is searched and passed to models. The
    markup language of the headings is determined by the file name of the document.

    Args:
        chunk_size: The maximum length of joined paragraphs, in units of ``length``. Related blocks
            may be one and a half times as long.
        headings: Whether to recognize headings such as ``# Tea``.
        length: A function that returns the length of a text. Defaults to an estimate of the number
            of tokens.

    Raises:
        ValueError: If the size is less than 1.

    Example:
        >>> text = "# Tea\\n\\nSteps:\\n\\n1. Boil water.\\n\\n2. Go.\\n\\n# Milk\\n\\nIt is white."
        >>> for node in PassageSplitter(chunk_size=12)(text):
        ...     print(node.own_metadata["headings"], repr(node.text))
        ['Tea'] '# Tea\\n\\nSteps:\\n\\n1. Boil water.\\n\\n2. Go.'
        ['Milk'] '# Milk\\n\\nIt is white.'
    """

    chunk_size: int = 320
    headings: bool = True
    length: Length = count_tokens
    trans_node: ClassVar[bool] = True
    rules: ClassVar[int] = 4  # All passages are rebuilt if this number changes.

    def __post_init__(self) -> None:
        check_sizes(self.chunk_size, 0, self.length)
        check_bool(self.headings, "headings")

    def __call__(self, text: str | Node) -> list[Node]:
        """Split a text or a document, and return its passages in text order."""
        if isinstance(text, str):
            parts = self.parts(text)
        else:
            metadata = text.metadata
            has_pages = text.parent_id is None and "page_unit" in metadata
            parts = self.parts(text.text, file_name_of(metadata) or "", has_pages)
            text = text.text
        return [
            Node(text[start:end], metadata, start=start, end=end) for start, end, metadata in parts
        ]

    def parts(self, text: str, name: str = "", has_pages: bool = False) -> list[Part]:
        """Split a text, and return the offsets and the metadata of its passages.

        Args:
            text: The text to split.
            name: The file name of the document, which determines the markup language of headings.
            has_pages: Whether the text is a whole document with pages.
        """
        headings = headings_in(text, name) if self.headings else ()
        cutter = _Cutter(text, self.chunk_size, self.length, measured(text, self.length))
        passages = cutter.subtree(list(sections_of(text, headings)))
        tables: list[Span] = []
        if any(text[passage.start] == "|" for passage in passages):
            tables = [table.span() for table in TABLE.finditer(text)]
        parts: list[Part] = []
        for p in passages:
            metadata: dict[str, Any] = {"headings": list(p.path)}
            if head := _table_head(text, tables, p.start):
                metadata["table_head"] = head
            if has_pages:
                metadata["page"] = text.count("\f", 0, p.start) + 1
            parts.append((p.start, p.end, metadata))
        return parts


def _table_head(text: str, tables: Sequence[Span], at: int) -> str:
    """Return the first row of the table at a position, or an empty string if there is none."""
    start = next((start for start, end in tables if start < at < end), None)
    if start is None:
        return ""
    first = text[start : text.index("\n", start)]
    return " | ".join(column for column in columns_of(first) if column)[:_MAX_HEAD]


def _shared(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    equal = takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    return tuple(names[0] for names in equal)


def _body(text: str, section: Section) -> int:
    """Return the start of a section's text after its heading."""
    if not section.level:
        return section.start
    heading = _ATX_HEADING.match(text, section.start) or _TWO_LINES.match(text, section.start)
    if heading is None:
        return section.start
    return min(heading.end(), section.end)


@dataclass(frozen=True, slots=True)
class _Cutter:
    text: str
    size: int
    length: Length
    measure: Measure

    def is_below_limit(self, start: int, end: int) -> bool:
        """Return whether a block of related parts is short enough to be kept as one passage."""
        limit = self.size * 3 // 2
        if end - start <= limit and self.length is count_tokens:
            return True  # A token has at least one character.
        return self.measure(start, end) <= limit

    def subtree(self, sections: Sequence[Section]) -> list[Section]:
        """Return the passages of a section, including its subsections."""
        top = sections[0]
        start, end = strip_span(self.text, (top.start, sections[-1].end))
        if start == end:
            return []
        if self.is_below_limit(start, end):
            if len(sections) == 1:
                return [Section(start, end, 0, top.path)]
            parts = (s for s in sections if s.level or self.text[s.start : s.end].strip())
            paths = [s.path for s in parts if s.start < s.end]
            return [Section(start, end, 0, _shared(paths))]
        branches = [self._section_passages(top)]
        for children in _children(sections[1:]):
            branches.append(self.subtree(children))
        passages, *others = (branch for branch in branches if branch)
        is_whole = len(passages) == 1  # True if the last passage is a whole section
        is_heading = top.level > 0 and not self.text[_body(self.text, top) : top.end].strip()
        for first, *rest in others:
            last = passages[-1]
            if self._may_join(last, first, is_heading, is_whole and not rest):
                path = first.path if is_heading else _shared([last.path, first.path])
                passages[-1] = Section(last.start, first.end, 0, path)
            else:
                passages.append(first)
            passages += rest
            is_whole = not rest
            is_heading = False
        return passages

    def _may_join(
        self, last: Section, following: Section, is_heading: bool, are_whole: bool
    ) -> bool:
        """Return whether two adjacent passages should be joined.

        Args:
            last: The first of the two passages.
            following: The second of the two passages.
            is_heading: Whether the first passage is a heading without text.
            are_whole: Whether both passages are whole sections, which are joined if they are small.
        """
        if is_heading and self.is_below_limit(last.start, following.end):
            return True
        if not are_whole:
            return False
        sizes = [self.measure(passage.start, passage.end) for passage in (last, following)]
        if max(sizes) > self.size // 2:
            return False
        return self.measure(last.start, following.end) <= self.size

    def _section_passages(self, section: Section) -> list[Section]:
        """Return the passages of a section including its heading, but without its subsections."""
        start, end = strip_span(self.text, (section.start, section.end))
        if start == end:
            return []
        if self.is_below_limit(start, end):
            return [Section(start, end, 0, section.path)]
        blocks = list(_blocks(self.text, section))
        bonds = [_bond(self.text, *pair, section) for pair in pairwise(blocks)]
        spans = pack(self.text, self._units(blocks, bonds), self.size, 0, self.measure)
        has_small_end = self.measure(*spans[-1]) <= self.size // 4
        if has_small_end and len(spans) > 1:
            (start, _), (_, end) = spans[-2:]
            if self.is_below_limit(start, end):
                spans[-2:] = [(start, end)]
        return [Section(*span, 0, section.path) for span in spans]

    def _units(self, blocks: Sequence[Span], bonds: Sequence[int], strength: int = 1) -> list[Span]:
        """Group related blocks.

        Groups that are too long are split where the blocks are least related.
        """
        units: list[Span] = []
        first = 0
        for after in range(1, len(blocks) + 1):
            if after < len(blocks) and bonds[after - 1] >= strength:
                continue
            group = blocks[first:after]
            inner = bonds[first : after - 1]
            first = after
            start = group[0][0]
            end = group[-1][1]
            if self.is_below_limit(start, end):
                units.append((start, end))
            elif strength < _STRONGEST:
                units += self._units(group, inner, strength + 1)
            else:
                units += self._forced(group)
        return units

    def _forced(self, blocks: Sequence[Span]) -> list[Span]:
        """Split blocks that are too long. An introduction is kept together with the first part."""
        units: list[Span] = []
        for start, end in blocks:
            parts = [(start, end)]
            if not self.is_below_limit(start, end):
                splitter = RecursiveSplitter(self.size, 0, length=self.length)
                parts = [(start + a, start + b) for a, b in splitter.spans(self.text[start:end])]
            if start != blocks[0][0] and self.is_below_limit(units[-1][0], parts[0][1]):
                parts[0] = (units.pop()[0], parts[0][1])
            units += parts
        return units


def _children(sections: Sequence[Section]) -> Iterator[Sequence[Section]]:
    first = 0
    for at in range(1, len(sections) + 1):
        if at == len(sections) or sections[at].level <= sections[first].level:
            yield sections[first:at]
            first = at


def _blocks(text: str, section: Section) -> Iterator[Span]:
    """Yield the heading, the paragraphs and the fenced code blocks of a section."""
    start = at = _body(text, section)
    if start > section.start:
        yield strip_span(text, (section.start, start))
    fence = ""
    for line in text[start : section.end].splitlines(keepends=True):
        opening = _FENCE.match(line)
        after = at + len(line)
        if not fence and opening:
            yield from _paragraphs(text, start, at)
            fence = opening[1]
            start = at
        elif fence and opening and _closes(line, opening[1], fence):
            yield strip_span(text, (start, after))
            fence = ""
            start = after
        at = after
    if fence:
        yield strip_span(text, (start, section.end))
    else:
        yield from _paragraphs(text, start, section.end)


def _closes(line: str, mark: str, fence: str) -> bool:
    """Return whether a line ends the code block that began with the given fence."""
    return mark.startswith(fence) and not line.strip(" \t\r\n`~")


def _paragraphs(text: str, start: int, end: int) -> Iterator[Span]:
    return ((start + a, start + b) for a, b in block_spans(text[start:end]))


_STRONGEST = 3


def _bond(text: str, block: Span, following: Span, section: Section) -> int:
    """Return how closely two adjacent blocks are related, from 0 (unrelated) to 3."""
    start, end = block
    next_start, _ = following
    is_heading = start < _body(text, section) or _UNDERLINED.fullmatch(text, start, end)
    is_introduction = text[next_start] == "|" != text[start] and end - start <= _MAX_HEAD
    if is_heading or is_introduction or text[end - 1] in ":：":
        return _STRONGEST
    next_indent = _indent(text, next_start)
    if next_indent > _indent(text, start) or text[start] == text[next_start] == "|":
        return 2
    is_touching = text.count("\n", end, next_start) < 2
    if _FENCE.match(text, next_start):
        return 2 if is_touching else 1
    if next_indent:
        return 1
    if not LIST_ITEM.match(text, next_start):
        return 0
    return 1 if is_touching or LIST_ITEM.match(text, start) else 0


def _indent(text: str, start: int) -> int:
    return start - text.rfind("\n", 0, start) - 1
