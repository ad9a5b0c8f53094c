"""Split Markdown into the sections below its headings."""

from __future__ import annotations

from dataclasses import dataclass

from ..node import Node
from .chunking import Length, strip_span
from .headings import markdown_headings, sections_of
from .recursive_splitter import RecursiveSplitter
from .tokens import count_tokens


@dataclass(frozen=True, slots=True)
class MarkdownSplitter:
    """Split a Markdown text into one node a section: a heading and what stands below it.

    Each node's metadata holds ``heading`` (the section's own), ``headings`` (from the top
    heading down to it) and ``level`` (1 to 6; 0 before the first heading). Marks inside fenced
    code are not headings.

    Args:
        max_level: Headings below this level stay inside their section.
        chunk_size: Sections that measure more are split further, by ``RecursiveSplitter``. None
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
        for section in sections_of(text, markdown_headings(text, self.max_level)):
            start, end = strip_span(text, (section.start, section.end))
            if start == end:
                continue
            for a, b in inner.spans(text[start:end]) if inner else [(0, end - start)]:
                a, b = start + a, start + b
                nodes.append(Node(text[a:b], section.metadata, start=a, end=b))
        return nodes
