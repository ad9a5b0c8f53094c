"""The contracts of this room: what a retriever, a similarity and an index are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ..nodegraph import NodeGraph
from .filters import Condition, Filters
from .hits import Hits
from .scored_node import ScoredNode

PreparedT = TypeVar("PreparedT", contravariant=True)


class Retrieves(Protocol):
    """Anything that finds nodes for a query; strategies and fusions are such around such."""

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        ...

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        ...


class Index(Protocol[PreparedT]):
    """Makes one similarity fast on one group of one graph."""

    def sync(self) -> None:
        """Take in what has changed in the graph; called while the graph is held."""
        ...

    def search(
        self, query: PreparedT, limit: int | None, conditions: Mapping[str, Condition]
    ) -> Hits:
        """Return the best nodes that meet the conditions; ``limit`` None for all that match."""
        ...


class Similarity(Protocol):
    """Scores nodes for a query: opens an index on a group, and readies a query for indexes."""

    @property
    def name(self) -> str:
        """What evidence calls it."""
        ...

    def open(self, graph: NodeGraph, group: str) -> Index[Any]:
        """Return the group's index, shared by all who want the same."""
        ...

    def prepare(self, query: str, indexes: Sequence[Any]) -> Any:
        """Ready a query once for all indexes that are searched together."""
        ...
