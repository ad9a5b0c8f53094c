"""Cut a file into the passages that are worth answering with."""

from __future__ import annotations

import re

from ...nodegraph import Node, RecursiveSplitter, count_tokens
from ...nodegraph.splitters.sentences import paragraph_spans

_HEADING = re.compile(r"#{1,6}[ \t][^\n]*|[^\n]+\n(?:=+|-+)")


def split_passages(text: str, size: int = 512) -> list[Node]:
    """Split a text into its paragraphs, headings with what follows them, long ones in parts.

    Choose it over ``split_paragraphs`` for a folder of whatever there is: a heading alone would
    be the best match for the words in it, and answer nothing.

    Args:
        text: Running text or Markdown.
        size: The most a passage may measure, in tokens (an estimate).

    Example:
        >>> [node.text for node in split_passages("# 茶\\n\\n## Green\\n\\nIt is fresh.\\n\\n绿茶")]
        ['# 茶\\n\\n## Green\\n\\nIt is fresh.', '绿茶']
    """
    spans: list[tuple[int, int]] = []
    heading: int | None = None
    for begin, end in paragraph_spans(text):
        if _HEADING.fullmatch(text, begin, end):
            heading = begin if heading is None else heading
            continue
        spans.append((begin if heading is None else heading, end))
        heading = None
    if heading is not None:  # the last of the text
        spans.append((heading, len(text.rstrip())))
    return [
        Node(text[begin + a : begin + b], start=begin + a, end=begin + b)
        for begin, end in spans
        for a, b in _parts(text[begin:end], size)
    ]


def _parts(passage: str, size: int) -> list[tuple[int, int]]:
    if count_tokens(passage) <= size:
        return [(0, len(passage))]
    return RecursiveSplitter(size, 0).spans(passage)
