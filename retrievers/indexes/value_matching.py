"""Turn a filter into numbers of values, by which an engine selects rows."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, Literal, NamedTuple

from ...nodegraph.vector_table import ValueMatch
from ..conditions import MISSING, Condition
from ..filters import Filter

logger = logging.getLogger(__name__)

_MOST_CONDITIONS = 256  # that are remembered


class _Decided(NamedTuple):
    """How a condition decided on the values up to a number."""

    last: int
    numbers: tuple[int, ...]  # those that meet it; where a missing value does, those that don't


Values = Callable[[str | None, int, Collection[str] | None], Iterator[tuple[int, Any]]]
"""Yields the values of a field with their numbers; see ``VectorTable.values``."""


class ValueMatcher:
    """Decide conditions on the values that fields have, so that they mean the same everywhere.

    Each value is decided once for a condition, by the condition itself; new values have higher
    numbers. A condition that asks for texts looks at no other values but these and lists.

    Args:
        values: Numbers the values.
    """

    def __init__(self, values: Values) -> None:
        self._all_values = values
        self._decided: OrderedDict[Hashable, _Decided] = OrderedDict()
        self._lock = threading.Lock()
        self._warned: set[str] = set()

    def match(self, filter: Filter) -> ValueMatch | None:
        """Return what a filter selects; None where it has no condition."""
        if filter.condition is not None:
            field = filter.field if filter.join == "field" else None
            return self._values(field, filter.condition)
        parts = tuple(match for part in filter.parts if (match := self.match(part)) is not None)
        if not parts:
            return None
        join: Literal["and", "or", "not"] = "and"
        if filter.join == "or" or filter.join == "not":
            join = filter.join
        return ValueMatch(join, parts)

    def _values(self, field: str | None, condition: Condition) -> ValueMatch:
        meets_missing = condition(MISSING)
        key = field, condition.key
        with self._lock:
            decided = self._decided.get(key, _Decided(0, ()))
        texts = _texts(condition)
        last, new = decided.last, []
        for number, value in self._all_values(field, last, texts):
            last = number
            if condition(value) != meets_missing:
                new.append(number)
        if last != decided.last:
            decided = _Decided(last, (*decided.numbers, *new))
            with self._lock:
                self._decided[key] = decided
                self._decided.move_to_end(key)
                if len(self._decided) > _MOST_CONDITIONS:
                    self._decided.popitem(last=False)
        if not last and texts is None and condition.compares and field is not None:
            self._warn_of(field)
        match = ValueMatch("values", value_ids=decided.numbers)
        return ValueMatch("not", (match,)) if meets_missing else match

    def _warn_of(self, field: str) -> None:
        """Say once that no node has a field: it may be misspelt."""
        if field not in self._warned:
            self._warned.add(field)
            logger.warning(
                "no node has the metadata field %r, which a filter compares; see whether it is "
                "spelt so",
                field,
            )


def _texts(condition: Condition) -> list[str] | None:
    """Return the only texts that meet a condition; None where others may, too."""
    if condition.operator != "in" or condition.reads_dates:
        return None
    values = condition.operand
    return list(values) if all(type(value) is str for value in values) else None
