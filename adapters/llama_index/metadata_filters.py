"""Translate LlamaIndex's metadata filters."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

from ...retrievers.filters import Filters, metadata_key, parse_filters, pattern_within
from ..frameworks import joined

_OPERATORS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}

_TEXT_MATCHES = {"text_match": "like_case", "text_match_insensitive": "like"}


def as_filters(filters: MetadataFilters | Filters | None) -> Filters | None:
    """Check nodekin filters, or translate LlamaIndex's filters.

    Operators mean the same as in ``SimpleVectorStore``. As everywhere in nodekin, a list meets a
    condition if any item does.

    Raises:
        TypeError: If the filters are neither.
        ValueError: If an operator does not support the value.

    Example:
        >>> recent = MetadataFilter(key="year", value=2000, operator=">")
        >>> as_filters(MetadataFilters(filters=[recent]))
        {'year': {'gt': 2000}}
    """
    if isinstance(filters, MetadataFilters):
        filters = _translated(filters)
    parse_filters(filters)
    return filters


def _translated(filters: MetadataFilters) -> Filters:
    parts = [
        _translated(part) if isinstance(part, MetadataFilters) else _condition(part)
        for part in filters.filters
    ]
    condition = filters.condition or FilterCondition.AND
    return joined(condition.value, parts) if parts else {}


def _condition(part: MetadataFilter) -> dict[str, Any]:
    operator, value, field = part.operator.value, part.value, metadata_key(part.key)
    if operator == "is_empty":
        return {field: {"empty": True}}
    if value is None:
        raise ValueError(
            f"the metadata filter {part.key!r} {operator} has no value; use the operator "
            "is_empty to find nodes without the field"
        )
    if operator in _TEXT_MATCHES:
        if not isinstance(value, str):
            raise ValueError(
                f"the value of the metadata filter {part.key!r} {operator} must be a text, "
                f"got {value!r:.80}"
            )
        return {field: {_TEXT_MATCHES[operator]: pattern_within(value)}}
    if operator == "==" and not isinstance(value, list):
        return {field: value}
    return {field: {_OPERATORS.get(operator, operator): value}}
