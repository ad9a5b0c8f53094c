"""Recognise a retriever or query engine of any framework, and say how to call it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...nodegraph.models.model_objects import finish, has, owner_of
from ..filters import Filters
from .outputs import read_plain

Search = Callable[[str, int | None], Any]
"""Searches for a query; the number is how many results, None for its own number."""

AsyncSearch = Callable[[str, int | None], Awaitable[Any]]

Batch = Callable[[list[str], int | None], Any]

AsyncBatch = Callable[[list[str], int | None], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class RetrieverCalls:
    """Hold the calls that a retriever of another framework offers, and what they are capable of.

    Attributes:
        name: What evidence and traces call it.
        search: Searches for one query.
        asearch: The same as an async function; None to search in a thread.
        batch: Searches for many queries at once.
        abatch: The same as an async function.
        takes_top_k: Whether it returns as many as it is told to.
        calls_model: Whether a call may cost one of a language model.
        filtered: Returns the calls with conditions that it checks itself, before it ranks.
        with_options: Returns the calls with further options of its search, its own conditions.
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
    """Return how to call a retriever or query engine of any supported kind; None for any other."""
    if inspect.isclass(source):
        return None
    if inspect.isroutine(source) or isinstance(source, partial):
        return _function(source)
    if has(source, "similarity_search", "as_retriever"):  # a vector store of LangChain
        return _vector_store(source)
    if has(source, "invoke", "ainvoke"):  # a Runnable of LangChain
        return (
            _tool(source)
            if has(source, "_run") and hasattr(source, "args_schema")
            else (_runnable(source))
        )
    if has(source, "as_retriever", "as_query_engine"):  # an index of LlamaIndex
        return adapt_retriever(source.as_retriever())
    if hasattr(getattr(source, "metadata", None), "description") and has(source, "call"):
        lease = (getattr(source, name, None) for name in ("query_engine", "retriever"))
        inner = next((item for item in lease if item is not None), None)  # a tool of LlamaIndex
        calls = None if inner is None else adapt_retriever(inner)
        return None if calls is None else replace(calls, name=source.metadata.name)
    if has(source, "query", "aquery"):
        return _query_engine(source)
    if has(source, "retrieve", "aretrieve", "_retrieve"):  # a retriever of LlamaIndex
        return _llama_index(source)
    return None


def is_native(source: Any) -> bool:
    """Return whether it is a retriever of this package's kind: it takes top_k and filters."""
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
    """Call a function of a query, and of a number of results if it has ``top_k`` or ``k``."""
    named = [name for name in ("top_k", "k") if _takes(function, name)][:1]

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


def _vector_store(store: Any, more: Mapping[str, Any] | None = None) -> RetrieverCalls:
    """Search a vector store with the scores that it gives, if it has any.

    Two are requested where one is wanted: their order tells scores from distances.
    """

    def search(query: str, top_k: int | None) -> Any:
        options = {**(more or {}), **({} if top_k is None else {"k": max(2, top_k)})}
        try:
            return store.similarity_search_with_score(query, **options)
        except NotImplementedError:
            return store.similarity_search(query, **options)

    async def asearch(query: str, top_k: int | None) -> Any:
        options = {**(more or {}), **({} if top_k is None else {"k": max(2, top_k)})}
        try:
            return await store.asimilarity_search_with_score(query, **options)
        except NotImplementedError:
            return await store.asimilarity_search(query, **options)

    return RetrieverCalls(
        *(type(store).__name__, search, asearch),
        takes_top_k=True,
        with_options=partial(_vector_store, store),
    )


def _runnable(runnable: Any) -> RetrieverCalls:
    """Invoke a retriever, or any Runnable from a text to documents or an answer."""
    bind = _top_k_binding(runnable)

    def bound(top_k: int | None) -> tuple[Any, dict[str, Any]]:
        return (runnable, {}) if bind is None or top_k is None else bind(top_k)

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

    name = runnable.get_name() if has(runnable, "get_name") else type(runnable).__name__
    able = bind is not None
    calls = (search, asearch, batch, abatch)
    return RetrieverCalls(str(name), *calls, takes_top_k=able, calls_model=not able)


