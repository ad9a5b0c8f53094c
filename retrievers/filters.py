"""Conditions on metadata, checked before ranking."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..nodegraph import Node

Filters = Mapping[str, Any]
"""Field to condition, and ``"and"``, ``"or"``, ``"not"`` around such; see ``parse_filters``."""

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


_FIELD = "metadata."  # before a field's name, whatever that is


@dataclass(frozen=True, slots=True)
class Filter:
    """Filters that were checked: conditions on fields, joined.

    Attributes:
        join: Whether all parts must hold, one of them, or the only one must not; or this is the
            condition on a field.
        parts: The filters that are joined; none, of a condition.
        field: The metadata field of a condition.
        condition: What its value must meet.
    """

    join: Literal["and", "or", "not", "field"] = "and"
    parts: tuple[Filter, ...] = ()
    field: str = ""
    condition: Condition | None = None

    def __bool__(self) -> bool:
        """Return whether there is any condition."""
        return bool(self.parts) or self.condition is not None

    def matches(self, node: Node) -> bool:
        """Return whether a node meets the filter."""
        return self._holds(node.metadata)

    def mask(
        self, meets: Callable[[str, Condition], npt.NDArray[np.bool_]]
    ) -> npt.NDArray[np.bool_] | None:
        """Return which rows of a table meet the filter, None where there is no condition.

        Args:
            meets: Returns which rows meet the condition on a field.
        """
        if self.condition is not None:
            return meets(self.field, self.condition)
        masks = [mask for part in self.parts if (mask := part.mask(meets)) is not None]
        if not masks:
            return None
        if self.join == "not":
            return ~masks[0]
        return reduce(np.logical_and if self.join == "and" else np.logical_or, masks)

    def _holds(self, metadata: Mapping[str, Any]) -> bool:
        if self.condition is not None:
            return self.field in metadata and self.condition(metadata[self.field])
        holds = (part._holds(metadata) for part in self.parts)
        return any(holds) if self.join == "or" else all(holds) != (self.join == "not")


def all_of(*filters: Filters | None) -> Filters | None:
    """Return filters that hold where all of these hold; None where none has a condition.

    Choose it to add conditions to those of somebody else: none replaces another, not even on the
    same field.

    Example:
        >>> all_of({"tenant": "a"}, None, {"tenant": ["a", "b"], "year": 2020})
        {'and': [{'tenant': 'a'}, {'tenant': ['a', 'b'], 'year': 2020}]}
        >>> all_of(None, {"year": 2020})
        {'year': 2020}
    """
    some = [part for part in filters if part is not None and part != {}]
    return None if not some else some[0] if len(some) == 1 else {"and": some}


def parse_filters(filters: Filters | None) -> Filter:
    """Check filters, and make of them what indexes evaluate.

    Every field must meet its condition. A value must be equal; of a list, any; a mapping is a
    range with ``gt``, ``gte``, ``lt``, ``lte``. A field that holds a list meets a condition with
    any of its items. A node without the field meets none, and neither does a value that can't be
    compared with a bound.

    ``"and"`` and ``"or"`` have a list of filters, all of which or one of which must hold;
    ``"not"`` has filters that must not hold. They may be nested. A field that has such a name is
    written ``"metadata.or"``; so may any other be.

    Raises:
        TypeError: If filters are no mapping from field names.
        ValueError: If a list is empty, or a range has unknown bounds or NaN.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> filter = parse_filters({"year": {"gte": 2000}, "author": ["A", "B"]})
        >>> filter.matches(Node("", {"year": 1999, "author": "A"}))
        False
        >>> filter = parse_filters({"or": [{"year": 1999}, {"not": {"author": "A"}}]})
        >>> filter.matches(Node("", {"year": 1999, "author": "A"}))
        True
    """
    if filters is None:
        return Filter()
    if not isinstance(filters, Mapping) or not all(isinstance(f, str) for f in filters):
        raise TypeError(
            f"filters map metadata fields to values, like {{'author': ['A', 'B']}}, "
            f"not {filters!r:.80}"
        )
    parts = [part for name, value in filters.items() if (part := _part(name, value))]
    return parts[0] if len(parts) == 1 else Filter("and", tuple(parts))


def _part(name: str, value: Any) -> Filter:
    """Return one entry of a mapping as a filter."""
    if name in ("and", "or"):
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            raise ValueError(
                f"the filter {name!r} has a list of filters, not {value!r:.80}; a field that is "
                f"called so is written {_FIELD + name!r}"
            )
        parts = tuple(map(parse_filters, value))
        if name == "and":
            return Filter("and", tuple(filter(None, parts)))
        _check_conditions(name, parts, value)
        return Filter("or", parts)
    if name == "not":
        if not isinstance(value, Mapping):
            raise ValueError(
                f"the filter 'not' has filters, like {{'author': 'A'}}, not {value!r:.80}; a field "
                f"that is called so is written {_FIELD + name!r}"
            )
        part = parse_filters(value)
        _check_conditions(name, (part,), value)
        return Filter("not", (part,))
    field = name.removeprefix(_FIELD)
    return Filter("field", (), field, Condition(_requirement(field, value), repr(value)))


def _check_conditions(name: str, parts: Sequence[Filter], value: Any) -> None:
    if not all(parts):
        raise ValueError(
            f"the filter {name!r} has {value!r:.80}, where a filter has no condition; leave it out"
        )


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
