"""Convert the fields, operators and values in a model's reply into filter conditions."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from ...nodegraph.models.output.chinese_script import simplified
from ..conditions import BOUNDS, in_range, read_date
from .filter_field import Fields, FilterField

_OPERATORS = {
    **dict.fromkeys(("eq", "=", "==", "is", "equals", "equal", "equal_to", "等于"), "eq"),
    **dict.fromkeys(("ne", "!=", "<>", "not_equal", "not_equals", "is_not", "不等于"), "ne"),
    **dict.fromkeys(("in", "one_of", "any_of", "属于"), "in"),
    **dict.fromkeys(("nin", "not_in", "none_of", "不属于"), "nin"),
    **dict.fromkeys(("gt", ">", "greater_than", "after", "more_than", "大于", "晚于"), "gt"),
    **dict.fromkeys(("gte", ">=", "ge", "≥", "greater_than_or_equal", "since", "from"), "gte"),
    **dict.fromkeys(("greater_than_or_equal_to", "at_least", "大于等于", "不小于", "至少"), "gte"),
    **dict.fromkeys(("lt", "<", "less_than", "before", "小于", "早于"), "lt"),
    **dict.fromkeys(("lte", "<=", "le", "≤", "less_than_or_equal", "until", "to"), "lte"),
    **dict.fromkeys(("less_than_or_equal_to", "at_most", "小于等于", "不大于", "至多"), "lte"),
    **dict.fromkeys(("contains", "contain", "includes", "text_match", "包含"), "contains"),
    "any": "any",
    "all": "all",
    "like": "like",
    "exists": "exists",
    "empty": "empty",
    "between": "between",
}


_WRITTEN_DATE = re.compile(
    r"\s*(\d{4})\s?[-/.年]\s?(\d{1,2})(?:\s?[-/.月]\s?(\d{1,2})\s?日?|\s?月)?\s*"
)


_YEAR = re.compile(r"\s*(\d{4})\s?年?\s*")


_NUMBER = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d{1,30})?|[+-]?\d{1,40}(?:\.\d{1,30})?")


_TRUE = frozenset(("true", "yes", "是", "1"))


_FALSE = frozenset(("false", "no", "否", "0"))


def split_sign(text: str) -> tuple[str, str]:
    """Split a value such as ">= 2020" into the operator and the value."""
    found = re.fullmatch(r"\s*(>=|<=|!=|==|>|<|≥|≤)\s*(\S.*)", text, re.S)
    if found is None:
        return "eq", text
    return found[1], found[2]


def operator_of(name: object) -> str | None:
    """Return the filter operator for an operator name written by a model.

    If the name is unknown, None is returned.
    """
    key = simplified(str(name)).strip().removeprefix("$").casefold()
    return _OPERATORS.get(re.sub(r"[\s-]+", "_", key))


def field_in(name: str, fields: Fields) -> str | None:
    """Find the field with the given name, regardless of case and word separators.

    If no field or more than one field matches, None is returned.
    """
    if name in fields:
        return name
    key = bare_key(name.removeprefix("metadata."))
    same = [field for field in fields if bare_key(field) == key]
    if len(same) != 1:
        return None
    return same[0]


def bare_key(text: str) -> str:
    """Return a normalized key that ignores case, repeated spaces, underscores and hyphens."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\s_-]+", " ", folded).strip()


def requirement_of(field: FilterField, operator: str, operand: Any) -> Any:
    """Convert an operator and a value into the requirement of a filter.

    If no value of the field can meet the requirement, None is returned.
    """
    if operator in ("exists", "empty"):
        truth = _as_bool(operand)
        if truth is None:
            return None
        return {operator: truth}
    if operator == "between":
        if not isinstance(operand, list) or len(operand) != 2:
            return None
        low = _value(field, operand[0])
        high = _value(field, operand[1])
        if low is None or high is None:
            return None
        return {"gte": low, "lte": high}
    is_in_text = operator == "contains" and field.type == "text"
    if operator == "like" or is_in_text:
        if field.type not in ("any", "text"):
            return None
        if not isinstance(operand, str) or not operand.strip():
            return None
        return {operator: operand}
    if operator in BOUNDS:
        # The bound of a text field does not have to be one of its values.
        any_value = FilterField()
        bounded = any_value if field.type == "text" else field
        bound = _value(bounded, operand)
        if bound is None or isinstance(bound, bool) or not _leaves_values(field, operator, bound):
            return None
        return {operator: bound}
    if isinstance(operand, list):
        return _several(field, operator, operand)
    if operator in ("in", "nin", "any", "all"):
        return _several(field, operator, [operand])
    value = _value(field, operand)
    if value is None:
        return None
    if operator != "eq":
        return {operator: value}
    if not _is_within(field, value):
        return None
    return _equal(field, value)


