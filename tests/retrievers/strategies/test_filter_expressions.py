"""Filters in LangChain's expression language, with the conditions that they give."""

from typing import Any

import pytest

from nodekin.retrievers import FilterField
from nodekin.retrievers.strategies.filter_expressions import is_no_filter, parse_expression
from nodekin.retrievers.strategies.question_filters import usable_filters

FIELDS = {
    "year": FilterField("number"),
    "day": FilterField("date"),
    "kind": FilterField("text"),
    "public": FilterField("bool"),
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('eq("kind", "tea")', {"kind": "tea"}),
        ("eq('kind', 'tea')", {"kind": "tea"}),
        ('eq(kind, "tea")', {"kind": "tea"}),
        ('eq("public", true)', {"public": True}),
        (
            'and(eq("kind", "tea"), gte("year", 2000))',
            {"and": [{"kind": "tea"}, {"year": {"gte": 2000}}]},
        ),
        (
            'AND(gt("year", 1990), lt("year", 2000))',
            {"and": [{"year": {"gt": 1990}}, {"year": {"lt": 2000}}]},
        ),
        (
            'or(eq("kind", "tea"), lt("year", 2000))',
            {"or": [{"kind": "tea"}, {"year": {"lt": 2000}}]},
        ),
        ('not(eq("kind", "tea"))', {"not": {"kind": "tea"}}),
        ('in("kind", ["tea", "coffee"])', {"kind": ["tea", "coffee"]}),
        ('gt("day", {"date": "2024-05-01", "type": "date"})', {"day": {"gt": "2024-05-01"}}),
        ('eq("kind", "and (more)")', {"kind": "and (more)"}),
        ("NO_FILTER", None),
        ({"year": {"大于等于": 2000}}, {"year": {"gte": 2000}}),
        ({"year": {"at least": 2000}}, {"year": {"gte": 2000}}),
    ],
)
def test_expression_gives_conditions(given: Any, expected: Any) -> None:
    assert usable_filters(given, FIELDS) == (expected, ())


@pytest.mark.parametrize(
    "text",
    [
        'or(eq("kind", "tea"), eq("writer", "Kim"))',
        'eq("writer", "Kim")',
        'near("kind", "tea")',
        'eq("kind")',
        "tea (green)",
        'eq("kind", "tea"',
        "__import__('os')",
    ],
)
def test_expression_that_cannot_be_used_is_dropped_with_note(text: str) -> None:
    found = usable_filters(text, FIELDS)
    assert found.filters is None
    assert found.dropped


def test_long_and_nested_expressions_are_no_error() -> None:
    assert parse_expression("not(" * 300 + ")" * 300) is None
    assert parse_expression('eq("kind", "' + "a" * 2_000 + '")') is None


def test_keyword_for_no_filter_is_recognized() -> None:
    assert is_no_filter('"NO_FILTER"')
    assert not is_no_filter("no filter coffee")
