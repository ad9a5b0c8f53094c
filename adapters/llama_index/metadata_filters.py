"""Read LlamaIndex's metadata filters."""

from __future__ import annotations

from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from ...retrievers import Filters, parse_filters

_BOUNDS = {
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
}


def as_filters(filters: MetadataFilters | Filters | None) -> Filters | None:
    """Check nodekin filters, or translate LlamaIndex's where that is exact.

    That is so for ``==``, ``in``, ``>``, ``>=``, ``<`` and ``<=`` joined by AND, nested or not,
    with one condition a field (two bounds make a range); by OR only where all are ``==`` or
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
        _joined(each) if isinstance(each, MetadataFilters) else {each.key: _condition(each)}
        for each in filters.filters
    ]
    condition = filters.condition or FilterCondition.AND
    if condition == FilterCondition.OR and len(parts) > 1:
        return _any_of(parts)
    if condition == FilterCondition.NOT:
        raise _inexact("NOT")
    joined: dict[str, Any] = {}
    for field, wanted in (item for part in parts for item in part.items()):
        if field in joined:
            wanted = _range(field, joined[field], wanted)
        joined[field] = wanted
    return joined


def _condition(each: MetadataFilter) -> Any:
    if each.operator == FilterOperator.EQ and isinstance(each.value, str | int | float):
        return each.value
    if each.operator == FilterOperator.IN and isinstance(each.value, list):
        return each.value
    if each.operator in _BOUNDS and isinstance(each.value, str | int | float):
        return {_BOUNDS[each.operator]: each.value}
    raise _inexact(f"{each.key!r} {each.operator.value} {each.value!r:.40}")


def _range(field: str, one: Any, other: Any) -> dict[str, Any]:
    if isinstance(one, dict) and isinstance(other, dict) and not one.keys() & other.keys():
        return {**one, **other}
    raise _inexact(f"two conditions on {field!r}")


def _any_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    fields = {field for part in parts for field in part}
    values: list[Any] = []
    for wanted in (wanted for part in parts for wanted in part.values()):
        if isinstance(wanted, dict) or len(fields) > 1:
            raise _inexact("OR over several fields or ranges")
        values += wanted if isinstance(wanted, list) else [wanted]
    return {field: values for field in fields}


def _inexact(what: str) -> ValueError:
    return ValueError(
        f"nodekin has no exact counterpart of the metadata filter {what}; it has == and in, "
        "ranges of >, >=, <, <=, all of which must be met, one condition a field. Filter by the "
        "others after the retrieval, in a node postprocessor"
    )
