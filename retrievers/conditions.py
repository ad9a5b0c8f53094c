"""Conditions on the values of metadata fields, which correspond to the operators of filters."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from ..nodegraph.errors import nearest_names
from ..nodegraph.text_forms import composed

SEVERAL = (list, tuple, set, frozenset)

Decide = Callable[[Any], bool]

MISSING = object()
"""The value that represents a missing field."""

_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?\s*$")

logger = logging.getLogger(__name__)

_BY_TEXT = (str, int, float, bool, bytes, date, datetime, Decimal, UUID, type(None))


def plain(value: Any) -> Any:
    """Convert a NumPy value to a Python value. Other values are returned unchanged."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if not isinstance(value, np.generic):
        return value
    item = value.item()
    if isinstance(value, np.datetime64) and isinstance(item, int):  # the unit is nanoseconds
        return value.astype("datetime64[us]").item()
    return item


def comparable(value: Any) -> Any:
    """Convert NumPy values to Python values, and strings to their composed Unicode form."""
    value = plain(value)
    if isinstance(value, str):
        return composed(value)
    if not isinstance(value, SEVERAL):
        return value
    items = [comparable(item) for item in value]
    if all(item is given for item, given in zip(items, value, strict=True)):
        return value
    kind = next(kind for kind in SEVERAL if isinstance(value, kind))
    return kind(items)


def identity(value: Any) -> Hashable:
    """Return a hashable key for a value. Values with equal keys match the same conditions.

    Values of uncommon types, such as mappings, have unique keys.
    """
    value = comparable(value)
    if isinstance(value, SEVERAL):
        return type(value), tuple(map(identity, value))
    # The key is a string, because -0.0 equals 0, and equal points in time can have different
    # calendar days.
    return (type(value), repr(value)) if type(value) in _BY_TEXT else object()


def on_items(decide: Decide) -> Decide:
    """Return a test that is also applied to the items of a list.

    A list passes if any of its items or the list itself passes the test.
    """

    def on_items(value: Any) -> bool:
        if isinstance(value, SEVERAL):
            return any(decide(comparable(item)) for item in value) or decide(value)
        return value is not MISSING and decide(value)

    return on_items


# Equality


def one_of(values: Sequence[Any]) -> Decide:
    """Return a test that checks whether a value equals one of several values, using a hash set."""
    existing, others = set(), []
    for value in values:
        try:
            existing.add(_hashed(value))
        except TypeError:  # the value is not hashable, such as a list or a signaling NaN
            others.append(value)
    dates = [(when, isinstance(v, str)) for v in values if (when := read_date(v))]

    def equal(value: Any) -> bool:
        try:
            if value == value and _hashed(value) in existing:  # NaN is not equal to any value
                return True
        except Exception:  # the value is not hashable, or its comparison raises an error
            pass
        return _is_date(value, dates) or any(_same(value, other) for other in others)

    return on_items(equal)


def _hashed(value: Any) -> Hashable:
    hash(value)
    return isinstance(value, bool), value


