"""Find headings in several markup languages, and split Markdown at headings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import check_integer
from ..node import Node
from ..search_text import MAX_HEADING
from .chunking import Length, RecursiveSplitter, check_sizes, count_tokens, strip_span

Heading = tuple[int, int, str]
"""The start of a heading, its level from 1, and its text."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")

# YAML between lines of hyphens (it begins with a field), or TOML between lines of plus signs.
_FRONT_MATTER = re.compile(
    r"(?:---(?=\s+(?:#.*\n\s*)*[^\s:#-][^:\n]*:\s)|\+\+\+)[ \t]*\r?\n(?P<body>(?:.*\n)*?)"
    r"(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?![^ \t])(.*)$")

_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")

_NO_TITLE = re.compile(r" {4}|\t|\s*([-*+>|]|\d+[.)])\s")

_RST_LINE = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")

_ASCIIDOC = re.compile(r"(={1,6})[ \t]+(\S.*)$")

_ASCIIDOC_FENCE = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,})\s*$")

_LATEX = re.compile(
    r"^[^%\n]*?\\(part|chapter|section|subsection|subsubsection|paragraph)\*?[ \t]*"
    r"(?:\[[^\]\n]*\])?\{((?:[^{}]|\{[^{}]*\})*)\}",
    re.M,
)

_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")

_ORG = re.compile(r"(\*{1,6})[ \t]+(\S.*)$")

