"""Versions of the built-in splitters that can run in other processes, since they use plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


PartsOf: TypeAlias = Callable[[PlainText], list[Part]]
"""A function that can be pickled and returns the parts of a text."""


@dataclass(frozen=True, slots=True)
class PlainSplitter:
    """A built-in splitter that can be pickled.

    Attributes:
        parts_of: The function that splits a text.
        reads_metadata: Whether the parts depend on the metadata of the node.
    """

    parts_of: PartsOf
    reads_metadata: bool = False

    def plain_texts(self, nodes: Sequence[Node]) -> list[PlainText]:
        """Return the values that the splitter needs from each node."""
        if self.reads_metadata:
            return [_plain_text(node) for node in nodes]
        return [(node.text, "", False) for node in nodes]


def _plain_text(node: Node) -> PlainText:
    metadata = node.metadata
    has_pages = node.parent_id is None and "page_unit" in metadata
    return node.text, file_name_of(metadata) or "", has_pages


def split_all(parts_of: PartsOf, texts: Sequence[PlainText]) -> list[list[Part] | None]:
    """Split several texts. The result for a text is None if the splitter raises an error."""
    return [_parts_or_none(parts_of, text) for text in texts]


def plain_splitter(transform: object) -> PlainSplitter | None:
    """Return a splitter that splits texts like a transform, but can be pickled.

    Return None if the transform is not a built-in splitter, or if it uses a custom length function.
    """
    if transform is split_sentences:
        return PlainSplitter(partial(_parts, sentence_spans))
    if transform is split_paragraphs:
        return PlainSplitter(partial(_parts, paragraph_spans))
    if type(transform) is PassageSplitter and transform.length is count_tokens:
        return PlainSplitter(partial(_passages, transform), reads_metadata=True)
    if type(transform) is SentenceSplitter and transform.length is count_tokens:
        return PlainSplitter(partial(_parts, transform.spans))
    if type(transform) is RecursiveSplitter and transform.length is count_tokens:
        return PlainSplitter(partial(_parts, transform.spans))
    return None


def _passages(splitter: PassageSplitter, text: PlainText) -> list[Part]:
    return splitter.parts(*text)


def _parts(spans_of: Callable[[str], list[Span]], text: PlainText) -> list[Part]:
    return [(start, end, {}) for start, end in spans_of(text[0])]


def _parts_or_none(parts_of: PartsOf, text: PlainText) -> list[Part] | None:
    try:
        return parts_of(text)
    except Exception:  # The main process calls the transform again and reports the error.
        return None
