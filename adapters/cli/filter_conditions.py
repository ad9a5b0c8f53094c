"""Read the conditions of the option ``--filter``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...retrievers.conditions import OPERATORS
from ...retrievers.filters import Filters, all_of, metadata_key, parse_filters
from ..tool_filters import pattern_within

_SIGN = re.compile(r"[!><]=|!~|[=~<>]")

_SIGNS = {">=": "gte", "<=": "lte", ">": "gt", "<": "lt", "!=": "nin", "~": "like", "!~": "like"}

_LISTS = ("in", "nin", "any", "all")


def parse_conditions(conditions: Iterable[str]) -> dict[str, Any]:
    """Make filters of conditions, all of which must hold; ``=`` of one field again allows more.

    A condition is a field, a sign (``=``, ``!=``, ``>=``, ``<=``, ``>``, ``<``; ``~`` for a part
    of a text, or a pattern with ``%``; ``!~``) and a value; or a field, an operator of filters
    and a value, with spaces between: ``tags any tea,ice``, ``author exists true``. A value that
    reads as a number or a truth value also means that: ``year=2020`` finds the number and the
    text.

    Raises:
        ValueError: If one is no condition.

    Example:
        >>> parse_conditions(["author=Lu Yu", "author=Li Bai"])
        {'author': ['Lu Yu', 'Li Bai']}
        >>> parse_conditions(["file_size>=100", "title~tea"])
        {'and': [{'file_size': {'gte': 100}}, {'title': {'like': '%tea%'}}]}
    """
    equal: dict[str, list[Any]] = {}
    others: list[Filters] = []
    for condition in conditions:
        field, operator, text = _split_condition(condition)
        name = field if field.startswith(("document.id", "metadata.")) else metadata_key(field)
        if operator == "=":
            equal.setdefault(name, []).extend(_values(text))
            continue
        part = {name: {_SIGNS.get(operator, operator): _operand(operator, text)}}
        others.append({"not": part} if operator == "!~" else part)
    filters = all_of(*({name: values} for name, values in equal.items()), *others)
    parse_filters(filters)
    return dict(filters or {})


def _split_condition(condition: str) -> tuple[str, str, str]:
    """Return the field, the sign or operator, and the value of a condition."""
    words = condition.split(None, 2)
    if len(words) == 3 and words[1] in OPERATORS:
        return words[0], words[1], words[2].strip()
    sign = _SIGN.search(condition)
    field = condition[: sign.start()].strip() if sign else ""
    text = condition[sign.end() :].strip() if sign else ""
    if sign is None or not field or not text:
        raise ValueError(
            f"the filter {condition!r:.80} is no condition; write field=value, with one of =, !=, "
            f">=, <=, >, <, ~, !~, or 'field operator value' with one of {', '.join(OPERATORS)}"
        )
    return field, sign[0], text


def _operand(operator: str, text: str) -> Any:
    """Return what an operator compares with."""
    if operator in _LISTS:
        return [value for part in text.split(",") for value in _values(part.strip())]
    if operator == "!=":
        return _values(text)
    if operator in ("~", "!~"):
        return text if "%" in text else pattern_within(text)
    if operator in ("like", "like_case"):
        return text
    return _values(text)[0]


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
