"""Turn LangChain's structured queries into filters."""

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

from ...retrievers.filters import metadata_key
from ..tool_filters import pattern_within

_OPERATORS = {
    Comparator.NE: "ne",
    Comparator.GT: "gt",
    Comparator.GTE: "gte",
    Comparator.LT: "lt",
    Comparator.LTE: "lte",
    Comparator.CONTAIN: "contains",
    Comparator.LIKE: "like",
    Comparator.IN: "in",
    Comparator.NIN: "nin",
}


class StructuredFilter(Visitor):
    """Turn the structured queries of ``SelfQueryRetriever`` into filters of nodekin.

    It is its ``structured_query_translator``, beside a ``NodeGraphVectorStore``. All comparators
    and operators are allowed, nested as the model likes. ``like`` without a ``%`` finds the text
    anywhere in the field, as models mean it. ``not`` of several holds where none of them does. A
    structured query without a query lists what meets its filter, in the order of the documents.

    Example:
        >>> directive = Operation(operator=Operator.OR, arguments=[
        ...     Comparison(comparator=Comparator.EQ, attribute="topic", value="tea"),
        ...     Comparison(comparator=Comparator.GTE, attribute="year", value=2000),
        ... ])
        >>> directive.accept(StructuredFilter())
        {'or': [{'topic': 'tea'}, {'year': {'gte': 2000}}]}
    """

    allowed_comparators = (Comparator.EQ, *_OPERATORS)
    allowed_operators = tuple(Operator)

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Return a comparison as a condition on its field."""
        value, comparator = comparison.value, comparison.comparator
        if isinstance(value, Mapping):  # a date, {"date": "2024-01-31", "type": "date"}
            value = next((item for key, item in value.items() if key != "type"), None)
        if comparator in (Comparator.IN, Comparator.NIN) and not isinstance(value, list | tuple):
            value = [value]
        if comparator == Comparator.LIKE and "%" not in str(value):
            value = pattern_within(str(value))
        field = metadata_key(comparison.attribute)
        if comparator == Comparator.EQ:
            return {field: value}
        return {field: {_OPERATORS[comparator]: value}}

    def visit_operation(self, operation: Operation) -> dict[str, Any]:
        """Return the joined conditions of an operation."""
        parts = [argument.accept(self) for argument in operation.arguments]
        if operation.operator == Operator.NOT:
            return {"not": parts[0] if len(parts) == 1 else {"or": parts}}
        return parts[0] if len(parts) == 1 else {operation.operator.value: parts}

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the query, and the keywords of its search."""
        filter = structured_query.filter
        return structured_query.query, {} if filter is None else {"filter": filter.accept(self)}
