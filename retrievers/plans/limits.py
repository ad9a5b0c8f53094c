"""Bound what a plan may do, in model calls and seconds, whatever it is told."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from ...nodegraph import ModelError
from ...nodegraph.models import is_async
from ..tracing import start_span
from .effects import Ask, Each
from .plan import Effect, Plan

T = TypeVar("T")

clock: Callable[[], float] = time.monotonic

_SLACK = 0.02
"""Seconds that a timer may be early."""


class Spent(Exception):
    """A budget is spent.

    Attributes:
        on: What there is no more of.
    """

    def __init__(self, on: Literal["calls", "seconds"]) -> None:
        super().__init__(f"no {on} are left")
        self.on: Literal["calls", "seconds"] = on


@dataclass(frozen=True, slots=True)
class Call:
    """Call a user's function; counts as a model call, since it may well ask one.

    Attributes:
        function: Also an async one.
        arguments: What it is called with.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def do(self) -> Any:
        """Return what it returns."""
        with start_span("call", function=repr(self.function)):
            made = self.function(*self.arguments)
            if not inspect.isawaitable(made):
                return made
            # This thread may be an event loop's, which can't run another one.
            with ThreadPoolExecutor(1, "nodekin-call") as pool:
                return pool.submit(asyncio.run, _awaited(made)).result()

    async def ado(self) -> Any:
        """Return the same without blocking the event loop."""
        with start_span("call", function=repr(self.function)):
            if is_async(self.function):
                return await self.function(*self.arguments)
            made = await asyncio.to_thread(self.function, *self.arguments)
            return await made if inspect.isawaitable(made) else made


class Budget:
    """Count the model calls and seconds of one query.

    Args:
        max_calls: Model calls at most, those that are asked again included.
        max_seconds: Seconds from now; None for no limit.
    """

    def __init__(self, max_calls: int, max_seconds: float | None = None) -> None:
        self.calls = 0
        self._max_calls = max_calls
        self._end = None if max_seconds is None else clock() + max_seconds
        self._lock = threading.Lock()

    def left(self) -> float | None:
        """Return the seconds that are left, None for no limit."""
        return None if self._end is None else max(0.0, self._end - clock())

    def over(self, slack: float = 0.0) -> bool:
        """Tell whether no seconds are left."""
        return self._end is not None and clock() + slack >= self._end

    def bounded(self, plan: Plan[T]) -> Plan[T]:
        """Return a plan that does the same as far as the budget goes.

        Raises:
            Spent: If it goes no farther; the plan is not told, and can't go on.
        """
        step: Callable[[], Effect] = partial(next, plan)
        while True:
            try:
                effect = step()
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                value = yield self._bounded(effect)
            except Spent:
                plan.close()
                raise
            except BaseException as error:
                step = partial(plan.throw, error)
            else:
                step = partial(plan.send, value)

    def _bounded(self, effect: Effect) -> Effect:
        if self.over():
            raise Spent("seconds")
        if isinstance(effect, Each):
            return Each([self.bounded(plan) for plan in effect.plans])
        if isinstance(effect, Ask | Call):
            with self._lock:
                if self.calls >= self._max_calls:
                    raise Spent("calls")
                self.calls += 1
        return effect if self._end is None else _Timed(effect, self)


@dataclass(frozen=True, slots=True)
class _Timed:
    """Do an effect for as long as there is time.

    In an event loop it is cancelled then. Elsewhere a model is no longer waited for; a search
    comes to its end.
    """

    effect: Effect
    budget: Budget

    def do(self) -> Any:
        effect, left = self.effect, self.budget.left()
        if not isinstance(effect, Ask):
            return effect.do()
        limit = left if effect.timeout is None or left is None else min(left, effect.timeout)
        try:
            return replace(effect, timeout=limit).do()
        except ModelError:
            if self.budget.over(_SLACK):
                raise Spent("seconds") from None
            raise

    async def ado(self) -> Any:
        try:
            return await asyncio.wait_for(self.effect.ado(), self.budget.left())
        except asyncio.TimeoutError:
            if self.budget.over(_SLACK):
                raise Spent("seconds") from None
            raise


async def _awaited(made: Awaitable[T]) -> T:
    return await made


@dataclass(slots=True)
class Tally:
    """Hold how often a model was asked."""

    calls: int = 0


def counted(plan: Plan[T], tally: Tally) -> Plan[T]:
    """Run a plan, and count the calls of models in it and in the plans that it runs at once."""
    step: Callable[[], Effect] = partial(next, plan)
    while True:
        try:
            effect = step()
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(effect, Ask):
            tally.calls += 1
        elif isinstance(effect, Each):
            # Each of them has a tally of its own: they may run in threads.
            own = [Tally() for _ in effect.plans]
            plans = [counted(inner, mine) for inner, mine in zip(effect.plans, own, strict=True)]
            effect = replace(effect, plans=plans)
        else:
            own = []
        try:
            value = yield effect
        except BaseException as error:
            step = partial(plan.throw, error)
        else:
            step = partial(plan.send, value)
        if isinstance(effect, Each):
            tally.calls += sum(mine.calls for mine in own)
