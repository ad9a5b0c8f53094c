"""StructuredFilter: every comparator, and a SelfQueryRetriever."""

from typing import Any

import pytest
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
)

from nodekin.adapters.langchain import StructuredFilter
from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters


def has(name: str, attribute: str, value: Any) -> Comparison:
    return Comparison(Comparator(name), attribute, value)


def joined(name: str, *arguments: Any) -> Operation:
    return Operation(Operator(name), list(arguments))


@pytest.mark.parametrize(
    ("comparison", "yes", "no"),
    [
        (has("eq", "f", "a"), ["a", ["a", "b"]], ["b"]),
        (has("ne", "f", "a"), ["b"], ["a"]),
        (has("gt", "f", 1), [2], [1]),
        (has("gte", "f", 1), [1], [0]),
        (has("lt", "f", 1), [0], [1]),
        (has("lte", "f", {"date": "2024-01-31", "type": "date"}), ["2024-01-31"], ["2024-02-01"]),
        (has("contain", "f", "a"), ["tea", ["a"]], ["te", ["tea"]]),
        (has("like", "f", "EA"), ["tea"], ["te"]),
        (has("like", "f", "t%"), ["Tea"], ["at"]),
        (has("like", "f", "100_"), ["a 100_ b"], ["1000"]),
        (has("in", "f", ["a", "b"]), ["b"], ["c"]),
        (has("in", "f", "a"), ["a"], ["c"]),
        (has("nin", "f", ["a", "b"]), ["c"], ["b"]),
        (joined("not", has("eq", "f", 1), has("eq", "f", 2)), [3], [1, 2]),
        (has("eq", "or", 1), [], [1]),
    ],
)
def test_comparisons(comparison: Any, yes: list, no: list) -> None:
    filter = parse_filters(comparison.accept(StructuredFilter()))
    assert [v for v in yes if not filter.matches(Node("", {"f": v}))] == []
    assert [v for v in no if filter.matches(Node("", {"f": v}))] == []
