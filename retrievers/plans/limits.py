"""Limit what a plan may do, in model calls and seconds, and count its model calls."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import threading
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from ...nodegraph.errors import ModelError, ModelTimeoutError
from ...nodegraph.models.model_objects import is_async
from ..tracing import start_span
from .effects import Ask, Each, run_with_timeout
from .one_state import apaid, paid
from .plan import Effect, Plan, interpose

T = TypeVar("T")

clock: Callable[[], float] = time.monotonic

_SLACK = 0.02
"""Seconds that a timer may be early."""


class BudgetExceededError(Exception):
    """A plan needs more calls or seconds than its budget has.

    Attributes:
        resource: What is used up: ``"calls"`` or ``"seconds"``.
    """

    def __init__(self, resource: Literal["calls", "seconds"]) -> None:
        super().__init__(f"no {resource} are left")
        self.resource: Literal["calls", "seconds"] = resource


class TimeLimitError(ModelError):
    """The time of a call is up. What has no answer yet gets none."""


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
            return paid(self._key(), self._call)

    async def arun(self) -> Any:
        """Async version of ``run``."""
        with start_span("call", function=repr(self.function)):
            return await apaid(self._key(), self._acall)

    def _key(self) -> Hashable:
        """Return what the call depends on. None where that can't be told: nothing is remembered."""
        try:
            return "call", id(self.function), pickle.dumps(self.arguments)
        except Exception:  # a result may hold anything
            return None

    def _call(self) -> Any:
        result = self.function(*self.arguments)
        if not inspect.isawaitable(result):
            return result
        # This thread may be an event loop's, which can't run another one.
        with ThreadPoolExecutor(1, "nodekin-call") as pool:
            return pool.submit(asyncio.run, _await(result)).result()

    async def _acall(self) -> Any:
        if is_async(self.function):
            return await self.function(*self.arguments)
        result = await asyncio.to_thread(self.function, *self.arguments)
        return await result if inspect.isawaitable(result) else result


class TimeLimit:
    """One point in time for all that a plan does, counted from now.

    Args:
        max_seconds: Seconds from now. None for no limit.
    """

    def __init__(self, max_seconds: float | None) -> None:
        self.max_seconds = max_seconds
        self._end = None if max_seconds is None else clock() + max_seconds

    def remaining(self) -> float | None:
        """Return the remaining seconds, None for no limit."""
        return None if self._end is None else max(0.0, self._end - clock())

    def expired(self, slack: float = 0.0) -> bool:
        """Return whether no seconds remain."""
        return self._end is not None and clock() + slack >= self._end

    def enforce(self, plan: Plan[T]) -> Plan[T]:
        """Return a plan whose effects end at the deadline. Those after it are not begun.

        The plan may catch that error, and return what it has. In an event loop an effect is
        cancelled. Elsewhere it is no longer waited for.

        Raises:
            TimeLimitError: If it does not catch it.
        """
        return plan if self._end is None else interpose(plan, self._until)

    def _until(self, effect: Effect[Any]) -> Plan[Any]:
        if isinstance(effect, Each):
            return (yield replace(effect, plans=[self.enforce(plan) for plan in effect.plans]))
        if self.expired():
            raise self.error()
        if not isinstance(effect, Ask):
            return (yield _Until(effect, self))
        limits = [limit for limit in (self.remaining(), effect.timeout) if limit is not None]
        try:
            return (yield replace(effect, timeout=min(limits)))
        except ModelTimeoutError:
            if self.expired(_SLACK):
                raise self.error() from None
            raise

    def error(self) -> TimeLimitError:
        """Return the error that says so."""
        return TimeLimitError(f"max_seconds={self.max_seconds:g} are over")


@dataclass(frozen=True, slots=True)
class _Until(Effect[T]):
    """Wait for an effect until a deadline."""

    effect: Effect[T]
    time_limit: TimeLimit

    def run(self) -> T:
        try:
            return run_with_timeout(self.effect.run, self.time_limit.remaining())
        except FutureTimeout:
            if self.time_limit.expired(_SLACK):
                raise self.time_limit.error() from None
            raise

    async def arun(self) -> T:
        try:
            return await asyncio.wait_for(self.effect.arun(), self.time_limit.remaining())
        except asyncio.TimeoutError:
            if self.time_limit.expired(_SLACK):
                raise self.time_limit.error() from None
            raise


class Budget(TimeLimit):
    """Count the model calls and seconds of one query.

    Args:
        max_calls: Model calls at most, repeated ones included.
        max_seconds: Seconds from now. None for no limit.
    """

    def __init__(self, max_calls: int, max_seconds: float | None = None) -> None:
        super().__init__(max_seconds)
        self.calls = 0
        self._max_calls = max_calls
        self._lock = threading.Lock()

    def enforce(self, plan: Plan[T]) -> Plan[T]:
        """Return a plan that does the same as far as the budget goes.

        Raises:
            BudgetExceededError: If it goes no farther. The plan is closed and can't catch this.
        """
        return interpose(plan, self._limited, fatal=(BudgetExceededError,))

    def _limited(self, effect: Effect[T]) -> Plan[Any]:
        if self.expired():
            raise BudgetExceededError("seconds")
        if isinstance(effect, Each):
            return (yield replace(effect, plans=[self.enforce(plan) for plan in effect.plans]))
        if isinstance(effect, Ask | Call):
            with self._lock:
                if self.calls >= self._max_calls:
                    raise BudgetExceededError("calls")
                self.calls += 1
        return (yield effect if self._end is None else _Timed(effect, self))


@dataclass(frozen=True, slots=True)
class _Timed(Effect[T]):
    """Run an effect for as long as the budget has seconds.

    In an event loop it is cancelled then. Elsewhere a model is no longer waited for. A search
    comes to its end.
    """

    effect: Effect[T]
    budget: Budget

    def run(self) -> Any:
        effect, seconds = self.effect, self.budget.remaining()
        if not isinstance(effect, Ask):
            return effect.run()
        limits = [limit for limit in (seconds, effect.timeout) if limit is not None]
        try:
            return replace(effect, timeout=min(limits, default=None)).run()
        except ModelError:
            if self.budget.expired(_SLACK):
                raise BudgetExceededError("seconds") from None
            raise

    async def arun(self) -> T:
        try:
            return await asyncio.wait_for(self.effect.arun(), self.budget.remaining())
        except asyncio.TimeoutError:
            if self.budget.expired(_SLACK):
                raise BudgetExceededError("seconds") from None
            raise


async def _await(result: Awaitable[T]) -> T:
    return await result


@dataclass(slots=True)
class CallCounter:
    """Count model calls."""

    calls: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self) -> None:
        """Count one call. Plans may run in parallel threads."""
        with self._lock:
            self.calls += 1


def count_calls(plan: Plan[T], counter: CallCounter) -> Plan[T]:
    """Run a plan and count its model calls, those of plans that it runs in parallel included."""

    def counted(effect: Effect[Any]) -> Plan[Any]:
        if isinstance(effect, Ask):
            counter.add()
        elif isinstance(effect, Each):
            plans = [count_calls(inner, counter) for inner in effect.plans]
            effect = replace(effect, plans=plans)
        return (yield effect)

    return interpose(plan, counted)
