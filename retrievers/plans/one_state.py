"""Run the plans of a retrieval so that each answer is of one state of the graphs.

A retrieval that searches and then looks around reads several times. It is run as it is. If a graph
has changed meanwhile it is run again, and after some times while the graphs are held. What a model
said once is not paid for again, and no writer waits for a language model or a reranking model:
where one is needed while the graphs are held, they are let go until it has answered.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from ...nodegraph.locking import Observation, OutsideHoldError, observing
from .plan import Plan, arun, run

T = TypeVar("T")

PlanOf = Callable[[Sequence[str]], Plan[list[T]]]

ATTEMPTS = 3
"""How many times a retrieval of one query is run before its graphs are held."""


class _UnpaidError(BaseException):
    """A model is needed while graphs are held. Not for an ``except Exception`` on the way."""

    def __init__(self, pay: Callable[[], None]) -> None:
        super().__init__("a model is needed while graphs are held")
        self.pay = pay


class _Payments:
    """Remember what models have said in a retrieval that is run several times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Hashable, list[Any]] = {}
        self._used: dict[Hashable, int] = {}
        self.graphs_locked = False

    def begin(self, graphs_locked: bool) -> None:
        """Begin another run."""
        self._used = {}
        self.graphs_locked = graphs_locked

    def take(self, key: Hashable) -> list[Any]:
        """Return what was said to the same in an earlier run, if this time is not a further one."""
        with self._lock:
            position = self._used.get(key, 0)
            self._used[key] = position + 1
            return self._values.get(key, [])[position : position + 1]

    def add(self, key: Hashable, value: Any) -> None:
        """Remember what was said."""
        with self._lock:
            self._values.setdefault(key, []).append(value)


_payments: ContextVar[_Payments | None] = ContextVar("payments", default=None)


def paid(key: Hashable, function: Callable[[], T]) -> T:
    """Call a model, or return what it said in an earlier run of the same retrieval.

    Args:
        key: The model, and what it is given. None to remember nothing.
        function: Calls it.
    """
    payments = _payments.get()
    if payments is None or key is None:
        return function()
    for value in payments.take(key):
        existing: T = value
        return existing
    if payments.graphs_locked:
        raise _UnpaidError(lambda: payments.add(key, function()))
    value = function()
    payments.add(key, value)
    return value


async def apaid(key: Hashable, function: Callable[[], Awaitable[T]]) -> T:
    """Async version of ``paid``."""
    payments = _payments.get()
    if payments is None or key is None:
        return await function()
    for value in payments.take(key):
        existing: T = value
        return existing
    value = await function()
    payments.add(key, value)
    return value


def run_in_one_state(plan_of: PlanOf[T], queries: Sequence[str]) -> list[T]:
    """Run a plan for queries. Each result is of one state of the graphs.

    Args:
        plan_of: Returns the plan, as often as it is run. Its result has an item for each query.
        queries: The queries. Where graphs change meanwhile, parts of them may see different
            states.
    """
    if _payments.get() is not None:
        return run(plan_of(queries))  # a part of a retrieval
    return _run(plan_of, queries, _Payments())


def _run(plan_of: PlanOf[T], queries: Sequence[str], payments: _Payments) -> list[T]:
    for _ in range(_attempts(queries)):
        with _attempt(payments) as observation:
            try:
                results = run(plan_of(queries))
            except LookupError:  # a node may have been removed meanwhile
                if observation.is_current():
                    raise
                continue
        if observation.is_current():
            return results
    if len(queries) > 1:
        return [result for half in _halves(queries) for result in _run(plan_of, half, payments)]
    while True:
        outcome = _run_locked(plan_of, queries, payments, observation)
        if isinstance(outcome, list):
            return outcome
        outcome()


async def arun_in_one_state(plan_of: PlanOf[T], queries: Sequence[str]) -> list[T]:
    """Async version of ``run_in_one_state``."""
    if _payments.get() is not None:
        return await arun(plan_of(queries))
    return await _arun(plan_of, queries, _Payments())


async def _arun(plan_of: PlanOf[T], queries: Sequence[str], payments: _Payments) -> list[T]:
    for _ in range(_attempts(queries)):
        with _attempt(payments) as observation:
            try:
                results = await arun(plan_of(queries))
            except LookupError:
                if await asyncio.to_thread(observation.is_current):
                    raise
                continue
        if await asyncio.to_thread(observation.is_current):
            return results
    if len(queries) > 1:
        return [
            result for half in _halves(queries) for result in await _arun(plan_of, half, payments)
        ]
    while True:  # a thread that holds graphs does all by itself
        lease = partial(_run_locked, plan_of, queries, payments, observation)
        outcome = await asyncio.to_thread(lease)
        if isinstance(outcome, list):
            return outcome
        await asyncio.to_thread(outcome)


def _run_locked(
    plan_of: PlanOf[T], queries: Sequence[str], payments: _Payments, observation: Observation
) -> list[T] | Callable[[], None]:
    """Run a plan while all that it reads is held. Return what is to be done before, if anything."""
    try:
        with _attempt(payments, observation), observation.hold():
            return run(plan_of(queries))
    except OutsideHoldError:  # it is noted now
        return lambda: None
    except _UnpaidError as needed:
        return needed.pay


@contextmanager
def _attempt(payments: _Payments, lease: Observation | None = None) -> Iterator[Observation]:
    payments.begin(graphs_locked=lease is not None)
    token = _payments.set(payments)
    try:
        with observing(lease) as observation:
            yield observation
    finally:
        _payments.reset(token)


def _attempts(queries: Sequence[str]) -> int:
    return ATTEMPTS if len(queries) < 2 else 1


def _halves(queries: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    middle = len(queries) // 2
    return queries[:middle], queries[middle:]
