import pytest

from nodekin.retrievers.plans.effects import Each, gather
from nodekin.retrievers.plans.plan import Effect, Plan, interpose, run


class Number(Effect[int]):
    """An effect of one's own."""

    def __init__(self, value: int) -> None:
        self.value = value

    def run(self) -> int:
        if self.value < 0:
            raise ValueError(f"{self.value} is negative")
        return self.value

    async def arun(self) -> int:
        return self.run()


def double(value: int) -> Plan[int]:
    return 2 * (yield from Number(value))


def test_gather_returns_all_or_raises_the_first_error() -> None:
    assert run(gather([double(1), double(2)])) == [2, 4]
    with pytest.raises(ValueError, match="-1 is negative"):
        run(gather([double(1), double(-1), double(-2)]))


def test_each_has_errors_in_the_place_of_results() -> None:
    def plan() -> Plan[list[object]]:
        return (yield from Each([double(1), double(-1)]))

    first, second = run(plan())
    assert first == 2
    assert isinstance(second, ValueError)


def test_a_hook_stands_in_for_each_effect() -> None:
    def plan() -> Plan[list[int]]:
        values = [(yield from Number(1))]
        try:
            values.append((yield from Number(2)))
        except KeyError:
            values.append(0)
        return values

    def hook(effect: Number) -> Plan[int]:
        if effect.value == 2:
            raise KeyError(effect.value)
        return 10 + (yield from effect)

    assert run(interpose(plan(), hook)) == [11, 0]
    fatal = interpose(plan(), hook, fatal=(KeyError,))
    with pytest.raises(KeyError):
        run(fatal)
