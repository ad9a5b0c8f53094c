"""Split Markdown into the sections below its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..node import Node
from .chunking import Length, strip_span
from .recursive_splitter import RecursiveSplitter
from .tokens import count_tokens

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:[ \t]*\S.*\n)*?---[ \t]*(?:\r?\n|\Z)")

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?![^ \t])(.*)$")

_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")

_MARKED = re.compile(r"\n {0,3}[#=`~-]")

_NO_TITLE = re.compile(r" {4}|\t|\s*([-*+>|]|\d+[.)])\s")


@dataclass(frozen=True, slots=True)
class MarkdownSplitter:
    """Split a Markdown text into one node a section: a heading and what stands below it.

    Each node's metadata holds ``heading`` (the section's own), ``headings`` (from the top
    heading down to it) and ``level`` (1 to 6; 0 before the first heading). Marks inside fenced
    code are not headings.

    Args:
        max_level: Headings below this level stay inside their section.
        chunk_size: Sections that measure more are split further, by ``RecursiveSplitter``; None
            keeps them whole.
        chunk_overlap: For sections that are split further.
        length: Measures a text, by default in tokens (an estimate).

    Raises:
        ValueError: If the level is not in 1 to 6, or a size out of range.

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
        if not 1 <= self.max_level <= 6:
            raise ValueError(f"max_level must be in 1 to 6, not {self.max_level!r}")
        if self.chunk_size is None and self.chunk_overlap:
            raise ValueError(
                f"chunk_overlap={self.chunk_overlap!r} needs a chunk_size; without one sections "
                "stay whole"
            )
        self._inner()

    def _inner(self) -> RecursiveSplitter | None:
        if self.chunk_size is None:
            return None
        return RecursiveSplitter(self.chunk_size, self.chunk_overlap, length=self.length)

    def __call__(self, text: str) -> list[Node]:
        """Return the sections of a text."""
        inner = self._inner()
        nodes = []
        path: list[tuple[int, str]] = []
        starts = [(0, 0, ""), *markdown_headings(text, self.max_level)]
        ends = [start for start, _, _ in starts[1:]] + [len(text)]
        for (start, level, heading), end in zip(starts, ends, strict=True):
            path = [above for above in path if above[0] < level]
            if level:
                path.append((level, heading))
            begin, end = strip_span(text, (start, end))
            if begin == end:
                continue
            metadata = {"heading": heading, "headings": [h for _, h in path], "level": level}
            section = text[begin:end]
            for a, b in inner.spans(section) if inner else [(0, len(section))]:
                nodes.append(Node(section[a:b], metadata, start=begin + a, end=begin + b))
        return nodes


def markdown_headings(text: str, max_level: int = 6) -> Iterator[tuple[int, int, str]]:
    """Yield where each heading begins, its level and its text; those in fenced code are none."""
    front = _FRONT_MATTER.match(text)
    begin_of_text = front.end() if front else 0
    fence, marked_at, marked = "", -1, ""  # the last marked line, as a title of the next one
    for mark in _MARKED.finditer("\n" + text, begin_of_text):  # most lines are never looked at
        at = mark.start()
        line = text[at : _end_of_line(text, at)].rstrip()
        before_at = text.rfind("\n", begin_of_text, max(at - 1, 0)) + 1 or begin_of_text
        before = marked if before_at == marked_at else _title(text[before_at:at])
        opened = _FENCE.match(line)
        level, heading, begin = 0, "", at
        marked_at, marked = at, ""
        if fence:
            if opened and opened[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif opened:
            fence = opened[1]
        elif match := _HEADING.match(line):
            level, heading = len(match[1]), _without_closing(match[2].strip())
        elif before and (match := _UNDERLINE.match(line)):
            level, heading, begin = 1 if match[1][0] == "=" else 2, before, before_at
        else:
            marked = _title(line)
        if 0 < level <= max_level:
            yield begin, level, heading


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _title(line: str) -> str:
    """Return a line as a title that the next line may underline; code and lists are none."""
    return "" if _NO_TITLE.match(line.rstrip()) else line.strip()


def _without_closing(heading: str) -> str:
    """Leave out the number signs that may close a heading: ``## Tea ##``."""
    stripped = heading.rstrip("#")
    return heading if stripped[-1:].strip() else stripped.rstrip()
