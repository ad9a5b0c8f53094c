"""What the value of one metadata field must be: the operators of filters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..nodegraph.errors import nearest_names
from .comparisons import (
    MISSING,
    SEVERAL,
    Decide,
    identity,
    in_range,
    is_nan,
    on_items,
    one_of,
    plain,
)
from .dates import is_ambiguous, read_date
from .like_pattern import LikePattern

_LISTS = (np.ndarray, *SEVERAL)

BOUNDS = ("gt", "gte", "lt", "lte")

OPERATORS = (
    *("eq", "ne", "in", "nin", *BOUNDS),
    *("contains", "any", "all", "like", "like_case", "exists", "empty"),
)


@dataclass(frozen=True, slots=True)
class Condition:
    """Decide whether a metadata value meets a requirement.

    Attributes:
        operator: One of ``OPERATORS`` that is not the opposite of another, or ``"range"``.
        operand: What it compares with: of ``"range"`` a mapping of bounds.
        key: Names the condition: equal keys, equal decisions.
    """

    operator: str
    operand: Any
    key: Hashable = field(init=False, repr=False)
    _decide: Callable[[Any], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (self.operator, identity(self.operand)))
        object.__setattr__(self, "_decide", _MAKERS[self.operator](self.operand))

    def __reduce__(self) -> tuple[type[Condition], tuple[str, Any]]:
        return Condition, (self.operator, self.operand)

    def __call__(self, value: Any) -> bool:
        """Decide on a value, or on ``MISSING``; never raises."""
        return self._decide(plain(value))

    @property
    def reads_dates(self) -> bool:
        """Whether it reads texts as dates."""
        operands = self.operand.values() if self.operator == "range" else self.operand
        return self.operator in ("range", "in") and any(map(read_date, operands))

    @property
    def compares(self) -> bool:
        """Whether it needs the field's value; else it but asks whether the field is there."""
        return self.operator not in ("exists", "empty")


def parse_conditions(name: str, requirement: Any) -> list[tuple[Condition, bool]]:
    """Return the conditions that a requirement makes, each with whether it must hold or must not.

    Args:
        name: The field's name, for messages.
        requirement: A value, a list of values any of which will do, or a mapping from operators
            to what they compare with, as ``parse_filters`` describes them.

    Raises:
        ValueError: If there is no such operator, or it can't compare with that.
    """
    if isinstance(requirement, _LISTS):
        values = _values(name, "in", requirement)
        if any(isinstance(value, Mapping) for value in values):
            raise ValueError(
                f"the filter on {name!r} has a list of mappings, {requirement!r:.80}; filters are "
                "joined by 'and', 'or' or 'not'"
            )
        return [(Condition("in", values), True)]
    if not isinstance(requirement, Mapping):
        return [(Condition("in", [plain(requirement)]), True)]
    unknown = [operator for operator in requirement if operator not in OPERATORS]
    if unknown or not requirement:
        near = nearest_names(str(unknown[0]) if unknown else "", OPERATORS, limit=99)
        raise ValueError(
            f"the filter on {name!r} has the operators {list(requirement)!r:.80}; it takes one or "
            f"more of {near}"
        )
    bounds = {o: _bound(name, o, requirement[o]) for o in requirement if o in BOUNDS}
    conditions = [(Condition("range", bounds), True)] if bounds else []
    return conditions + [
        _condition(name, operator, operand)
        for operator, operand in requirement.items()
        if operator not in BOUNDS
    ]


def _condition(name: str, operator: str, operand: Any) -> tuple[Condition, bool]:
    if operator in ("eq", "ne"):
        return Condition("in", [plain(operand)]), operator == "eq"
    if operator in ("in", "nin"):
        return Condition("in", _values(name, operator, operand)), operator == "in"
    if operator in ("any", "all"):
        return Condition(operator, _values(name, operator, operand)), True
    if operator == "contains":
        if isinstance(operand, (Mapping, *_LISTS)):
            raise _unfit(name, operator, operand, "one value; 'any' and 'all' take several")
        return Condition(operator, plain(operand)), True
    if operator in ("like", "like_case"):
        if not isinstance(operand, str) or not operand:
            raise _unfit(name, operator, operand, "a pattern, in which % is any characters")
        return Condition(operator, str(operand)), True
    if not isinstance(operand, bool | np.bool_):
        raise _unfit(name, operator, operand, "True or False")
    return Condition(operator, None), bool(operand)


def _bound(name: str, operator: str, bound: Any) -> Any:
    bound = plain(bound)
    if bound is None or isinstance(bound, (bool, Mapping, *SEVERAL)) or is_nan(bound):
        raise ValueError(
            f"the filter on {name!r} has the bound {operator}={bound!r:.80}; a bound is a number, "
            "a text or a date"
        )
    if is_ambiguous(bound):
        raise ValueError(
            f"the filter on {name!r} has the bound {operator}={bound!r}, of which both numbers may "
            "be the month; write the year first, like 2024-01-31"
        )
    return bound


def _values(name: str, operator: str, operand: Any) -> list[Any]:
    if not isinstance(operand, _LISTS):
        raise _unfit(name, operator, operand, "a list of values")
    if not len(operand):
        raise ValueError(
            f"the filter on {name!r} allows no value at all ({operator}={operand!r}); leave the "
            "field out to allow any"
        )
    return [plain(value) for value in operand]


def _unfit(name: str, operator: str, operand: Any, allowed: str) -> ValueError:
    return ValueError(f"the filter on {name!r} has {operator}={operand!r:.80}; it takes {allowed}")


# Texts and lists


def _contains(required: Any) -> Decide:
    """Decide whether a value is a text with this text in it, or a list with this item."""
    equal = one_of([required])

    def contains(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(required, str) and required in value
        return isinstance(value, SEVERAL) and any(equal(plain(item)) for item in value)

    return contains


def _like(pattern: str, fold_case: bool) -> Decide:
    """Decide whether a value is a text of the form of a pattern."""
    form = LikePattern(pattern, fold_case=fold_case)
    return on_items(lambda value: isinstance(value, str) and form.matches(value))


def _is_empty(value: Any) -> bool:
    if value is MISSING or value is None:
        return True
    return isinstance(value, (str, dict, *SEVERAL)) and not value


def _contains_each(join: Callable[[Iterable[bool]], bool]) -> Callable[[Sequence[Any]], Decide]:
    def make(values: Sequence[Any]) -> Decide:
        decisions = [_contains(value) for value in values]
        return lambda value: join(decide(value) for decide in decisions)

    return make


_MAKERS: dict[str, Callable[[Any], Decide]] = {
    "in": one_of,
    "range": in_range,
    "contains": _contains,
    "any": _contains_each(any),
    "all": _contains_each(all),
    "like": lambda pattern: _like(pattern, fold_case=True),
    "like_case": lambda pattern: _like(pattern, fold_case=False),
    "exists": lambda _: lambda value: value is not MISSING,
    "empty": lambda _: _is_empty,
}
