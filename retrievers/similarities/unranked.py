"""List the nodes that meet a filter, where there is no query to rank them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from ...nodegraph.graph import NodeGraph

if TYPE_CHECKING:
    from ..indexes.filter_index import FilterIndex


class Unranked:
    """Match every node that meets the filter, in document order, each with the score 0.

    It is what ``Retriever`` searches a blank query by, and asks no model.
    """

    name: ClassVar[str] = "filter"
    mode: ClassVar[Literal["text"]] = "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> FilterIndex:
        """Return the group's index, shared by all."""
        from ..indexes.filter_index import FilterIndex

        return graph.shared(("filter index", group), lambda: FilterIndex(graph, group))

    def prepare(self, query: str, indexes: Sequence[FilterIndex]) -> None:
        """Do nothing: there is no query."""
