"""Show the spans of a retrieval as LangChain runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import (
    BaseCallbackManager,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.documents import Document
from langchain_core.globals import get_debug
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context, var_child_runnable_config
from langchain_core.tracers import context as tracers_context
from langchain_core.utils.env import env_var_is_set
from langsmith.utils import tracing_is_enabled

from ...nodegraph.concurrency import limit_concurrency
from ...retrievers.tracing import Span
from ..frameworks import observe_once
from .documents import to_document
from .event_dispatch import EventDispatcher

T = TypeVar("T")


_ENGINE_RETRIEVAL = "retrieve"
"""The span of a query engine that passes on what its retriever finds."""


class RunObserver:
    """Create a run for every span, as a child of the run in which the span starts.

    The parent is the run of LangChain's config context, which threads and tasks inherit. So the
    search of a fusion's branch is a child of the fusion also in a thread, and a LangChain model
    or chain that is called in a span, with or without a config, is a child of the span. Where a
    batch of queries is searched together, the span of one query is a child of that query's run,
    and a span of all queries has a run below each of theirs.

    A retrieval within another one (the branch of a fusion, the search for each phrasing, that of
    a query engine) has a retriever run for each of its queries, which ends with the documents.
    All other spans have chain runs, and so has the retrieval right below the retriever run of a
    ``NodeGraphRetriever`` or an engine, which only passes its results on: inputs are the
    attributes that the span starts with, outputs those added later.

    Args:
        loop: The event loop that must not be blocked; None where nothing is async.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.dispatcher = EventDispatcher(loop)
        self._open: dict[int, _OpenRuns] = {}
        self._passing_runs: set[UUID | None] = set()

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start the runs of a span, and make them the parents of the runs that follow."""
        config, batch = var_child_runnable_config.get(), _batch.get()
        parents = _parents(config, batch, span.attributes.get("query"))
        if config is None or not parents:
            return
        inputs = dict(span.attributes)
        is_retriever = self._is_retriever(span, parents, in_batch=bool(batch))
        if is_retriever and not batch:
            parents = [(query, parents[0][1]) for query in dict.fromkeys(span.queries)]
        runs = [_SpanRun(*parent, _new_run(parent[1], span.name)) for parent in parents]
        self._open[id(span)] = _OpenRuns(span, inputs, config, batch, runs, is_retriever)
        children = tuple((run.query, _child(run.run, self.dispatcher)) for run in runs)
        var_child_runnable_config.set(_with_callbacks(config, children[0][1]))
        _batch.set(children if batch else ())
        for run in runs:
            metadata = run.manager.metadata
            if is_retriever:
                if span.name == _ENGINE_RETRIEVAL:
                    self._passing_runs.add(run.run.run_id)
                metadata = {**metadata, **{k: v for k, v in inputs.items() if k != "query"}}
            start = "on_retriever_start" if is_retriever else "on_chain_start"
            value = run.query if is_retriever else dict(inputs)
            self._dispatch(run, start, None, value, metadata=metadata, name=span.name)

    def end(self, span: Span) -> None:
        """End the runs of a span, with the span's error where it has one."""
        opened = self._open.pop(id(span), None)
        if opened is None:
            return
        var_child_runnable_config.set(opened.config)
        _batch.set(opened.batch)
        documents = _documents(span) if opened.is_retriever and span.error is None else {}
        for run in opened.runs:
            self._passing_runs.discard(run.run.run_id)
            kind = "retriever" if opened.is_retriever else "chain"
            if span.error is not None:
                self._dispatch(run, f"on_{kind}_error", span.error)
            elif opened.is_retriever:
                self._dispatch(run, "on_retriever_end", documents.get(run.query, []))
            else:
                self._dispatch(run, "on_chain_end", _outputs(opened.inputs, span.attributes))

    def _is_retriever(self, span: Span, parents: Sequence[ParentRun], *, in_batch: bool) -> bool:
        """Return whether a span is a retrieval whose results no run above it shows."""
        if not span.queries or (in_batch and not {q for q, _ in parents} <= {*span.queries}):
            return False
        above = {manager.parent_run_id for _, manager in parents}
        return above.isdisjoint(self._passing_runs | _root_runs.get())

    def _dispatch(self, run: _SpanRun, event: str, *args: Any, **kwargs: Any) -> None:
        self.dispatcher.dispatch(
            run.manager.handlers,
            event,
            *args,
            run_id=run.run.run_id,
            parent_run_id=run.manager.parent_run_id,
            tags=run.manager.tags,
            **kwargs,
        )