def _same(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except Exception:  # the comparison of a value can raise any error
        return False


def _is_date(value: Any, dates: Sequence[tuple[CalendarTime, bool]]) -> bool:
    """Return whether a value is equal to any of several dates.

    Two strings are compared as dates only if both contain a day, since "1999-01" may be a code.

    Args:
        value: A metadata value.
        dates: Pairs of a date and whether the date was given as a string.
    """
    if not dates or (when := read_date(value)) is None:
        return False
    return any(
        when.compare(other) == 0
        and (len(when.calendar) == len(other.calendar) == 3 or not (is_text and type(value) is str))
        for other, is_text in dates
    )


# Order


def in_range(bounds: Sequence[tuple[str, Any]]) -> Decide:
    """Return a test that checks whether a value, or an item of a list, is within all bounds."""
    checks = [(_HOLDS[name], bound, read_date(bound)) for name, bound in bounds]
    undated = [bound for _, bound, date in checks if isinstance(bound, str) and date is None]

    def within(value: Any) -> bool:
        if undated and isinstance(value, str) and _DAY.match(value):
            logger.warning(
                "a filter compares the date %r with %r as texts; dates must be written as in ISO "
                "8601, like 2024-01-31",
                value[:40],
                undated[0][:40],
            )
            undated.clear()  # log only one line per filter
        when = read_date(value) if any(date for _, _, date in checks) else None
        return all(
            (order := _order(value, when, bound, date)) is not None and holds(order)
            for holds, bound, date in checks
        )

    return on_items(within)


_HOLDS: dict[str, Callable[[int], bool]] = {
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
}


def _order(
    value: Any, when: CalendarTime | None, bound: Any, date_of_bound: CalendarTime | None
) -> int | None:
    """Compare a value with a bound, and return -1, 0 or 1, or None if they cannot be compared."""
    if isinstance(value, bool):  # as in tests for equality, bools are not numbers
        return None
    if when is not None and date_of_bound is not None:
        texts = isinstance(value, str) and isinstance(bound, str)
        if not texts or max(len(when.calendar), len(date_of_bound.calendar)) > 1:
            return when.compare(date_of_bound)
    if isinstance(value, str) != isinstance(bound, str):
        value, bound = _number(value), _number(bound)
    try:
        return 0 if value == bound else 1 if value > bound else -1 if value < bound else None
    except Exception:  # the values have no order, or their comparison raises an error
        return None


def _number(value: Any) -> Any:
    """Convert a string that represents a number. Other values are returned unchanged."""
    if not isinstance(value, str) or not _NUMBER.match(value):
        return value
    return float(value) if re.search("[.eE]", value) else int(value)


_DAY = re.compile(r"\d{4}-\d\d-\d\d(?!\w)")

_ISO_DATE = re.compile(
    r"\s*([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})"
    r"(?:[.,]([0-9]{1,9}))?)?\s?([Zz]|[+-][0-9]{2}:?(?:[0-9]{2})?)?)?)?)?\s*$"
)

_WRITTEN_DATE = re.compile(r"\s*(?:[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}|[0-9]{4}/[0-9]{1,2}/)")


class CalendarTime(NamedTuple):
    """A year, a month, a day or a point in time.

    Attributes:
        calendar: The known parts of year, month and day as written, without time zone conversion.
        instant: The time since the year 1 in UTC, or None if the time of day is unknown.
    """

    calendar: tuple[int, ...]
    instant: timedelta | None = None

    def compare(self, other: CalendarTime) -> int:
        """Return -1, 0 or 1 if this time is before, equal to or after another time.

        The comparison uses the lower of the two precisions. For example, a point in time and a day
        are compared as days, and a day and a year are compared as years.
        """
        if self.instant is not None and other.instant is not None:
            return (self.instant > other.instant) - (self.instant < other.instant)
        size = min(len(self.calendar), len(other.calendar))
        mine, others = self.calendar[:size], other.calendar[:size]
        return (mine > others) - (mine < others)


def read_date(value: Any) -> CalendarTime | None:
    """Parse a date, a datetime, or a string in ISO format. For other values, None is returned.

    A string can end after the year or after the month. The day can be followed by a time, with or
    without a time zone. A time without a time zone is interpreted as UTC.

    Example:
        >>> read_date("2024-01-31 10:00").compare(read_date("2024-01-31T11:00+01:00"))
        0
        >>> read_date("2024-05-01").compare(read_date("2024-05"))
        0
        >>> read_date("31 January 2024") is None
        True
    """
    try:
        if isinstance(value, datetime):
            return _instant(value, value.utcoffset())
        if isinstance(value, date):
            return CalendarTime((value.year, value.month, value.day))
        match = _ISO_DATE.match(value) if isinstance(value, str) else None
        if match is None:
            return None
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        start = date(int(year), int(month or 1), int(day or 1))
        if hour is None:
            known = 3 if day else 2 if month else 1
            return CalendarTime((start.year, start.month, start.day)[:known])
        at = time(
            int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(6, "0")[:6])
        )
        return _instant(datetime.combine(start, at), _offset(zone))
    except (ValueError, TypeError, OverflowError):  # the date does not exist in the calendar
        return None


