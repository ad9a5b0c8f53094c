"""Translate LlamaIndex's metadata filters to nodekin's."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from ...retrievers import Filters, parse_filters

_BOUNDS = {FilterOperator[name.upper()]: name for name in ("gt", "gte", "lt", "lte")}


def as_filters(filters: MetadataFilters | Filters | None) -> Filters | None:
    """Check nodekin filters, or translate LlamaIndex's if that is exact.

    It is for ``==``, ``in``, ``>``, ``>=``, ``<`` and ``<=`` joined by AND, nested or not,
    with one condition a field (two bounds make a range); by OR only if all are ``==`` or
    ``in`` on one field. As everywhere in nodekin, a field that holds a list meets a condition
    with any of its items.

    Raises:
        TypeError: If they are neither.
        ValueError: If a filter has no exact counterpart.

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
        _joined(part) if isinstance(part, MetadataFilters) else {part.key: _condition(part)}
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.NOT:
        raise _inexact("NOT")
    if filters.condition == FilterCondition.OR and len(parts) > 1:
        return _any_of(parts)
    joined: dict[str, Any] = {}
    for part in parts:
        for field, value in part.items():
            joined[field] = _range(field, joined[field], value) if field in joined else value
    return joined


def _condition(part: MetadataFilter) -> Any:
    operator, value = part.operator, part.value
    scalar = isinstance(value, str | int | float)
    if (operator == FilterOperator.IN and isinstance(value, list)) or (
        operator == FilterOperator.EQ and scalar
    ):
        return value
    if operator in _BOUNDS and scalar:
        return {_BOUNDS[operator]: value}
    raise _inexact(f"{part.key!r} {operator.value} {value!r:.40}")


def _range(field: str, one: Any, other: Any) -> dict[str, Any]:
    if isinstance(one, dict) and isinstance(other, dict) and not one.keys() & other.keys():
        return {**one, **other}
    raise _inexact(f"two conditions on {field!r}")


def _any_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    fields = {field for part in parts for field in part}
    values: list[Any] = []
    for value in (value for part in parts for value in part.values()):
        if isinstance(value, dict) or len(fields) > 1:
            raise _inexact("OR over several fields or ranges")
        values += value if isinstance(value, list) else [value]
    return {field: values for field in fields}


def _inexact(what: str) -> ValueError:
    return ValueError(
        f"nodekin has no exact counterpart of the metadata filter {what}; it has == and in, "
        "ranges of >, >=, <, <=, all of which must be met, one condition a field. Filter by the "
        "others after the retrieval, in a node postprocessor"
    )
