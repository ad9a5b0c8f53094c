"""Parse a model's reply into a query and conditions on fields."""

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


# The tag readers would leave out a single tag within a tag, and thus the operator.
_OPERATOR_TAG = re.compile(r"<\$?(?:gte?|lte?|ne|nin|in|not|or|and)>", re.I)


class Reply(NamedTuple):
    """A model's reply.

    Attributes:
        query: The text to search for. If None, the reply has no usable text. An empty text means
            that no search text is needed.
        conditions: The conditions, as the model wrote them. None means no conditions.
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
        ValueError: If the reply contains neither conditions nor a query in any of these forms.

    Example:
        >>> reply = 'Sure! {"query": "rivers", "filters": {"year": {"gte": 2020}}}'
        >>> from nodekin.retrievers import FilterField
        >>> parse_reply(reply, "rivers since 2020", {"year": FilterField("number")})
        Reply(query='rivers', conditions={'year': {'gte': 2020}})
    """
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
        if conditions is None:  # the conditions may be next to the query
            conditions = {key: item for key, item in record.items() if is_field(key, fields)}
        return Reply(_usable_query(query, question), conditions)
    if records and _are_conditions(value, fields):
        return Reply(None, value)
    raise ValueError('the answer must be JSON with "query" and "filters"')


def _records(value: Any) -> list[Mapping[Any, Any]]:
    """Return the objects in a JSON value, including those in a call's arguments."""
    records = list(objects_in(value))
    for record in list(records):
        arguments = value_of(record, _ARGUMENT_KEYS)
        if isinstance(arguments, str):
            inner = find_json(arguments.strip())
            if isinstance(inner, list | Mapping):
                records += objects_in(inner)
    return records


def is_field(key: object, fields: Fields) -> bool:
    """Return whether a key is the name of a field."""
    return isinstance(key, str) and field_in(key, fields) is not None


def is_cut(text: str) -> bool:
    """Return whether JSON ends within a value. Only closing brackets may be missing."""
    bare = _STRING.sub("", text)
    opened = bare.count("{") + bare.count("[")
    closed = bare.count("}") + bare.count("]")
    return opened > closed and not text.rstrip(" \n`").endswith(("}", "]"))


def _json_within(text: str) -> Any:
    """Return the JSON object within a line, or None if there is no object."""
    start = text.find("{")
    if start < 0:
        return None
    return find_json(text[start:])


def _labeled_parts(text: str) -> Reply | None:
    """Return the parts of lines such as "Query: …" and "Filter: {…}". None without such lines."""
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
    """Return the model's query.

    The result is empty if the model found no query, and None if the query cannot be searched.
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
    """Return whether a value without a query may be conditions on known fields."""
    for record in objects_in(value):
        names = [*record, value_of(record, FIELD_KEYS)]
        if any(is_field(name, fields) for name in names):
            return True
    return False
