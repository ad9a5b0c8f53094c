"""Translate LlamaIndex's metadata filters to nodekin's."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from ...retrievers.filters import Filters, metadata_key, parse_filters
from ..tool_filters import pattern_within

_OPERATORS = {
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.ANY: "any",
    FilterOperator.ALL: "all",
    FilterOperator.CONTAINS: "contains",
    FilterOperator.TEXT_MATCH: "like_case",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "like",
}

_TEXT_MATCHES = (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE)


def as_filters(filters: MetadataFilters | Filters | None) -> Filters | None:
    """Check nodekin filters, or translate LlamaIndex's: all operators and conditions, nested.

    They mean what they do in LlamaIndex's ``SimpleVectorStore``: a text match is a part of the
    text, ``!=`` and ``nin`` hold where there is no value, and the condition NOT where none of the
    filters holds. As everywhere in nodekin, a field that holds a list meets a condition with any
    of its items.

    Raises:
        TypeError: If they are neither.
        ValueError: If an operator can't compare with that value.

    Example:
        >>> recent = MetadataFilter(key="year", value=2000, operator=">")
        >>> as_filters(MetadataFilters(filters=[recent]))
        {'year': {'gt': 2000}}
    """
    if isinstance(filters, MetadataFilters):
        filters = _joined(filters)
    parse_filters(filters)
    return filters


def _joined(filters: MetadataFilters) -> dict[str, Any]:
    parts = [
        _joined(part) if isinstance(part, MetadataFilters) else _condition(part)
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.NOT and parts:
        return {"not": parts[0] if len(parts) == 1 else {"or": parts}}
    if len(parts) < 2:
        return parts[0] if parts else {}
    return {"or" if filters.condition == FilterCondition.OR else "and": parts}


def _condition(part: MetadataFilter) -> dict[str, Any]:
    operator, value, field = part.operator, part.value, metadata_key(part.key)
    if operator == FilterOperator.IS_EMPTY:
        return {field: {"empty": True}}
    if value is None:
        raise ValueError(
            f"the metadata filter {part.key!r} {operator.value} has no value; to find nodes that "
            "have none, use the operator is_empty"
        )
    if operator in _TEXT_MATCHES:
        if not isinstance(value, str):
            raise ValueError(
                f"the metadata filter {part.key!r} {operator.value} has {value!r:.80}; it takes a "
                "text"
            )
        value = pattern_within(value)
    if operator == FilterOperator.EQ:
        return {field: value if not isinstance(value, list) else {"eq": value}}
    return {field: {_OPERATORS[operator]: value}}
