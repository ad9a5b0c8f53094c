"""Limits of model calls and seconds."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from nodekin.nodegraph import LLM
from nodekin.retrievers import All, Do, ask
from nodekin.retrievers.plans.limits import CallLimits, LimitExceededError
from nodekin.retrievers.plans.plan import arun, run

Strategy = Callable[[], Coroutine[Any, Any, Any]]

DRIVERS = pytest.mark.parametrize(
    "drive", [run, lambda strategy: asyncio.run(arun(strategy))], ids=["sync", "async"]
)


class Counting:
    """A model that records its prompts."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return prompt


def parts(model: Counting, count: int) -> list[Strategy]:
    return [partial(ask, LLM(model, "model"), str(n)) for n in range(count)]


async def in_order(parts: list[Strategy]) -> list[Any]:
    return [await part() for part in parts]


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_max_calls_allows_exactly_that_many(calls: int) -> None:
    model = Counting()
    limits = CallLimits(calls)
    with pytest.raises(LimitExceededError, match=f"max_calls={calls} is reached"):
        run(lambda: limits.enforce(partial(in_order, parts(model, calls + 1))))
    assert (limits.exceeded, limits.calls, len(model.prompts)) == ("calls", calls, calls)

    enough = CallLimits(calls)
    results = run(lambda: enough.enforce(partial(in_order, parts(model, calls))))
    assert results == [str(n) for n in range(calls)]
    assert (enough.exceeded, enough.calls) == (None, calls)


def test_parallel_parts_share_the_calls() -> None:
    model = Counting()
    limits = CallLimits(3)

    async def strategy() -> list[Any]:
        return await All(parts(model, 8))

    results = run(lambda: limits.enforce(strategy))
    assert sum(isinstance(result, LimitExceededError) for result in results) == 5
    assert (limits.calls, len(model.prompts)) == (3, 3)


@DRIVERS
def test_exceeded_is_set_though_the_error_is_caught(drive: Any) -> None:
    limits = CallLimits(0)

    async def strategy() -> str:
        try:
            return await ask(LLM(Counting(), "model"), "tea")
        except Exception:
            return "fallback"

    assert drive(lambda: limits.enforce(strategy)) == "fallback"
    assert limits.exceeded == "calls"


@DRIVERS
@pytest.mark.parametrize("kind", ["model", "search"])
def test_total_timeout_ends_models_and_searches(drive: Any, kind: Any) -> None:
    release = threading.Event()
    limits = CallLimits(total_timeout=0.05)

    async def strategy() -> list[Any]:
        found = []
        try:
            await Do(lambda: release.wait(300), kind=kind)
        except LimitExceededError:
            found.append(await Do(lambda: "work completes", kind="work"))
        finally:
            release.set()
        return found

    assert drive(lambda: limits.enforce(strategy)) == ["work completes"]
    assert limits.exceeded == "seconds"


@DRIVERS
@pytest.mark.parametrize("timeout", [None, 300])
def test_timeout_error_of_a_call_keeps_its_message(drive: Any, timeout: float | None) -> None:
    limits = CallLimits(total_timeout=300)

    def late() -> None:
        raise TimeoutError("the disk is slow")

    async def strategy() -> None:
        await Do(late, timeout=timeout)

    for part in (strategy, lambda: limits.enforce(strategy)):
        with pytest.raises(TimeoutError, match="the disk is slow"):
            drive(part)
    assert limits.exceeded is None
