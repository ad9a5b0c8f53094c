"""Write what asks models and retrievers once, and run it in threads or in an event loop.

A plan is a generator that yields effects (a model's answer, a retrieval) and is sent their
results, or has their errors raised where it waits. The decisions are in the plan. How its effects
are waited for is decided here.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from types import coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")

Y = TypeVar("Y")


class Effect(ABC, Generic[T]):
    """Work that a plan waits for, with a result of type ``T``.

    A plan writes ``result = yield from effect``: a type checker knows the result's type then.

    Attributes:
        streamed: Whether ``stream`` and ``astream`` pass on the text of this effect.
    """

    __slots__ = ()

    streamed: bool = False

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        result: T = yield self
        return result

    @abstractmethod
    def run(self) -> T:
        """Do the work and return its result."""

    @abstractmethod
    async def arun(self) -> T:
        """Do the work without blocking the event loop."""

    def stream(self) -> Generator[str, None, T]:
        """Do the work. Yield its text as it comes and return the result."""
        yield from ()
        return self.run()

    async def astream(self, on_text: Callable[[str], None]) -> T:
        """Do the work. Call ``on_text`` with its text as it comes and return the result."""
        return await self.arun()


Plan = Generator[Effect[Any], Any, T]
"""A generator that yields effects, is sent their results, and returns a ``T``."""


def run(plan: Plan[T]) -> T:
    """Run the effects of a plan in this thread and return what the plan returns.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> from nodekin.retrievers import Each, Find, Plan
        >>> from nodekin.retrievers.plans.plan import run
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Black tea.", "Coffee."])
        >>> def count(query: str) -> Plan[int]:
        ...     (results,) = yield from Find(Retriever(graph, "ROOT"), [query])
        ...     return len(results)
        >>> def count_both() -> Plan[list[int | Exception]]:
        ...     return (yield from Each([count("tea"), count("coffee")]))
        >>> run(count_both())
        [2, 1]
    """
    driver = interpose(plan, _run_effect)
    try:
        contextvars.copy_context().run(next, driver)  # a span of the plan is never the caller's
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a plan that is not streamed yielded text")


def stream(plan: Plan[T]) -> Generator[str, None, T]:
    """Run a plan. Yield the text of its streamed effects and return what it returns."""
    context, driver = contextvars.copy_context(), interpose(plan, _stream_effect)
    try:
        while True:
            try:
                text = context.run(next, driver)
            except StopIteration as end:
                result: T = end.value
                return result
            yield text
    finally:
        context.run(driver.close)


async def arun(plan: Plan[T], on_text: Callable[[str], None] | None = None) -> T:
    """Run a plan without blocking the event loop.

    Args:
        plan: The plan.
        on_text: Is called with the text of the plan's streamed effects as it comes.
    """

    def awaited(effect: Effect[Any]) -> Generator[Any, Any, Any]:
        if on_text is not None and effect.streamed:
            return effect.astream(on_text).__await__()
        return effect.arun().__await__()

    awaitable: Awaitable[T] = coroutine(interpose)(plan, awaited)  # type: ignore[no-untyped-call]
    return await awaitable


TURN = 100
"""Items of a stream that came at once, after which an event loop goes on with other tasks."""


def astream(plan: Plan[Any]) -> AsyncGenerator[str, None]:
    """Run a plan in a task of its own. Yield the text of its streamed effects."""
    return stream_from_task(lambda emit: arun(plan, emit))


async def stream_from_task(
    produce: Callable[[Callable[[T], None]], Awaitable[object]],
) -> AsyncGenerator[T, None]:
    """Yield what a function emits that runs in a task of its own.

    The task is cancelled when the generator is closed.

    Args:
        produce: Is called with the function that emits an item.
    """
    items: asyncio.Queue[Any] = asyncio.Queue()
    end = object()
    task = asyncio.ensure_future(produce(items.put_nowait))
    task.add_done_callback(lambda _: items.put_nowait(end))
    try:
        for number in itertools.count(1):
            if (item := await items.get()) is end:
                break
            yield item
            if number % TURN == 0:  # they may have come while the reader waited for something else
                await asyncio.sleep(0)
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def interpose(
    plan: Plan[T],
    hook: Callable[[Effect[Any]], Generator[Y, Any, Any]],
    fatal: tuple[type[BaseException], ...] = (),
) -> Generator[Y, Any, T]:
    """Run a plan with a hook instead of each effect. Return what the plan returns.

    Args:
        plan: The plan.
        hook: Is called with each effect. What the generator returns is sent to the plan, what it
            raises is raised in the plan.
        fatal: Exceptions of the hook that the plan can't catch. It is closed instead.
    """
    step: Callable[[], Effect[Any]] = partial(next, plan)
    while True:
        try:
            effect = step()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            value = yield from hook(effect)
        except fatal:
            plan.close()
            raise
        except BaseException as error:
            step = partial(plan.throw, error)
        else:
            step = partial(plan.send, value)


def _run_effect(effect: Effect[T]) -> Generator[str, None, T]:
    yield from ()
    return effect.run()


def _stream_effect(effect: Effect[T]) -> Generator[str, None, T]:
    return (yield from effect.stream()) if effect.streamed else effect.run()
