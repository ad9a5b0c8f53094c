"""Search with a function or a retriever of LangChain or LlamaIndex."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...nodegraph.models.model_objects import finish, owner_of
from ..base_retriever import BaseRetriever, current_restriction, with_all_inner
from ..filters import Filters, all_of, parse_filters
from ..plans.effects import find_all
from ..plans.plan import Do, gather
from ..results import Results
from ..tracing import start_span
from ..validation import takes_any_keyword
from .outputs import read_output, read_sources

if TYPE_CHECKING:
    from ..protocols import RetrieverProtocol

MAX_READ = 10_000
"""Maximum number of results that are read to check conditions."""


class ForeignRetriever(BaseRetriever):
    """A retriever around a function or a retriever of another framework.

    ``as_retriever`` creates it. Results are nodes outside of any graph, with the document's text,
    metadata and id. A missing id is derived from text and metadata. The score is the foreign score,
    the field ``relevance_score`` of the metadata, or the reciprocal rank (1, 1/2, 1/3); the
    evidence names the kind. An answer is one result.

    If the source takes no number of results, the first ``top_k`` results are returned, even if they
    are too few. Conditions of a call are checked on the results, and more results are requested as
    needed. A source without a number of results rejects conditions.

    Args:
        source: The function or retriever.
        name: The name in evidence and traces.

    Raises:
        ValueError: In a retrieval, if conditions are not supported.
        TypeError: In a retrieval, if the source returns neither documents nor an answer.
    """

    name = "search"
    takes_top_k: bool
    """Whether the number of results can be set."""

    applies_filters = False
    """Whether the source applies the conditions of a call."""

    def __init__(self, source: Any, name: str) -> None:
        super().__init__()
        self.source = source
        self.source_name = name

    def request(self, query: str, top_k: int | None, filters: Filters | None) -> Do[Any]:
        """Return the call of the source. ``top_k=None`` is the source's own number of results."""
        raise NotImplementedError

    @property
    def takes_filters(self) -> bool:
        """Whether the retriever supports conditions of a call."""
        return self.takes_top_k or self.applies_filters

    def __repr__(self) -> str:
        return f"ForeignRetriever({self.source_name!r})"

    def retrieve_sources(self, query: str, top_k: int | None = None) -> tuple[str | None, Results]:
        """Return the answer with its sources. Without an answer, return None and the results.

        Args:
            query: The query.
            top_k: Maximum number of results. Defaults to the source's number.
        """
        limit = self.check_limit(top_k, None)
        if current_restriction():
            raise ValueError(f"the sources of {self.source_name} can't be restricted")
        output = self.request(query, limit, None).run()
        text, results = read_sources(output, self.source_name, query)
        return text, results[:limit]

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Check the arguments of a call and return the maximum number of results."""
        limit = super().check_limit(top_k, filters)
        if filters and not self.takes_filters:
            raise ValueError(
                f"{self.source_name} takes no conditions, and no number of results by which "
                f"enough could be read to check {dict(filters)!r:.120}; set its conditions where "
                "it is made, or search with a retriever that takes them"
            )
        return limit

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query. A blank query has no results."""
        filters = all_of(current_restriction(), filters)
        search = self._search if self.applies_filters or not filters else self._checked
        with start_span(self.name, queries=queries, retriever=self.source_name) as span:
            results = await gather([partial(search, query, limit, filters) for query in queries])
            span.set_results(results)
        return results

    async def _search(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        if not query.strip():
            return []
        output = await self.request(query, limit, filters)
        results = read_output(output, self.source_name, query)
        return results[:limit]

    async def _checked(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        """Request more results until ``limit`` results meet the conditions."""
        conditions = parse_filters(filters)
        results = await self._search(query, limit, None)
        requested = count = len(results) if limit is None else limit
        before = -1
        while True:
            meeting = [result for result in results if conditions.matches(result.node)][:requested]
            if len(meeting) == requested or len(results) == before or len(results) < count:
                return meeting
            if count >= MAX_READ:
                raise ValueError(
                    f"of the first {count} results of {self.source_name} only {len(meeting)} "
                    f"meet {dict(filters or {})!r:.120}; pass a function with a parameter "
                    "'filters' that applies them in the store"
                )
            before, count = len(results), min(4 * count, MAX_READ)
            results = await self._search(query, count, None)


class FunctionRetriever(ForeignRetriever):
    """A retriever around a function of a query, or around a ``QueryEngine``.

    A parameter ``top_k`` or ``k`` receives the number of results. A parameter ``filters`` receives
    the conditions, which the function has to apply.

    Args:
        source: The function or engine.
        name: The name in evidence and traces.
    """

    def __init__(self, source: Any, name: str) -> None:
        super().__init__(source, name)
        self._is_engine = hasattr(source, "aquery")
        self._call = source.query if self._is_engine else source
        self._acall = source.aquery if self._is_engine else None
        parameters = parameters_of(self._call)
        # The number of an engine is the number of its sources, and it has one result.
        numbers = [] if self._is_engine else [n for n in ("top_k", "k") if n in parameters]
        self._number = next(iter(numbers), None)
        self.takes_top_k = bool(numbers)
        self.applies_filters = "filters" in parameters

    @property
    def is_free(self) -> bool:
        """Whether repeated queries call no language model."""
        return not self._is_engine

    def request(self, query: str, top_k: int | None, filters: Filters | None) -> Do[Any]:
        """Return the call of the function."""
        options: dict[str, Any] = {}
        if self._number is not None and top_k is not None:
            options[self._number] = top_k
        if self.applies_filters and filters:
            options["filters"] = filters
        call = partial(self._call, query, **options)
        if inspect.iscoroutinefunction(self._call):
            return Do(partial(finish, partial(self._call, **options), query), call)
        return Do(call, self._acall and partial(self._acall, query, **options))


class LangChainRetriever(ForeignRetriever):
    """A retriever around a retriever of LangChain.

    The number of results is a keyword of the call, a search option of the vector store, or a field
    of a copy.

    Args:
        source: The retriever, or a Runnable around it, such as ``with_config``.
        name: The name in evidence and traces.
    """

    def __init__(self, source: Any, name: str) -> None:
        super().__init__(source, name)
        inner: Any = bound_retriever(source)
        method = inner.__class__._get_relevant_documents
        parameters = [*inspect.signature(method).parameters]
        fields = inner.__class__.model_fields if inner is source else ()
        if hasattr(inner, "vectorstore") and takes_any_keyword(method):
            parameters.append("k")
        self._keyword = next((name for name in ("k", "top_k") if name in parameters), None)
        self._field = next((name for name in ("k", "top_k") if name in fields), None)
        self.takes_top_k = bool(self._keyword or self._field)
        self._inner = inner

    @property
    def is_free(self) -> bool:
        """Whether repeated queries are assumed to call no language model."""
        return self.takes_top_k

    def request(self, query: str, top_k: int | None, filters: Filters | None) -> Do[Any]:
        """Return the call of the retriever."""
        source = self.source
        options: dict[str, int] = {}
        if top_k is not None and self._keyword:
            options[self._keyword] = top_k
            if getattr(self._inner, "search_type", "") == "mmr":  # the number of candidates
                options["fetch_k"] = max(self._inner.search_kwargs.get("fetch_k", 20), top_k)
        elif top_k is not None and self._field:
            source = source.model_copy(update={self._field: top_k})
        return Do(
            partial(source.invoke, query, **options), partial(source.ainvoke, query, **options)
        )


def bound_retriever(source: Any) -> Any | None:
    """Return the LangChain retriever in a Runnable. None: another object."""
    while "bound" in getattr(type(source), "model_fields", {}):
        source = source.bound
    return source if hasattr(type(source), "_get_relevant_documents") else None


class LlamaIndexRetriever(ForeignRetriever):
    """A retriever around a retriever of LlamaIndex. The number of results is set on a copy.

    Args:
        source: The retriever.
        name: The name in evidence and traces.
    """

    def __init__(self, source: Any, name: str) -> None:
        super().__init__(source, name)
        fields = ("similarity_top_k", "_similarity_top_k")
        self._field = next((name for name in fields if hasattr(source, name)), None)
        self.takes_top_k = self._field is not None
        # The base class calls the sync method in the event loop, which would block the loop.
        self._has_own_async = owner_of(source, "_aretrieve") != "BaseRetriever"

    def request(self, query: str, top_k: int | None, filters: Filters | None) -> Do[Any]:
        """Return the call of the retriever."""
        source = self.source
        if top_k is not None and self._field is not None:
            source = copy.copy(source)
            setattr(source, self._field, top_k)
        acall = partial(source.aretrieve, query) if self._has_own_async else None
        return Do(partial(source.retrieve, query), acall)


def parameters_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the parameters of a function. Empty for functions written in C."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def check_in_graph(retriever: object, owner: str) -> None:
    """Check that some results of a retriever belong to a graph, for an owner that needs relatives.

    Raises:
        TypeError: If all results come from foreign retrievers.
    """
    parts = [*with_all_inner(retriever)]
    leaves = [part for part in parts if not getattr(part, "inner_retrievers", ())]
    if leaves and all(isinstance(leaf, ForeignRetriever) for leaf in leaves):
        raise TypeError(
            f"{owner} needs the parents or neighbors of results, and the results of {leaves[0]!r} "
            "are in no node graph; add the documents to a NodeGraph, and search the graph"
        )


class ConfiguredRetriever(BaseRetriever):
    """A retriever with an overriding number of results, conditions and minimum score.

    Args:
        inner: The retriever.
        top_k: Maximum number of results. Defaults to the retriever's number.
        filters: Conditions that are added to the conditions of a call.
        fetch_k: Number of hits before lifting in every inner retriever. None: their own numbers.
        min_score: Minimum score.
    """

    name = "configured"

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        fetch_k: int | None = None,
        min_score: float | None = None,
    ) -> None:
        super().__init__(top_k=top_k)
        self.inner = _with_fetch_k(inner, fetch_k)
        parse_filters(filters)
        self.filters = filters
        self.min_score = min_score

    def __repr__(self) -> str:
        return f"ConfiguredRetriever({self.inner!r}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        rankings = await find_all(self.inner, queries, limit, all_of(self.filters, filters))
        least = self.min_score
        return [[r for r in ranking if least is None or r.score >= least] for ranking in rankings]


def _with_fetch_k(retriever: RetrieverProtocol, fetch_k: int | None) -> RetrieverProtocol:
    if fetch_k is None or not isinstance(retriever, BaseRetriever):
        return retriever
    return retriever.with_fetch_k(fetch_k)


def configured(inner: RetrieverProtocol, **settings: Any) -> RetrieverProtocol:
    """Return a ``ConfiguredRetriever``. Without settings, return the retriever itself."""
    if any(value not in (None, {}) for value in settings.values()):
        return ConfiguredRetriever(inner, **settings)
    return inner