def _documents(span: Span) -> dict[str, list[Document]]:
    """Return the documents of each query of a retrieval."""
    results = span.results or [[] for _ in span.queries]
    return {
        query: [to_document(result) for result in of_query]
        for query, of_query in zip(span.queries, results, strict=False)
    }


ParentRun = tuple[str, BaseCallbackManager]
"""A query, and the callback manager of its run: what ``run_manager.get_child()`` returns."""

_batch: ContextVar[tuple[ParentRun, ...]] = ContextVar("runs of a batch", default=())

_observer: ContextVar[RunObserver | None] = ContextVar("run observer", default=None)

_root_runs: ContextVar[frozenset[UUID]] = ContextVar("retriever runs", default=frozenset())


class _SpanRun(NamedTuple):
    query: str
    manager: BaseCallbackManager
    run: CallbackManagerForChainRun


class _OpenRuns(NamedTuple):
    """A span that has started, the context it started in, and its runs."""

    span: Span
    inputs: dict[str, Any]
    config: RunnableConfig
    batch: tuple[ParentRun, ...]
    runs: list[_SpanRun]
    is_retriever: bool


def child_runs(
    config: RunnableConfig | None = None, *, loop: asyncio.AbstractEventLoop | None = None
) -> AbstractContextManager[RunObserver | None]:
    """Show the spans of the block as child runs of the current run.

    Shows nothing where there are no handlers. The config's ``max_concurrency`` holds in the block.

    Args:
        config: What LangChain passes to the function that a runnable runs: its run is the parent.
            None where the config context is that of the run already.
        loop: The event loop that must not be blocked; use ``achild_runs`` there.
    """
    if config is None and _observer.get() is None and not (_max_concurrency() or _has_handlers()):
        return nullcontext()
    return _child_runs(config, loop)


@contextmanager
def _child_runs(
    config: RunnableConfig | None, loop: asyncio.AbstractEventLoop | None
) -> Iterator[RunObserver | None]:
    token = None if config is None else var_child_runnable_config.set(child_config(config))
    limit = _max_concurrency()
    try:
        with nullcontext() if limit is None else limit_concurrency(limit):
            if _observer.get() is None and not _has_handlers():
                yield None
            else:
                with observe_once(_observer, lambda: RunObserver(loop)) as observer:
                    yield observer
    finally:
        if token is not None:
            var_child_runnable_config.reset(token)


def _max_concurrency() -> int | None:
    return (var_child_runnable_config.get() or {}).get("max_concurrency")


@asynccontextmanager
async def achild_runs(config: RunnableConfig | None = None) -> AsyncIterator[None]:
    """Do the same without blocking the event loop; wait for the handlers at the end."""
    observer = None
    try:
        with child_runs(config, loop=asyncio.get_running_loop()) as observer:
            yield
    finally:
        if observer is not None:
            await observer.dispatcher.finish()


def parent_runs(
    queries: Sequence[str], run_managers: Sequence[Any]
) -> AbstractContextManager[None]:
    """Let the runs of the block, also of its threads and tasks, be children of these runs.

    Args:
        queries: One query, or the queries of a batch.
        run_managers: That of the run of each query.
    """
    if any([manager.handlers or manager.inheritable_handlers for manager in run_managers]):
        return _parent_runs(queries, run_managers)
    return nullcontext()  # nobody would see the children


@contextmanager
def _parent_runs(queries: Sequence[str], run_managers: Sequence[Any]) -> Iterator[None]:
    children = [run_manager.get_child() for run_manager in run_managers]
    parents = tuple(zip(queries, children, strict=True))
    config = _with_callbacks(var_child_runnable_config.get() or {}, parents[0][1])
    token = var_child_runnable_config.set(config)
    batch = _batch.set(parents if len(parents) > 1 else ())
    roots = _root_runs.set(frozenset(run_manager.run_id for run_manager in run_managers))
    try:
        yield
    finally:
        _root_runs.reset(roots)
        _batch.reset(batch)
        var_child_runnable_config.reset(token)


