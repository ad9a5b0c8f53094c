"""The contracts of this room: what a retriever, a similarity and an index are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ..nodegraph.graph import NodeGraph
from .filters import Filter, Filters
from .results import Hits, ScoredNode

PreparedT = TypeVar("PreparedT", contravariant=True)


class RetrieverProtocol(Protocol):
    """Anything that finds nodes for a query; strategies and fusions are such around such."""

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""


RetrieverLike: TypeAlias = RetrieverProtocol | Any
"""A retriever, or what ``as_retriever`` takes for one: that of another framework, as it is."""


class Index(Protocol[PreparedT]):
    """Makes one similarity fast on one group of one graph.

    One that is quicker with many queries than with one after the other has ``search_many``
    besides, which takes a sequence of them and returns a list of hits.
    """

    def ready(self) -> None:
        """Do what may take long (a model) for a later ``sync``; the graph is not held yet."""

    def sync(self) -> None:
        """Take in what has changed in the graph; called while the graph is held."""

    def search(self, query: PreparedT, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes that meet the filter; ``limit`` None for all that match."""


class Similarity(Protocol):
    """Scores nodes for a query: opens an index on a group, and readies a query for indexes.

    It says whether it compares texts or embeddings; whoever searches calls the models, before
    any graph is held, and gives it the query as text or as a vector.
    """

    @property
    def name(self) -> str:
        """What evidence calls it."""

    @property
    def mode(self) -> Literal["text", "embedding", "both"]:
        """Whether it gets queries as texts, as vectors of an embedding of the graph, or as both."""

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Any]:
        """Return the group's index, shared by all who want the same.

        Args:
            graph: The node graph.
            group: The group to search.
            key: Which of the graph's embeddings; None for a similarity of texts.
        """

    def prepare(self, query: Any, indexes: Sequence[Any]) -> Any:
        """Ready a query once for all indexes that are searched together.

        Args:
            query: The text (str), or the vector (dimension,) of float32.
            indexes: All that are searched for it: of texts, one for each graph; of embeddings,
                that of one graph and key, since every graph has models of its own.
        """


class RerankError(RuntimeError):
    """A reranker failed, or gave scores that can't be used; what was found before is unharmed."""


class RerankerProtocol(Protocol):
    """Puts results in a new order, or drops some; ``Reranker`` holds one.

    One that can work without blocking the event loop has ``arerank`` besides, with the same
    arguments; for others a thread is used. One that costs nothing and decides of each result by
    itself whether it stays, as ``KeywordFilter`` does, says so by ``is_filter = True``:
    ``RerankRetriever`` gives it more candidates until enough of them have stayed.
    """

    @property
    def name(self) -> str:
        """What evidence calls it."""

    @property
    def rerank(self) -> Callable[..., Sequence[ScoredNode]]:
        """Take results and a query, return the results that stay, best first.

        One that scores anew puts an ``Evidence`` with its name before those that were there;
        equal scores keep the order in which they came. Settings of a call are keywords.
        """


def by_score(results: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Return results best first; equal scores keep their order."""
    return sorted(results, key=lambda result: -result.score)
