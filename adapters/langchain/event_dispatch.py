"""Send events to LangChain's handlers from code that can't await them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from collections.abc import Coroutine, Generator, Sequence
from functools import partial
from types import coroutine
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import ahandle_event, handle_event
from langchain_core.tracers import BaseTracer

logger = logging.getLogger(__name__)

_dispatching: contextvars.ContextVar[bool] = contextvars.ContextVar("dispatching", default=False)


class EventDispatcher:
    """Send the events of runs to handlers from sync code, also below an event loop.

    LangChain has two ways: ``handle_event`` waits for every handler, which blocks an event loop;
    ``ahandle_event`` has to be awaited, which a span that starts and ends in sync code can't do.
    With an event loop, handlers that order runs (tracers, those that stream events, and
    ``run_inline``) get an event at once. All others get it in the loop while the caller goes on:
    in order, and before any event of LangChain's own runs inside (see ``gates``).

    Args:
        loop: The event loop that must not be blocked; None where there is none.
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
        """Run a coroutine up to its first wait, here and now; its rest in the loop."""
        try:
            waits_for = notification.send(None)
        except StopIteration:
            return
        self._enqueue(_rest(notification, waits_for))

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
    """Send an event to one handler; switch tasks only where the handler itself waits."""
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
def _rest(started: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
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
