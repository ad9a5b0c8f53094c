"""All nodes of one group, scored one by one by a function."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...nodegraph import Node, NodeGraph
from ..filters import Condition
from ..results import Hits
from .node_table import Slots

_GAPS = 1_000


class ScanIndex:
    """Keep the nodes of a group at hand for similarities that look at every one.

    Args:
        graph: The node graph.
        group: The group of nodes.
        key: Which embedding's vectors are given beside the nodes; None for none.
    """

    def __init__(self, graph: NodeGraph, group: str, key: str | None = None) -> None:
        self._graph = graph
        self._group = group
        self._key = key
        self._syncing = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._slots = Slots()
        self._nodes: dict[str, Node] = {}
        self._revision = 0

    def ready(self) -> None:
        """Embed what the group lacks, before the graph is held."""
        if self._key is None:
            return
        with self._graph.reading(self._group):
            if self._revision == self._graph.revision(self._group):
                return
            added = self._graph.changes(self._group, self._revision).added
        self._vectors([node.text for node in added])

    def sync(self) -> None:
        """Take in what has changed in the graph since the last time."""
        with self._syncing:
            if self._revision == self._graph.revision(self._group):
                return
            changes = self._graph.changes(self._group, self._revision)
            if changes.complete:
                self._clear()
            self._slots.remove(changes.removed)
            for i in changes.removed:
                self._nodes.pop(i, None)
            self._slots.add(changes.added)
            self._nodes.update((node.id, node) for node in changes.added)
            if len(self._slots) > 2 * self._slots.living + _GAPS:
                self._slots.compact()
            self._revision = changes.revision

    def search(
        self,
        query: Callable[[Sequence[Node], Any], Sequence[float | None]],
        limit: int | None,
        conditions: Mapping[str, Condition],
    ) -> Hits:
        """Return the best nodes, ties in document order.

        Args:
            query: Scores nodes; None for one that does not match.
            limit: How many; None for all that match.
            conditions: What their metadata must meet.
        """
        allowed = self._slots.matching(conditions)
        alive = self._slots.alive if allowed is None else allowed & self._slots.alive
        nodes = [self._nodes[i] for i, good in zip(self._slots.ids, alive, strict=True) if good]
        if not nodes:
            return Hits([], [])
        nodes.sort(key=lambda node: node.order)
        vectors = None if self._key is None else self._vectors([node.text for node in nodes])
        scored = [
            (score, node)
            for score, node in zip(query(nodes, vectors), nodes, strict=True)
            if score is not None
        ]
        scored.sort(key=lambda each: -each[0])
        best = scored[:limit]
        return Hits([node.id for _, node in best], [score for score, _ in best])

    def _vectors(self, texts: Sequence[str]) -> Any:
        return self._graph.embeddings.vectors(texts, self._key or "default", what=self._group)
