"""An index of nodes that are selected by filters alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...nodegraph.node import Node
from ..filters import Filter
from ..results import Hits
from .node_table import NodeTable
from .synced_index import SyncedIndex

_GAPS = 1_000  # maximum empty rows of a table that is not compacted


class FilterIndex(SyncedIndex):
    """An index of nodes that are listed by filters alone.

    Attributes:
        table: The table of the nodes.
    """

    def clear(self) -> None:
        """Remove all nodes."""
        self.table = NodeTable()

    @property
    def size(self) -> int:
        """The number of nodes."""
        return self.table.size

    def remove(self, ids: Sequence[str]) -> None:
        """Remove nodes. Their rows stay until the index is compacted."""
        self.table.remove(ids)

    def add(self, nodes: Sequence[Node]) -> None:
        """Add nodes."""
        self.table.add(nodes)

    def finish(self) -> None:
        """Compact the index if most rows are empty."""
        if len(self.table) > 2 * self.size + _GAPS:
            self.compact()

    def compact(self) -> None:
        """Remove empty rows."""
        self.table = self.table.compacted()

    def search(self, query: Any, limit: int | None, filter: Filter) -> Hits:
        """Return the first nodes in document order that meet a filter, with the score 0."""
        rows = np.flatnonzero(self.table.allowed(filter))
        order = np.argsort(self.table.orders[rows], kind="stable")[:limit]
        ids = self.table.ids_of(rows[order])
        return Hits(ids, [0.0] * len(ids))
