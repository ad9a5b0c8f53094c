"""Compare metadata values: numbers, texts, dates, lists and whatever else there may be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any
from uuid import UUID

import numpy as np

from .dates import DAY, INSTANT, MONTH, CalendarTime, read_date

SEVERAL = (list, tuple, set, frozenset)

Decide = Callable[[Any], bool]

MISSING = object()
"""Stands for the value of a field that is not there."""

_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?\s*$")

_BY_VALUE = (str, int, bool, bytes, date, UUID, type(None))


def plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python, any other as it is."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return math.nan
        unit = "D" if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D") else "us"
        return value.astype(f"datetime64[{unit}]").item()
    if isinstance(value, np.longdouble):
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def identity(value: Any) -> Hashable:
    """Return what equals that of another value only if no condition tells the two apart."""
    value = plain(value)
    kind = type(value)
    if kind is datetime:  # equal instants may be of different days
        return kind, value.isoformat()
    if kind is float or kind is Decimal:
        return kind, str(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind is dict:
        return kind, tuple((identity(k), identity(v)) for k, v in value.items())
    if kind in SEVERAL:
        return kind, tuple(map(identity, value))
    return kind, _Same(value)


@dataclass(frozen=True, slots=True)
class _Same:
    """Equals itself alone, whatever its value's own equality is."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def on_items(decide: Decide) -> Decide:
    """Return a decision that a list meets as such, or with any item."""

    def on_items(value: Any) -> bool:
        if isinstance(value, SEVERAL):
            return any(decide(plain(item)) for item in value) or decide(value)
        return value is not MISSING and decide(value)

    return on_items


# Equality


def one_of(values: Sequence[Any]) -> Decide:
    """Decide whether a value is one of several; quick also with thousands."""
    known, others = set(), []
    for value in values:
        try:
            known.add(_hashed(value))
        except TypeError:  # a list, a signalling NaN
            others.append(value)
    dates = _Dates(values)

    def equal(value: Any) -> bool:
        try:
            if value == value and _hashed(value) in known:  # NaN equals nothing
                return True
        except Exception:  # it has no hash, or raises when compared
            pass
        return dates.have(value) or any(_same(value, other) for other in others)

    return on_items(equal)


def _hashed(value: Any) -> Hashable:
    hash(value)
    return isinstance(value, bool), value


def _same(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except Exception:  # whatever a value's own comparison raises
        return False


class _Dates:
    """The dates among values, to look others up in.

    Two texts are the same date only if both have a day: "1999-01" may be a code as well.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._dates = [(when, isinstance(v, str)) for v in values if (when := read_date(v))]
        self._wide = [when for when, _ in self._dates if when.precision < DAY]
        self._keys: set[Hashable] = set()
        for when, _ in self._dates:
            if when.precision == INSTANT:
                self._keys |= {when.instant, ("instants", when.calendar)}
            elif when.precision == DAY:
                self._keys.add(("day", when.calendar))

    def have(self, value: Any) -> bool:
        """Return whether a value is one of these dates."""
        if not self._dates or (when := read_date(value)) is None:
            return False
        if when.precision < DAY:
            return any(when.compare(other) == 0 for other, is_text in self._dates if not is_text)
        if ("day", when.calendar) in self._keys:
            return True
        exact = when.instant if when.precision == INSTANT else ("instants", when.calendar)
        is_date = not isinstance(value, str)
        return exact in self._keys or (is_date and any(not when.compare(w) for w in self._wide))


# Order


def in_range(bounds: Mapping[str, Any]) -> Decide:
    """Decide whether a value is within bounds; one item of a list has to be within all of them."""
    checks = [(_HOLDS[name], bound, read_date(bound)) for name, bound in bounds.items()]

    def within(value: Any) -> bool:
        when = read_date(value) if any(date for _, _, date in checks) else None
        return all(
            (order := _order(value, when, bound, date)) is not None and holds(order)
            for holds, bound, date in checks
        )

    return on_items(within)


def is_nan(value: Any) -> bool:
    """Return whether a value is no number: NaN, also of NumPy and decimals, and NaT."""
    return value.is_nan() if isinstance(value, Decimal) else not _same(value, value)


_HOLDS: dict[str, Callable[[int], bool]] = {
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
}


def _order(
    value: Any, when: CalendarTime | None, bound: Any, date_of_bound: CalendarTime | None
) -> int | None:
    """Return -1, 0 or 1: a value is below a bound, equal, above; None where neither is true."""
    if isinstance(value, bool):  # no number, as in equality
        return None
    if when is not None and date_of_bound is not None:
        texts = isinstance(value, str) and isinstance(bound, str)
        if not texts or max(when.precision, date_of_bound.precision) >= MONTH:
            return when.compare(date_of_bound)
    if isinstance(value, str) and isinstance(bound, _NUMBERS):
        value = _number(value)
    elif isinstance(bound, str) and isinstance(value, _NUMBERS):
        bound = _number(bound)
    try:
        return 0 if value == bound else 1 if value > bound else -1 if value < bound else None
    except Exception:  # values that have no order, or raise whatever
        return None


_NUMBERS = (int, float, Decimal, Real)


def _number(text: str) -> int | float | None:
    """Return the number that a text is, None where it is none."""
    if not _NUMBER.match(text):
        return None
    try:
        return int(text)
    except ValueError:
        return float(text)
