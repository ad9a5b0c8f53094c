"""Count how often a plan asks a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ..effects import Ask, Each
from ..plan import Effect, Plan

T = TypeVar("T")


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