def _instant(value: datetime, offset: timedelta | None) -> CalendarTime:
    # The year 1 is not subtracted, because pandas timestamps cannot represent it.
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    since = timedelta(date.toordinal(value), seconds, value.microsecond)
    calendar = value.year, value.month, value.day
    return CalendarTime(calendar, since if offset is None else since - offset)


def _offset(zone: str | None) -> timedelta | None:
    if zone is None or zone in "Zz":
        return None
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return offset if zone[0] == "+" else -offset


def _folded(text: str) -> str:
    return composed(text.casefold())


_LISTS = (np.ndarray, *SEVERAL)

BOUNDS = ("gt", "gte", "lt", "lte")

OPERATORS = (
    "eq",
    "ne",
    "in",
    "nin",
    *BOUNDS,
    "contains",
    "any",
    "all",
    "like",
    "like_case",
    "exists",
    "empty",
)


@dataclass(frozen=True)
class Condition:
    """A condition on a metadata value.

    Attributes:
        operator: One of the ``OPERATORS`` that are not negations, or ``"range"``.
        operand: The operand. For ``"range"``, it consists of pairs of an operator and a bound.
    """

    operator: str
    operand: Any

    @cached_property
    def key(self) -> Hashable:
        """A key for caches. Conditions with equal keys accept the same values."""
        return self.operator, identity(self.operand)

    @cached_property
    def _decide(self) -> Decide:
        return _MAKERS[self.operator](self.operand)

    def __reduce__(self) -> tuple[type[Condition], tuple[str, Any]]:
        return Condition, (self.operator, self.operand)

    def __call__(self, value: Any) -> bool:
        """Return whether a value, or ``MISSING``, meets the condition. No error is ever raised."""
        return self._decide(comparable(value))

    @property
    def compares(self) -> bool:
        """Whether the condition compares the value of the field.

        ``exists`` and ``empty`` do not.
        """
        return self.operator not in ("exists", "empty")


def parse_conditions(name: str, requirement: Any) -> list[tuple[Condition, bool]]:
    """Parse the requirement on a field, and return pairs of a condition and whether it must hold.

    Args:
        name: The name of the field, for error messages.
        requirement: A value, a list of allowed values, or a mapping from operators to operands. See
            ``parse_filters``.

    Raises:
        ValueError: If an operator is unknown, or its operand is invalid.
    """
    if inspect.isroutine(requirement):
        raise ValueError(
            f"the filter on {name!r} must be a value, a list of values or a mapping from operators "
            f"to operands, got the function {requirement!r:.80}"
        )
    if isinstance(requirement, _LISTS):
        if any(isinstance(value, Mapping) for value in requirement):
            raise ValueError(
                f"the filter on {name!r} has a list of mappings, {requirement!r:.80}; filters are "
                "joined by 'and', 'or' or 'not'"
            )
        requirement = {"in": requirement}
    elif not isinstance(requirement, Mapping):
        requirement = {"eq": requirement}
    unknown = [operator for operator in requirement if operator not in OPERATORS]
    if unknown or not requirement:
        near = nearest_names(str(unknown[0]) if unknown else "", OPERATORS, limit=99)
        raise ValueError(
            f"the filter on {name!r} has the operators {list(requirement)!r:.80}; it takes one or "
            f"more of {near}"
        )
    bounds = [(o, _bound(name, o, requirement[o])) for o in requirement if o in BOUNDS]
    conditions = [(Condition("range", bounds), True)] if bounds else []
    return conditions + [
        _condition(name, operator, operand)
        for operator, operand in requirement.items()
        if operator not in BOUNDS
    ]


