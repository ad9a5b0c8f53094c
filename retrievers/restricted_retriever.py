"""A retriever bound to conditions, as for a tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar, overload

from .base_retriever import check_takes_filters, restricting, with_all_inner
from .filters import Filter, Filters, all_of, parse_filters
from .foreign.coercion import as_retriever
from .foreign.outputs import ForeignNode
from .planned_retriever import PlannedRetriever
from .plans.effects import find_all
from .protocols import RetrieverProtocol
from .results import Results, ScoredNode
from .retrieval_conditions import check_restriction

RestrictableT = TypeVar("RestrictableT", bound="Restrictable")

Restriction: TypeAlias = Filters | Callable[[], Filters]
"""Conditions, or a function that returns those of the present call."""


class Restrictable(Protocol):
    """What has a restricted form of its own kind: a ``Retriever``, a ``QueryEngine``."""

    def restricted(self: RestrictableT, filters: Filters) -> RestrictableT:
        """Return a copy that is restricted to nodes that meet conditions."""


@overload
def restrict(target: RestrictableT, filters: Filters) -> RestrictableT: ...


@overload
def restrict(target: RetrieverProtocol, filters: Restriction) -> RestrictedRetriever: ...


def restrict(target: object, filters: Restriction) -> object:
    """Restrict a retriever or a query engine to nodes that meet conditions, as for a tenant.

    The restriction holds for everything that the returned object retrieves, whatever is nested in
    it and whatever filters a call, a tool or a model brings; these are added. It is stricter than
    ``filters``: every node that comes back meets it by its own metadata, also where hits are
    lifted, widened or followed, and so does every node of the evidence. A node without the field
    is not returned.

    Args:
        target: Any retriever, or a ``QueryEngine``; it is not changed.
        filters: The conditions; see ``parse_filters``. Or a function that returns them, for what
            many users share: it is called in each retrieval, in the caller's context. Where it
            raises, or returns no condition, nothing is retrieved.

    Returns:
        A copy for a ``Retriever``, a ``QaRetriever`` and a ``QueryEngine``; a
        ``RestrictedRetriever`` around any other retriever, and with a function. For an engine of
        many users: ``QueryEngine(restrict(retriever, function), llm)``.

    Raises:
        TypeError: If it is neither.
        ValueError: If there is no condition, or a nested retriever can't be filtered.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import FusionRetriever, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add([Document("Green tea.", {"tenant": t}, id=t) for t in ("a", "b")])
        >>> fusion = FusionRetriever([Retriever(graph, "ROOT"), Retriever(graph, "FineChunk")])
        >>> mine = restrict(fusion, {"tenant": "a"})
        >>> {result.node.document_id for result in mine("tea")}
        {'a'}
        >>> mine("tea", filters={"tenant": "b"})
        []
    """
    restricted = getattr(target, "restricted", None)
    if callable(restricted) and not callable(filters):
        return restricted(filters)
    return RestrictedRetriever(as_retriever(target), filters)


def restriction_of(retriever: object) -> Filters | None:
    """Return the conditions that a retriever, or one within it, is restricted to; None for none.

    Raises:
        ValueError: If they are what a function returns.
    """
    conditions: list[Filters | None] = []
    for item in with_all_inner(retriever):
        conditions.append(getattr(item, "_restriction", None))
        if isinstance(item, RestrictedRetriever):
            if callable(item.filters):
                raise ValueError(
                    f"what {item!r:.80} is restricted to is only known in a call; restrict it to "
                    "conditions, such as {'tenant': 'a'}"
                )
            conditions.append(item.filters)
    return all_of(*conditions)


class RestrictedRetriever(PlannedRetriever):
    """Restrict any retriever to nodes that meet conditions; ``restrict`` makes it.

    Everything that is retrieved within knows of the restriction, also what does not pass filters
    on. What comes back is checked once more, with its evidence.

    Args:
        inner: Any retriever.
        filters: The conditions, or a function that returns them; see ``restrict``.

    Raises:
        TypeError: If ``inner`` is no retriever, or the filters are none.
        ValueError: If there is no condition, or a nested retriever can't be filtered.
    """

    name = "restrict"

    def __init__(self, inner: RetrieverProtocol, filters: Restriction) -> None:
        super().__init__()
        self.inner = as_retriever(inner)
        self.filters = filters if callable(filters) else check_restriction(filters)
        check_takes_filters(self.inner, "a restriction")
        self.has_windows = getattr(self.inner, "has_windows", False)

    def __repr__(self) -> str:
        return f"RestrictedRetriever({self.inner!r}, {self.filters!r})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        own = check_restriction(self.filters()) if callable(self.filters) else self.filters
        with restricting(own):
            results = await find_all(self.inner, queries, limit, all_of(own, filters))
        conditions = parse_filters(own)
        return [[r for result in item if (r := _checked(result, conditions))] for item in results]


def _checked(result: ScoredNode, conditions: Filter) -> ScoredNode | None:
    """Return a result with the evidence that meets the restriction; None if it does not.

    An answer, which a query engine within made of its sources, has none of the fields: all its
    sources have to meet the restriction.
    """
    node, evidence = result.node, result.evidence
    displayed = tuple(match for match in evidence if conditions.matches(match.node))
    if conditions.matches(node):
        return replace(result, evidence=displayed)
    sources = [match for match in evidence if match.node is not node]
    is_answer = isinstance(node, ForeignNode) and node.original is None
    return result if is_answer and sources and len(displayed) == len(sources) else None
