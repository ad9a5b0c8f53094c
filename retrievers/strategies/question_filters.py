"""Convert the conditions in a model's reply into filters on the metadata fields of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...nodegraph.models.output.answer_text import is_no_answer
from ...nodegraph.models.output.json_values import find_json, value_of
from ..conditions import BOUNDS
from ..filters import DOCUMENT_ID, Filters, all_of, metadata_key, parse_filters
from .field_values import field_in, operator_of, requirement_of, split_sign
from .filter_expressions import is_no_filter, parse_expression
from .filter_field import MAX_VALUE_LENGTH, Fields
from .filter_reply import FIELD_KEYS, OPERATOR_KEYS, is_field

MAX_CONDITIONS = 50
"""The maximum number of conditions that are read from one reply."""

_MAX_LEVELS = 8

_MAX_NOTES = 10


_VALUE_KEYS = ("value", "values", "operand", "值")


_PART_KEYS = ("arguments", "filters", "conditions", "operands", "parts")


_MAX_TEXT = 1_000  # the maximum length of conditions written as text

_AND = re.compile(r"\s(?:and|且|并且)\s|\s?&&\s?", re.I)

_COMPARISON = re.compile(
    r"\s*[\"'`]?([\w. -]{1,60}?)[\"'`]?\s?(>=|<=|!=|==|=|>|<|≥|≤)\s?"
    r"[\"'`]?([^\"'`]{1,200}?)[\"'`]?\s*"
)


# Conditions


class UsableFilters(NamedTuple):
    """The conditions of a reply that can be used as filters.

    Attributes:
        filters: The usable conditions in the filter language, or None if no condition is usable.
        dropped: Descriptions of the conditions that were dropped.
    """

    filters: Filters | None
    dropped: Sequence[str]


def usable_filters(conditions: Any, fields: Fields) -> UsableFilters:
    """Return the conditions of a reply that refer to existing fields and possible values.

    All other conditions are dropped. If a condition within an "or" or a "not" is dropped, the whole
    combination is dropped, because the remaining conditions would exclude relevant results.

    Args:
        conditions: The conditions, in the filter language or in the formats of other libraries.
        fields: The metadata fields of the documents, by name.

    Example:
        >>> from nodekin.retrievers import FilterField
        >>> fields = {"year": FilterField("number")}
        >>> found = usable_filters({"year": ">= 1990", "writer": "A"}, fields)
        >>> found.filters, found.dropped
        ({'year': {'gte': 1990}}, ("'writer': unknown field",))
    """
    reader = _Conditions(fields)
    filters = reader.read(conditions, 1)
    try:
        parse_filters(filters)
    except (ValueError, TypeError) as error:
        reader.dropped.append(f"all conditions: {error}")
        filters = None
    return UsableFilters(filters, tuple(dict.fromkeys(reader.dropped))[:_MAX_NOTES])


class _Conditions:
    """A converter of conditions, which records the conditions that it drops.

    Args:
        fields: The metadata fields of the documents, by name.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.dropped: list[str] = []
        self._count = 0

    def read(self, value: Any, level: int) -> Filters | None:
        """Return the usable conditions in a JSON value, or None if no condition is usable."""
        if isinstance(value, str):
            value = self._from_text(value)
        if value is None or value == {} or value == []:
            return None
        if level > _MAX_LEVELS or self._count > MAX_CONDITIONS:
            self._drop("further conditions", "too many")
            return None
        if isinstance(value, list):
            return all_of(*(self.read(item, level + 1) for item in value))
        if not isinstance(value, Mapping):
            self._drop(repr(value)[:MAX_VALUE_LENGTH], "not a condition")
            return None
        operator = value_of(value, OPERATOR_KEYS)
        name = value_of(value, FIELD_KEYS)
        operand = value_of(value, _VALUE_KEYS)
        is_triple = operator is not None or operand is not None
        if is_triple and isinstance(name, str):
            return self._condition(name, operator or "eq", operand)
        parts = value_of(value, _PART_KEYS)
        names_field = any(is_field(key, self.fields) for key in value)
        if isinstance(parts, list) and not names_field:
            join = operator or value_of(value, ("condition", "join", "logic")) or "and"
            return self._joined(str(join), parts, level)
        return self._entries(value, level)

    def _from_text(self, text: str) -> Any:
        if is_no_answer(text.strip()) or is_no_filter(text) or not text.strip():
            return None
        expression = parse_expression(text)
        if expression is not None:
            return expression
        try:
            found = find_json(text.strip())
        except ValueError:
            found = None
        if found is None:
            found = _comparisons(text)
        if found is None:
            self._drop(repr(text[:MAX_VALUE_LENGTH]), "not a condition")
        return found

    def _entries(self, record: Mapping[Any, Any], level: int) -> Filters | None:
        """Convert a mapping from fields to requirements into conditions."""
        conditions: list[Filters | None] = []
        for key, requirement in record.items():
            join = str(key).removeprefix("$").casefold()
            if join in ("and", "or", "not") and not self.is_field(str(key), requirement):
                conditions.append(self._joined(join, requirement, level))
            elif isinstance(requirement, Mapping) and requirement:
                named = value_of(requirement, OPERATOR_KEYS)
                if named is not None and len(requirement) == 2:  # {"operator": …, "value": …}
                    requirement = {named: value_of(requirement, _VALUE_KEYS)}
                for operator, operand in requirement.items():
                    conditions.append(self._condition(str(key), operator, operand))
            else:
                conditions.append(self._condition(str(key), "eq", requirement))
        return _merged(conditions)

    def is_field(self, key: str, requirement: Any) -> bool:
        """Return whether the key "and", "or" or "not" is used as the name of a field."""
        is_list = isinstance(requirement, list)
        has_conditions = is_list and all(isinstance(item, Mapping) for item in requirement)
        return field_in(key, self.fields) is not None and not has_conditions

    def _joined(self, join: str, value: Any, level: int) -> Filters | None:
        """Convert conditions that are combined with "and", "or" or "not".

        If a part of an "or" or a "not" is dropped, the whole combination is dropped.
        """
        join = join.removeprefix("$").casefold()
        parts = value if isinstance(value, list) else [value]
        before = len(self.dropped)
        read = [self.read(part, level + 1) for part in parts]
        if join == "and":
            return all_of(*read)
        if join not in ("or", "not"):
            self._drop(repr(join)[:MAX_VALUE_LENGTH], "unknown join")
            return None
        usable = [part for part in read if part is not None]
        is_complete = len(self.dropped) == before and len(usable) == len(parts)
        if not is_complete or not usable:
            if usable:
                self._drop(f"{join!r}", "one of its conditions was dropped")
            return None
        if join == "or":
            return {"or": usable}
        return {"not": all_of(*usable)}

    def _condition(self, key: str, operator: object, operand: Any) -> Filters | None:
        """Return a condition on one field, or None if the condition was dropped."""
        self._count += 1
        name = field_in(key, self.fields)
        if name is None:
            self._drop(repr(key[:MAX_VALUE_LENGTH]), "unknown field")
            return None
        if isinstance(operand, str) and operator == "eq":
            operator, operand = split_sign(operand)
        known = operator_of(operator)
        if known is None:
            self._drop(f"{name!r}", f"unknown operator {str(operator)[:MAX_VALUE_LENGTH]!r}")
            return None
        if operand is None and known in ("gt", "gte", "lt", "lte"):
            return None  # A range without this limit.
        requirement = requirement_of(self.fields[name], known, operand)
        if requirement is None:
            shown = repr(operand)[:MAX_VALUE_LENGTH]
            self._drop(f"{name!r}", f"impossible value {shown}")
            return None
        if name == DOCUMENT_ID:
            return {name: requirement}
        return {metadata_key(name): requirement}

    def _drop(self, what: str, why: str) -> None:
        self.dropped.append(f"{what}: {why}")


def _comparisons(text: str) -> list[dict[str, str]] | None:
    """Parse a text such as "year >= 2020 and kind = 'a'" into conditions.

    If the text has a different form, None is returned.
    """
    conditions = []
    for part in _AND.split(text[:_MAX_TEXT]):
        found = _COMPARISON.fullmatch(part)
        if found is None:
            return None
        conditions.append({"field": found[1], "operator": found[2], "value": found[3]})
    return conditions


def _merged(conditions: Sequence[Filters | None]) -> Filters | None:
    """Combine conditions with "and". Conditions on different fields are merged into one mapping."""
    usable = [condition for condition in conditions if condition]
    merged: dict[str, Any] = {}
    for condition in usable:
        for name, requirement in condition.items():
            if name not in merged:
                merged[name] = requirement
                continue
            bounds = (merged[name], requirement)
            if not all(isinstance(item, Mapping) and item.keys() <= {*BOUNDS} for item in bounds):
                return all_of(*usable)
            if merged[name].keys() & requirement.keys():
                return all_of(*usable)
            merged[name] = {**merged[name], **requirement}
    return merged or None


# Values