def _top_k_binding(runnable: Any) -> Callable[[int], tuple[Any, dict[str, Any]]] | None:
    """Return what gives a Runnable, and the keywords of its call, for a number of results."""
    inner = runnable
    while hasattr(type(inner), "model_fields") and "bound" in type(inner).model_fields:
        inner = inner.bound  # retriever.with_config(...)
    own = getattr(type(inner), "_get_relevant_documents", None)
    if own is None:
        return None
    parameters = inspect.signature(own).parameters
    name = next((name for name in ("k", "top_k") if name in parameters), None)
    if name is not None:
        return partial(_keyword, runnable, name)
    if _takes_any(own) and hasattr(inner, "vectorstore") and hasattr(inner, "search_kwargs"):
        return partial(_store_options, runnable, inner)
    fields = getattr(type(inner), "model_fields", {})
    name = next((name for name in ("k", "top_k") if name in fields), None)
    if name is None or inner is not runnable:
        return None
    return partial(_copied, runnable, name)


def _keyword(runnable: Any, name: str, top_k: int) -> tuple[Any, dict[str, Any]]:
    return runnable, {name: top_k}


def _copied(runnable: Any, name: str, top_k: int) -> tuple[Any, dict[str, Any]]:
    return runnable.model_copy(update={name: top_k}), {}


def _store_options(runnable: Any, retriever: Any, top_k: int) -> tuple[Any, dict[str, Any]]:
    options = {"k": top_k}
    if retriever.search_type == "mmr":  # it chooses among so many
        options["fetch_k"] = max(retriever.search_kwargs.get("fetch_k", 20), top_k)
    return runnable, options


def _tool(tool: Any) -> RetrieverCalls:
    """Call a tool for agents with one text: its artifact is documents, or its content an answer."""
    schema: Mapping[str, Any] = getattr(tool, "args", {})
    required = [name for name, argument in schema.items() if "default" not in argument]
    arguments = required or list(schema)
    if len(arguments) != 1:
        raise TypeError(
            f"the tool {tool.name!r} takes the arguments {arguments}; one that is searched "
            "with takes one, the query"
        )

    def call(query: str) -> dict[str, Any]:
        args = {arguments[0]: query}
        return {"name": tool.name, "args": args, "id": "nodekin", "type": "tool_call"}

    async def asearch(query: str, top_k: int | None) -> Any:
        return _tool_output(await tool.ainvoke(call(query)), tool.name)

    return RetrieverCalls(
        tool.name,
        lambda query, top_k: _tool_output(tool.invoke(call(query)), tool.name),
        asearch,
        calls_model=True,
    )


def _tool_output(message: Any, name: str) -> Any:
    """Return what a tool returned.

    Raises:
        RuntimeError: If it handled an error itself, and returned a message about it.
    """
    if getattr(message, "status", None) == "error":
        raise RuntimeError(f"the tool {name!r} failed: {message.content!s:.300}")
    return message


# LlamaIndex


def _llama_index(retriever: Any, more: Mapping[str, Any] | None = None) -> RetrieverCalls:
    """Search with a retriever; a copy of it has another number of results, or conditions."""
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
    """Return whether it takes conditions and has none, which those of a call would replace."""
    return hasattr(retriever, "_filters") and retriever._filters is None


# Query engines of LlamaIndex, and of this package


def _query_engine(engine: Any, filters: Filters | None = None) -> RetrieverCalls:
    """Ask a query engine; one of this package takes conditions."""
    options: dict[str, Any] = {} if filters is None else {"filters": filters}

    async def asearch(query: str, top_k: int | None) -> Any:
        return await engine.aquery(query, **options)

    return RetrieverCalls(
        type(engine).__name__,
        lambda query, top_k: engine.query(query, **options),
        asearch,
        calls_model=True,
        filtered=partial(_query_engine, engine) if _takes(engine.query, "filters") else None,
    )


def _takes(function: Callable[..., Any], *names: str) -> bool:
    """Return whether a function has parameters of these names, or takes any."""
    try:
        parameters: Mapping[str, Any] = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return True
    return all(name in parameters for name in names) or _takes_any(function)


def _takes_any(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
