"""Tell LangChain's handlers of events, from code that can't wait for them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from collections.abc import Coroutine, Generator, Sequence
from types import coroutine
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.manager import ahandle_event, handle_event
from langchain_core.tracers import BaseTracer

logger = logging.getLogger(__name__)

_telling: contextvars.ContextVar[bool] = contextvars.ContextVar("telling", default=False)


class Teller:
    """Tell handlers of events in code that is not async, also where an event loop runs around it.

    LangChain has two ways: one waits for every handler, which blocks an event loop; the other is
    awaited, which code that begins in one place and ends in another, in threads and tasks, can't.
    With an event loop, handlers that put runs into their places (tracers, what streams events,
    ``run_inline``) are told at once; all others in the loop, while the caller goes on, in order,
    and before anything that LangChain itself tells of runs within (``in_order``).

    Args:
        loop: The event loop that is not to be blocked; None where there is none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.in_order: list[BaseCallbackHandler] = [] if loop is None else [_InOrder(self)]
        self._thread = threading.get_ident()
        self._events: deque[tuple[contextvars.Context, Coroutine[Any, Any, None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None

    def tell(
        self, handlers: Sequence[BaseCallbackHandler], event: str, *args: Any, **kwargs: Any
    ) -> None:
        """Tell handlers of an event of a chain run: ``on_chain_start``, ``on_chain_end``, ..."""
        handlers = [each for each in handlers if not isinstance(each, _InOrder)]
        if self.loop is None:
            handle_event(handlers, event, "ignore_chain", *args, **kwargs)
            return
        at_once = [each for each in handlers if _at_once(each, event)]
        for handler in at_once:
            if _streams(handler) and self._in_loop():
                self._step(_told(handler, event, *args, **kwargs))
            else:
                handle_event([handler], event, "ignore_chain", *args, **kwargs)
        later = [each for each in handlers if each not in at_once]
        if later:
            self._later(ahandle_event(later, event, "ignore_chain", *args, **kwargs))

    async def told(self) -> None:
        """Wait until all handlers know.

        Raises:
            Exception: What a handler raised that is to be heard (``raise_error``).
        """
        await self.drain()
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def drain(self) -> None:
        """Wait until all handlers have been told, in the loop that tells them."""
        while self._task is not None and self._in_loop():
            await asyncio.shield(self._task)

    def _in_loop(self) -> bool:
        return threading.get_ident() == self._thread

    def _step(self, told: Coroutine[Any, Any, None]) -> None:
        """Run a handler's coroutine here and now, its rest in the loop where it has to wait."""
        try:
            waiting = told.send(None)
        except StopIteration:
            return
        self._later(_rest(told, waiting))

    def _later(self, told: Coroutine[Any, Any, None]) -> None:
        assert self.loop is not None
        self._events.append((contextvars.copy_context(), told))
        if self._in_loop():
            self._wake()
            return
        try:
            self.loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # the loop was closed before a thread, whose caller is gone, ended
            self._events.pop()[1].close()

    def _wake(self) -> None:
        if self._task is None and self._events:
            assert self.loop is not None
            self._task = self.loop.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        try:
            while self._events:
                context, told = self._events.popleft()
                context.run(_telling.set, True)
                try:
                    await context.run(asyncio.ensure_future, told)
                except Exception as error:
                    self._error = self._error or error
        finally:
            self._task = None
            self._wake()


class _InOrder(AsyncCallbackHandler):
    """Stands before the handlers of runs within stages, until they know of the stages."""

    run_inline = True

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    async def _wait(self, *args: Any, **kwargs: Any) -> None:
        if not _telling.get():  # a handler that runs something of its own must not wait for itself
            await self._teller.drain()

    on_chain_start = on_llm_start = on_chat_model_start = _wait
    on_retriever_start = on_tool_start = _wait


def _at_once(handler: BaseCallbackHandler, event: str) -> bool:
    """Tell whether a handler has to know of a run before anything happens in it."""
    if inspect.iscoroutinefunction(getattr(handler, event)):
        return _streams(handler)
    return handler.run_inline or isinstance(handler, BaseTracer) or _streams(handler)


def _streams(handler: BaseCallbackHandler) -> bool:
    """Tell whether a handler makes the events of ``astream_events`` and the like."""
    return hasattr(handler, "tap_output_aiter")


async def _told(handler: BaseCallbackHandler, event: str, *args: Any, **kwargs: Any) -> None:
    """Tell one handler, without letting anything run in between that it does not wait for."""
    if handler.ignore_chain:
        return
    try:
        told = getattr(handler, event)(*args, **kwargs)
        if inspect.isawaitable(told):
            await told
    except Exception as error:
        logger.warning("Error in %s.%s callback: %r", type(handler).__name__, event, error)
        if handler.raise_error:
            raise


async def _rest(begun: Coroutine[Any, Any, None], waiting: Any) -> None:
    """Go on with a coroutine that waits for something."""
    await _going_on(begun, waiting)


@coroutine
def _going_on(begun: Coroutine[Any, Any, None], waiting: Any) -> Generator[Any, Any, None]:
    while True:
        try:
            answer = yield waiting
        except BaseException as error:
            step: Any = begun.throw
            answer = error
        else:
            step = begun.send
        try:
            waiting = step(answer)
        except StopIteration:
            return
