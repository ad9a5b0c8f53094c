"""Show the spans of a retrieval as LangChain runs."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from types import coroutine
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    BaseCallbackManager,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.callbacks.manager import ahandle_event, handle_event
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers import BaseTracer

from ...nodegraph.concurrency import context_value, limit_concurrency
from ...retrievers.tracing import Span
from ..frameworks import observe_once
from .documents import to_document

T = TypeVar("T")

logger = logging.getLogger(__name__)


class RunObserver:
    """Create a run for every span, as a child of the run in which the span starts.

    The parent is the run of LangChain's config context, which threads and tasks inherit. So the
    search of a fusion's branch is a child of the fusion also in a thread, and a LangChain model
    or chain that is called in a span, with or without a config, is a child of the span.

    Runs of spans are chain runs: inputs are the attributes that the span starts with, outputs
    those added later, and the documents where it is a search. A ``NodeGraphRetriever``, and a
    LangChain retriever within it, has one retriever run, by LangChain itself. Only the retrieval
    of a query engine, which has no such run above it, is a retriever run that ends with the
    documents.

    Args:
        loop: The event loop that must not be blocked. None where nothing is async.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.dispatcher = EventDispatcher(loop)
        self._open: dict[int, _SpanRun] = {}

    def begin(self, span: Span, parent: Span | None) -> None:
        """Start the run of a span, and make it the parent of the runs that follow."""
        config = var_child_runnable_config.get()
        manager = None if config is None else config.get("callbacks")
        if config is None or not isinstance(manager, BaseCallbackManager) or not manager.handlers:
            return
        inputs: dict[str, Any] = dict(span.attributes)
        retrieves = bool(span.queries) and not _in_retriever.get()
        run = _SpanRun(retrieves, inputs, config, manager, _new_run(manager, span.name))
        self._open[id(span)] = run
        child = _child(run.run, self.dispatcher)
        var_child_runnable_config.set(_with_callbacks(config, child))
        metadata = manager.metadata
        if retrieves:
            _in_retriever.set(True)
            metadata = {**metadata, **{k: v for k, v in inputs.items() if k != "query"}}
        value = inputs["query"] if retrieves else dict(inputs)
        self._dispatch(run, "start", None, value, metadata=metadata, name=span.name)

    def end(self, span: Span) -> None:
        """End the run of a span, with the span's error where it has one."""
        run = self._open.pop(id(span), None)
        if run is None:
            return
        var_child_runnable_config.set(run.config)
        if run.retrieves:
            _in_retriever.set(False)
        if span.error is not None:
            self._dispatch(run, "error", span.error)
            return
        documents = [to_document(result) for results in span.results or () for result in results]
        if run.retrieves:
            self._dispatch(run, "end", documents)
            return
        missing = object()
        changed = span.attributes.items()
        outputs = {name: v for name, v in changed if run.inputs.get(name, missing) != v}
        self._dispatch(run, "end", {**outputs, "documents": documents} if span.queries else outputs)

    def _dispatch(self, run: _SpanRun, event: str, *args: Any, **kwargs: Any) -> None:
        self.dispatcher.dispatch(
            run.manager.handlers,
            f"on_{'retriever' if run.retrieves else 'chain'}_{event}",
            *args,
            run_id=run.run.run_id,
            parent_run_id=run.manager.parent_run_id,
            tags=run.manager.tags,
            **kwargs,
        )


class _SpanRun(NamedTuple):
    """The run of a span that has started, and the context it started in."""

    retrieves: bool
    inputs: dict[str, Any]
    config: RunnableConfig
    manager: BaseCallbackManager
    run: CallbackManagerForChainRun


_observer: ContextVar[RunObserver | None] = ContextVar("run observer", default=None)

_in_retriever: ContextVar[bool] = ContextVar("in a retriever run", default=False)


