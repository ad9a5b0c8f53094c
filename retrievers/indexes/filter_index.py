"""An index that selects nodes by filters, without a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...nodegraph.node import Node
from ..filters import Filter
from ..results import Hits
from .node_table import NodeTable
from .synced_index import SyncedIndex

_GAPS = 1_000  # the maximum number of empty rows in a small table before it is compacted


class FilterIndex(SyncedIndex):
    """An index that selects nodes by filters, without a query.

    Attributes:
        table: The table of the nodes.
    """

    def clear(self) -> None:
        """Remove all nodes from the index."""
        self.table = NodeTable()

    @property
    def size(self) -> int:
        """The number of nodes in the index."""
        return self.table.size

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes from the index. Their rows stay empty until the index is compacted."""
        self.table.remove(ids)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes to the index."""
        self.table.add(nodes)

    def finish(self) -> None:
        """Compact the index if most of its rows are empty."""
        if len(self.table) > 2 * self.size + _GAPS:
            self.compact()

    def compact(self) -> None:
        """Remove the empty rows of the index."""
        self.table = self.table.compacted()

    def search(self, query: Any, limit: int | None, filter: Filter) -> Hits:
        """Return the first nodes in document order that match a filter, with a score of 0."""
        rows = np.flatnonzero(self.table.allowed(filter))
        order = np.argsort(self.table.orders[rows], kind="stable")[:limit]
        ids = self.table.ids_of(rows[order])
        return Hits(ids, [0.0] * len(ids))
