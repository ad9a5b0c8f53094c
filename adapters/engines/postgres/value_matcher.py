"""Translate filters into the numbers of metadata values, which a vector table compares."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ....retrievers.conditions import MISSING, Condition, read_date
from ....retrievers.filters import Filter

logger = logging.getLogger(__name__)

_MAX_CONDITIONS = 256  # cached decisions


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """The rows that a filter selects, by the numbers of their metadata values.

    Attributes:
        join: ``"and"``, ``"or"`` and ``"not"`` combine the parts; ``"values"`` selects rows that
            have one of the numbers.
        parts: The parts to combine.
        value_ids: Numbers of values of one field.
    """

    join: Literal["and", "or", "not", "values"]
    parts: tuple[ValueMatch, ...] = ()
    value_ids: tuple[int, ...] = ()


Values = Callable[[str | None, int, Collection[str] | None], Iterator[tuple[int, Any]]]
"""A function that yields the values of a field with numbers; see ``ValueNumbers.values``."""


class _Decision(NamedTuple):
    """The values that meet a condition, among those up to a number."""

    last: int
    numbers: tuple[int, ...]  # if a missing value meets the condition: the values that fail


class ValueMatcher:
    """An evaluator of conditions on the distinct values of a field, equal for all stores.

    Each value is evaluated once per condition; new values have higher numbers. A condition that
    compares texts only reads those texts and values that are not texts.

    Args:
        values: A function that yields numbered values.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self._decisions: OrderedDict[Hashable, _Decision] = OrderedDict()
        self._lock = threading.Lock()
        self._warned: set[str] = set()

    def match(self, filter: Filter) -> ValueMatch | None:
        """Return the rows that a filter selects; None if it has no condition."""
        if filter.condition is not None:
            field = filter.field if filter.join == "field" else None
            return self._match(field, filter.condition)
        parts = tuple(match for part in filter.parts if (match := self.match(part)) is not None)
        if not parts:
            return None
        join: Literal["and", "or", "not"] = "and"
        if filter.join == "or" or filter.join == "not":
            join = filter.join
        return ValueMatch(join, parts)

    def _match(self, field: str | None, condition: Condition) -> ValueMatch:
        meets_missing = condition(MISSING)
        key = field, condition.key
        with self._lock:
            decision = self._decisions.get(key, _Decision(0, ()))
        texts = _texts(condition)
        last, new = decision.last, []
        for number, value in self._values(field, last, texts):
            last = number
            if condition(value) != meets_missing:
                new.append(number)
        if last != decision.last:
            decision = _Decision(last, (*decision.numbers, *new))
            with self._lock:
                self._decisions[key] = decision
                self._decisions.move_to_end(key)
                if len(self._decisions) > _MAX_CONDITIONS:
                    self._decisions.popitem(last=False)
        if not last and texts is None and condition.compares and field is not None:
            self._warn(field)
        match = ValueMatch("values", value_ids=decision.numbers)
        return ValueMatch("not", (match,)) if meets_missing else match

    def _warn(self, field: str) -> None:
        """Log once that no node has a field: it may be misspelled."""
        if field not in self._warned:
            self._warned.add(field)
            logger.warning(
                "no node has the metadata field %r, which a filter compares; check its spelling",
                field,
            )


def _texts(condition: Condition) -> list[str] | None:
    """Return the texts that can meet a condition. None: further values can meet it."""
    if condition.operator != "in":
        return None
    values = condition.operand
    is_plain = all(type(value) is str and read_date(value) is None for value in values)
    return list(values) if is_plain else None
