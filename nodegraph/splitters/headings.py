"""Find headings in texts with different markup languages, and split Markdown at headings."""

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
"""The start of a heading, its level (starting at 1) and its text."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")

# YAML between lines of hyphens, which must begin with a field, or TOML between lines of plus signs.
_FRONT_MATTER = re.compile(
    r"(?:---(?=\s+(?:#.*\n\s*)*[^\s:#-][^:\n]*:\s)|\+\+\+)[ \t]*\r?\n(?P<body>(?:.*\n)*?)"
    r"(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?![^ \t])(.*)$")

_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")

_MAYBE_UNDERLINE = re.compile(r"\n {0,3}[=-]")

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
"""A pattern for Markdown tables, which may continue after a page break."""

_BAR = re.compile(r"(?<!\\)\|")


def columns_of(head: str) -> list[str]:
    """Return the cells in the first line of a Markdown table.

    Example:
        >>> columns_of("| Tea | Cup |")
        ['Tea', 'Cup']
    """
    return [cell.strip() for cell in _BAR.split(head.strip().strip("|"))]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a text. It consists of a heading and the text up to the next heading.

    Attributes:
        start: The start of the section, in characters.
        end: The end of the section (exclusive), in characters.
        level: The level of the heading, starting at 1. It is 0 for the text before the first
            heading.
        path: The headings from the top level down to this heading.
    """

    start: int
    end: int
    level: int
    path: tuple[str, ...]

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata for the node of this section: ``heading``, ``headings`` and ``level``."""
        heading = self.path[-1] if self.path else ""
        return {"heading": heading, "headings": list(self.path), "level": self.level}


def sections_of(text: str, headings: Iterable[Heading]) -> Iterator[Section]:
    """Yield the text before the first heading, which may be empty, and then all other sections."""
    starts = [(0, 0, ""), *headings]
    ends = [*(start for start, _, _ in starts[1:]), len(text)]
    path: list[tuple[int, str]] = []
    for (start, level, title), end in zip(starts, ends, strict=True):
        path = [above for above in path if above[0] < level]
        if level:
            path.append((level, title))
        yield Section(start, end, level, tuple(title for _, title in path))


def front_matter_of(text: str) -> re.Match[str] | None:
    """Return a match for the front matter of a Markdown text.

    Its group ``body`` contains the fields.
    """
    return _FRONT_MATTER.match(text)


def _lines(text: str, at: int = 0) -> Iterator[tuple[int, str]]:
    for line in text[at:].split("\n"):
        yield at, line
        at += len(line) + 1


def markdown_headings(text: str, max_level: int = 6) -> Iterator[Heading]:
    """Yield the start, level and text of each Markdown heading outside of fenced code blocks.

    Lines with more than ``MAX_HEADING`` characters are not treated as headings.
    """
    if "#" not in text and not _MAYBE_UNDERLINE.search(text):
        return
    front = front_matter_of(text)
    fence = ""
    title_at = 0
    title = ""  # the previous line, which becomes a heading if it is underlined
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
    """Remove the number signs at the end of a heading such as ``Tea ##``."""
    shorter = title.rstrip("#")
    if shorter[-1:].strip():  # The number sign belongs to a word such as C#.
        return title
    return shorter.rstrip()


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return match is not None and match[1].startswith(fence) and not line.strip(" `~")


def rst_headings(text: str) -> Iterator[Heading]:
    r"""Yield the headings in reStructuredText. They are underlined, or have lines above and below.

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
    r"""Yield headings that begin with a mark, whose length is the level. Code blocks are skipped.

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
    r"""Yield the headings in LaTeX source: parts, chapters and sections.

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
    r"""Yield the names of tables in TOML files, and of sections in INI files, as headings.

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
"""The suffixes of source code files."""

_WITHOUT = frozenset(
    ".csv .tsv .log .json .yaml .yml .xml .conf .properties .srt .vtt .po".split()
).union(PROGRAMS)


def headings_in(text: str, file_name: str = "") -> Iterator[Heading]:
    r"""Yield the headings in a text.

    The markup language is determined by the file name, and is Markdown by default. Lines with more
    than ``MAX_HEADING`` characters are not treated as headings, since each node below a heading
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
    """Splits Markdown into sections, and returns one node per heading.

    The nodes have the metadata fields ``heading`` (the heading of the section), ``headings`` (all
    headings from the top level down to the section) and ``level`` (1 to 6, or 0 before the first
    heading). Number signs in fenced code blocks are not treated as headings.

    Args:
        max_level: The lowest level of headings that start a new section.
        chunk_size: The maximum length of a node. Longer sections are split by
            ``RecursiveSplitter``. If None, sections are never split.
        chunk_overlap: The overlap between nodes of the same section.
        length: A function that returns the length of a text. Defaults to an estimate of the number
            of tokens.

    Raises:
        ValueError: If the level is not between 1 and 6, or if a size is out of range.

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
        """Split a Markdown text and return its sections."""
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
