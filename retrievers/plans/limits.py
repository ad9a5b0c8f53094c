"""Limit what a plan may do, in model calls and seconds, and count its model calls."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from ...nodegraph.errors import ModelError
from ...nodegraph.models.model_objects import finish, is_async
from ..tracing import start_span
from .effects import Ask, Each, Work, run_with_timeout
from .plan import Effect, Plan, interpose

T = TypeVar("T")

clock: Callable[[], float] = time.monotonic

_SLACK = 0.02
"""Seconds that a timer may be early."""


class BudgetExceededError(ModelError):
    """A plan needs more calls or seconds than its budget has. What has no answer yet gets none.

    Attributes:
        resource: What is used up: ``"calls"`` or ``"seconds"``.
    """

    def __init__(self, resource: Literal["calls", "seconds"], message: str) -> None:
        super().__init__(message)
        self.resource: Literal["calls", "seconds"] = resource

    def __reduce__(self) -> tuple[type[BudgetExceededError], tuple[str, str]]:
        return type(self), (self.resource, str(self))


@dataclass(frozen=True, slots=True)
class Call(Effect[Any]):
    """Call a user's function. It counts as a model call, since it may well make one.

    Attributes:
        function: A function, async or not.
        arguments: Its arguments.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def run(self) -> Any:
        """Return what the function returns."""
        with start_span("call", function=repr(self.function)):
            result = self.function(*self.arguments)
            return finish(_await, result) if inspect.isawaitable(result) else result

    async def arun(self) -> Any:
        """Async version of ``run``."""
        with start_span("call", function=repr(self.function)):
            if is_async(self.function):
                return await self.function(*self.arguments)
            result = await asyncio.to_thread(self.function, *self.arguments)
            return await result if inspect.isawaitable(result) else result


class Budget:
    """Count and limit the model calls of a plan, and its seconds from now.

    Args:
        max_calls: Model calls at most, repeated ones included. None for no limit.
        max_seconds: Seconds from now. None for no limit.
        fatal: Whether the plan is closed when the budget is used up, and a search in a thread
            runs to its end. Else the plan may catch the error and return what it has, and no
            effect is waited for any longer.
    """

    def __init__(
        self, max_calls: int | None = None, max_seconds: float | None = None, *, fatal: bool = True
    ) -> None:
        self.calls = 0
        self.fatal = fatal
        self._max_calls = max_calls
        self._max_seconds = max_seconds
        self._end = None if max_seconds is None else clock() + max_seconds
        self._lock = threading.Lock()

    def remaining(self) -> float | None:
        """Return the remaining seconds, None for no limit."""
        return None if self._end is None else max(0.0, self._end - clock())

    def check_time(self, slack: float = 0.0) -> None:
        """Check that seconds remain.

        Raises:
            BudgetExceededError: If none do.
        """
        if self._end is not None and clock() + slack >= self._end:
            message = f"max_seconds={self._max_seconds:g} are over"
            raise BudgetExceededError("seconds", message) from None

    def enforce(self, plan: Plan[T]) -> Plan[T]:
        """Return a plan that does the same as far as the budget goes.

        In an event loop the effect under way is cancelled. Elsewhere a model is no longer waited
        for.

        Raises:
            BudgetExceededError: If it goes no farther.
        """
        return interpose(plan, self._limited, fatal=(BudgetExceededError,) if self.fatal else ())

    def _limited(self, effect: Effect[T]) -> Plan[Any]:
        if isinstance(effect, Each):
            return (yield replace(effect, plans=[self.enforce(plan) for plan in effect.plans]))
        if isinstance(effect, Work):
            return (yield effect)
        self.check_time()
        if isinstance(effect, Ask | Call):
            with self._lock:
                if self._max_calls is not None and self.calls >= self._max_calls:
                    raise BudgetExceededError("calls", "no calls are left")
                self.calls += 1
        if self._end is None:
            return (yield effect)
        if not isinstance(effect, Ask):
            return (yield _Until(effect, self))
        limits = [limit for limit in (self.remaining(), effect.timeout) if limit is not None]
        try:
            return (yield replace(effect, timeout=min(limits)))
        except ModelError:
            self.check_time(_SLACK)
            raise


@dataclass(frozen=True, slots=True)
class _Until(Effect[T]):
    """Wait for an effect as long as a budget has seconds."""

    effect: Effect[T]
    budget: Budget

    def run(self) -> T:
        if self.budget.fatal:
            return self.effect.run()
        try:
            return run_with_timeout(self.effect.run, self.budget.remaining())
        except FutureTimeout:
            self.budget.check_time(_SLACK)
            raise

    async def arun(self) -> T:
        try:
            return await asyncio.wait_for(self.effect.arun(), self.budget.remaining())
        except asyncio.TimeoutError:
            self.budget.check_time(_SLACK)
            raise


async def _await(result: Any) -> Any:
    return await result
