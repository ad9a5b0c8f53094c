"""Look questions up by their words alone, whatever their case, spacing and punctuation."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Mapping

from ...nodegraph import Node, NodeGraph
from ...nodegraph.splitters.characters import UNSPACED
from ..filters import Condition

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
