"""The protocols of this package: retrievers, similarities, indexes and rerankers."""

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
    """An object that finds nodes for a query, and can be wrapped by strategies and fusions.

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
        """Return the best nodes for a query, best first.

        Args:
            query: The question.
            top_k: The maximum number of results. If None, the ``top_k`` of the retriever is used.
            filters: Conditions on metadata. If None, the results are not filtered.
        """

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Asynchronous version of ``retrieve``."""


RetrieverLike: TypeAlias = RetrieverProtocol | Any
"""A retriever, or any object that ``as_retriever`` accepts, such as a LangChain retriever."""


class Index(Protocol[PreparedT]):
    """A search index for one similarity and one group of a graph.

    An index can have a method ``snapshot(queries, filter)`` that returns a ``Snapshot``. A large
    index with this method is searched while the graph is not locked.
    """

    def ready(self) -> None:
        """Do slow work, such as model calls, before ``sync``. The lock of the graph is not held."""

    def sync(self) -> None:
        """Apply the changes of the graph to the index. The caller holds the lock of the graph."""

    def search(self, query: PreparedT, limit: int | None, filter: Filter) -> Hits:
        """Return the best nodes that match a filter.

        If ``limit`` is None, all of them are returned.
        """


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A search of an index at one revision of its group, for a given batch of queries.

    Attributes:
        search: A function that returns the best nodes of several queries. Its arguments are the
            positions of the queries in the batch, and the maximum number of nodes (None for all
            nodes).
        parents: A function that returns the parents of nodes, given their ids.
        term_scores: For words, a function that returns an array of shape (nodes, terms) with the
            score of each term, given the position of a query and the ids of nodes. For other
            indexes, None.
        size: For words, the number of nodes. If it is small, the index is searched while the graph
            is locked. For other indexes, the size is infinite, and they are searched without the
            lock.
        siblings: For words, a function that returns the number of nodes with the same parent, given
            the ids of nodes. For other indexes, None.
        inherits: A function that returns whether each node has exactly the metadata of its parent,
            and belongs to one document, given the ids of nodes. If None, this is unknown.
    """

    search: Callable[[Sequence[int], int | None], list[Hits]]
    parents: Callable[[Sequence[str]], Sequence[str | None]]
    term_scores: Any = None
    size: float = math.inf
    siblings: Any = None
    inherits: Callable[[Sequence[str]], Sequence[bool]] | None = None


class Similarity(Protocol):
    """A method that scores nodes for a query.

    A similarity opens an index for a group and prepares queries for it. ``mode`` determines whether
    texts or embeddings are compared. The search calls the embedding models before it locks a graph,
    and passes the query as a text or as a vector.
    """

    @property
    def name(self) -> str:
        """The name of the similarity in evidence."""

    @property
    def mode(self) -> Literal["text", "embedding"]:
        """Whether queries are texts, or vectors of one of the graph's embeddings."""

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Any]:
        """Return the index of a group, which equal similarities share.

        Args:
            graph: The graph.
            group: The name of the group to search.
            key: The name of the embedding, or None if the similarity compares texts.
        """

    def prepare(self, query: Any, indexes: Sequence[Any]) -> Any:
        """Prepare a query for all indexes of a search.

        Args:
            query: The text as a string, or the float32 vector with shape (dimension,).
            indexes: The indexes of the search. For texts, there is one index per graph. For
                embeddings, there is only the index of a single graph and embedding, since graphs
                can use different models.
        """


class RerankError(RuntimeError):
    """An error that is raised if a reranker fails or returns invalid scores.

    The results that were passed to the reranker are unchanged.
    """


class RerankerProtocol(Protocol):
    """A reranker or filter of results, which ``Reranker`` wraps.

    A reranker can have a method ``arerank`` with the same arguments, so that the event loop is not
    blocked. Without it, the reranker runs in a thread. A filter that examines each result
    independently and does not call a model, such as ``KeywordFilter``, sets ``is_filter = True``.
    ``RerankRetriever`` then fetches more candidates until enough results remain.

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
        """The name of the reranker in evidence."""

    @property
    def rerank(self) -> Callable[..., Sequence[ScoredNode]]:
        """The method ``rerank(results, query)``, which returns the selected results, best first.

        A reranker that assigns new scores inserts an ``Evidence`` with its name before the existing
        evidence. Results with equal scores keep their order. The settings of a call are keyword
        arguments.
        """


def by_score(results: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Sort results by score, best first. Results with equal scores keep their order."""
    return sorted(results, key=lambda result: -result.score)
