"""Search with functions and with retrievers of other frameworks, recognized by duck typing."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from ...nodegraph.errors import explain_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.model_objects import finish, has, owner_of
from ..base_retriever import BaseRetriever, Phrases, with_all_inner
from ..call import Call
from ..composite.configured_retriever import configured
from ..filters import Filters, parse_filters
from ..plans.plan import Do, gather_each
from ..protocols import RetrieverProtocol
from ..results import Results
from ..tracing import start_span
from ..validation import parameters_of, takes_any_keyword
from .outputs import read_output, read_sources

NATIVE = "native_retriever"
"""The property of framework adapters that returns the wrapped retriever of this package."""

MAX_READ = 10_000
"""The maximum number of results that are read to check filters."""

Request = Callable[[str, int | None, Filters | None], Do[Any]]
"""A function that returns the call of a source.

Its arguments are the query, the number of results (None for the source's own number) and the
filters.
"""


@explain_names
def as_retriever(
    source: Any,
    what: str = "a retriever",
    *,
    name: str | None = None,
    min_score: float | None = None,
    max_tokens: int | None = None,
    phrases: Phrases | None = None,
    weights: Mapping[str, float] | None = None,
) -> RetrieverProtocol:
    """Convert a retriever of any framework into a retriever of this package.

    Every class with an inner retriever calls this function and accepts the following objects:

    - a retriever of this package, or an adapter around one, for which the retriever itself is
      returned (if a subclass of an adapter overrides the search, it is called like any retriever of
      its framework);
    - a retriever of LangChain;
    - a retriever of LlamaIndex;
    - a function that receives a query and returns texts, mappings with a ``text``, documents, pairs
      of a document and a score, or an answer. A parameter ``k`` or ``top_k`` receives the number of
      results. A parameter ``filters`` receives the filters, which the function must apply;
    - a ``NodeGraph``, for which a ``DefaultRetriever`` is created;
    - a ``QueryEngine``, whose answer becomes the only result, with its sources as evidence.

    Any other object (such as a vector store, a chain, a tool or a query engine) must be wrapped in
    a function. No framework is imported. The score of a result from another framework is its own
    score, the field ``relevance_score`` of its metadata, or the reciprocal rank. If the number of
    results cannot be passed to the source, its first ``top_k`` results are returned, and filters of
    a call raise ValueError.

    Args:
        source: The retriever.
        what: A description of the source for error messages.
        name: The name of the retriever in evidence and traces, if it comes from another framework.
            Defaults to the retriever's own name or to the name of its class.
        min_score: The minimum score of results.
        max_tokens: The maximum total number of tokens of the results, unless a call specifies a
            budget. A graph then returns windows, which are sequences of whole sentences.
        phrases: The treatment of quoted phrases in the default search of a graph: ``"first"`` or
            ``"required"``. See ``DefaultRetriever``.
        weights: The weights of words and vectors in the default search of a graph. See
            ``DefaultRetriever``.

    Raises:
        TypeError: If the source is not supported.
        ValueError: If an option is out of range, or ``phrases`` or ``weights`` is given for a
            source without a default search.

    Example:
        >>> texts = {"Tea": 0.5, "Tee": 0.25}
        >>> def search(query: str, k: int = 4) -> list[tuple[str, float]]:
        ...     return [*texts.items()][:k]
        >>> print(as_retriever(search).retrieve("tea?", top_k=2)[0].explain())
        0.5000    "Tea"
          0.5000    search for "tea?": itself
    """
    return configured(
        _converted(source, what, name),
        min_score=min_score,
        max_tokens=max_tokens,
        phrases=phrases,
        weights=weights,
    )


def _converted(source: Any, what: str, name: str | None) -> RetrieverProtocol:
    """Convert a retriever without applying options. See ``as_retriever``."""
    # A Runnable may forward attributes of the object that it wraps, so the class is checked.
    is_adapter = hasattr(type(source), NATIVE)
    if is_adapter and not _replaces_search(type(source)):
        native: RetrieverProtocol = getattr(source, NATIVE)
        return native
    if isinstance(source, NodeGraph):
        from .. import DefaultRetriever  # imported lazily to avoid an import cycle

        return DefaultRetriever(source)
    if not inspect.isclass(source):
        if _is_retriever(source):
            ours: RetrieverProtocol = source
            return ours
        own = source.get_name() if has(source, "get_name") else None  # LangChain
        name = str(name or own or getattr(source, "__name__", type(source).__name__))
        if inspect.isroutine(source) or isinstance(source, partial):
            return _of_function(name, source)
        if has(source, "invoke", "ainvoke"):
            inner = _bound_retriever(source)
            if inner is not None:
                return _of_langchain(name, source, inner)
        if has(source, "query", "aquery") and "filters" in parameters_of(source.query):
            request = partial(_call_function, None, source.query, source.aquery)
            return ForeignRetriever(
                source, name, request, False, applies_filters=True, is_free=False
            )
        if has(source, "retrieve", "aretrieve", "_retrieve"):
            return _of_llama_index(name, source)
    raise TypeError(
        f"{what} must be an object with retrieve() and aretrieve() that take a query, top_k "
        "and filters, a retriever of LangChain or LlamaIndex, a function of a query, or a "
        f"NodeGraph, got {source!r:.80}; wrap anything else in a function: lambda query: ..."
    )


def _is_retriever(source: Any) -> bool:
    """Return whether an object has the methods of ``RetrieverProtocol``."""
    if not has(source, "retrieve", "aretrieve"):
        return False
    for method in (source.retrieve, source.aretrieve):
        has_options = {"top_k", "filters"} <= parameters_of(method).keys()
        if not has_options and not takes_any_keyword(method):
            return False
    return True


_SEARCHES = frozenset(
    {
        "invoke",
        "ainvoke",
        "_get_relevant_documents",
        "_aget_relevant_documents",
        "retrieve",
        "aretrieve",
        "_retrieve",
        "_aretrieve",
    }
)
"""The methods of framework retrievers that a subclass can override in order to remove results."""


def _replaces_search(cls: type) -> bool:
    """Return whether a subclass of an adapter overrides a search method."""
    for base in cls.__mro__:
        if NATIVE in vars(base):
            return False
        if not _SEARCHES.isdisjoint(vars(base)):
            return True
    return False


class ForeignRetriever(BaseRetriever):
    """A retriever that wraps a function or a retriever of another framework.

    Such retrievers are created by ``as_retriever``. The results are nodes that do not belong to a
    graph, with the text, metadata and id of the original documents. A missing id is derived from
    the text and the metadata. The score is the original score, the field ``relevance_score`` of the
    metadata, or the reciprocal rank (1, 1/2, 1/3). The evidence states which kind of score is used.
    An answer becomes a single result.

    If the number of results cannot be passed to the source, the first ``top_k`` results are
    returned, and there may be fewer. Filters of a call are checked on the results, and more results
    are requested as needed. If the number of results cannot be passed to the source, filters are
    rejected.

    Args:
        source: The function or retriever.
        source_name: The name in evidence and traces.
        request: A function that returns the call of the source, given a query, a number of results
            and filters.
        takes_top_k: Whether the number of results can be passed to the source.
        applies_filters: Whether the source applies the filters of a call.
        is_free: Whether repeated queries do not call a language model.

    Raises:
        ValueError: During retrieval, if filters are not supported.
        TypeError: During retrieval, if the source returns neither documents nor an answer.
    """

    name = "search"

    def __init__(
        self,
        source: Any,
        source_name: str,
        request: Request,
        takes_top_k: bool,
        applies_filters: bool = False,
        is_free: bool = True,
    ) -> None:
        super().__init__()
        self.source = source
        self.source_name = source_name
        self._request = request
        self._takes_top_k = takes_top_k
        self._applies_filters = applies_filters
        self._is_free = is_free

    @property
    def takes_filters(self) -> bool:
        """Whether the retriever supports filters of a call."""
        return self._takes_top_k or self._applies_filters

    @property
    def is_free(self) -> bool:
        """Whether repeated queries are assumed not to call a language model."""
        return self._is_free

    def __repr__(self) -> str:
        return f"ForeignRetriever({self.source_name!r})"

    def retrieve_sources(self, query: str, top_k: int | None = None) -> tuple[str | None, Results]:
        """Return an answer with its sources, or None with the results if there is no answer.

        Args:
            query: The query.
            top_k: The maximum number of results. Defaults to the default of the source.
        """
        limit = self.check_limit(top_k, None)
        if Call.begin().restriction:
            raise ValueError(
                f"{self.source_name} cannot be used in restrict(): it searches without filters"
            )
        output = self._request(query, limit, None).call()
        text, results = read_sources(output, self.source_name, query)
        return text, results[:limit]

    def check_limit(self, top_k: int | None, filters: Filters | None) -> int | None:
        """Validate the arguments of a call, and return the maximum number of results."""
        limit = super().check_limit(top_k, filters)
        if filters and not self.takes_filters:
            raise ValueError(
                f"{self.source_name} has no filters and no top_k, so its results cannot be "
                f"filtered by {dict(filters)!r:.120}; set the filter where it is created, or use "
                "a retriever with filters"
            )
        return limit

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query. A blank query has no results."""
        conditions = Call.begin(filters).conditions
        search = self._search if self._applies_filters or not conditions else self._checked
        with start_span(self.name, queries=queries, retriever=self.source_name) as span:
            results = await gather_each(search, queries, limit, conditions)
            span.set_results(results)
        return results

    async def _search(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        if not query.strip():
            return []
        output = await self._request(query, limit, filters)
        return read_output(output, self.source_name, query)[:limit]

    async def _checked(self, query: str, limit: int | None, filters: Filters | None) -> Results:
        """Request more results until ``limit`` results match the filters."""
        conditions = parse_filters(filters)
        results = await self._search(query, limit, None)
        requested = len(results) if limit is None else limit
        count = requested
        before = -1
        while True:
            meeting = [result for result in results if conditions.matches(result.node)][:requested]
            has_no_more = len(results) == before or len(results) < count
            if has_no_more or len(meeting) == requested:
                return meeting
            if count >= MAX_READ:
                raise ValueError(
                    f"of the first {count} results of {self.source_name} only {len(meeting)} "
                    f"meet {dict(filters or {})!r:.120}; pass a function with a parameter "
                    "'filters' that applies them in the store"
                )
            before = len(results)
            count = min(4 * count, MAX_READ)
            results = await self._search(query, count, None)


def _of_function(name: str, call: Callable[..., Any]) -> ForeignRetriever:
    """Create a retriever from a function.

    A parameter ``top_k`` or ``k`` receives the number of results. A parameter ``filters`` receives
    the filters, which the function must apply.
    """
    parameters = parameters_of(call)
    number = _first_of(("top_k", "k"), parameters)
    request = partial(_call_function, number, call, None)
    return ForeignRetriever(call, name, request, number is not None, "filters" in parameters)


def _call_function(
    number: str | None, call: Any, acall: Any, query: str, top_k: int | None, filters: Any
) -> Do[Any]:
    options: dict[str, Any] = {}
    if filters:
        options["filters"] = filters
    if number is not None and top_k is not None:
        options[number] = top_k
    asked = partial(call, query, **options)
    if inspect.iscoroutinefunction(call):
        return Do(lambda: finish(lambda text: call(text, **options), query), asked)
    return Do(asked, acall and (lambda: acall(query, **options)))


def _first_of(names: Sequence[str], allowed: Container[str]) -> str | None:
    return next((name for name in names if name in allowed), None)


def _of_langchain(name: str, source: Any, inner: Any) -> ForeignRetriever:
    """Create a retriever from a LangChain retriever, which may be wrapped in a Runnable.

    The number of results is passed as a keyword argument, as a search option of the vector store,
    or as a field of a copy.
    """
    method = inner.__class__._get_relevant_documents
    parameters = [*parameters_of(method)]
    if hasattr(inner, "vectorstore") and takes_any_keyword(method):
        parameters.append("k")
    keyword = _first_of(("k", "top_k"), parameters)
    number = None
    if inner is source:
        number = _first_of(("k", "top_k"), inner.__class__.model_fields)
    takes_top_k = bool(keyword or number)
    request = partial(_call_langchain, source, inner, keyword, number)
    return ForeignRetriever(source, name, request, takes_top_k, is_free=takes_top_k)


def _call_langchain(
    source: Any, inner: Any, keyword: Any, number: Any, query: str, top_k: int | None, _: object
) -> Do[Any]:
    options: dict[str, int] = {}
    if top_k is not None and keyword:
        options[keyword] = top_k
        if getattr(inner, "search_type", "") == "mmr":  # MMR also needs the number of candidates
            options["fetch_k"] = max(inner.search_kwargs.get("fetch_k", 20), top_k)
    elif top_k is not None and number:
        source = source.model_copy(update={number: top_k})
    return Do(
        lambda: source.invoke(query, **options),
        lambda: source.ainvoke(query, **options),
    )


def _bound_retriever(source: Any) -> Any | None:
    """Return the LangChain retriever that a Runnable wraps, or None for any other object."""
    while "bound" in getattr(type(source), "model_fields", {}):
        source = source.bound
    return source if hasattr(type(source), "_get_relevant_documents") else None


def _of_llama_index(name: str, source: Any) -> ForeignRetriever:
    """Create a retriever from a LlamaIndex retriever. The number of results is set on a copy."""
    fields = ("similarity_top_k", "_similarity_top_k")
    number = next((field for field in fields if hasattr(source, field)), None)
    request = partial(_call_llama_index, source, number)
    return ForeignRetriever(source, name, request, number is not None)


def _call_llama_index(
    source: Any, number: str | None, query: str, top_k: int | None, _: object
) -> Do[Any]:
    if top_k is not None and number is not None:
        source = copy.copy(source)
        setattr(source, number, top_k)
    # The base class calls the synchronous method in the event loop, which would block the loop.
    has_own_async = owner_of(source, "_aretrieve") != "BaseRetriever"
    acall = partial(source.aretrieve, query) if has_own_async else None
    return Do(lambda: source.retrieve(query), acall)


def check_in_graph(retriever: object, owner: str) -> None:
    """Check that a retriever can return nodes of a graph, whose parents and neighbors are needed.

    Raises:
        TypeError: If all results come from retrievers of other frameworks.
    """
    parts = [*with_all_inner(retriever)]
    if any(getattr(part, "takes_documents", False) for part in parts):
        return
    leaves = [part for part in parts if not getattr(part, "inner_retrievers", ())]
    if leaves and all(isinstance(leaf, ForeignRetriever) for leaf in leaves):
        raise TypeError(
            f"{owner} needs the parents or neighbors of results, and the results of {leaves[0]!r} "
            "are in no node graph; add the documents to a NodeGraph and search the graph, or use "
            "GraphNodesRetriever if their ids are ids of nodes"
        )
