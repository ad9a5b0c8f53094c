"""Search for a batch of queries together, with a retriever run for each query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig

from ...retrievers import RecursiveRetriever, Retriever
from ...retrievers.base_retriever import BaseRetriever as NativeRetriever
from ...retrievers.base_retriever import inner_retrievers
from ...retrievers.plans import Effect, Plan, arun, run
from .callbacks import acall_with_config, call_with_config

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_BATCH = 256
"""How many queries are embedded together at most; a graph caches the vectors of twice as many."""


@dataclass(frozen=True, slots=True)
class Invoke(Effect[T]):
    """The effect of a plan that has a sync and an async function.

    Attributes:
        function: What to call.
        afunction: What to call and await in an event loop.
    """

    function: Callable[[], T]
    afunction: Callable[[], Coroutine[Any, Any, T]]

    def run(self) -> T:
        """Call the function."""
        return self.function()

    async def arun(self) -> T:
        """Await the async function."""
        return await self.afunction()


def supports_batch(retriever: object, method: str) -> bool:
    """Return whether a retriever, and all it holds, search for many queries together.

    Args:
        retriever: Any retriever.
        method: ``"batch"`` or ``"abatch"``.
    """
    default = getattr(NativeRetriever, method)
    own = getattr(type(retriever), method, default) is not default
    return own and all(supports_batch(inner, method) for _, inner in inner_retrievers(retriever))


def portions(
    inputs: Sequence[str], configs: Sequence[RunnableConfig], limit: int | None
) -> Iterator[tuple[list[str], list[RunnableConfig]]]:
    """Split a batch, with its configs, into as many queries as are searched together.

    Args:
        inputs: The queries.
        configs: One for each query.
        limit: How many at most, beside ``MAX_BATCH``.
    """
    size = min(limit or MAX_BATCH, MAX_BATCH)
    for start in range(0, len(inputs), size):
        part = slice(start, start + size)
        yield list(inputs[part]), list(configs[part])


BatchSearch: TypeAlias = Callable[[list[str], list[Any]], Invoke[Any]]
"""Searches for queries, with the run manager of each; gives the documents of each."""


def batch_runs(
    retriever: BaseRetriever,
    queries: list[str],
    configs: list[RunnableConfig],
    search: BatchSearch,
    search_one: BatchSearch,
    *,
    return_exceptions: bool,
) -> Plan[list[Any]]:
    """Search for queries together, with the runs that ``invoke`` would have for each.

    Args:
        retriever: The LangChain retriever whose runs they are.
        queries: The queries.
        configs: One for each query; the first is the config context of the search.
        search: Searches for all queries.
        search_one: Searches for one query, given as a list of one.
        return_exceptions: Whether a query that fails gives its error. Where the search of all
            fails, each query is searched on its own then. Else the first error is raised.
    """
    runs = []
    for query, config in zip(queries, configs, strict=True):
        runs.append((yield from _start_run(retriever, query, config)))
    try:
        _check_queries(queries)
        results = yield from _with_config(configs[0], search(queries, runs))
    except BaseException as error:
        catches = return_exceptions and isinstance(error, Exception)
        if catches and len(runs) > 1:
            plans = [
                partial(_single_run, query, config, run_manager, search_one)
                for query, config, run_manager in zip(queries, configs, runs, strict=True)
            ]
            return (yield from _run_all(plans))
        for run_manager in runs:
            yield from _end_run(run_manager.on_retriever_error, error)
        if not catches:
            raise
        return [error]
    for run_manager, documents in zip(runs, results, strict=True):
        yield from _end_run(run_manager.on_retriever_end, documents)
    return list(results)


def _single_run(
    query: str, config: RunnableConfig, run_manager: Any, search_one: BatchSearch
) -> Plan[Any]:
    """Search for one query in the run that was started for it; return its error if it fails."""
    try:
        documents = yield from _with_config(config, search_one([query], [run_manager]))
    except Exception as error:
        yield from _end_run(run_manager.on_retriever_error, error)
        return error
    yield from _end_run(run_manager.on_retriever_end, documents)
    return documents


def _run_all(plans: Sequence[Callable[[], Plan[Any]]]) -> Invoke[list[Any]]:
    async def gather() -> list[Any]:
        return list(await asyncio.gather(*(arun(plan()) for plan in plans)))

    return Invoke(lambda: [run(plan()) for plan in plans], gather)


def _with_config(config: RunnableConfig, search: Invoke[Any]) -> Invoke[Any]:
    return Invoke(
        partial(call_with_config, config, search.function),
        partial(acall_with_config, config, search.arun),
    )


def _start_run(retriever: BaseRetriever, query: str, config: RunnableConfig) -> Invoke[Any]:
    """Start a retriever run, as ``invoke`` and ``ainvoke`` do."""

    def start(manager: type[CallbackManager | AsyncCallbackManager]) -> Any:
        callbacks = manager.configure(
            config.get("callbacks"),
            None,
            inheritable_tags=config.get("tags"),
            local_tags=retriever.tags,
            inheritable_metadata={**(config.get("metadata") or {}), **retriever._get_ls_params()},
            local_metadata=retriever.metadata,
        )
        name = config.get("run_name") or retriever.get_name()
        return callbacks.on_retriever_start(None, query, name=name, run_id=config.get("run_id"))

    return Invoke(partial(start, CallbackManager), partial(start, AsyncCallbackManager))


def _end_run(event: Callable[[Any], Any], value: Any) -> Invoke[Any]:
    """End a run; the event's method is sync or async, as the run was started."""
    return Invoke(partial(event, value), partial(event, value))


def _check_queries(queries: Sequence[object]) -> None:
    for query in queries:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")


def embed_queries(retriever: object, queries: Sequence[object]) -> Plan[None]:
    """Let the models of all inner retrievers embed the queries, each model all in one call.

    A single retriever does so itself; several branches that start together would each ask the
    model. A model that fails is called again by the search for each query, which then raises: one
    query that can't be embedded does not affect the others.
    """
    texts = [query for query in queries if isinstance(query, str) and query.strip()]
    texts = list(dict.fromkeys(texts))
    for searcher in _searchers(retriever) if len(texts) > 1 else ():
        try:
            yield from Invoke(partial(searcher.embed, texts), partial(searcher.aembed, texts))
        except Exception as error:
            logger.info("%r could not embed a batch, goes one by one: %s", searcher, error)


def _searchers(retriever: object) -> Iterator[Retriever | RecursiveRetriever]:
    """Yield the inner retrievers that search for the query as it is."""
    if isinstance(retriever, Retriever | RecursiveRetriever):
        yield retriever
    elif not getattr(retriever, "calls_model", False):
        for _, inner in inner_retrievers(retriever):
            yield from _searchers(inner)
