"""Restrict a retriever to nodes that match filters, such as the documents of one tenant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, TypeVar, overload

from .base_retriever import BaseRetriever, check_takes_filters, with_all_inner
from .call import check_restriction, restrict_calls
from .filters import Filter, Filters, all_of, parse_filters
from .foreign.foreign_retriever import as_retriever
from .foreign.outputs import ForeignNode
from .plans.effects import find_all
from .protocols import RetrieverProtocol
from .results import Results

RestrictableT = TypeVar("RestrictableT", bound="Restrictable")

Restriction: TypeAlias = Filters | Callable[[], Filters]
"""Filters, or a function that returns the filters for the current call."""


class Restrictable(Protocol):
    """An object that can create restricted copies, such as a ``Retriever`` or a ``QueryEngine``."""

    def restricted(self: RestrictableT, filters: Filters) -> RestrictableT:
        """Return a copy that is restricted to nodes that match filters."""


@overload
def restrict(target: RestrictableT, filters: Filters) -> RestrictableT: ...


@overload
def restrict(target: RetrieverProtocol, filters: Restriction) -> RestrictedRetriever: ...


def restrict(target: object, filters: Restriction) -> object:
    """Restrict a retriever or a query engine to nodes that match filters, such as a tenant's.

    The restriction applies to every search of the returned object, including nested retrievers.
    Filters of a call, a tool or a model are applied in addition. A restriction is stricter than
    ``filters``: every node that is returned, including nodes in the evidence, must match by its own
    metadata, even if it replaces, extends or is linked to another node. A node without the field is
    not returned.

    Args:
        target: Any retriever, or a ``QueryEngine``. It is not changed.
        filters: The filters, as described in ``parse_filters``, or a function that returns them. A
            function is useful if many users share a retriever. It is called for each search, in the
            context of the caller. If it raises an error or returns no condition, the search fails.

    Returns:
        A copy of a ``Retriever``, a ``QaRetriever`` or a ``QueryEngine``. Any other retriever is
        wrapped in a new retriever, and so is every target if ``filters`` is a function. To restrict
        a query engine with a function, write ``QueryEngine(restrict(retriever, function), llm)``.

    Raises:
        TypeError: If the target is neither a retriever nor a query engine.
        ValueError: If the filters contain no condition, or a nested retriever does not support
            filters.

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
    """Return the restrictions of a retriever and its inner retrievers, or None if there are none.

    Raises:
        ValueError: If a restriction is a function.
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


class RestrictedRetriever(BaseRetriever):
    """A retriever that is restricted to nodes that match filters. See ``restrict``.

    The restriction is applied by all inner retrievers, even if a retriever between them does not
    pass filters on. In addition, the results and their evidence are checked.

    Args:
        inner: Any retriever.
        filters: The filters, or a function that returns them. See ``restrict``.

    Raises:
        TypeError: If ``inner`` is not a retriever, or the filters are invalid.
        ValueError: If the filters contain no condition, or a nested retriever does not support
            filters.
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
        with restrict_calls(own):
            results = await find_all(self.inner, queries, limit, all_of(own, filters))
        conditions = parse_filters(own)
        return [_checked(ranking, conditions) for ranking in results]


def _checked(results: Results, conditions: Filter) -> Results:
    """Remove results and evidence that do not match a restriction.

    The answer of an inner query engine has no metadata, so all of its sources must match the
    restriction.
    """
    checked = []
    for result in results:
        node = result.node
        displayed = [match for match in result.evidence if conditions.matches(match.node)]
        if conditions.matches(node):
            checked.append(replace(result, evidence=tuple(displayed)))
        elif isinstance(node, ForeignNode) and node.original is None:
            sources = [match for match in result.evidence if match.node is not node]
            if sources and len(displayed) == len(sources):
                checked.append(result)
    return checked
