"""Convert LlamaIndex metadata filters to nodekin filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from ...retrievers.filters import DOCUMENT_ID, Filters, metadata_key, parse_filters, pattern_within
from ..frameworks import joined

_OPERATORS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}

# fields that LlamaIndex's vector stores add to the metadata
_SOURCE = ("doc_id", "document_id", "ref_doc_id")

NodesOf = Callable[[str], Sequence[str]]
"""A function that takes the id of a source document and returns the ids of its nodes."""

_TEXT_MATCHES = {"text_match": "like_case", "text_match_insensitive": "like"}


def as_filters(
    filters: MetadataFilters | Filters | None, nodes_of: NodesOf | None = None
) -> Filters | None:
    """Convert LlamaIndex filters to nodekin filters. Filters of nodekin are only checked.

    The operators have the same meaning as in ``SimpleVectorStore``. If a metadata field contains a
    list, a condition is true if it is true for any item of the list.

    Args:
        filters: The filters.
        nodes_of: A function that returns the ids of the nodes of a source document. It is used for
            filters on ``doc_id``, ``document_id`` and ``ref_doc_id``. If None, these filters are
            compared with metadata only.

    Raises:
        TypeError: If the filters are neither nodekin filters nor LlamaIndex filters.
        ValueError: If an operator does not support the given value.

    Example:
        >>> recent = MetadataFilter(key="year", value=2000, operator=">")
        >>> as_filters(MetadataFilters(filters=[recent]))
        {'year': {'gt': 2000}}
    """
    if isinstance(filters, MetadataFilters):
        filters = _translated(filters, nodes_of)
    parse_filters(filters)
    return filters


def _translated(filters: MetadataFilters, nodes_of: NodesOf | None) -> Filters:
    parts: list[Filters] = []
    for part in filters.filters:
        if isinstance(part, MetadataFilters):
            parts.append(_translated(part, nodes_of))
        elif nodes_of is not None and part.key in _SOURCE:
            parts.append(_source_condition(part, nodes_of))
        else:
            parts.append(_condition(part))
    condition = filters.condition or FilterCondition.AND
    return joined(condition.value, parts) if parts else {}


def _source_condition(part: MetadataFilter, nodes_of: NodesOf) -> Filters:
    """Return a condition that matches a source document, or a metadata field with the same name."""
    own = _condition(part)
    values = part.value if isinstance(part.value, list) else [part.value]
    ids: list[str] = []
    for value in values:
        ids += nodes_of(str(value))
    if part.operator in (FilterOperator.EQ, FilterOperator.IN):
        return joined("or", [own, {DOCUMENT_ID: {"in": ids}}])
    if part.operator in (FilterOperator.NE, FilterOperator.NIN):
        return joined("and", [own, {DOCUMENT_ID: {"nin": ids}}])
    return own


def _condition(part: MetadataFilter) -> dict[str, Any]:
    operator = part.operator.value
    value = part.value
    field = metadata_key(part.key)
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
