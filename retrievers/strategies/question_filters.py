"""Read the query and the conditions in a model's reply, and check them by the known fields."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...nodegraph.models.output.answer_text import is_no_answer, read_json
from ...nodegraph.models.output.json_values import find_json, objects_in, value_of
from ...nodegraph.models.output.lines import label_pattern
from ...nodegraph.models.output.questions import MAX_QUERY_LENGTH, is_query
from ...nodegraph.models.output.tags import leftover_tag
from ..conditions import BOUNDS, in_range, read_date
from ..filters import DOCUMENT_ID, Filters, all_of, metadata_key, parse_filters
from .metadata_fields import MAX_VALUE_LENGTH, Fields, FilterField

MAX_CONDITIONS = 50
"""The maximum number of conditions that are read from a reply."""

_MAX_LEVELS = 8

_MAX_NOTES = 10

_QUERY_KEYS = ("query", "search_query", "question", "text", "search", "查询", "检索", "问题")

_FILTER_KEYS = (
    "filters",
    "filter",
    "conditions",
    "condition",
    "where",
    "metadata_filters",
    "metadata_filter",
    "条件",
    "过滤条件",
    "过滤",
    "筛选",
    "筛选条件",
)

_FIELD_KEYS = ("field", "key", "attribute", "name", "column", "字段")

_OPERATOR_KEYS = ("operator", "op", "comparator", "comparison", "运算符")

_VALUE_KEYS = ("value", "values", "operand", "值")

_ARGUMENT_KEYS = ("arguments", "parameters", "input", "action_input")

_PART_KEYS = ("arguments", "filters", "conditions", "operands", "parts")

_QUERY_LABEL = label_pattern(r"(?:search\ )?query|text|查询|检索")

_FILTER_LABEL = label_pattern(r"(?:metadata\ )?filters?|conditions?|(?:过滤|筛选)?条件|过滤|筛选")

_OPERATORS = {
    **dict.fromkeys(("eq", "=", "==", "is", "equals", "equal"), "eq"),
    **dict.fromkeys(("ne", "!=", "<>", "not_equal", "not_equals", "is_not"), "ne"),
    **dict.fromkeys(("in", "one_of", "any_of"), "in"),
    **dict.fromkeys(("nin", "not_in", "none_of"), "nin"),
    **dict.fromkeys(("gt", ">", "greater_than", "after", "more_than"), "gt"),
    **dict.fromkeys(("gte", ">=", "ge", "≥", "greater_than_or_equal", "since", "from"), "gte"),
    **dict.fromkeys(("lt", "<", "less_than", "before"), "lt"),
    **dict.fromkeys(("lte", "<=", "le", "≤", "less_than_or_equal", "until", "to"), "lte"),
    **dict.fromkeys(("contains", "contain", "includes", "text_match"), "contains"),
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

_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"", re.S)

_MAX_TEXT = 1_000  # characters of conditions in words

_AND = re.compile(r"\s(?:and|且|并且)\s|\s?&&\s?", re.I)

_COMPARISON = re.compile(
    r"\s*[\"'`]?([\w. -]{1,60}?)[\"'`]?\s?(>=|<=|!=|==|=|>|<|≥|≤)\s?"
    r"[\"'`]?([^\"'`]{1,200}?)[\"'`]?\s*"
)

# The readers of tags leave out a single tag within a tag, and so the operator.
_OPERATOR_TAG = re.compile(r"<\$?(?:gte?|lte?|ne|nin|in|not|or|and)>", re.I)

_TRUE = frozenset(("true", "yes", "是", "1"))

_FALSE = frozenset(("false", "no", "否", "0"))


class Reply(NamedTuple):
    """A model's reply.

    Attributes:
        query: The text to search for. None: the reply has no usable text. Empty: none is needed.
        conditions: The conditions, as the model wrote them. None: no conditions.
    """

    query: str | None
    conditions: Any


def parse_reply(answer: str, question: str, fields: Fields) -> Reply:
    """Parse a reply in JSON, tags, or lines with labels.

    Args:
        answer: The reply.
        question: The user's question.
        fields: The known fields.

    Raises:
        ValueError: If the reply has neither conditions nor a query in one of these forms.

    Example:
        >>> reply = 'Sure! {"query": "rivers", "filters": {"year": {"gte": 2020}}}'
        >>> parse_reply(reply, "rivers since 2020", {"year": FilterField("number")})
        Reply(query='rivers', conditions={'year': {'gte': 2020}})
    """
    text, value = read_json(answer, (), question)
    if not text:
        return Reply(None, None)  # an answer such as NONE
    if _OPERATOR_TAG.search(text):
        raise ValueError("write the filters as JSON, without tags")
    if _is_cut(text):
        raise ValueError("the JSON is cut off")
    labeled = _labeled_parts(text)
    if labeled is not None:
        return Reply(_usable_query(labeled.query, question), labeled.conditions)
    if value is None:
        value = _json_within(text)
    records: list[Mapping[Any, Any]] = []
    if isinstance(value, list | Mapping):
        records = _records(value)
    for record in records:
        query = value_of(record, _QUERY_KEYS)
        conditions = value_of(record, _FILTER_KEYS)
        is_condition = value_of(record, _OPERATOR_KEYS) is not None
        if is_condition or (query is None and conditions is None):
            continue
        if conditions is None:  # the conditions may stand beside the query
            conditions = {key: item for key, item in record.items() if _is_field(key, fields)}
        return Reply(_usable_query(query, question), conditions)
    if records and _are_conditions(value, fields):
        return Reply(None, value)
    raise ValueError('the answer must be JSON with "query" and "filters"')


def _records(value: Any) -> list[Mapping[Any, Any]]:
    """Return the objects in a JSON value, also those in the arguments of a call."""
    records = list(objects_in(value))
    for record in list(records):
        arguments = value_of(record, _ARGUMENT_KEYS)
        if isinstance(arguments, str):
            inner = find_json(arguments.strip())
            if isinstance(inner, list | Mapping):
                records += objects_in(inner)
    return records


def _is_field(key: object, fields: Fields) -> bool:
    return isinstance(key, str) and _name_in(key, fields) is not None


def _is_cut(text: str) -> bool:
    """Return whether JSON ends within a value. Only closing brackets may be missing."""
    bare = _STRING.sub("", text)
    opened = bare.count("{") + bare.count("[")
    closed = bare.count("}") + bare.count("]")
    return opened > closed and not text.rstrip(" \n`").endswith(("}", "]"))


def _json_within(text: str) -> Any:
    """Return the JSON object in the middle of a line. None: no object."""
    start = text.find("{")
    if start < 0:
        return None
    return find_json(text[start:])


def _labeled_parts(text: str) -> Reply | None:
    """Return the parts of lines such as "Query: …" and "Filter: {…}". None: other forms."""
    query = _QUERY_LABEL.search(text)
    conditions = _FILTER_LABEL.search(text)
    if conditions is None:
        return None
    end = len(text)
    if query is not None and query.start() > conditions.start():
        end = query.start()
    value = text[conditions.end() : end].strip(" \n`*")
    first_line = value.split("\n")[0].strip()
    if not value.startswith(("{", "[")) and not is_no_answer(first_line):
        return None
    if query is None:
        return Reply(None, value)
    line = text[query.end() :].split("\n")[0]
    return Reply(line.strip(), value)


def _usable_query(query: object, question: str) -> str | None:
    """Return a query of the model. Empty: the model found none. None: it cannot be searched."""
    if isinstance(query, str) and not query.strip(" \"'.…-"):
        return ""
    if not isinstance(query, str):
        return None
    text = " ".join(query.split()).strip("\"'“”")
    if len(text) > MAX_QUERY_LENGTH or not is_query(text, question):
        return None
    if leftover_tag(text, question) is not None:
        return None
    return text


def _are_conditions(value: Any, fields: Fields) -> bool:
    """Return whether a value without a query may be conditions on known fields."""
    for record in objects_in(value):
        names = [*record, value_of(record, _FIELD_KEYS)]
        if any(_is_field(name, fields) for name in names):
            return True
    return False


# Conditions


class UsableFilters(NamedTuple):
    """The conditions of a reply that can be searched.

    Attributes:
        filters: The conditions in the language of filters. None: no condition is left.
        dropped: Descriptions of the conditions that were dropped.
    """

    filters: Filters | None
    dropped: Sequence[str]


def usable_filters(conditions: Any, fields: Fields) -> UsableFilters:
    """Return the conditions of a reply on known fields with possible values.

    Other conditions are dropped. A dropped condition in an "or" or a "not" drops the whole
    combination, since the rest would remove requested results.

    Args:
        conditions: The conditions, in the language of filters or in the forms of other libraries.
        fields: The known fields.

    Example:
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
    """A reader of conditions. Its attribute ``dropped`` describes the dropped conditions.

    Args:
        fields: The known fields.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.dropped: list[str] = []
        self._count = 0

    def read(self, value: Any, level: int) -> Filters | None:
        """Return the usable conditions of a value. None: no condition."""
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
        operator = value_of(value, _OPERATOR_KEYS)
        name = value_of(value, _FIELD_KEYS)
        operand = value_of(value, _VALUE_KEYS)
        is_triple = operator is not None or operand is not None
        if is_triple and isinstance(name, str):
            return self._condition(name, operator or "eq", operand)
        parts = value_of(value, _PART_KEYS)
        names_field = any(_is_field(key, self.fields) for key in value)
        if isinstance(parts, list) and not names_field:
            join = operator or value_of(value, ("condition", "join", "logic")) or "and"
            return self._joined(str(join), parts, level)
        return self._entries(value, level)

    def _from_text(self, text: str) -> Any:
        if is_no_answer(text.strip()) or not text.strip():
            return None
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
        """Return the conditions of a mapping from fields to requirements."""
        conditions: list[Filters | None] = []
        for key, requirement in record.items():
            join = str(key).removeprefix("$").casefold()
            if join in ("and", "or", "not") and not self._is_field(str(key), requirement):
                conditions.append(self._joined(join, requirement, level))
            elif isinstance(requirement, Mapping) and requirement:
                named = value_of(requirement, _OPERATOR_KEYS)
                if named is not None and len(requirement) == 2:  # {"operator": …, "value": …}
                    requirement = {named: value_of(requirement, _VALUE_KEYS)}
                for operator, operand in requirement.items():
                    conditions.append(self._condition(str(key), operator, operand))
            else:
                conditions.append(self._condition(str(key), "eq", requirement))
        return _merged(conditions)

    def _is_field(self, key: str, requirement: Any) -> bool:
        """Return whether "and", "or" or "not" is the name of a field here."""
        is_list = isinstance(requirement, list)
        has_conditions = is_list and all(isinstance(item, Mapping) for item in requirement)
        return _name_in(key, self.fields) is not None and not has_conditions

    def _joined(self, join: str, value: Any, level: int) -> Filters | None:
        """Return joined conditions. An "or" or "not" with a dropped condition is dropped."""
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
        """Return a condition on a field. None: it was dropped."""
        self._count += 1
        name = _name_in(key, self.fields)
        if name is None:
            self._drop(repr(key[:MAX_VALUE_LENGTH]), "unknown field")
            return None
        if isinstance(operand, str) and operator == "eq":
            operator, operand = _split_sign(operand)
        known = _operator(operator)
        if known is None:
            self._drop(f"{name!r}", f"unknown operator {str(operator)[:MAX_VALUE_LENGTH]!r}")
            return None
        requirement = _requirement(self.fields[name], known, operand)
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
    """Return the conditions of a text such as "year >= 2020 and kind = 'a'". None: other texts."""
    conditions = []
    for part in _AND.split(text[:_MAX_TEXT]):
        found = _COMPARISON.fullmatch(part)
        if found is None:
            return None
        conditions.append({"field": found[1], "operator": found[2], "value": found[3]})
    return conditions


def _merged(conditions: Sequence[Filters | None]) -> Filters | None:
    """Join conditions by "and". Conditions on different fields become one mapping."""
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


def _split_sign(text: str) -> tuple[str, str]:
    """Split a value such as ">= 2020" into the operator and the value."""
    found = re.fullmatch(r"\s*(>=|<=|!=|==|>|<|≥|≤)\s*(\S.*)", text, re.S)
    if found is None:
        return "eq", text
    return found[1], found[2]


def _operator(name: object) -> str | None:
    key = str(name).strip().removeprefix("$").casefold()
    return _OPERATORS.get(re.sub(r"[\s-]+", "_", key))


def _name_in(name: str, fields: Fields) -> str | None:
    """Return the field with a name, in any case and with any separator of words. None: no field."""
    if name in fields:
        return name
    key = _key(name.removeprefix("metadata."))
    same = [field for field in fields if _key(field) == key]
    if len(same) != 1:
        return None
    return same[0]


def _key(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\s_-]+", " ", folded).strip()


# Values


def _requirement(field: FilterField, operator: str, operand: Any) -> Any:
    """Return the requirement of a filter. None: no value can meet it."""
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
    if operator == "like" or (operator == "contains" and field.type == "text"):
        if field.type not in ("any", "text") or not isinstance(operand, str) or not operand.strip():
            return None
        return {operator: operand}
    if operator in BOUNDS:
        # The bound of a text field need not be one of its values.
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
    """Return the requirement of an equal value. A month and a year are ranges of days."""
    if field.type != "date":
        return value
    when = read_date(value)
    if when is None or len(when.calendar) == 3:
        return value
    return {"gte": value, "lte": value}


def _is_within(field: FilterField, value: Any) -> bool:
    """Return whether a value is in the range of a field, if the range is known."""
    return _leaves_values(field, "gte", value) and _leaves_values(field, "lte", value)


def _leaves_values(field: FilterField, operator: str, bound: Any) -> bool:
    """Return whether the range of a field has values that meet a bound."""
    end = field.minimum if operator in ("lt", "lte") else field.maximum
    if end is None or field.type not in ("number", "date"):
        return True
    return in_range([(operator, bound)])(end)


def _several(field: FilterField, operator: str, operands: Sequence[Any]) -> Any:
    """Return the requirement of several values. Impossible values are left out."""
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
    """Return a possible value of a field. None: the field cannot have it."""
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
    """Return the value of the field that a text means. None: the field has other values only."""
    if not text.strip():
        return None
    if text in field.values:
        return text
    key = _key(text.removesuffix("…"))
    for value in field.values:
        shown = str(value)
        is_start = text.endswith("…") and shown.startswith(text[:-1])
        if is_start or _key(shown) == key:
            return shown
    if field.is_complete and field.values:
        return None
    return text
