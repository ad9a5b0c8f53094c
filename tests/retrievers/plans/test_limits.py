"""A budget of model calls: exactly so many, however they are asked for."""

from typing import Any

import pytest

from nodekin.nodegraph import LLM
from nodekin.retrievers.plans.effects import Ask, Each
from nodekin.retrievers.plans.limits import Budget, BudgetExceededError, Call
from nodekin.retrievers.plans.plan import Plan, run


class Counting:
    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return prompt


def one(effect: Any) -> Plan[Any]:
    return (yield from effect)


def in_turn(effects: list[Any]) -> Plan[Any]:
    results = []
    for effect in effects:
        results.append((yield from effect))
    return results


def at_once(effects: list[Any]) -> Plan[Any]:
    return (yield from Each([one(effect) for effect in effects]))


@pytest.mark.parametrize("kind", ["ask", "call"])
@pytest.mark.parametrize("calls", [0, 1, 3])
def test_so_many_calls_and_not_one_more(kind: str, calls: int) -> None:
    model = Counting()
    llm = LLM(model, "model")
    effects = [
        Ask(llm, str(n)) if kind == "ask" else Call(model, (str(n),)) for n in range(calls + 1)
    ]
    budget = Budget(calls)
    with pytest.raises(BudgetExceededError, match="no calls are left") as caught:
        run(budget.enforce(in_turn(effects)))
    assert caught.value.resource == "calls"
    assert (budget.calls, len(model.prompts)) == (calls, calls)

    model.prompts.clear()
    enough = Budget(calls)
    assert run(enough.enforce(in_turn(effects[:calls]))) == [str(n) for n in range(calls)]
    assert (enough.calls, len(model.prompts)) == (calls, calls)


def test_plans_that_run_at_once_share_the_calls() -> None:
    model = Counting()
    llm = LLM(model, "model")
    budget = Budget(3)
    results = run(budget.enforce(at_once([Ask(llm, str(n)) for n in range(8)])))
    assert sum(isinstance(result, BudgetExceededError) for result in results) == 5
    assert (budget.calls, len(model.prompts)) == (3, 3)
