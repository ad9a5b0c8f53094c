"""An exact lookup of nodes by their normalized texts, based on a hash map."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...nodegraph.graph import NodeGraph
from ...nodegraph.splitters.chunking import UNSPACED
from .bm25_weights import Saturation, TermWeights
from .text_index import TextIndex

_NO_SPACE = re.compile(rf"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")

_QUOTES = "“”„‟‘’‚«»‹›「」『』《》〈〉【】"

# A sign before a word is part of the word: -5, .NET, !important, $5.
_START = re.compile(rf"^(?:[\s{_QUOTES}¿¡…,;、。]|\.{{2,}}|[.!?:·~]+(?=\s))+")

_END = f" {_QUOTES}.,:;!?…。、·~"

_PAIRS = {'"': '"', "'": "'", "(": ")", "[": "]", "{": "}"}

_NESTED = 3  # the maximum number of nested pairs


def normal_text(text: str) -> str:
    """Normalize a text, ignoring case, width, white space and outer punctuation.

    Other characters are kept, so that "C++" differs from "C", "3.5" from "35", and "-5" from "5". A
    sequence of spaces is treated as a single space. In Chinese and Japanese, all spaces are
    ignored.

    Example:
        >>> normal_text(" “What  is C++” ?"), normal_text("ＡＩ 是 什么？！"), normal_text("--")
        ('what is c++', 'ai是什么', '--')
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _NO_SPACE.sub("", _without_edges(plain)) or plain


def _without_edges(text: str) -> str:
    """Remove outer punctuation, and quotation marks or brackets around the whole text."""
    for _ in range(_NESTED):
        text = _START.sub("", text).rstrip(_END)
        is_paired = len(text) > 1 and _PAIRS.get(text[0]) == text[-1]
        if is_paired:
            text = text[1:-1]
    return _START.sub("", text).rstrip(_END)


@dataclass(frozen=True, slots=True)
class Exact:
    """A similarity that matches nodes whose normalized text is equal to the query.

    Use it for keys, names, codes and frequently asked questions. A search is a single lookup and
    does not require a model. The score of every matching node is 1.

    Args:
        normalize: Whether to ignore case, width, white space and outer punctuation, or a function
            that normalizes a text. Texts that become empty never match.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("A kettle."), Document("A cup.")])
        >>> [result.node.text for result in Retriever(graph, "ROOT", "exact")("a cup")]
        ['A cup.']
    """

    normalize: bool | Callable[[str], str] = True
    name: str = "exact"
    mode: ClassVar[Literal["text"]] = "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> KeyIndex:
        """Return the index of a group, which all retrievers share."""
        name = ("exact index", group, self.normalize)
        return graph.reader.shared(name, lambda: KeyIndex(graph, group, self))

    def prepare(self, query: str, indexes: Sequence[KeyIndex]) -> TermWeights:
        """Return the key to look up as the only term of the query. Its score is 1 in every node."""
        return TermWeights(dict.fromkeys(self(query), 1.0), Saturation(0.0, 0.0, 0.0))

    def __call__(self, text: str) -> list[str]:
        """Return the key of a text as its only term.

        If the key is empty, the text never matches.
        """
        if self.normalize:
            text = normal_text(text) if self.normalize is True else self.normalize(text)
        return [text] if text else []


class KeyIndex(TextIndex):
    """The nodes of a group by their key, which is the only term of a node."""

    uses_search_text = False

    def file_name(self) -> None:
        """Return None, because the index exists only in memory."""