def _condition(name: str, operator: str, operand: Any) -> tuple[Condition, bool]:
    if operator in ("eq", "ne"):
        return Condition("in", [comparable(operand)]), operator == "eq"
    if operator in ("in", "nin"):
        return Condition("in", _values(name, operator, operand)), operator == "in"
    if operator in ("any", "all"):
        return Condition(operator, _values(name, operator, operand)), True
    if operator == "contains":
        if isinstance(operand, (Mapping, *_LISTS)):
            raise _unfit(name, operator, operand, "one value; 'any' and 'all' take several")
        return Condition(operator, comparable(operand)), True
    if operator in ("like", "like_case"):
        if not isinstance(operand, str) or not operand:
            raise _unfit(name, operator, operand, "a pattern, in which % is any characters")
        return Condition(operator, composed(str(operand))), True
    if not isinstance(operand, bool | np.bool_):
        raise _unfit(name, operator, operand, "True or False")
    return Condition(operator, None), bool(operand)


def _bound(name: str, operator: str, bound: Any) -> Any:
    bound = comparable(bound)
    is_nan = bound.is_nan() if isinstance(bound, Decimal) else not _same(bound, bound)  # or NaT
    if is_nan or bound is None or isinstance(bound, (bool, Mapping, *SEVERAL)):
        raise ValueError(
            f"the filter on {name!r} has the bound {operator}={bound!r:.80}; a bound is a number, "
            "a text or a date"
        )
    if isinstance(bound, str) and _WRITTEN_DATE.match(bound):
        raise ValueError(
            f"the filter on {name!r} has the bound {operator}={bound!r}; dates must be written as "
            "in ISO 8601, like 2024-01-31"
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
    return [comparable(value) for value in operand]


def _unfit(name: str, operator: str, operand: Any, allowed: str) -> ValueError:
    return ValueError(f"the filter on {name!r} has {operator}={operand!r:.80}; it takes {allowed}")


# Texts and lists


def _contains(required: Any) -> Decide:
    """Return a test that checks whether a string contains a text, or a list contains an item."""
    equal = one_of([required])

    def contains(value: Any) -> bool:
        if isinstance(value, str):
            return isinstance(required, str) and required in value
        return isinstance(value, SEVERAL) and any(equal(comparable(item)) for item in value)

    return contains


def _like(fold: Callable[[str], str], pattern: str) -> Decide:
    """Return a test that checks whether a string matches a pattern with ``%`` and ``_``.

    A backslash escapes a character. Each part between two ``%`` is searched only once, from left to
    right. Unlike a regular expression with several ``.*``, this takes linear time.
    """
    parts = [""]
    for token in re.findall(r"\\.|.", fold(pattern), re.DOTALL):
        if token == "%":
            parts.append("")
        else:
            parts[-1] += "." if token == "_" else re.escape(token[-1])
    first, *inner = parts
    last = f".*{inner.pop()}" if inner else ""
    atomic = "".join(f"(?=(?P<p{n}>.*?{part}))(?P=p{n})" for n, part in enumerate(inner))
    match = re.compile(first + atomic + last, re.DOTALL).fullmatch
    return on_items(lambda value: isinstance(value, str) and match(fold(value)) is not None)


def _is_empty(value: Any) -> bool:
    is_sized = isinstance(value, (str, dict, *SEVERAL))
    return value is MISSING or value is None or (is_sized and not value)


def _contains_each(join: Callable[[Iterable[bool]], bool], values: Sequence[Any]) -> Decide:
    decisions = [_contains(value) for value in values]
    return lambda value: join(decide(value) for decide in decisions)


_MAKERS: dict[str, Callable[[Any], Decide]] = {
    "in": one_of,
    "range": in_range,
    "contains": _contains,
    "any": partial(_contains_each, any),
    "all": partial(_contains_each, all),
    "like": partial(_like, _folded),
    "like_case": partial(_like, str),
    "exists": lambda _: lambda value: value is not MISSING,
    "empty": lambda _: _is_empty,
}