_TOML = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}[ \t]*(?:#.*)?$")


TABLE = re.compile(
    r"^[ \t]*\|.*\|[ \t]*\n[ \t]*\|(?:[ \t]*:?-{3,}:?[ \t]*\|)+[ \t]*(?:\n\f?[ \t]*\|.*\|[ \t]*)*",
    re.M,
)
"""A Markdown table, possibly across page breaks."""

_BAR = re.compile(r"(?<!\\)\|")


def columns_of(head: str) -> list[str]:
    """Return the cells of the first line of a table.

    Example:
        >>> columns_of("| Tea | Cup |")
        ['Tea', 'Cup']
    """
    return [cell.strip() for cell in _BAR.split(head.strip().strip("|"))]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text up to the next heading.

    Attributes:
        start: The start in characters.
        end: The end in characters, exclusive.
        level: The level of the heading, from 1. It is 0 before the first heading.
        path: The headings from the top level to this heading.
    """

    start: int
    end: int
    level: int
    path: tuple[str, ...]

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the node: ``heading``, ``headings``, ``level``."""
        heading = self.path[-1] if self.path else ""
        return {"heading": heading, "headings": list(self.path), "level": self.level}


def sections_of(text: str, headings: Iterable[Heading]) -> Iterator[Section]:
    """Yield the possibly empty section before the first heading, then a section per heading."""
    starts = [(0, 0, ""), *headings]
    ends = [*(start for start, _, _ in starts[1:]), len(text)]
    path: list[tuple[int, str]] = []
    for (start, level, title), end in zip(starts, ends, strict=True):
        path = [above for above in path if above[0] < level]
        if level:
            path.append((level, title))
        yield Section(start, end, level, tuple(title for _, title in path))


def front_matter_of(text: str) -> re.Match[str] | None:
    """Return the fields at the beginning of a Markdown text, in the group ``body``."""
    return _FRONT_MATTER.match(text)


def _lines(text: str, at: int = 0) -> Iterator[tuple[int, str]]:
    for line in text[at:].split("\n"):
        yield at, line
        at += len(line) + 1


def markdown_headings(text: str, max_level: int = 6) -> Iterator[Heading]:
    """Yield the start, level and text of each heading outside fenced code.

    A line of more than ``MAX_HEADING`` characters is text.
    """
    front = front_matter_of(text)
    fence = ""
    title_at = 0
    title = ""  # the previous line, if an underline may make it a heading
    for at, line in _lines(text, front.end() if front else 0):
        line = line.rstrip()
        mark = line.lstrip(" ")[:1]
        heading: Heading | None = None
        if fence:
            if mark == fence[0] and _closes(line, fence):
                fence = ""
            line = ""
        elif mark in ("`", "~") and (match := _FENCE.match(line)):
            fence = match[1]
            line = ""
        elif mark == "#" and (match := _HEADING.match(line)):
            heading = (at, len(match[1]), _unclosed(match[2].strip()))
        elif title and mark in ("=", "-") and _UNDERLINE.match(line):
            heading = (title_at, _UNDERLINE_LEVELS[mark], title)
        if heading and heading[1] <= max_level and len(heading[2]) <= MAX_HEADING:
            yield heading
        title_at = at
        title = line.strip()
        if heading or _NO_TITLE.match(line):
            title = ""


_UNDERLINE_LEVELS = {"=": 1, "-": 2}


def _unclosed(title: str) -> str:
    """Return the text of a heading without number signs at its end: ``Tea ##``."""
    shorter = title.rstrip("#")
    if shorter[-1:].strip():  # C#
        return title
    return shorter.rstrip()


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return match is not None and match[1].startswith(fence) and not line.strip(" `~")


def rst_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings of reStructuredText, with a line below or with lines above and below.

    Example:
        >>> list(rst_headings("Tea\n===\n\nGreen\n-----\ntext"))
        [(0, 1, 'Tea'), (9, 2, 'Green')]
    """
    lines = list(_lines(text))
    levels: dict[tuple[str, bool], int] = {}
    for number in range(len(lines) - 1):
        at, line = lines[number]
        under = lines[number + 1][1]
        title = line.strip()
        if not title or not _RST_LINE.match(under) or _RST_LINE.match(line):
            continue
        if len(under.rstrip()) < len(title):
            continue
        above_at, above = lines[number - 1] if number else (0, "")
        is_overlined = above.rstrip() == under.rstrip()
        if is_overlined:
            at = above_at
        elif line[:1].isspace() or above.strip():
            continue
        level = levels.setdefault((under[0], is_overlined), len(levels) + 1)
        yield at, min(level, 6), title


def _marked_headings(
    text: str, heading: re.Pattern[str], fence: re.Pattern[str] | None = None
) -> Iterator[Heading]:
    r"""Yield the lines outside code blocks that begin with a mark. Its length is the level.

    Example:
        >>> text = "= Tea\n\n----\n== no\n----\n== Green"
        >>> list(_marked_headings(text, _ASCIIDOC, _ASCIIDOC_FENCE))
        [(0, 1, 'Tea'), (23, 2, 'Green')]
    """
    opened = ""
    for at, line in _lines(text):
        if fence and (match := fence.match(line)):
            if opened == match[1]:
                opened = ""
            elif not opened:
                opened = match[1]
        elif not opened and (match := heading.match(line)):
            yield at, len(match[1]), match[2].strip()


def latex_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings of LaTeX: parts, chapters, sections.

    Example:
        >>> list(latex_headings("\\section{Tea}\n% \\section{no}\n\\subsection*{The {\\em green}}"))
        [(0, 1, 'Tea'), (29, 2, 'The green')]
    """
    matches = [(match, _LATEX_LEVELS.index(match[1])) for match in _LATEX.finditer(text)]
    top = min((level for _, level in matches), default=0)
    for match, level in matches:
        title = re.sub(r"\\[a-zA-Z]+[ \t]*|[{}]", "", match[2])
        yield match.start(), level - top + 1, " ".join(title.split())


def toml_headings(text: str) -> Iterator[Heading]:
    r"""Yield the tables of TOML and the sections of INI files.

    Example:
        >>> list(toml_headings("[tea]\na = 1\n[tea.green]\nb = 2"))
        [(0, 1, 'tea'), (12, 2, 'tea.green')]
    """
    for at, line in _lines(text):
        if match := _TOML.match(line):
            name = match[1].strip()
            yield at, min(name.count(".") + 1, 6), name


def _asciidoc_headings(text: str) -> Iterator[Heading]:
    return _marked_headings(text, _ASCIIDOC, _ASCIIDOC_FENCE)


def _org_headings(text: str) -> Iterator[Heading]:
    return _marked_headings(text, _ORG)


_BY_SUFFIX: dict[str, Callable[[str], Iterator[Heading]]] = {
    ".rst": rst_headings,
    ".adoc": _asciidoc_headings,
    ".asciidoc": _asciidoc_headings,
    ".tex": latex_headings,
    ".ltx": latex_headings,
    ".org": _org_headings,
    ".toml": toml_headings,
    ".ini": toml_headings,
    ".cfg": toml_headings,
}

PROGRAMS = (
    ".py .pyi .js .mjs .cjs .jsx .ts .tsx .java .go .rs .c .h .cc .cpp .cxx .hpp .hh .rb .cs .php "
    ".sh .bash .kt .kts .swift .scala .lua .r .pl .pm .sql .css .scss .vue .dart .ex .exs .hs .jl "
    ".m .mm .zig .proto .graphql .tf"
).split()
"""Suffixes of programs."""

_WITHOUT = frozenset(
    ".csv .tsv .log .json .yaml .yml .xml .conf .properties .srt .vtt .po".split()
).union(PROGRAMS)


def headings_in(text: str, file_name: str = "") -> Iterator[Heading]:
    r"""Yield the headings of a text, in the markup of the file name or in Markdown.

    A line of more than ``MAX_HEADING`` characters counts as text, since each node below a heading
    contains a copy of it.

    Example:
        >>> list(headings_in("# Tea", "a.md")), list(headings_in("# a comment", "a.py"))
        ([(0, 1, 'Tea')], [])
    """
    name = file_name.lower()
    suffix = name[name.rfind(".") :] if "." in name else ""
    if suffix in _WITHOUT:
        return
    headings_of = _BY_SUFFIX.get(suffix, markdown_headings)
    yield from (heading for heading in headings_of(text) if len(heading[2]) <= MAX_HEADING)


@dataclass(frozen=True, slots=True)
class MarkdownSplitter:
    """A splitter of Markdown into sections, one node per heading.

    The metadata fields are ``heading`` (of the section), ``headings`` (from the top level to the
    section) and ``level`` (1 to 6, or 0 before the first heading). Number signs in fenced code are
    not headings.

    Args:
        max_level: Headings below this level do not start a section.
        chunk_size: Maximum length of a node. Longer sections are split by ``RecursiveSplitter``.
            If None, sections of any length stay whole.
        chunk_overlap: The overlap of nodes within a section.
        length: A function from a text to its length. Defaults to an estimate of tokens.

    Raises:
        ValueError: If the level is not from 1 to 6, or a size is out of range.

    Example:
        >>> for node in MarkdownSplitter()("# Tea\\nA drink.\\n## Green\\nUnfermented."):
        ...     print(node.own_metadata["headings"], repr(node.text))
        ['Tea'] '# Tea\\nA drink.'
        ['Tea', 'Green'] '## Green\\nUnfermented.'
    """

    max_level: int = 6
    chunk_size: int | None = None
    chunk_overlap: int = 0
    length: Length = count_tokens

    def __post_init__(self) -> None:
        if not 1 <= check_integer(self.max_level, "max_level") <= 6:
            raise ValueError(f"max_level must be from 1 to 6, got {self.max_level!r}")
        if self.chunk_size is None and self.chunk_overlap:
            raise ValueError(
                f"chunk_overlap={self.chunk_overlap!r} requires a chunk_size; without chunk_size, "
                "sections are not split"
            )
        if self.chunk_size is None:
            check_sizes(1, 0, self.length)
        self._inner()

    def _inner(self) -> RecursiveSplitter | None:
        if self.chunk_size is None:
            return None
        return RecursiveSplitter(self.chunk_size, self.chunk_overlap, length=self.length)

    def __call__(self, text: str) -> list[Node]:
        """Return the sections of a text."""
        inner = self._inner()
        nodes = []
        for section in sections_of(text, markdown_headings(text, self.max_level)):
            start, end = strip_span(text, (section.start, section.end))
            if start == end:
                continue
            parts = inner.spans(text[start:end]) if inner else [(0, end - start)]
            for first, after in parts:
                content = text[start + first : start + after]
                nodes.append(
                    Node(content, section.metadata, start=start + first, end=start + after)
                )
        return nodes
