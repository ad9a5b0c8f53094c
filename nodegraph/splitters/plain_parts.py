"""nodekin's own splitters as functions on plain data, which other processes can call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from ..node import Node
from ..source_names import file_name_of
from .chunking import RecursiveSplitter, Span, count_tokens
from .passage_splitter import Part, PassageSplitter
from .sentences import (
    SentenceSplitter,
    paragraph_spans,
    sentence_spans,
    split_paragraphs,
    split_sentences,
)

PlainText: TypeAlias = tuple[str, str, bool]
"""A text, the file name of its document, and whether it is a whole document with pages."""


PlainSplitter: TypeAlias = Callable[[PlainText], list[Part]]
"""A function from a text to its parts. It can be pickled."""


def plain_text(node: Node) -> PlainText:
    """Return the parts of a node that nodekin's splitters use."""
    metadata = node.metadata
    has_pages = node.parent_id is None and "page_unit" in metadata
    return node.text, file_name_of(metadata) or "", has_pages


def split_all(splitter: PlainSplitter, texts: Sequence[PlainText]) -> list[list[Part] | None]:
    """Return the parts of each text, or None if the splitter raises an error for it."""
    return [_parts_or_none(splitter, text) for text in texts]


def plain_splitter(transform: object) -> PlainSplitter | None:
    """Return a function that splits as a transform does and can be pickled.

    Return None if the transform is not nodekin's own, or if a user has set its length function.
    """
    if transform is split_sentences:
        return partial(_parts, sentence_spans)
    if transform is split_paragraphs:
        return partial(_parts, paragraph_spans)
    if type(transform) is PassageSplitter and transform.length is count_tokens:
        return partial(_passages, transform)
    if type(transform) is SentenceSplitter and transform.length is count_tokens:
        return partial(_parts, transform.spans)
    if type(transform) is RecursiveSplitter and transform.length is count_tokens:
        return partial(_parts, transform.spans)
    return None


def _passages(splitter: PassageSplitter, text: PlainText) -> list[Part]:
    return splitter.parts(*text)


def _parts(spans_of: Callable[[str], list[Span]], text: PlainText) -> list[Part]:
    return [(start, end, {}) for start, end in spans_of(text[0])]


def _parts_or_none(splitter: PlainSplitter, text: PlainText) -> list[Part] | None:
    try:
        return splitter(text)
    except Exception:  # the process of the graph calls the transform again, and reports the error
        return None
