"""Exact look-up: a hash map from texts to nodes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, ClassVar, Literal

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import UNSPACED
from ..filters import Filter
from ..protocols import Snapshot
from ..results import Hits
from .bm25_scores import Saturation, TermWeights
from .synced_index import SyncedIndex
from .text_index import TextIndex

_NO_SPACE = re.compile(rf"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")

_QUOTES = "“”„‟‘’‚«»‹›「」『』《》〈〉【】"

# A sign before a word belongs to the word: -5, .NET, !important, $5.
_START = re.compile(rf"^(?:[\s{_QUOTES}¿¡…,;、。]|\.{{2,}}|[.!?:·~]+(?=\s))+")

_END = f" {_QUOTES}.,:;!?…。、·~"

_PAIRS = {'"': '"', "'": "'", "(": ")", "[": "]", "{": "}"}

_NESTED = 3  # pairs around each other

Scoring = Callable[[Sequence[Node], Any], Sequence["float | None"]]
"""A function from nodes and their vectors to scores. None: no match."""


def normal_text(text: str) -> str:
    """Return a text without differences of case, width, spaces and outer punctuation.

    Other signs stay: C++ is not C, 3.5 is not 35, -5 is not 5. Of spaces, only their number is
    ignored. In Chinese and Japanese, all spaces are ignored.

    Example:
        >>> normal_text(" “What  is C++” ?"), normal_text("ＡＩ 是 什么？！"), normal_text("--")
        ('what is c++', 'ai是什么', '--')
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _NO_SPACE.sub("", _without_edges(plain)) or plain


def _without_edges(text: str) -> str:
    """Remove outer punctuation, and quotes and brackets around the whole text."""
    for _ in range(_NESTED):
        text = _START.sub("", text).rstrip(_END)
        if len(text) > 1 and _PAIRS.get(text[0]) == text[-1]:
            text = text[1:-1]
    return _START.sub("", text).rstrip(_END)


@dataclass(frozen=True, slots=True)
class Exact:
    """A similarity that matches nodes whose normalized text equals the query.

    Use it for keys, names, codes and answered questions. A search is one lookup without a model.
    Every hit scores 1.

    Args:
        normalize: Whether to ignore case, width, spaces and outer punctuation, or a function from
            a text to its compared form. Texts with an empty compared form never match.

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
        """Return the shared index of a group."""
        name = ("exact index", group, self.normalize)
        return graph.reader.shared(name, lambda: KeyIndex(graph, group, self))

    def prepare(self, query: str, indexes: Sequence[KeyIndex]) -> TermWeights:
        """Return the key to look up, as the only term. Its score is 1 in every node."""
        return TermWeights(dict.fromkeys(self(query), 1.0), Saturation(0.0, 0.0, 0.0))

    def __call__(self, text: str) -> list[str]:
        """Return the term of a text: its key. No term: the text never matches."""
        if self.normalize:
            text = normal_text(text) if self.normalize is True else self.normalize(text)
        return [text] if text else []


class ScanIndex(SyncedIndex):
    """The nodes of a group, for similarities that score each node.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: The embedding whose vectors are passed with the nodes; None for none.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, key: str | None = None) -> None:
        self._key = key
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything."""
        self._nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        for node_id in ids:
            self._nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes."""
        self._nodes.update((node.id, node) for node in nodes)

    def search(
        self,
        query: Scoring,
        limit: int | None,
        filter: Filter,
    ) -> Hits:
        """Return the best nodes, ties in document order.

        Args:
            query: A function from nodes and their vectors to scores; None for no match.
            limit: The maximum number of nodes. None: all that match.
            filter: The conditions.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[Scoring], filter: Filter) -> Snapshot:
        """Return the search for queries, which calls their functions without the lock.

        Later changes of the index do not change the search.
        """
        nodes = [node for node in self._nodes.values() if filter.matches(node)]
        nodes.sort(key=lambda node: node.order)
        vectors: Any = None
        if nodes and self._key is not None:
            texts = self._graph.reader.searched_texts(nodes)
            vectors = self._graph.embeddings.vectors(texts, self._key, what=self._group)
            usable = vectors.any(axis=1)  # a vector of zeros has no direction
            vectors = vectors[usable]
            nodes = list(compress(nodes, usable.tolist()))

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            return [_best(queries[number], nodes, vectors, limit) for number in numbers]

        return Snapshot(search, self._graph.reader.parent_ids)


def _best(query: Scoring, nodes: Sequence[Node], vectors: Any, limit: int | None) -> Hits:
    """Return the best nodes for a query, ties in their order."""
    scores = query(nodes, vectors) if nodes else []
    scored = [(s, node) for s, node in zip(scores, nodes, strict=True) if s is not None]
    scored.sort(key=lambda pair: -pair[0])
    best = scored[:limit]
    return Hits([node.id for _, node in best], [score for score, _ in best])


class KeyIndex(TextIndex):
    """The nodes of a group by key, which is the only term of a node."""

    uses_search_text = False

    def file_name(self) -> None:
        """Return None: the index is kept in memory."""
