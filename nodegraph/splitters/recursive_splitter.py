"""Split texts at the strongest separators that give chunks of the right size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .chunking import Length, Span, check_sizes, cut_at, cut_to_fit, pack, strip_span
from .tokens import count_tokens

SEPARATORS = (
    r"\n\s*\n",
    r"\n",
    r"[。！？｡][”’」』）)】》]*|(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s)\s*",
    r"[；;][”’」』）)]*\s*",
    r"[，、：][”’」』）)]*|[,:](?=\s)\s*",
    r"\s+",
)


@dataclass(frozen=True, slots=True)
class RecursiveSplitter:
    """Split at blank lines; what is too long at line breaks; then sentences, clauses, words.

    Choose it where a text's own sections and paragraphs matter more than even chunks: what
    belongs together by a stronger separator is only parted when it does not fit. Separators stay
    at the end of their part. White space around a chunk is left out.

    Args:
        chunk_size: The most a chunk may measure, in units of ``length``.
        chunk_overlap: How much of the end of a chunk, in whole parts, the next one repeats at
            most, where they were parted by the same separator.
        separators: Regular expressions, strongest first. The default is for Chinese, English and
            mixed text. What fits by none is cut anywhere.
        length: Measures a text. By default an estimate of tokens (``count_tokens``), ``len`` for
            characters.

    Raises:
        ValueError: If a size is out of range, or a separator no regular expression or one that
            matches nothing but the empty text.

    Example:
        >>> RecursiveSplitter(chunk_size=5, chunk_overlap=0)("一二三。四五六。\\n七八九。")
        ['一二三。', '四五六。', '七八九。']
    """

    chunk_size: int = 1024
    chunk_overlap: int = 100
    separators: Sequence[str] = SEPARATORS
    length: Length = count_tokens

    def __post_init__(self) -> None:
        check_sizes(self.chunk_size, self.chunk_overlap)
        if isinstance(self.separators, str):
            raise ValueError(f"separators is a list of expressions, not one: {self.separators!r}")
        for separator in self.separators:
            try:
                pattern = re.compile(separator)
            except re.error as error:
                raise ValueError(f"{separator!r} is no regular expression: {error}") from error
            if pattern.fullmatch(""):
                raise ValueError(
                    f"the separator {separator!r} matches the empty text; leave it out: what "
                    "fits by none is cut anywhere"
                )

    def __call__(self, text: str) -> list[str]:
        """Return the chunks of a text."""
        return [text[start:end] for start, end in self.spans(text)]

    def spans(self, text: str) -> list[Span]:
        """Return the begin and end of each chunk, in characters."""
        patterns = [re.compile(separator) for separator in self.separators]
        chunks = (strip_span(text, s) for s in self._split(text, (0, len(text)), patterns))
        return [(start, end) for start, end in chunks if start < end]

    def _split(self, text: str, span: Span, patterns: Sequence[re.Pattern[str]]) -> list[Span]:
        if self.length(text[slice(*span)]) <= self.chunk_size:
            return [span]
        parts = [span]
        while patterns and len(parts) == 1:
            parts, patterns = cut_at(text, span, patterns[0]), patterns[1:]
        if len(parts) == 1:
            parts = cut_to_fit(text, span, self.chunk_size, self.length, ())
            return pack(text, parts, self.chunk_size, self.chunk_overlap, self.length)
        chunks: list[Span] = []
        fitting: list[Span] = []
        for part in parts:
            if self.length(text[slice(*part)]) <= self.chunk_size:
                fitting.append(part)
                continue
            chunks += pack(text, fitting, self.chunk_size, self.chunk_overlap, self.length)
            fitting = []
            chunks += self._split(text, part, patterns)
        return chunks + pack(text, fitting, self.chunk_size, self.chunk_overlap, self.length)
