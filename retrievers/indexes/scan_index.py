"""An index for similarities that score each node individually."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..filters import Filter
from ..protocols import Snapshot
from ..results import Hits
from .synced_index import SyncedIndex

Scoring = Callable[[Sequence[Node], Any], Sequence["float | None"]]
"""A function that returns the scores of nodes, given the nodes and their vectors.

The score is None for a node that does not match.
"""


class ScanIndex(SyncedIndex):
    """An index for similarities that score each node of a group individually.

    Args:
        graph: The graph.
        group: The name of the group.
        key: The name of the embedding whose vectors are passed to the similarity. If None, no
            vectors are passed.
    """

    uses_search_text = True

    def __init__(self, graph: NodeGraph, group: str, key: str | None = None) -> None:
        self._key = key
        super().__init__(graph, group)

    def clear(self) -> None:
        """Remove all nodes from the index."""
        self._nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes from the index."""
        for node_id in ids:
            self._nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes to the index."""
        self._nodes.update((node.id, node) for node in nodes)

    def search(
        self,
        query: Scoring,
        limit: int | None,
        filter: Filter,
    ) -> Hits:
        """Return the best nodes. Nodes with equal scores are in document order.

        Args:
            query: A function that returns the scores of nodes (None for no match), given the nodes
                and their vectors.
            limit: The maximum number of nodes. If None, all matching nodes are returned.
            filter: The filter that nodes must match.
        """
        return self.snapshot([query], filter).search([0], limit)[0]

    def snapshot(self, queries: Sequence[Scoring], filter: Filter) -> Snapshot:
        """Return a search that calls the scoring functions without holding the lock.

        Later changes of the index do not affect the search.
        """
        nodes = [node for node in self._nodes.values() if filter.matches(node)]
        nodes.sort(key=lambda node: node.order)
        vectors: Any = None
        if nodes and self._key is not None:
            texts = self._graph.reader.searched_texts(nodes)
            vectors = self._graph.embeddings.vectors(texts, self._key, what=self._group)
            usable = vectors.any(axis=1)  # a vector of zeros cannot be compared
            vectors = vectors[usable]
            nodes = list(compress(nodes, usable.tolist()))

        def search(numbers: Sequence[int], limit: int | None) -> list[Hits]:
            return [_best(queries[number], nodes, vectors, limit) for number in numbers]

        return Snapshot(search, self._graph.reader.parent_ids)


def _best(query: Scoring, nodes: Sequence[Node], vectors: Any, limit: int | None) -> Hits:
    """Return the best nodes for a query. Nodes with equal scores keep their order."""
    scores = query(nodes, vectors) if nodes else []
    scored = [(s, node) for s, node in zip(scores, nodes, strict=True) if s is not None]
    scored.sort(key=lambda pair: -pair[0])
    best = scored[:limit]
    return Hits([node.id for _, node in best], [score for score, _ in best])
