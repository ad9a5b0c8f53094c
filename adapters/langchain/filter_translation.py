"""Translate filters of LangChain: those of vector stores, and structured queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)
from pydantic import AfterValidator

from ...nodegraph.errors import nearest_names
from ...retrievers.base_retriever import check_takes_filters
from ...retrievers.filters import DOCUMENT_ID, Filters, all_of, metadata_key, parse_filters
from ..tool_filters import pattern_within

_OPERATORS = {
    **{f"${name}": name for name in ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte")},
    **{f"${name}": name for name in ("contains", "any", "all", "exists")},
    "$neq": "ne",
    "$like": "like_case",
    "$ilike": "like",
}

_SPECIAL = ("$between", "$not_contains", "$not")

_JOINS = ("$and", "$or", "$not", "$nor")


def as_filters(filter: Any) -> Filters | None:
    """Return a filter as nodekin's, whether it is one or has the ``$`` of other vector stores.

    It is what Chroma, FAISS, Pinecone and PGVector take: ``$eq``, ``$ne`` (``$neq``), ``$in``,
    ``$nin``, ``$gt``, ``$gte``, ``$lt``, ``$lte``, ``$between`` (both ends belong to it),
    ``$contains``, ``$not_contains``, ``$any``, ``$all``, ``$like``, ``$ilike``, ``$exists``, and
    ``$and``, ``$or``, ``$not``, ``$nor`` around them. Both kinds may be mixed.

    Raises:
        TypeError: If it is a function, which no index can evaluate, or no mapping.
        ValueError: If there is no such operator, or it can't compare with that.

    Example:
        >>> as_filters({"$and": [{"year": {"$gte": 2000}}, {"author": {"$ne": "A"}}]})
        {'and': [{'year': {'gte': 2000}}, {'author': {'ne': 'A'}}]}
    """
    if callable(filter):
        raise TypeError(
            f"filter is the function {getattr(filter, '__name__', filter)!r}, which would see only "
            "what was found; write conditions, like {'year': {'gte': 2000}}, which are checked "
            "before ranking, or filter the documents that come back"
        )
    filters = _all(filter) if isinstance(filter, Mapping) else filter
    parse_filters(filters)
    return filters


def _checked(filter: dict[str, Any] | None) -> dict[str, Any] | None:
    as_filters(filter)
    return filter


CheckedFilter = Annotated[dict[str, Any] | None, AfterValidator(_checked)]
"""A field that holds a filter as it was given, and none that can't be read."""


def merge_filters(first: Any, second: Any) -> Filters | None:
    """Return filters that hold where a retriever's own and those of a call hold."""
    if first is None and second is None:
        return None
    return all_of(as_filters(first), as_filters(second))


def listing(retriever: object, query: str, filters: Filters | None) -> Filters | None:
    """Return the conditions of a call. A blank query without any lists all, as vector stores do."""
    if filters is not None or not isinstance(query, str) or query.strip():
        return filters
    try:
        check_takes_filters(retriever, "a blank query")
    except ValueError:  # it is for the retriever to say what a blank query means
        return None
    return {DOCUMENT_ID: {"exists": True}}


def _all(filter: Mapping[str, Any]) -> Filters:
    """Return a mapping's entries, joined where the translation of two has the same name."""
    parts = [_entry(name, value) for name, value in filter.items()]
    joined = {name: value for part in parts for name, value in part.items()}
    return joined if len(joined) == sum(map(len, parts)) else {"and": parts}


def _entry(name: Any, value: Any) -> dict[str, Any]:
    if name in ("$and", "$or", "and", "or"):
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return {name.strip("$"): [_joined(part) for part in value] if several else value}
    if name in ("$not", "$nor"):
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return {"not": {"or": [_joined(part) for part in value]} if several else _joined(value)}
    if name == "not":
        return {"not": _joined(value)}
    if isinstance(name, str) and name.startswith("$"):
        raise ValueError(
            f"the filter has the operator {name!r} where a field is; filters are joined by "
            f"{nearest_names(name, _JOINS)}"
        )
    if isinstance(value, Mapping) and any(str(key).startswith("$") for key in value):
        return _field(name, value)
    return {name: value}


def _joined(part: Any) -> Any:
    return _all(part) if isinstance(part, Mapping) else part


def _field(name: str, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the conditions on a field, those that are negated beside the others."""
    plain: dict[str, Any] = {}
    others: list[dict[str, Any]] = []
    for operator, value in conditions.items():
        if operator == "$between":
            if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
                raise ValueError(
                    f"the filter on {name!r} has $between={value!r:.80}; it takes the lowest and "
                    "the highest value"
                )
            others.append({name: {"gte": value[0], "lte": value[1]}})
        elif operator == "$not_contains":
            others.append({"not": {name: {"contains": value}}})
        elif operator == "$not":
            others.append({"not": _entry(name, value)})
        elif operator in _OPERATORS or not str(operator).startswith("$"):
            plain[_OPERATORS.get(operator, operator)] = value
        else:
            raise ValueError(
                f"the filter on {name!r} has the operator {operator!r}; it takes "
                f"{nearest_names(operator, [*_OPERATORS, *_SPECIAL], limit=99)}"
            )
    if not others:
        return {name: plain}
    parts = [{name: plain}, *others] if plain else others
    return parts[0] if len(parts) == 1 else {"and": parts}


_COMPARATORS = {
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

    allowed_comparators = (Comparator.EQ, *_COMPARATORS)
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
        return {field: {_COMPARATORS[comparator]: value}}

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
