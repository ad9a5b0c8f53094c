"""Conditions on metadata, checked before ranking."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Filters = Mapping[str, Any]
"""Field to condition: a value, a list of values any of which will do, or a range."""

_MAX_CACHED = 32  # conditions whose answers a column remembers


SEVERAL = (list, tuple, set, frozenset)


@dataclass(frozen=True, slots=True)
class Condition:
    """Decide whether a metadata value meets a requirement.

    Attributes:
        requirement: A value, a list of values any of which will do, or a dict of bounds.
        key: Names the condition: equal keys, equal decisions.
    """

    requirement: Any
    key: str

    def __call__(self, value: Any) -> bool:
        """Decide on a value; a list meets the requirement as such, or with any item."""
        if isinstance(value, SEVERAL):
            return any(map(self._meets, value)) or self._meets(value)
        return self._meets(value)

    def _meets(self, value: Any) -> bool:
        if isinstance(self.requirement, dict):
            return _in_range(value, self.requirement)
        if isinstance(self.requirement, list):
            return any(_equal(value, allowed) for allowed in self.requirement)
        return _equal(value, self.requirement)


_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}

_MISSING = object()


def parse_filters(filters: Filters | None) -> dict[str, Condition]:
    """Check filters and make a condition of each.

    Every field must meet its condition. A value must be equal; of a list, any; a mapping is a
    range with ``gt``, ``gte``, ``lt``, ``lte``. A field that holds a list meets a condition with
    any of its items. A node without the field meets none, and neither does a value that can't be
    compared with a bound.

    Raises:
        TypeError: If the filters are no mapping from field names.
        ValueError: If a list is empty, or a range has unknown bounds or NaN.

    Example:
        >>> conditions = parse_filters({"year": {"gte": 2000}, "author": ["A", "B"]})
        >>> conditions["year"](1999), conditions["author"](["B", "C"])
        (False, True)
    """
    if filters is None:
        return {}
    if not isinstance(filters, Mapping) or not all(isinstance(f, str) for f in filters):
        raise TypeError(
            f"filters map metadata fields to values, like {{'author': ['A', 'B']}}, "
            f"not {filters!r:.80}"
        )
    return {field: Condition(_requirement(field, r), repr(r)) for field, r in filters.items()}


def _requirement(field: str, requirement: Any) -> Any:
    """Return a copy of a requirement: a dict of bounds, a list of values, or a value."""
    if isinstance(requirement, SEVERAL):
        if not requirement:
            raise ValueError(
                f"the filter on {field!r} allows no value at all ([]); leave the field out to "
                "allow any"
            )
        return list(requirement)
    if not isinstance(requirement, Mapping):
        return requirement
    if not requirement or any(bound not in _BOUNDS for bound in requirement):
        raise ValueError(
            f"the filter on {field!r} is a range with the bounds {list(requirement)!r}; it takes "
            f"one or more of {', '.join(_BOUNDS)}"
        )
    for name, bound in requirement.items():
        if bound is None or (isinstance(bound, float) and math.isnan(bound)):
            raise ValueError(f"the filter on {field!r} has the bound {name}={bound!r}")
    return dict(requirement)


def _in_range(value: Any, bounds: Mapping[str, Any]) -> bool:
    if isinstance(value, bool):  # no number, as in _equal
        return False
    try:
        return all(_BOUNDS[name](value, bound) for name, bound in bounds.items())
    except TypeError:
        return False


def _equal(value: Any, required: Any) -> bool:
    return bool(value == required) and isinstance(value, bool) == isinstance(required, bool)


class Column:
    """One metadata field of all slots, its distinct values numbered.

    A condition is asked once a distinct value, not once a node, and its answers are kept for the
    next query. Many threads may ask at once.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._values: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._decided: dict[str, npt.NDArray[np.bool_]] = {}
        self._extending = threading.Lock()

    def extend(self, metadata: Sequence[Mapping[str, Any] | None]) -> None:
        """Take in the slots that came since the last call."""
        with self._extending:
            if len(metadata) > len(self._codes):
                new = [
                    self._number(values.get(self._field, _MISSING) if values else _MISSING)
                    for values in metadata[len(self._codes) :]
                ]
                self._codes = np.concatenate([self._codes, np.array(new, np.int32)])

    def meets(self, condition: Condition) -> npt.NDArray[np.bool_]:
        """Return which slots meet a condition."""
        good = self._decided.get(condition.key, np.zeros(0, np.bool_))
        if len(good) < len(self._values):
            new = [v is not _MISSING and condition(v) for v in self._values[len(good) :]]
            good = np.concatenate([good, np.array(new, np.bool_)])
            if len(self._decided) >= _MAX_CACHED:
                self._decided = {}
            self._decided[condition.key] = good
        return good[self._codes]

    def _number(self, value: Any) -> int:
        key = (type(value), repr(value))
        if key not in self._numbers:
            self._numbers[key] = len(self._values)
            self._values.append(value)
        return self._numbers[key]
