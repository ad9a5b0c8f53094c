"""The protocols of this package: retriever, similarity, index and reranker."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from ..nodegraph.graph import NodeGraph
from .filters import Filter, Filters
from .results import Hits, ScoredNode

PreparedT = TypeVar("PreparedT", contravariant=True)


class RetrieverProtocol(Protocol):
    """An object that finds nodes for a query. Strategies and fusions wrap retrievers.

    Example:
        >>> from nodekin.nodegraph import Node, NodeGraph
        >>> from nodekin.retrievers import FusionRetriever, Retriever
        >>> class News:
        ...     def retrieve(self, query, *, top_k=None, filters=None):
        ...         return [ScoredNode(Node("Tea is cheap today.", id="news"), 1.0)][:top_k]
        ...     async def aretrieve(self, query, *, top_k=None, filters=None):
        ...         return self.retrieve(query, top_k=top_k, filters=filters)
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea is a drink."])
        >>> [r.text for r in FusionRetriever([Retriever(graph, "ROOT"), News()])("tea")]
        ['Tea is a drink.', 'Tea is cheap today.']
    """

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first.

        Args:
            query: The question.
            top_k: Maximum number of results. None means the retriever's own number.
            filters: Conditions on metadata. None means no conditions.
        """

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Async version of ``retrieve``."""


RetrieverLike: TypeAlias = RetrieverProtocol | Any
"""A retriever, or any object that ``as_retriever`` accepts, such as a foreign retriever."""


class Index(Protocol[PreparedT]):
    """A search index for one similarity on one group of one graph.

    The optional method ``snapshot(queries, filter)`` returns a ``Snapshot``. A large index with
    this method is searched without the graph's lock.
    """

    def ready(self) -> None:
        """Do slow work, such as model calls, before ``sync``. The graph is not locked."""

    def sync(self) -> None:
        """Apply the graph's changes. The graph is locked."""

    def search(self, query: PreparedT, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes that meet the filter. If ``limit`` is None, return all of them."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The search of an index at one revision of its group, for given queries.

    Attributes:
        search: A function from numbers of queries and a limit to the best nodes of each query. A
            limit of None returns all nodes.
        parents: A function from the ids of found nodes to their parents.
        term_scores: For words, a function from a query's number and node ids to an array (nodes,
            terms) with the scores of each term. None for other indexes.
        size: For words, the number of nodes. If it is small, they are searched while the graph is
            locked. For other indexes, it is infinite, and they are searched without the lock.
        siblings: For words, a function from ids to the number of nodes with the same parent. None
            for other indexes.
    """

    search: Callable[[Sequence[int], int | None], list[Hits]]
    parents: Callable[[Sequence[str]], Sequence[str | None]]
    term_scores: Any = None
    size: float = math.inf
    siblings: Any = None


class Similarity(Protocol):
    """A scoring of nodes for a query. It opens an index on a group and prepares queries.

    ``mode`` selects texts or embeddings. The search calls the models before it locks a graph, and
    passes the query as text or as a vector.
    """

    @property
    def name(self) -> str:
        """The name in evidence."""

    @property
    def mode(self) -> Literal["text", "embedding"]:
        """Whether queries are texts, or vectors of an embedding of the graph."""

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Any]:
        """Return the group's index, which equal similarities share.

        Args:
            graph: The node graph.
            group: The group to search.
            key: The key of the graph's embedding. None if the similarity compares texts.
        """

    def prepare(self, query: Any, indexes: Sequence[Any]) -> Any:
        """Prepare a query once for all indexes of a search.

        Args:
            query: The text (str), or the float32 vector (dimension,).
            indexes: The indexes of the search. For texts, there is one per graph. For embeddings,
                there is only the index of one graph and key, since graphs may have different
                models.
        """


class RerankError(RuntimeError):
    """An error: a reranker failed or returned invalid scores. The results are unchanged."""


class RerankerProtocol(Protocol):
    """A reranker or filter of results. ``Reranker`` wraps it.

    An optional ``arerank`` with the same arguments avoids blocking the event loop. Without it, a
    thread is used. A filter that judges each result independently and calls no model, such as
    ``KeywordFilter``, sets ``is_filter = True``. ``RerankRetriever`` then retrieves more candidates
    until enough results remain.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import RerankRetriever, Retriever
        >>> class ShortestFirst:
        ...     name = "shortest first"
        ...     def rerank(self, results, query):
        ...         return sorted(results, key=lambda result: len(result.text))
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea, tea and tea.", "Black tea."])
        >>> [r.text for r in RerankRetriever(Retriever(graph, "ROOT"), ShortestFirst())("tea")]
        ['Black tea.', 'Green tea, tea and tea.']
    """

    @property
    def name(self) -> str:
        """The name in evidence."""

    @property
    def rerank(self) -> Callable[..., Sequence[ScoredNode]]:
        """The method ``rerank(results, query)``. It returns the selected results, best first.

        A reranker that gives new scores inserts an ``Evidence`` with its name before the existing
        evidence. Ties keep their order. Settings of a call are keyword arguments.
        """


def by_score(results: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Return results, best first. Ties keep their order."""
    return sorted(results, key=lambda result: -result.score)
