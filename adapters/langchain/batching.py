"""Search for a batch of queries together, with a retriever run for each query."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig

from ...retrievers.base_retriever import BaseRetriever as NativeRetriever
from ...retrievers.base_retriever import inner_retrievers
from ...retrievers.composite.recursive import RecursiveRetriever
from ...retrievers.plans.effects import Compute
from ...retrievers.plans.plan import Plan, arun, run
from ...retrievers.retriever import Retriever
from .callbacks import acall_with_config, call_with_config

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_BATCH = 256
"""How many queries are embedded together at most; a graph caches the vectors of twice as many."""


def supports_batch(retriever: object, method: str) -> bool:
    """Return whether a retriever, and all it holds, search for many queries together.

    Args:
        retriever: Any retriever.
        method: ``"batch"`` or ``"abatch"``.
    """
    default = getattr(NativeRetriever, method)
    own = getattr(type(retriever), method, default) is not default
    return own and all(supports_batch(inner, method) for _, inner in inner_retrievers(retriever))


BatchSearch: TypeAlias = Callable[[list[str], list[Any]], Compute[list[Any]]]
"""Searches for queries, with the run manager of each; gives the documents of each."""


def batch_runs(
    retriever: BaseRetriever,
    queries: list[str],
    configs: list[RunnableConfig],
    search: BatchSearch,
    *,
    return_exceptions: bool,
) -> Plan[list[Any]]:
    """Search for queries together, with the runs that ``invoke`` would have for each.

    Args:
        retriever: The LangChain retriever whose runs they are.
        queries: The queries.
        configs: One for each query; the first is the config context of the search.
        search: Searches for all queries.
        return_exceptions: Whether a query that fails gives its error. Where the search of all
            fails, each query is searched on its own then. Else the first error is raised.
    """
    runs: list[Any] = []
    try:
        for query, config in zip(queries, configs, strict=True):
            runs.append((yield from _start_run(retriever, query, config)))
    except BaseException as error:  # cancelled, or a handler that raises
        for run_manager in runs:
            yield from _end_run(run_manager.on_retriever_error, error)
        raise
    return (yield from _search_runs(queries, configs, runs, search, return_exceptions))


def invoke_each(
    retriever: BaseRetriever,
    queries: list[str],
    configs: list[RunnableConfig],
    *,
    return_exceptions: bool,
    **kwargs: Any,
) -> Compute[list[Any]]:
    """Invoke a retriever for each query, as many at once as the first config says.

    A cancelled batch ends when every run has ended: a run that has begun reports its error. The
    base class leaves those behind that are not the first to end.
    """

    async def ainvoke_each() -> list[Any]:
        slots = asyncio.Semaphore(configs[0].get("max_concurrency") or len(queries))

        async def ainvoke(query: str, config: RunnableConfig) -> Any:
            async with slots:
                try:
                    return await retriever.ainvoke(query, config, **kwargs)
                except Exception as error:
                    if return_exceptions:
                        return error
                    raise

        tasks = [asyncio.ensure_future(each) for each in map(ainvoke, queries, configs)]
        try:
            return await asyncio.gather(*tasks)
        except asyncio.CancelledError:  # all tasks are cancelled, the first of them has ended
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    invoke = partial(BaseRetriever.batch, retriever, queries, configs, **kwargs)
    return Compute(partial(invoke, return_exceptions=return_exceptions), ainvoke_each)


def _search_runs(
    queries: list[str],
    configs: list[RunnableConfig],
    runs: list[Any],
    search: BatchSearch,
    return_exceptions: bool,
) -> Plan[list[Any]]:
    """Search for queries in the runs that were started for them, and end these."""
    try:
        for query in queries:
            if not isinstance(query, str):
                raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        results = yield from _with_config(configs[0], search(queries, runs))
    except BaseException as error:
        catches = return_exceptions and isinstance(error, Exception)
        if catches and len(runs) > 1:
            single_runs = [
                partial(_search_runs, [query], [config], [run_manager], search, True)
                for query, config, run_manager in zip(queries, configs, runs, strict=True)
            ]
            return [outcome for (outcome,) in (yield from _run_all(single_runs))]
        for run_manager in runs:
            yield from _end_run(run_manager.on_retriever_error, error)
        if not catches:
            raise
        return [error]
    for run_manager, documents in zip(runs, results, strict=True):
        yield from _end_run(run_manager.on_retriever_end, documents)
    return results


def _run_all(plans: Sequence[Callable[[], Plan[T]]]) -> Compute[list[T]]:
    async def gather() -> list[T]:
        return await asyncio.gather(*(arun(plan()) for plan in plans))

    return Compute(lambda: [run(plan()) for plan in plans], gather)


def _with_config(config: RunnableConfig, search: Compute[T]) -> Compute[T]:
    call, acall = partial(call_with_config, config), partial(acall_with_config, config)
    return Compute(partial(call, search.run), partial(acall, search.arun))


def _start_run(retriever: BaseRetriever, query: str, config: RunnableConfig) -> Compute[Any]:
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

    return Compute(partial(start, CallbackManager), partial(start, AsyncCallbackManager))


def _end_run(event: Callable[[Any], Any], value: Any) -> Compute[Any]:
    """End a run; the event's method is sync or async, as the run was started."""
    return Compute.of(event, event, value)


def embed_queries(retriever: object, queries: Sequence[object]) -> Plan[None]:
    """Let the models of all inner retrievers embed the queries, each model all in one call.

    A single retriever does so itself; several branches that start together would each ask the
    model. A model that fails is called again by the search for each query, which then raises: one
    query that can't be embedded does not affect the others.
    """
    texts = list(dict.fromkeys(q for q in queries if isinstance(q, str) and q.strip()))
    for searcher in _searchers(retriever) if len(texts) > 1 else ():
        try:
            yield from Compute.of(searcher.embed, searcher.aembed, texts)
        except Exception as error:
            logger.info("%r could not embed a batch, goes one by one: %s", searcher, error)


def _searchers(retriever: object) -> Iterator[Retriever | RecursiveRetriever]:
    """Yield the inner retrievers that search for the query as it is."""
    if isinstance(retriever, Retriever | RecursiveRetriever):
        yield retriever
    elif not getattr(retriever, "calls_model", False):
        for _, inner in inner_retrievers(retriever):
            yield from _searchers(inner)
