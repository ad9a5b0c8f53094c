"""A hash map from texts, or values of a metadata field, to the nodes that have them."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...nodegraph import Node, NodeGraph
from ...nodegraph.splitters import UNSPACED
from ..filters import Condition
from ..results import Hits

_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Exact:
    """Find the nodes whose text is the query, but for case, width, spaces and punctuation.

    For keys, names, codes and questions that were answered before: no model, no ranking, one
    look-up. Every hit scores 1.

    Args:
        field: A metadata field to look in, instead of the text; of a list, any item.
        normalize: Whether case, width, spaces and punctuation don't count.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("A kettle.", {"code": "K-1"}), Document("A cup.")])
        >>> [result.node.text for result in Retriever(graph, "ROOT", "exact")("a cup")]
        ['A cup.']
        >>> [result.node.text for result in Retriever(graph, "ROOT", "exact", field="code")("k1")]
        ['A kettle.']
    """

    field: str | None = None
    normalize: bool = True
    name: str = "exact"
    mode: ClassVar[Literal["text"]] = "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> MapIndex:
        """Return the group's map, shared by all who want the same."""
        name = ("map", group, self.field, self.normalize)
        return graph.shared(name, lambda: MapIndex(graph, group, self))

    def prepare(self, query: str, indexes: Sequence[MapIndex]) -> str:
        """Return the key to look up."""
        return self.key(query)

    def key(self, value: Any) -> str:
        """Return what is compared of a value."""
        text = str(value)
        if not self.normalize:
            return text
        plain = unicodedata.normalize("NFKC", text).casefold()
        return _MARKS.sub("", plain) or plain.strip()

    def keys(self, node: Node) -> set[str]:
        """Return the keys by which a node is found."""
        if self.field is None:
            return {self.key(node.text)}
        value = node.metadata.get(self.field)
        if value is None:
            return set()
        several = isinstance(value, list | tuple | set | frozenset)
        return {self.key(each) for each in value} if several else {self.key(value)}


class MapIndex:
    """Look nodes up by key; adding and removing costs what the nodes cost."""

    def __init__(self, graph: NodeGraph, group: str, exact: Exact) -> None:
        self._graph = graph
        self._group = group
        self._exact = exact
        self._syncing = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._found: dict[str, dict[str, None]] = {}  # key -> ids
        self._revision = 0

    def ready(self) -> None:
        """Do nothing: there is no model."""

    def sync(self) -> None:
        """Take in what has changed in the graph since the last time."""
        with self._syncing:
            if self._revision == self._graph.revision(self._group):
                return
            changes = self._graph.changes(self._group, self._revision)
            if changes.complete:
                self._clear()
            for i in changes.removed:
                if (node := self._nodes.pop(i, None)) is not None:
                    for key in self._exact.keys(node):
                        self._found[key].pop(i, None)
                        if not self._found[key]:
                            del self._found[key]
            for node in changes.added:
                self._nodes[node.id] = node
                for key in self._exact.keys(node):
                    self._found.setdefault(key, {})[node.id] = None
            self._revision = changes.revision

    def search(self, query: str, limit: int | None, conditions: Mapping[str, Condition]) -> Hits:
        """Return the nodes of a key in document order, each with the score 1."""
        nodes = [self._nodes[i] for i in self._found.get(query, ())]
        good = [
            node
            for node in nodes
            if all(
                field in node.metadata and condition(node.metadata[field])
                for field, condition in conditions.items()
            )
        ]
        best = sorted(good, key=lambda node: node.order)[:limit]
        return Hits([node.id for node in best], [1.0] * len(best))


_SPACE = re.compile(r"\s+")

_NO_SPACE = re.compile(rf"(?<=[{UNSPACED}]) | (?=[{UNSPACED}])")

_EDGE = " ?!.。,、;:~…\"'“”‘’「」『』¿¡"


def normal_question(text: str) -> str:
    """Return a question as it is compared: width, case, spaces and marks around it don't count.

    Marks inside stay: C++ is not C, 3.5 is not 35.

    Example:
        >>> normal_question(" What  is C++ ?"), normal_question("ＡＩ 是 什么？！")
        ('what is c++', 'ai是什么')
    """
    text = unicodedata.normalize("NFKC", text).casefold().strip(_EDGE)
    return _NO_SPACE.sub("", _SPACE.sub(" ", text)).strip(_EDGE)


class QuestionMap:
    """Keep the questions of a group by their normal form, in step with the graph.

    Call ``sync`` and ``find`` while the graph is held (``graph.reading``).
    """

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph = graph
        self._group = group
        self._lock = threading.Lock()
        self._clear()

    @classmethod
    def of(cls, graph: NodeGraph, group: str) -> QuestionMap:
        """Return the group's map, shared by all who want it."""
        return graph.shared(("question map", group), lambda: cls(graph, group))

    def _clear(self) -> None:
        self._revision = 0
        self._normal: dict[str, str] = {}  # by node id
        self._ids: dict[str, list[str]] = {}  # by normal form

    def sync(self) -> None:
        """Take in what has changed in the graph since the last time."""
        with self._lock:
            if self._revision == self._graph.revision(self._group):
                return
            changes = self._graph.changes(self._group, self._revision)
            if changes.complete:
                self._clear()
            for node_id in changes.removed:
                self._remove(node_id)
            for node in changes.added:
                self._remove(node.id)
                if normal := normal_question(node.text):
                    self._normal[node.id] = normal
                    self._ids.setdefault(normal, []).append(node.id)
            self._revision = changes.revision

    def _remove(self, node_id: str) -> None:
        normal = self._normal.pop(node_id, None)
        if normal is not None:
            self._ids[normal].remove(node_id)
            if not self._ids[normal]:
                del self._ids[normal]

    def find(self, question: str, conditions: Mapping[str, Condition]) -> list[Node]:
        """Return the nodes that ask this and meet the conditions, in document order."""
        with self._lock:
            ids = list(self._ids.get(normal_question(question), ()))
        nodes = sorted(self._graph.nodes_by_id(ids), key=lambda node: node.order)
        return [node for node in nodes if _meets(node, conditions)]


def _meets(node: Node, conditions: Mapping[str, Condition]) -> bool:
    metadata = node.metadata
    return all(f in metadata and meets(metadata[f]) for f, meets in conditions.items())
