"""Write what asks models and retrievers once, and run it in threads or in an event loop.

A plan is a generator that yields what it wants done (an effect, see ``effects``) and is sent what
came of it, or has the error raised where it waits. What decides stands in the plan; how it is
waited for, here.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

T = TypeVar("T")


class Effect(Protocol):
    """What a plan wants done."""

    def do(self) -> Any:
        """Do it and return what came of it."""
        ...

    async def ado(self) -> Any:
        """Do it without blocking the event loop."""
        ...


class Streamed(Effect, Protocol):
    """An effect whose answer can be told as it comes."""

    @property
    def streamed(self) -> bool:
        """Whether it is to be."""
        ...

    def pieces(self) -> Generator[str, None, Any]:
        """Yield the answer as it comes; return the whole."""
        ...

    async def say(self, hear: Callable[[str], None]) -> Any:
        """Tell the answer as it comes; return the whole."""
        ...


Plan = Generator[Effect, Any, T]


def run(plan: Plan[T]) -> T:
    """Do what a plan wants, and return what it returns."""
    driven = _drive(plan, streaming=False)
    try:
        next(driven)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a plan that is not streamed yielded a piece of text")


def stream(plan: Plan[T]) -> Generator[str, None, T]:
    """Do what a plan wants; yield the pieces of the answers it wants streamed."""
    return _drive(plan, streaming=True)


async def arun(plan: Plan[T], hear: Callable[[str], None] | None = None) -> T:
    """Do what a plan wants without blocking the event loop.

    Args:
        plan: The plan.
        hear: Is told the pieces of the answers that the plan wants streamed.
    """
    step: Callable[[], Effect] = partial(next, plan)
    while True:
        try:
            effect = step()
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            if hear is not None and _is_streamed(effect):
                value: Any = await effect.say(hear)
            else:
                value = await effect.ado()
        except BaseException as error:
            step = partial(plan.throw, error)
        else:
            step = partial(plan.send, value)


async def astream(plan: Plan[Any]) -> AsyncGenerator[str, None]:
    """Do what a plan wants in a task of its own; yield the pieces of what it wants streamed.

    The task is cancelled when nobody wants more.
    """
    pieces: asyncio.Queue[str | None] = asyncio.Queue()

    async def work() -> None:
        try:
            await arun(plan, pieces.put_nowait)
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(work())
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _drive(plan: Plan[T], *, streaming: bool) -> Generator[str, None, T]:
    """Do what a plan wants, in a context of its own: a stage of it never is the caller's."""
    context = contextvars.copy_context()
    step: Callable[[], Effect] = partial(next, plan)
    while True:
        try:
            effect = context.run(step)
        except StopIteration as end:
            result: T = end.value
            return result
        try:
            if streaming and _is_streamed(effect):
                value: Any = yield from _within(context, effect.pieces())
            else:
                value = context.run(effect.do)
        except BaseException as error:
            step = partial(plan.throw, error)
        else:
            step = partial(plan.send, value)


def _within(
    context: contextvars.Context, pieces: Generator[str, None, str]
) -> Generator[str, None, str]:
    """Run a generator in a context."""
    try:
        while True:
            try:
                piece = context.run(next, pieces)
            except StopIteration as end:
                whole: str = end.value
                return whole
            yield piece
    finally:
        context.run(pieces.close)


def _is_streamed(effect: Effect) -> TypeGuard[Streamed]:
    return bool(getattr(effect, "streamed", False))