def _equal(field: FilterField, value: Any) -> Any:
    """Return the requirement for equality. A month or a year becomes a range of days."""
    if field.type != "date":
        return value
    when = read_date(value)
    if when is None or len(when.calendar) == 3:
        return value
    return {"gte": value, "lte": value}


def _is_within(field: FilterField, value: Any) -> bool:
    """Return whether a value lies in the range of a field.

    Unknown limits do not exclude a value.
    """
    return _leaves_values(field, "gte", value) and _leaves_values(field, "lte", value)


def _leaves_values(field: FilterField, operator: str, bound: Any) -> bool:
    """Return whether any value in the range of a field can satisfy a bound."""
    end = field.minimum if operator in ("lt", "lte") else field.maximum
    if end is None or field.type not in ("number", "date"):
        return True
    return in_range([(operator, bound)])(end)


def _several(field: FilterField, operator: str, operands: Sequence[Any]) -> Any:
    """Return the requirement for a list of values.

    Values that the field cannot have are omitted.
    """
    values = [value for operand in operands if (value := _value(field, operand)) is not None]
    if operator in ("eq", "in", "any", "all"):
        values = [value for value in values if _is_within(field, value)]
    if not values:
        return None
    if operator == "all" and len(values) < len(operands):
        return None
    if operator in ("eq", "in"):
        return values
    if operator == "ne":
        return {"nin": values}
    return {operator: values}


def _value(field: FilterField, operand: Any) -> Any:
    """Convert a value to the type of a field. If the field cannot have the value, return None."""
    if isinstance(operand, Mapping | list) or operand is None:
        return None
    if isinstance(operand, float) and not math.isfinite(operand):
        return None
    if field.type == "number":
        return _as_number(operand)
    if field.type == "date":
        return _as_date(operand)
    if field.type == "bool":
        return _as_bool(operand)
    if field.type == "any":
        return operand
    if isinstance(operand, bool):
        return None
    return _as_text(field, str(operand))


def _as_number(operand: Any) -> int | float | None:
    if isinstance(operand, bool):
        return None
    if isinstance(operand, int | float):
        return operand
    text = unicodedata.normalize("NFKC", str(operand)).strip().removesuffix("年")
    if not _NUMBER.fullmatch(text):
        return None
    digits = text.replace(",", "")
    if "." in digits:
        return float(digits)
    return int(digits)


def _as_date(operand: Any) -> str | None:
    text = str(operand)
    found = _WRITTEN_DATE.fullmatch(text)
    if found is not None:
        parts = [found[1], *(part.zfill(2) for part in found.groups()[1:] if part)]
        text = "-".join(parts)
    year = _YEAR.fullmatch(text)
    if year is not None:
        text = year[1]
    if read_date(text) is None:
        return None
    return text.strip()


def _as_bool(operand: Any) -> bool | None:
    if isinstance(operand, bool):
        return operand
    word = str(operand).strip().casefold()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    return None


def _as_text(field: FilterField, text: str) -> str | None:
    """Return the value of a text field that matches a text written by a model.

    If the field cannot have this value, None is returned.
    """
    if not text.strip():
        return None
    if text in field.values:
        return text
    key = bare_key(text.removesuffix("…"))
    for value in field.values:
        shown = str(value)
        is_start = text.endswith("…") and shown.startswith(text[:-1])
        if is_start or bare_key(shown) == key:
            return shown
    if field.is_complete and field.values:
        return None
    return text