def child_config(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what is called in a run, without the name and id of the run itself."""
    inherited = {key: value for key, value in config.items() if key not in ("run_id", "run_name")}
    return cast("RunnableConfig", inherited)


def has_config(config: RunnableConfig | None) -> bool:
    """Return whether a call has a config, its own or that of what it is called in."""
    return config is not None or var_child_runnable_config.get() is not None


_HOOKS: list[tuple[Any, ...]] | None = getattr(tracers_context, "_configure_hooks", None)
"""Variables that hold a handler, with its class and the environment variable that asks for it."""


def nobody_listens() -> bool:
    """Return whether a call without a config is reported to no handler.

    Handlers come from the context (``tracing_v2_enabled``, ``collect_runs``, LangSmith's own), the
    environment and ``set_debug``. This is what ``CallbackManager.configure`` looks at, in a third
    of the time.
    """
    if _HOOKS is None or _asks_for_old_tracing():  # a LangChain that differs, or that raises
        return False
    if tracers_context.tracing_v2_callback_var.get() is not None or tracing_is_enabled():
        return False
    for variable, _, handler, name in _HOOKS:
        if variable.get() is not None or (name and handler and env_var_is_set(name)):
            return False
    return not get_debug()


@cache  # as LangSmith reads its variables once
def _asks_for_old_tracing() -> bool:
    """Return whether tracing is asked for as LangChain did before, which it refuses."""
    return env_var_is_set("LANGCHAIN_TRACING") or env_var_is_set("LANGCHAIN_HANDLER")


def call_with_config(config: RunnableConfig, function: Callable[[], T]) -> T:
    """Call a function with a config as LangChain's config context."""
    if not config.get("callbacks"):  # nobody traces: the context is the config alone
        token = var_child_runnable_config.set(child_config(config))
        try:
            return function()
        finally:
            var_child_runnable_config.reset(token)
    with set_config_context(child_config(config)) as context:
        return context.run(function)


async def acall_with_config(
    config: RunnableConfig, function: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    """Await an async function with a config as LangChain's config context."""
    if not config.get("callbacks"):
        token = var_child_runnable_config.set(child_config(config))
        try:
            return await function()
        finally:
            var_child_runnable_config.reset(token)
    with set_config_context(child_config(config)) as context:
        return await context.run(asyncio.create_task, function())


def _parents(
    config: RunnableConfig | None, batch: tuple[ParentRun, ...], query: object
) -> list[ParentRun]:
    """Return the runs below which a span is shown: that of one query, or those of a batch."""
    manager = None if config is None else config.get("callbacks")
    if not isinstance(manager, BaseCallbackManager):
        return []
    if not batch or manager.parent_run_id != batch[0][1].parent_run_id:
        # No batch, or a run of LangChain's own is in between.
        return [("", manager)] if manager.handlers else []
    own = [parent for parent in batch if parent[0] == query]
    return [parent for parent in own or batch if parent[1].handlers]


def _has_handlers() -> bool:
    manager = (var_child_runnable_config.get() or {}).get("callbacks")
    single = isinstance(manager, BaseCallbackManager) and bool(manager.handlers)
    return single or any(manager.handlers for _, manager in _batch.get())


def _new_run(manager: BaseCallbackManager, name: str) -> CallbackManagerForChainRun:
    """Return a child run of which no handler has been notified yet."""
    silent = CallbackManager(
        [],
        manager.inheritable_handlers,
        manager.parent_run_id,
        tags=manager.tags,
        inheritable_tags=manager.inheritable_tags,
        metadata=manager.metadata,
        inheritable_metadata=manager.inheritable_metadata,
    )
    return silent.on_chain_start(None, {}, name=name)


def _child(run: CallbackManagerForChainRun, dispatcher: EventDispatcher) -> CallbackManager:
    """Return the callbacks of a run's children, which wait for the events of the run itself."""
    child = run.get_child()
    handlers = [handler for handler in child.handlers if handler not in dispatcher.gates]
    child.set_handlers([*dispatcher.gates, *handlers] if handlers else [])
    return child


def _with_callbacks(config: RunnableConfig, callbacks: BaseCallbackManager) -> RunnableConfig:
    return cast("RunnableConfig", {**child_config(config), "callbacks": callbacks})


def _outputs(inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that were added or changed since the span started."""
    missing = object()
    return {name: value for name, value in attributes.items() if inputs.get(name, missing) != value}
