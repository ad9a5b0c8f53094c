"""Convert LangChain filters, including structured queries, to nodekin filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
    Visitor,
)

from ...retrievers.filters import Filters, all_of, metadata_key, parse_filters, pattern_within
from ..frameworks import joined

_NAMES = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains", "any", "all", "exists")

_OPERATORS = {
    **{f"${name}": name for name in _NAMES},
    "$neq": "ne",
    "$like": "like_case",
    "$ilike": "like",
}

_JOINS = {"$and": "and", "$or": "or", "$not": "not", "$nor": "not"}


def as_filters(*filters: Any) -> Filters | None:
    """Convert LangChain filters to a single nodekin filter. Several filters are joined with "and".

    The operators of Chroma, FAISS, Pinecone and PGVector are supported: ``$eq``, ``$ne``
    (``$neq``), ``$in``, ``$nin``, ``$gt``, ``$gte``, ``$lt``, ``$lte``, ``$between``,
    ``$contains``, ``$not_contains``, ``$any``, ``$all``, ``$like``, ``$ilike``, ``$exists``, and
    ``$and``, ``$or``, ``$not``, ``$nor``. nodekin's own operators are accepted as well.

    Raises:
        TypeError: If a filter is a function, which an index cannot evaluate, or is not a mapping.
        ValueError: If an operator is unknown, or cannot be used with the given value.

    Example:
        >>> as_filters({"$and": [{"year": {"$gte": 2000}}, {"author": {"$ne": "A"}}]})
        {'and': [{'year': {'gte': 2000}}, {'author': {'ne': 'A'}}]}
    """
    translated = all_of(*[_translated(filter) for filter in filters])
    parse_filters(translated)
    return translated


def _translated(filter: Any) -> Any:
    """Return a filter with nodekin's operator names. ``parse_filters`` later checks the values."""
    if not isinstance(filter, Mapping):
        return filter
    parts = [_entry(name, value) for name, value in filter.items()]
    return all_of(*parts) if len(parts) != 1 else parts[0]


def _entry(name: Any, value: Any) -> Filters:
    join = _JOINS.get(name, name)
    if join in ("and", "or"):
        if not _is_list(value):
            return {join: value}
        return {join: [_translated(part) for part in value]}
    if join == "not":
        parts = value if _is_list(value) else [value]
        return joined("not", [_translated(part) for part in parts])
    if not isinstance(value, Mapping):
        return {name: value}
    plain: dict[Any, Any] = {}
    others: list[Filters] = []
    for operator, given in value.items():
        if operator == "$not":
            others.append({"not": _entry(name, given)})
        elif operator == "$not_contains":
            others.append({"not": {name: {"contains": given}}})
        elif operator == "$between":
            others.append({name: _between(given, name)})
        else:
            plain[_OPERATORS.get(operator, operator)] = given
    if plain or not others:
        others = [{name: plain}, *others]
    return joined("and", others)


def _between(value: Any, name: str) -> Filters:
    if not _is_list(value) or len(value) != 2:
        raise ValueError(
            f"$between requires the lowest and the highest value, got {value!r:.80} for {name!r}"
        )
    return {"gte": value[0], "lte": value[1]}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


class StructuredFilter(Visitor):
    """Translates structured queries from LangChain's ``SelfQueryRetriever`` to nodekin filters.

    Pass an instance as the ``structured_query_translator`` of a ``SelfQueryRetriever`` that
    searches a ``NodeGraphVectorStore``. A ``like`` pattern without ``%`` matches anywhere in the
    field. A ``not`` with several parts is true if none of the parts is true. If a structured query
    has only a filter, the search lists all matching documents.

    Example:
        >>> from langchain_core.structured_query import Comparator, Comparison, Operation, Operator
        >>> directive = Operation(operator=Operator.OR, arguments=[
        ...     Comparison(comparator=Comparator.EQ, attribute="topic", value="tea"),
        ...     Comparison(comparator=Comparator.GTE, attribute="year", value=2000),
        ... ])
        >>> directive.accept(StructuredFilter())
        {'or': [{'topic': {'eq': 'tea'}}, {'year': {'gte': 2000}}]}
    """

    allowed_comparators = tuple(Comparator)
    allowed_operators = tuple(Operator)

    def visit_comparison(self, comparison: Comparison) -> dict[str, Any]:
        """Convert a comparison to a condition on a metadata field."""
        value = comparison.value
        name = comparison.comparator.value.replace("contain", "contains")
        if isinstance(value, Mapping):  # dates look like {"date": "2024-01-31", "type": "date"}
            value = next((item for key, item in value.items() if key != "type"), None)
        if name in ("in", "nin") and not isinstance(value, list | tuple):
            value = [value]
        if name == "like" and "%" not in str(value):
            value = pattern_within(str(value))
        return {metadata_key(comparison.attribute): {name: value}}

    def visit_operation(self, operation: Operation) -> Filters:
        """Convert a logical operation to a filter that joins its conditions."""
        parts = [argument.accept(self) for argument in operation.arguments]
        return joined(operation.operator.value, parts)

    def visit_structured_query(
        self, structured_query: StructuredQuery
    ) -> tuple[str, dict[str, Any]]:
        """Return the query text and the keyword arguments for the search."""
        filter = structured_query.filter
        return structured_query.query, {} if filter is None else {"filter": filter.accept(self)}