@contextmanager
def child_runs(
    config: RunnableConfig | None = None,
    *,
    run_manager: Any = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Iterator[RunObserver | None]:
    """Show the spans of the block as child runs of the current run.

    Shows nothing where there are no handlers. The config's ``max_concurrency`` holds in the block.

    Args:
        config: What LangChain passes to the function that a runnable runs: its run is the parent.
            None for that of the config context.
        run_manager: That of the retriever run that is the parent. None for the config's run.
        loop: The event loop that must not be blocked. Use ``achild_runs`` there.
    """
    current = child_config(var_child_runnable_config.get() or {} if config is None else config)
    if run_manager is not None:
        current["callbacks"] = run_manager.get_child() if run_manager.handlers else None
    limit, manager = current.get("max_concurrency"), current.get("callbacks")
    listens = isinstance(manager, BaseCallbackManager) and bool(manager.handlers)
    is_within = run_manager is not None or (config is None and _in_retriever.get())
    with (
        context_value(var_child_runnable_config, current),
        context_value(_in_retriever, is_within),
        limit_concurrency(limit),
    ):
        if listens or _observer.get() is not None:
            with observe_once(_observer, lambda: RunObserver(loop)) as observer:
                yield observer
        else:
            yield None


@asynccontextmanager
async def achild_runs(
    config: RunnableConfig | None = None, *, run_manager: Any = None
) -> AsyncIterator[None]:
    """Async version of ``child_runs``. Wait for the handlers at the end."""
    observer, loop = None, asyncio.get_running_loop()
    try:
        with child_runs(config, run_manager=run_manager, loop=loop) as observer:
            yield
    finally:
        if observer is not None:
            await observer.dispatcher.finish()


def child_config(config: RunnableConfig) -> RunnableConfig:
    """Return the config for what is called in a run, without the name and id of the run itself."""
    inherited = {key: value for key, value in config.items() if key not in ("run_id", "run_name")}
    return cast("RunnableConfig", inherited)


def config_context(config: RunnableConfig) -> AbstractContextManager[RunnableConfig | None]:
    """Let a config be LangChain's config context in the block."""
    return context_value(var_child_runnable_config, child_config(config))


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


_dispatching: ContextVar[bool] = ContextVar("dispatching", default=False)


class EventDispatcher:
    """Send the events of runs to handlers from sync code, also below an event loop.

    LangChain has two ways: ``handle_event`` waits for every handler, which blocks an event loop.
    ``ahandle_event`` has to be awaited, which a span that starts and ends in sync code can't do.
    With an event loop, handlers that order runs (tracers, those that stream events, and
    ``run_inline``) get an event at once. All others get it in the loop while the caller goes on:
    in order, and before any event of LangChain's own runs inside (see ``gates``).

    Args:
        loop: The event loop that must not be blocked. None where there is none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.gates: list[BaseCallbackHandler] = [] if loop is None else [_Gate(self)]
        self._thread = threading.get_ident()
        self._queue: deque[tuple[contextvars.Context, Coroutine[Any, Any, None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None

    def dispatch(
        self, handlers: Sequence[BaseCallbackHandler], event: str, *args: Any, **kwargs: Any
    ) -> None:
        """Send an event of a run: ``on_chain_start``, ``on_retriever_end``, ..."""
        ignored = _ignored_by(event)
        handlers = [handler for handler in handlers if not isinstance(handler, _Gate)]
        if self.loop is None:
            handle_event(handlers, event, ignored, *args, **kwargs)
            return
        immediate = [handler for handler in handlers if _is_immediate(handler, event)]
        for handler in immediate:
            if _streams(handler) and self._in_loop():
                self._step(_notify(handler, event, *args, **kwargs))
            else:
                handle_event([handler], event, ignored, *args, **kwargs)
        others = [handler for handler in handlers if handler not in immediate]
        if others:
            self._enqueue(ahandle_event(others, event, ignored, *args, **kwargs))

    async def finish(self) -> None:
        """Wait until all handlers have all events.

        Raises:
            Exception: The error of a handler whose errors count (``raise_error``).
        """
        await self.drain()
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def drain(self) -> None:
        """Wait until the queue is empty, in the loop that works it off."""
        while self._task is not None and self._in_loop():
            await asyncio.shield(self._task)

    def _in_loop(self) -> bool:
        return threading.get_ident() == self._thread

    def _step(self, notification: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine up to its first wait, here and now. Its rest in the loop."""
        try:
            waits_for = notification.send(None)
        except StopIteration:
            return
        self._enqueue(_resume(notification, waits_for))

    def _enqueue(self, notification: Coroutine[Any, Any, None]) -> None:
        assert self.loop is not None
        self._queue.append((contextvars.copy_context(), notification))
        if self._in_loop():
            self._wake()
            return
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # a cancelled call's thread can end after the loop was closed
            self._queue.pop()[1].close()

    def _wake(self) -> None:
        if self._task is None and self._queue:
            assert self.loop is not None
            self._task = self.loop.create_task(self._work_off())

    async def _work_off(self) -> None:
        try:
            while self._queue:
                context, notification = self._queue.popleft()
                context.run(_dispatching.set, True)
                try:
                    await context.run(asyncio.ensure_future, notification)
                except Exception as error:
                    self._error = self._error or error
        finally:
            self._task = None
            self._wake()


class _Gate(AsyncCallbackHandler):
    """Stands before the handlers of child runs until they have the events of the parent."""

    run_inline = True

    def __init__(self, dispatcher: EventDispatcher) -> None:
        self._dispatcher = dispatcher

    async def _wait(self, *args: Any, **kwargs: Any) -> None:
        if not _dispatching.get():  # a handler that runs a chain must not wait for itself
            await self._dispatcher.drain()

    on_chain_start = on_llm_start = on_chat_model_start = _wait
    on_retriever_start = on_tool_start = _wait


def _ignored_by(event: str) -> str:
    """Return the attribute of handlers that are not to get an event."""
    return "ignore_retriever" if event.startswith("on_retriever") else "ignore_chain"


def _is_immediate(handler: BaseCallbackHandler, event: str) -> bool:
    """Return whether a handler must have an event before anything happens in the run."""
    orders_runs = handler.run_inline or isinstance(handler, BaseTracer)
    is_sync = not inspect.iscoroutinefunction(getattr(handler, event))
    return _streams(handler) or (is_sync and orders_runs)


def _streams(handler: BaseCallbackHandler) -> bool:
    """Return whether a handler creates the events of ``astream_events`` or ``astream_log``."""
    return hasattr(handler, "tap_output_aiter")


async def _notify(handler: BaseCallbackHandler, event: str, *args: Any, **kwargs: Any) -> None:
    """Send an event to one handler. Switch tasks only where the handler itself waits."""
    if getattr(handler, _ignored_by(event)):
        return
    try:
        result = getattr(handler, event)(*args, **kwargs)
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        logger.warning("Error in %s.%s callback: %r", type(handler).__name__, event, error)
        if handler.raise_error:
            raise


@coroutine
def _resume(started: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Run the rest of a coroutine that has been started."""
    while True:
        try:
            step = partial(started.send, (yield waits_for))
        except BaseException as error:
            step = partial(started.throw, error)
        try:
            waits_for = step()
        except StopIteration:
            return
