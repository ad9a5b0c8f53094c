"""Turn LangChain's structured queries into conditions on metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)

_BOUNDS = {Comparator.GT, Comparator.GTE, Comparator.LT, Comparator.LTE}

_VALUES = {Comparator.EQ, Comparator.IN, Comparator.CONTAIN}


class StructuredFilter(Visitor):
    """Turn the structured queries of ``SelfQueryRetriever`` into filters of nodekin.

    It is its ``structured_query_translator``, beside a ``NodeGraphVectorStore``. A filter has one
    condition for each field, all of which must be met: comparisons with values and bounds, joined
    by ``and``; an ``or`` of values of one field. LangChain's prompt says so to the model; any
    other filter is an error, not a search without it.

    Example:
        >>> directive = Operation(operator=Operator.AND, arguments=[
        ...     Comparison(comparator=Comparator.EQ, attribute="topic", value="tea"),
        ...     Comparison(comparator=Comparator.GTE, attribute="year", value=2000),
        ...     Comparison(comparator=Comparator.LT, attribute="year", value=2010),
        ... ])
        >>> directive.accept(StructuredFilter())
        {'topic': 'tea', 'year': {'gte': 2000, 'lt': 2010}}
    """

    allowed_comparators = tuple(c for c in Comparator if c in _BOUNDS | _VALUES)
    allowed_operators = (Operator.AND, Operator.OR)

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Return a comparison as a condition on its field.

        Raises:
            ValueError: If there is no such condition.
        """
        self._validate_func(comparison.comparator)
        value = comparison.value
        if isinstance(value, Mapping):  # a date, {"date": "2024-01-31", "type": "date"}
            value = next(iter(value.values()))
        if comparison.comparator in _BOUNDS:
            value = {comparison.comparator.value: value}
        return {comparison.attribute: value}

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """Return the joined conditions of an operation.

        Raises:
            ValueError: If conditions on single fields can't express it.
        """
        self._validate_func(operation.operator)
        parts = [argument.accept(self) for argument in operation.arguments]
        if operation.operator == Operator.OR:
            return _any_of(parts, operation)
        joined: dict[str, Any] = {}
        for part in parts:
            for field, value in part.items():
                joined[field] = _both(joined[field], value, field) if field in joined else value
        return joined

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the query, and the keywords of its search."""
        filter = structured_query.filter
        return structured_query.query, {} if filter is None else {"filter": filter.accept(self)}


def _any_of(parts: list[dict[str, Any]], operation: Operation) -> dict[str, Any]:
    fields = {field for part in parts for field in part}
    if len(fields) != 1 or any(isinstance(v, dict) for part in parts for v in part.values()):
        raise ValueError(
            f"a filter can't be {operation!r:.200}: 'or' joins values of one field; search for "
            "each on its own, and fuse the results"
        )
    (field,) = fields
    return {field: [value for part in parts for value in _listed(part[field])]}


def _both(one: Any, other: Any, field: str) -> Any:
    """Return the condition that is met where both are."""
    if isinstance(one, dict) and isinstance(other, dict) and not one.keys() & other.keys():
        return {**one, **other}
    if not isinstance(one, dict) and not isinstance(other, dict):
        common = [value for value in _listed(one) if value in _listed(other)]
        if common:
            return common[0] if len(common) == 1 else common
    raise ValueError(
        f"the field {field!r} can't meet {one!r} and {other!r}; give one condition a field"
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set) else [value]
