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
from ..results import Hits
from .node_table import FilterIndex
from .synced_index import SyncedIndex

_PUNCTUATION = re.compile(r"[\W_]+")

_SPACE = re.compile(r"\s+")

_NO_SPACE = re.compile(rf"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")

_EDGE = " ?!.。,、;:~…\"'“”‘’「」『』¿¡"


def normal_text(text: str) -> str:
    """Return a text without differences of case, width, spaces and punctuation.

    Example:
        >>> normal_text("Ｋ-1 ?"), normal_text("--")
        ('k1', '--')
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _PUNCTUATION.sub("", plain) or plain.strip()


def normal_question(text: str) -> str:
    """Normalize case, width, spaces and outer punctuation of a question.

    Punctuation inside stays: C++ is not C, 3.5 is not 35.

    Example:
        >>> normal_question(" What  is C++ ?"), normal_question("ＡＩ 是 什么？！")
        ('what is c++', 'ai是什么')
    """
    text = unicodedata.normalize("NFKC", text).casefold().strip(_EDGE)
    return _NO_SPACE.sub("", _SPACE.sub(" ", text)).strip(_EDGE)


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

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> ExactIndex:
        """Return the shared index of a group."""
        name = ("exact index", group, self.normalize)
        return graph.reader.shared(name, lambda: ExactIndex(graph, group, self))

    def prepare(self, query: str, indexes: Sequence[ExactIndex]) -> str:
        """Return the key to look up."""
        return self.key(query)

    def key(self, text: str) -> str:
        """Return the key of a text. Empty: the text never matches."""
        if self.normalize is True:
            return normal_text(text)
        return self.normalize(text) if self.normalize else text


class ExactIndex(SyncedIndex):
    """Look nodes up by key."""

    def __init__(self, graph: NodeGraph, group: str, exact: Exact) -> None:
        self._exact = exact
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove everything."""
        self._nodes: dict[str, Node] = {}
        self._ids: dict[str, dict[str, None]] = {}  # node ids by key

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        for node_id in ids:
            if (node := self._nodes.pop(node_id, None)) is not None:
                same = self._ids.get(key := self._exact.key(node.text), {})
                same.pop(node_id, None)
                if not same:
                    self._ids.pop(key, None)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes."""
        for node in nodes:
            self._nodes[node.id] = node
            if key := self._exact.key(node.text):
                self._ids.setdefault(key, {})[node.id] = None

    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        """Return the nodes of a key in document order, each with the score 1."""
        nodes = [self._nodes[node_id] for node_id in self._ids.get(query, ())]
        nodes = [node for node in nodes if filter.matches(node)]
        nodes.sort(key=lambda node: node.order)
        return Hits([node.id for node in nodes[:limit]], [1.0] * len(nodes[:limit]))


class ScanIndex(FilterIndex):
    """Hold the nodes of a group for similarities that score every one.

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
        super().clear()
        self._nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        super().remove(ids)
        for node_id in ids:
            self._nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes."""
        super().add(nodes)
        self._nodes.update((node.id, node) for node in nodes)

    def search(
        self,
        query: Callable[[Sequence[Node], Any], Sequence[float | None]],
        limit: int | None,
        filter: Filter,
    ) -> Hits:
        """Return the best nodes, ties in document order.

        Args:
            query: Scores nodes; None for one that does not match.
            limit: How many; None for all that match.
            filter: What their metadata must meet.
        """
        nodes = [self._nodes[node_id] for node_id in self._matching_ids(filter)]
        vectors = self._vectors(nodes) if nodes and self._key is not None else None
        if vectors is not None:  # a vector of zeros is not usable
            usable = vectors.any(axis=1)
            vectors, nodes = vectors[usable], list(compress(nodes, usable.tolist()))
        if not nodes:
            return Hits([], [])
        scored = [
            (score, node)
            for score, node in zip(query(nodes, vectors), nodes, strict=True)
            if score is not None
        ]
        scored.sort(key=lambda pair: -pair[0])
        best = scored[:limit]
        return Hits([node.id for _, node in best], [score for score, _ in best])

    def _vectors(self, nodes: Sequence[Node]) -> Any:
        texts = self._graph.reader.searched_texts(nodes)
        return self._graph.embeddings.vectors(texts, self._key or "default", what=self._group)
