"""Search with a function or a retriever of another framework."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...nodegraph.models.model_objects import finish, has, owner_of
from ..base_retriever import child_k_override, current_restriction, inner_retrievers
from ..filters import Filters, all_of, parse_filters
from ..planned_retriever import PlannedRetriever
from ..plans.effects import find_all
from ..plans.plan import Do, gather
from ..protocols import RetrieverProtocol
from ..results import OutputOptions, Results
from ..tracing import start_span
from ..validation import takes_any_keyword
from .outputs import read_output, read_plain, read_sources

if TYPE_CHECKING:
    from typing_extensions import Unpack


Search = Callable[[str, int | None], Any]
"""Searches for a query, with a number of results. None: the retriever's default."""

AsyncSearch = Callable[[str, int | None], Awaitable[Any]]

Batch = Callable[[list[str], int | None], Any]

AsyncBatch = Callable[[list[str], int | None], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RetrieverCalls:
    """The calls of a foreign retriever and their capabilities.

    Attributes:
        name: The name in evidence and traces.
        search: Searches for one query.
        asearch: Async version of ``search``. None: ``search`` runs in a thread.
        batch: Searches for several queries in one call.
        abatch: Async version of ``batch``.
        takes_top_k: Whether the number of results can be set.
        calls_model: Whether a call may cost a call of a language model.
        filtered: Returns the calls with conditions that the retriever applies before ranking.
        with_options: Returns the calls with further search options, such as native conditions.
    """

    name: str
    search: Search
    asearch: AsyncSearch | None = None
    batch: Batch | None = None
    abatch: AsyncBatch | None = None
    takes_top_k: bool = False
    calls_model: bool = False
    filtered: Callable[[Filters], RetrieverCalls] | None = None
    with_options: Callable[[Mapping[str, Any]], RetrieverCalls] | None = None


def adapt_retriever(source: Any) -> RetrieverCalls | None:
    """Return the calls of a function or a supported retriever. None: unsupported."""
    if inspect.isclass(source):
        return None
    if inspect.isroutine(source) or isinstance(source, partial):
        return _function(source)
    if has(source, "invoke", "ainvoke") and (inner := _langchain_retriever(source)) is not None:
        return _langchain(source, inner)
    if has(source, "query", "aquery") and _takes(source.query, "filters"):
        return _query_engine(source)  # of this package
    if has(source, "retrieve", "aretrieve", "_retrieve"):
        return _llama_index(source)  # a retriever of LlamaIndex
    return None


def is_native(source: Any) -> bool:
    """Return whether an object's retriever methods take ``top_k`` and ``filters``."""
    is_object = not inspect.isclass(source)
    return (
        is_object
        and has(source, "retrieve", "aretrieve")
        and all(
            _takes(getattr(source, name), "top_k", "filters") for name in ("retrieve", "aretrieve")
        )
    )


# Functions


def _function(function: Callable[..., Any]) -> RetrieverCalls:
    """Return the calls of a function from a query. ``top_k`` or ``k`` is the number of results."""
    try:
        parameters = [*inspect.signature(function).parameters]
    except (TypeError, ValueError):  # written in C
        parameters = []
    named = [name for name in ("top_k", "k") if name in parameters][:1]

    def options(top_k: int | None) -> dict[str, Any]:
        return {} if top_k is None else dict.fromkeys(named, top_k)

    def search(query: str, top_k: int | None) -> Any:
        return read_plain(function(query, **options(top_k)))

    async def asearch(query: str, top_k: int | None) -> Any:
        return read_plain(await function(query, **options(top_k)))

    def wait(query: str, top_k: int | None) -> Any:
        return finish(lambda text: asearch(text, top_k), query)

    is_async = inspect.iscoroutinefunction(function)
    return RetrieverCalls(
        getattr(function, "__name__", "function"),
        wait if is_async else search,
        asearch if is_async else None,
        takes_top_k=bool(named),
    )


# LangChain


def _langchain_retriever(source: Any) -> Any | None:
    """Return the retriever in a Runnable, such as ``with_config``. None: another Runnable."""
    while "bound" in getattr(type(source), "model_fields", {}):
        source = source.bound
    return source if hasattr(type(source), "_get_relevant_documents") else None


def _langchain(
    runnable: Any, retriever: Any, more: Mapping[str, Any] | None = None
) -> RetrieverCalls:
    """Return the calls of a LangChain retriever, with further options of its vector store."""
    bind = _top_k_binding(runnable, retriever)

    def bound(top_k: int | None) -> tuple[Any, dict[str, Any]]:
        source, options = (runnable, {}) if bind is None or top_k is None else bind(top_k)
        return source, {**options, **(more or {})}

    def search(query: str, top_k: int | None) -> Any:
        source, options = bound(top_k)
        return source.invoke(query, **options)

    async def asearch(query: str, top_k: int | None) -> Any:
        source, options = bound(top_k)
        return await source.ainvoke(query, **options)

    def batch(queries: list[str], top_k: int | None) -> Any:
        source, options = bound(top_k)
        return source.batch(queries, **options)

    async def abatch(queries: list[str], top_k: int | None) -> Any:
        source, options = bound(top_k)
        return await source.abatch(queries, **options)

    can_push = _has_store(retriever) and "filter" not in retriever.search_kwargs
    return RetrieverCalls(
        str(runnable.get_name()),
        *(search, asearch, batch, abatch),
        takes_top_k=bind is not None,
        calls_model=bind is None,
        with_options=partial(_langchain, runnable, retriever) if can_push else None,
    )


def _has_store(retriever: Any) -> bool:
    """Return whether keywords of a call are search options of the retriever's vector store."""
    return (
        takes_any_keyword(type(retriever)._get_relevant_documents)
        and hasattr(retriever, "vectorstore")
        and hasattr(retriever, "search_kwargs")
    )


def _top_k_binding(
    runnable: Any, retriever: Any
) -> Callable[[int], tuple[Any, dict[str, Any]]] | None:
    """Return a function from ``top_k`` to the Runnable to call and the keywords of the call."""
    parameters = inspect.signature(type(retriever)._get_relevant_documents).parameters
    name = next((name for name in ("k", "top_k") if name in parameters), "")
    if name:
        return lambda top_k: (runnable, {name: top_k})
    if _has_store(retriever):
        return partial(_store_options, runnable, retriever)
    fields = getattr(type(retriever), "model_fields", {})
    name = next((name for name in ("k", "top_k") if name in fields), "")
    if not name or retriever is not runnable:
        return None
    return lambda top_k: (runnable.model_copy(update={name: top_k}), {})


def _store_options(runnable: Any, retriever: Any, top_k: int) -> tuple[Any, dict[str, Any]]:
    options = {"k": top_k}
    if retriever.search_type == "mmr":  # the number of candidates
        options["fetch_k"] = max(retriever.search_kwargs.get("fetch_k", 20), top_k)
    return runnable, options


# LlamaIndex


def _llama_index(retriever: Any, more: Mapping[str, Any] | None = None) -> RetrieverCalls:
    """Return the calls of a LlamaIndex retriever.

    The number of results and conditions are set on a copy.
    """
    fields = ("similarity_top_k", "_similarity_top_k")
    field = next((name for name in fields if hasattr(retriever, name)), None)

    if unknown := {*(more or {})} - {"filters"}:
        raise TypeError(f"push_filters of a LlamaIndex retriever returns 'filters', not {unknown}")

    def with_number(top_k: int | None) -> Any:
        if (top_k is None or field is None) and not more:
            return retriever
        other = copy.copy(retriever)
        if field is not None and top_k is not None:
            setattr(other, field, top_k)
        if more:
            other._filters = more["filters"]
        return other

    async def asearch(query: str, top_k: int | None) -> Any:
        return await with_number(top_k).aretrieve(query)

    # The base class calls the sync method in the event loop, which would block it.
    has_own_async = owner_of(retriever, "_aretrieve") != "BaseRetriever"
    return RetrieverCalls(
        type(retriever).__name__,
        lambda query, top_k: with_number(top_k).retrieve(query),
        asearch if has_own_async else None,
        takes_top_k=field is not None,
        with_options=partial(_llama_index, retriever) if _has_no_filters(retriever) else None,
    )


def _has_no_filters(retriever: Any) -> bool:
    """Return whether a retriever accepts conditions and has none that a call would replace."""
    return hasattr(retriever, "_filters") and retriever._filters is None


# Query engines of this package


def _query_engine(engine: Any, filters: Filters | None = None) -> RetrieverCalls:
    """Return the calls of a ``QueryEngine``, which accepts conditions."""

    async def asearch(query: str, top_k: int | None) -> Any:
        return await engine.aquery(query, filters=filters)

    return RetrieverCalls(
        type(engine).__name__,
        lambda query, top_k: engine.query(query, filters=filters),
        asearch,
        calls_model=True,
        filtered=partial(_query_engine, engine),
    )


def _takes(function: Callable[..., Any], *names: str) -> bool:
    """Return whether a function has these parameters or ``**kwargs``."""
    try:
        parameters: Mapping[str, Any] = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return True
    return all(name in parameters for name in names) or takes_any_keyword(function)


PushFilters = Callable[[Filters], Mapping[str, Any]]
"""Converts conditions to search options of a foreign retriever. ``{}``: not expressible."""

MAX_READ = 10_000
"""Maximum number of results that are read to check conditions."""


class ForeignRetriever(PlannedRetriever):
    """A retriever around a function, a LangChain or a LlamaIndex retriever, or a query engine.

    ``as_retriever`` creates it. Results are nodes outside of any graph, with the document's text,
    metadata and id. A missing id is derived from text and metadata. The score is the foreign score
    or the reciprocal rank (1, 1/2, 1/3); the evidence names the kind. An answer is one result.

    A retriever may accept ``top_k`` in a call, or as a field of a copy. For other retrievers, the
    first ``top_k`` results are returned, even if they are too few. Conditions of a call are checked
    on the results, and more results are requested as needed. A retriever without a number of
    results rejects conditions. Options from ``push_filters`` are applied by the foreign retriever
    before ranking, so fewer results are read.

    Args:
        source: The foreign retriever.
        calls: The calls of the foreign retriever.
        score_key: The metadata field with a score. None: no field.
        push_filters: See ``as_retriever``.
        top_k: Maximum number of results. Defaults to the foreign retriever's number.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        ValueError: In a retrieval, if conditions are not supported.
        TypeError: In a retrieval, if the source returns neither documents nor an answer.
    """

    name = "search"

    def __init__(
        self,
        source: object,
        calls: RetrieverCalls,
        *,
        score_key: str | None = "relevance_score",
        push_filters: PushFilters | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        self.source = source
        self._calls = calls
        self._score_key = score_key
        self._push_filters = push_filters

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": self.source_name}  # rebuilt from the source

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        calls = adapt_retriever(self.source)
        assert calls is not None
        self._calls = replace(calls, name=state["_calls"])

    @property
    def source_name(self) -> str:
        """The name in evidence and traces."""
        return self._calls.name

    @property
    def takes_filters(self) -> bool:
        """Whether the retriever supports conditions of a call."""
        return self._calls.takes_top_k or self._calls.filtered is not None

    @property
    def is_free(self) -> bool:
        """Whether repeated queries call no language model. False for query engines."""
        return not self._calls.calls_model

    def __repr__(self) -> str:
        return f"ForeignRetriever({self.source_name!r})"

    def retrieve_sources(self, query: str, top_k: int | None = None) -> tuple[str | None, Results]:
        """Return the answer with its sources. A retriever returns None and its results.

        Args:
            query: The query.
            top_k: Maximum number of results. Defaults to the retriever's number.
        """
        limit = self.check_limit(top_k, None)
        if current_restriction():
            raise ValueError(f"the sources of {self.source_name} can't be restricted")
        output = self._calls.search(query, limit)
        text, results = read_sources(output, self.source_name, query, score_key=self._score_key)
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
        texts = [query for query in queries if query.strip()]
        with start_span(self.name, queries=texts, retriever=self.source_name) as span:
            if filters and self._calls.filtered is None:
                results = await gather([partial(self._checked, q, limit, filters) for q in texts])
            else:
                results = await self._search(texts, limit, filters)
            span.set_results(results)
        remaining = iter(results)
        return [next(remaining) if query.strip() else [] for query in queries]

    async def _search(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Search for all queries, in one call if the retriever supports batches."""
        calls = self._calls
        if filters and calls.filtered is not None:
            calls = calls.filtered(filters)
        if len(queries) > 1 and calls.batch is not None:
            abatch = calls.abatch and partial(calls.abatch, list(queries), limit)
            outputs: list[Any] = await Do(partial(calls.batch, list(queries), limit), abatch)
        else:
            outputs = await gather([partial(_call, calls, query, limit) for query in queries])
        return [
            self._results(output, query)[:limit]
            for query, output in zip(queries, outputs, strict=True)
        ]

    async def _checked(self, query: str, limit: int | None, filters: Filters) -> Results:
        """Request more results until ``limit`` results meet the conditions."""
        conditions, calls = parse_filters(filters), self._pushed(filters)
        output = await _call(calls, query, limit)
        requested = count = len(output) if limit is None else limit
        before = -1
        while True:
            results = self._results(output, query)
            meeting = [r for r in results if conditions.matches(r.node)][:requested]
            if len(meeting) == requested or len(output) == before or len(output) < count:
                return meeting
            if count >= MAX_READ:
                raise ValueError(
                    f"of the first {count} results of {self.source_name} only {len(meeting)} "
                    f"meet {dict(filters)!r:.120}; say them in its own terms: "
                    "as_retriever(..., push_filters=function)"
                )
            before, count = len(output), min(4 * count, MAX_READ)
            output = await _call(calls, query, count)

    def _pushed(self, filters: Filters) -> RetrieverCalls:
        """Return the calls, with the options of ``push_filters``."""
        if self._push_filters is None or self._calls.with_options is None:
            return self._calls
        options = self._push_filters(_flat(filters))
        if not options:
            return self._calls
        return replace(self._calls.with_options(options), name=self.source_name)

    def _results(self, output: Any, query: str) -> Results:
        return read_output(output, self.source_name, query, score_key=self._score_key)


def _flat(filters: Filters) -> Filters:
    """Flatten nested conditions. Conflicting conditions on a field stay under ``"and"``."""
    fields: dict[str, Any] = {}
    remaining: list[Filters] = []
    pending = [filters]
    while pending:
        part = pending.pop()
        for field, condition in part.items():
            if field == "and":
                pending += condition
            elif field not in fields:
                fields[field] = condition
            elif fields[field] != condition:
                remaining.append({field: condition})
    return {**fields, "and": remaining} if remaining else fields


async def _call(calls: RetrieverCalls, query: str, limit: int | None) -> Any:
    asearch = calls.asearch and partial(calls.asearch, query, limit)
    return await Do(partial(calls.search, query, limit), asearch)


def check_in_graph(retriever: object, owner: str) -> None:
    """Check that some results of a retriever belong to a graph, for an owner that needs relatives.

    Raises:
        TypeError: If all results come from foreign retrievers.
    """
    sources = list(_leaves(retriever))
    if sources and all(isinstance(leaf, ForeignRetriever) for leaf in sources):
        raise TypeError(
            f"{owner} needs the parents or neighbours of results, and those of {sources[0]!r} are "
            "in no node graph; add the documents to a NodeGraph, and search that"
        )


def _leaves(retriever: object) -> Sequence[object]:
    inner = [item for _, item in inner_retrievers(retriever)]
    return [leaf for item in inner for leaf in _leaves(item)] if inner else [retriever]


class ConfiguredRetriever(PlannedRetriever):
    """A retriever with an overriding number of results, conditions and minimum score.

    Args:
        inner: The retriever.
        top_k: Maximum number of results. Defaults to the retriever's number.
        filters: Conditions that are added to the conditions of a call.
        child_k: Number of hits in every inner retriever. Defaults to their number.
        cut_off: Minimum score.
    """

    name = "configured"

    def __init__(
        self,
        inner: RetrieverProtocol,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        child_k: int | None = None,
        cut_off: float | None = None,
    ) -> None:
        super().__init__(top_k=top_k)
        self.inner = inner
        parse_filters(filters)
        self.filters = filters
        self.child_k = child_k
        self.cut_off = cut_off

    def __repr__(self) -> str:
        return f"ConfiguredRetriever({repr_without_top_k(self.inner)}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        with child_k_override(self.child_k):
            rankings = await find_all(self.inner, queries, limit, all_of(self.filters, filters))
        least = self.cut_off
        return [[r for r in ranking if least is None or r.score >= least] for ranking in rankings]


def repr_without_top_k(retriever: object) -> str:
    """Return a retriever's ``repr`` without its ``top_k``, which the caller overrides."""
    text, top_k = repr(retriever), f", top_k={getattr(retriever, 'top_k', None)})"
    return f"{text.removesuffix(top_k)})" if text.endswith(top_k) else text


def configured(
    inner: RetrieverProtocol,
    *,
    top_k: int | None = None,
    filters: Filters | None = None,
    child_k: int | None = None,
    cut_off: float | None = None,
) -> RetrieverProtocol:
    """Return a retriever with settings. Without settings, return the retriever itself."""
    if top_k is None and not filters and child_k is None and cut_off is None:
        return inner
    return ConfiguredRetriever(
        inner, top_k=top_k, filters=filters, child_k=child_k, cut_off=cut_off
    )
