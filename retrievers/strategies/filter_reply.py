"""Parse a model's reply into a search query and conditions on metadata fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...nodegraph.models.output.answer_text import is_no_answer, read_json
from ...nodegraph.models.output.json_values import find_json, objects_in, value_of
from ...nodegraph.models.output.lines import label_pattern
from ...nodegraph.models.output.questions import MAX_QUERY_LENGTH, is_query
from ...nodegraph.models.output.tags import leftover_tag
from .field_values import field_in
from .filter_field import Fields

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

FIELD_KEYS = ("field", "key", "attribute", "name", "column", "字段")

OPERATOR_KEYS = ("operator", "op", "comparator", "comparison", "运算符")

_QUERY_KEYS = ("query", "search_query", "question", "text", "search", "查询", "检索", "问题")


_ARGUMENT_KEYS = ("arguments", "parameters", "input", "action_input")


_QUERY_LABEL = label_pattern(r"(?:search\ )?query|text|查询|检索")


_FILTER_LABEL = label_pattern(r"(?:metadata\ )?filters?|conditions?|(?:过滤|筛选)?条件|过滤|筛选")


_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"", re.S)


# The functions that parse tags ignore a single tag within another tag, so the operator would be
# lost.
_OPERATOR_TAG = re.compile(r"<\$?(?:gte?|lte?|ne|nin|in|not|or|and)>", re.I)


# The text from an object to its correction.
_CORRECTED = re.compile(
    r"\}[^{}]{0,500}(?:\b(?:corrected|correction|revised|wait|actually)\b|更正|修正|应该是)[^{}]{0,500}(?=\{)",
    re.I,
)


def _is_between(text: str, found: re.Match[str]) -> bool:
    """Return whether a match that starts with a brace is between two objects, not inside one."""
    before = text[: found.start() + 1]
    return before.count("{") == before.count("}")


class Reply(NamedTuple):
    """A parsed reply of a model, with a search query and filter conditions.

    Attributes:
        query: The text to search for. It is None if the reply contains no usable text, and empty if
            no text has to be searched.
        conditions: The conditions as the model wrote them, or None if the reply contains no
            conditions.
    """

    query: str | None
    conditions: Any


def parse_reply(answer: str, question: str, fields: Fields) -> Reply:
    """Parse a reply that is written as JSON, as tags or as labeled lines.

    Args:
        answer: The reply of the model.
        question: The question of the user.
        fields: The metadata fields that conditions may refer to.

    Raises:
        ValueError: If the reply contains neither conditions nor a query in any of these formats.

    Example:
        >>> reply = 'Sure! {"query": "rivers", "filters": {"year": {"gte": 2020}}}'
        >>> from nodekin.retrievers import FilterField
        >>> parse_reply(reply, "rivers since 2020", {"year": FilterField("number")})
        Reply(query='rivers', conditions={'year': {'gte': 2020}})
    """
    corrected = [found for found in _CORRECTED.finditer(answer) if _is_between(answer, found)]
    if corrected:
        answer = answer[corrected[-1].end() :]
    text, value = read_json(answer, (), question)
    if not text:
        return Reply(None, None)  # an answer such as NONE
    if _OPERATOR_TAG.search(text):
        raise ValueError("write the filters as JSON, without tags")
    if is_cut(text):
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
        is_condition = value_of(record, OPERATOR_KEYS) is not None
        if is_condition or (query is None and conditions is None):
            continue
        if conditions is None:  # the conditions may be keys of the same object
            conditions = {key: item for key, item in record.items() if is_field(key, fields)}
        return Reply(_usable_query(query, question), conditions)
    if records and _are_conditions(value, fields):
        return Reply(None, value)
    raise ValueError('the answer must be JSON with "query" and "filters"')


def _records(value: Any) -> list[Mapping[Any, Any]]:
    """Return all objects in a JSON value, including objects in the arguments of a tool call."""
    records = list(objects_in(value))
    for record in list(records):
        arguments = value_of(record, _ARGUMENT_KEYS)
        if isinstance(arguments, str):
            inner = find_json(arguments.strip())
            if isinstance(inner, list | Mapping):
                records += objects_in(inner)
    return records


def is_field(key: object, fields: Fields) -> bool:
    """Return whether a key of a JSON object is the name of a field."""
    return isinstance(key, str) and field_in(key, fields) is not None


def is_cut(text: str) -> bool:
    """Return whether a JSON text is truncated.

    JSON that lacks only closing brackets at its end is not treated as truncated.
    """
    bare = _STRING.sub("", text)
    opened = bare.count("{") + bare.count("[")
    closed = bare.count("}") + bare.count("]")
    return opened > closed and not text.rstrip(" \n`").endswith(("}", "]"))


def _json_within(text: str) -> Any:
    """Return the first JSON object within a text, or None if the text contains no object."""
    start = text.find("{")
    if start < 0:
        return None
    return find_json(text[start:])


def _labeled_parts(text: str) -> Reply | None:
    """Parse lines such as "Query: …" and "Filter: {…}".

    If the text has no line with a filter, None is returned.
    """
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
    """Return the search query of a reply in a normalized form.

    The result is empty if the model left the query empty, and None if the query is not usable.
    """
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
    """Return whether a JSON value without a query contains conditions on the given fields."""
    for record in objects_in(value):
        names = [*record, value_of(record, FIELD_KEYS)]
        if any(is_field(name, fields) for name in names):
            return True
    return False
