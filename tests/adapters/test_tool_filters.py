"""What a model may filter by when it calls a tool."""

from datetime import date
from typing import Any

import pytest

from nodekin.adapters.tool_filters import FilterError, FilterField, ToolFilters
from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters


def conditions(declared: Any, **values: Any) -> Any:
    return ToolFilters({"field": declared}, ["query"]).conditions(values)


def matches(filters: Any, value: Any) -> bool:
    return parse_filters(filters).matches(Node("", {"field": value}))


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (int, "1999", 1999),
        (int, " 1999 ", 1999),
        (int, 1999.0, 1999),
        (int, "12345678901234567890", 12345678901234567890),
        (float, "0.5", 0.5),
        (bool, "Yes", True),
        (bool, False, False),
        (str, "TEA", "Tea"),
        (str, "100%_x\\", "100%_X\\"),
        (date, "2024-01-31", date(2024, 1, 31)),
        (None, "1999", 1999),
        (None, "1999", "1999"),
        (None, 1999, "1999"),
        (None, "true", True),
        (None, "Tea", ["milk", "tea"]),
    ],
)
def test_a_value_matches_what_the_field_has(kind: Any, given: Any, value: Any) -> None:
    assert matches(conditions(FilterField("x", type=kind), field=given), value)
    assert not matches(conditions(FilterField("x", type=kind), field=given), "other")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (int, "many"),
        (int, 1.5),
        (int, True),
        (int, "1e400"),
        (float, "nan"),
        (bool, "perhaps"),
        (date, "yesterday"),
        (None, {"ne": 1}),
        (None, [["x"]]),
        (None, [None]),
        (None, [""]),
        (None, [{"or": []}]),
    ],
)
def test_what_is_no_value_is_an_error(kind: Any, given: Any) -> None:
    with pytest.raises(FilterError, match=r"^field: "):
        conditions(FilterField("x", type=kind), field=given)


def test_only_listed_values_are_allowed() -> None:
    field = FilterField("kind", values=["Tea", 3])
    assert conditions(field, field=["tea", "3"]) == {
        "or": [{"field": {"in": ["Tea"]}}, {"field": {"in": [3]}}]
    }
    with pytest.raises(FilterError, match="'teas' is not allowed; it is 'Tea'"):
        conditions(field, field="teas")
    assert ToolFilters({"k": field}, []).arguments[0].description == "kind (Tea, 3)"


def test_bounds() -> None:
    field = FilterField("a year", type=int, bounds=True)
    assert conditions(field, field_min="1990", field_max=2000) == {
        "and": [{"field": {"gte": 1990}}, {"field": {"lte": 2000}}]
    }
    with pytest.raises(FilterError, match="a bound is one value"):
        conditions(field, field_min=[1, 2])
    arguments = ToolFilters({"year": field}, []).arguments
    assert arguments[1].description == "a year: the least value"


def test_what_is_not_given_or_not_declared_is_no_condition() -> None:
    assert conditions("x") is None
    assert conditions("x", field=None) is None
    assert conditions("x", field="") is None
    assert conditions("x", field=[]) is None
    assert conditions("x", other="x") is None


def test_every_field_has_an_argument_of_its_own() -> None:
    fields = ["$or", "or", "a.b", "a_b", "主题", "_", "9", "copy"]
    filters = ToolFilters(dict.fromkeys(fields, "x"), ["query"], ["copy", "or"])
    names = [argument.name for argument in filters.arguments]
    assert len(set(names)) == len(fields)
    assert all(name.isidentifier() and name.isascii() for name in names)
    for argument in filters.arguments:
        parsed = parse_filters(filters.conditions({argument.name: "x"}))
        assert [f for f in fields if parsed.matches(Node("", {f: "x"}))] == [argument.key]
    with pytest.raises(ValueError, match="another argument"):
        ToolFilters({"query": "x"}, ["query"])


def test_a_declaration_is_checked() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="description"):
        ToolFilters({"field": wrong}, [])
    with pytest.raises(TypeError, match="str, int, float, bool, date"):
        FilterField("x", type=dict)
