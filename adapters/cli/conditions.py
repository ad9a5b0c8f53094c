"""Read ``--filter`` conditions: ``field=value``, ``field>=value``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_CONDITION = re.compile(r"\s*([^=<>]+?)\s*(>=|<=|=|>|<)\s*(.*?)\s*$", re.DOTALL)
_BOUNDS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt"}


def parse_conditions(given: Iterable[str]) -> dict[str, Any]:
    """Make filters of conditions; the same field again allows another value, or bounds a range.

    A value that reads as a number or a truth value also means that: ``year=2020`` finds the
    number and the text.

    Raises:
        ValueError: If one is no condition, or a field has both values and bounds.

    Example:
        >>> parse_conditions(["author=Lu Yu", "author=Li Bai", "file_size>=100"])
        {'author': ['Lu Yu', 'Li Bai'], 'file_size': {'gte': 100}}
    """
    filters: dict[str, Any] = {}
    for condition in given:
        match = _CONDITION.match(condition)
        if match is None or not match[3]:
            raise ValueError(
                f"the filter {condition!r} is no condition; write field=value, or field>=value "
                "with one of >=, <=, >, <"
            )
        field, sign, text = match.groups()
        new: Any = _values(text) if sign == "=" else {_BOUNDS[sign]: _values(text)[0]}
        old = filters.get(field)
        if old is not None and type(old) is not type(new):
            raise ValueError(
                f"the filters on {field!r} are both a value and a range; give one kind of them"
            )
        filters[field] = new if old is None else old | new if isinstance(new, dict) else old + new
    return filters


def _values(text: str) -> list[Any]:
    """Return what a text may mean, the likeliest first."""
    if text.lower() in ("true", "false"):
        return [text.lower() == "true", text]
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        if value == value:  # not NaN, which equals nothing
            return [value, text]
    return [text]
