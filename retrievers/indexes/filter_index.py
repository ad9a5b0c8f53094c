"""The nodes of a group with their metadata and nothing else, to list those that meet a filter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...nodegraph.node import Node
from ..filters import Filter
from ..results import Hits
from .node_table import NodeTable
from .synced_index import SyncedIndex


class FilterIndex(SyncedIndex):
    """List nodes by filters alone."""

    def clear(self) -> None:
        """Remove everything."""
        self._table = NodeTable()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes."""
        self._table.remove(ids)

    def add(self, nodes: Sequence[Node], prepared: None = None) -> None:
        """Add nodes."""
        self._table.add(nodes)

    def finish(self) -> None:
        """Close gaps."""
        if self._table.sparse:
            self._table.compact()

    def search(self, query: object, limit: int | None, filter: Filter) -> Hits:
        """Return the first nodes in document order that meet a filter, each with the score 0."""
        table = self._table
        matching = table.matching(filter)
        rows = np.flatnonzero(table.alive if matching is None else matching & table.alive)
        rows = rows[np.argsort(table.orders[rows], kind="stable")][:limit]
        return Hits(table.ids.take(rows), [0.0] * len(rows))
