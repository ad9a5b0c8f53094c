"""All nodes of one group, scored one by one by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..filters import Filter
from ..results import Hits
from .node_table import NodeTable
from .synced_index import SyncedIndex


class ScanIndex(SyncedIndex):
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
        self._table = NodeTable()
        self._nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        self._table.remove(ids)
        for node_id in ids:
            self._nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Add nodes."""
        self._table.add(nodes)
        self._nodes.update((node.id, node) for node in nodes)

    def finish(self) -> None:
        """Close gaps."""
        if self._table.sparse:
            self._table.compact()

    def ready(self) -> None:
        """Embed nodes that have no vector yet, before the graph is held."""
        if self._key is not None and (pending := self.pending()):
            self._vectors(pending.changes.added)

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
        table = self._table
        matching = table.matching(filter)
        allowed = table.alive if matching is None else matching & table.alive
        nodes = [self._nodes[i] for i, use in zip(table.ids, allowed, strict=True) if use]
        if not nodes:
            return Hits([], [])
        nodes.sort(key=lambda node: node.order)
        vectors = None if self._key is None else self._vectors(nodes)
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
