"""Operators of filters, compared with a slow oracle."""

import math
import operator
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers.conditions import plain
from nodekin.retrievers.filters import parse_filters
from nodekin.retrievers.indexes.node_table import NodeTable

NOON = datetime(2024, 1, 31, 12, tzinfo=timezone.utc)


class Hostile:
    """Raises whatever is done with it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class Color(str, Enum):
    RED = "red"


def meets(requirement: object, value: object) -> bool:
    return parse_filters({"field": requirement}).matches(Node("", {"field": value}))


@pytest.mark.parametrize(
    ("requirement", "yes", "no"),
    [
        ("a", ["a", ["a", "b"], ("a",), {"a"}], ["b", "A", "ab", ["b"], [], None, 0]),
        (["a", "b"], ["a", "b", ["c", "b"]], ["c", ["c"], []]),
        (("a", 1), ["a", 1, 1.0], ["1", True]),
        (None, [None, [None]], [0, "", []]),
        (math.nan, [], [math.nan, 1]),
        ({"eq": "a"}, ["a", ["b", "a"], np.str_("a")], ["b", "A", None, []]),
        ({"ne": "a"}, ["b", None, [], ["b"]], ["a", ["a", "b"]]),
        ({"in": ["a", 1]}, ["a", 1.0, ["x", 1]], ["b", True]),
        ({"nin": ["a", 1]}, ["b", True, None], ["a", 1, ["a", "b"]]),
        ({"eq": [1, 2]}, [[1, 2], [[1, 2], 3]], [1, [2, 1], (1, 2)]),
        ({"eq": {"a": 1}}, [{"a": 1}], [{}]),
        ({"eq": "red"}, [Color.RED], []),
        ({"gt": 1, "ne": 3}, [2, [1, 2]], [1, 3, [2, 3]]),
        ({"contains": "ea"}, ["tea", ["ea"]], ["Ea", ["tea"], 5, None]),
        ({"contains": 1}, [[1], (1, 2), {1.0}, np.array([1, 2])], [1, "1", [True], ["1"]]),
        ({"any": ["a", "b"]}, [["a"], ["x", "b"], "cab"], [["ab"], "c", []]),
        ({"all": ["a", "b"]}, [["a", "b", "c"], "cab"], [["a"], "ac", []]),
        ({"like": "t%a"}, ["tea", "TA", "Tax a", ["x", "Tea"]], ["ta x", "at", 5, ["x"]]),
        ({"like": "_ea"}, ["tea", "SEA"], ["ea", "ttea"]),
        ({"like": "%straße%"}, ["Lange STRASSE 5"], ["strase"]),
        ({"like": r"100\%"}, ["100%"], ["100", "1000"]),
        ({"like": r"a\_b%"}, ["A_bc"], ["axbc"]),
        ({"like": "%a%b_%c"}, ["xaxbxc", "abxxc"], ["abc", "bac"]),
        ({"like_case": "T%"}, ["Tea"], ["tea"]),
        ({"exists": True}, [None, "", 0], []),
        ({"exists": False}, [], [None, "", 0]),
        ({"empty": True}, [None, "", [], (), {}, np.array([])], [0, False, " ", [None]]),
        ({"empty": False}, [0, "a"], [None, "", []]),
        (date(2024, 1, 31), [NOON, "2024-01-31", "2024-01"], [date(2024, 2, 1), "31 Jan 2024"]),
        ("2024-01-31", [NOON, date(2024, 1, 31), "2024-01-31T12:00"], ["2024-01", "31.1.2024"]),
        ("2024-01", [NOON, "2024-01"], ["2024-01-31", "2024-02", date(2024, 2, 1)]),
        (NOON, ["2024-01-31T13:00+01:00", np.datetime64("2024-01-31T12:00")], ["2024-01-31 12:1"]),
        ({"gte": "2024-01"}, ["2024-01-01", NOON, "2024-02-03"], ["2023-12-31", "12", 2024]),
        (
            {"lte": date(2024, 1, 31)},
            [NOON, "2024-01-31T23:59"],
            ["2024-02-01", np.datetime64("NaT", "D")],
        ),
        ({"gt": date(2024, 1, 31)}, ["2024-02-01T00:00"], [NOON]),
        ({"gte": "b"}, ["b", "c", "ba"], ["a", "B", 5]),
        ({"gte": 2000}, ["2000", " 2e3", np.float32(2001), Fraction(4001, 2)], ["1e3", "x", "١"]),
        ({"lt": "10"}, [9, 9.5, "0"], [10, "9", "2"]),
        ({"gt": 10**400}, [10**401, math.inf], [1, math.nan, -math.inf]),
    ],
)
def test_operator_matches_expected_values(requirement: object, yes: list, no: list) -> None:
    assert [value for value in yes if not meets(requirement, value)] == []
    assert [value for value in no if meets(requirement, value)] == []


def test_missing_field_meets_negated_conditions_only() -> None:
    node = Node("", {"other": 1})
    met = [
        requirement
        for requirement in (
            *({"eq": 1}, {"ne": 1}, {"in": [1]}, {"nin": [1]}, {"gt": 1}, {"lt": 1}),
            *({"contains": "a"}, {"any": ["a"]}, {"all": ["a"]}, {"like": "%"}, {"exists": True}),
            *({"exists": False}, {"empty": True}, {"empty": False}, None),
        )
        if parse_filters({"field": requirement}).matches(node)
    ]
    assert met == [{"ne": 1}, {"nin": [1]}, {"exists": False}, {"empty": True}]


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({}, "it takes one or more of 'eq', 'ne', 'in'"),
        ({"gt": None}, "bound gt=None"),
        ({"equals": 1}, "operators .*'equals'.*; it takes one or more of 'eq'"),
        ({"$gte": 1}, "operators .*; it takes one or more of 'gte'"),
        ({"gte": 1, "not": 2}, "operators"),
        ({"in": "a"}, "has in='a'; it takes a list of values"),
        ({"in": []}, r"allows no value at all \(in=\[\]\)"),
        ({"any": {"a": 1}}, "it takes a list"),
        ({"contains": ["a"]}, "'any' and 'all' take several"),
        ({"like": 5}, "has like=5; it takes a pattern"),
        ({"exists": "yes"}, "it takes True or False"),
        ({"gt": True}, "the bound gt=True; a bound is a number"),
        ({"gt": np.True_}, "the bound gt=True"),
        ({"gt": [1]}, "the bound"),
        ({"gt": Decimal("sNaN")}, "the bound"),
        ({"gt": np.datetime64("NaT", "D")}, "the bound"),
        ({"gt": "1/2/2024"}, "dates must be written as in ISO 8601, like 2024-01-31"),
        ([{"a": 1}], "has a list of mappings.*joined by 'and', 'or' or 'not'"),
        (lambda year: year > 1999, "must be a value, .*, got the function <function"),
    ],
)
def test_invalid_condition_raises(requirement: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_filters({"topic": requirement})


# A slow oracle

NUMBERS = st.one_of(
    st.integers(),
    st.integers(10**300, 10**400),
    st.floats(),
    st.decimals(),
    st.just(Decimal("sNaN")),
    st.fractions(max_denominator=9),
    st.booleans(),
    st.sampled_from([np.True_, np.False_, np.int64(-3), np.uint8(3), np.float32(0.5)]),
    st.integers(-3, 3),
)

SCALARS = st.one_of(
    NUMBERS,
    st.text("abB", max_size=3),
    st.none(),
    st.binary(max_size=1),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(timezone.utc)),
    st.builds(Hostile),
)

VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.lists(SCALARS, max_size=2).map(tuple))

BOUNDS = ("gt", "gte", "lt", "lte")


def python_says(name: str, value: Any, other: Any) -> bool | None:
    """Return Python's comparison of two values. None: undefined, or another rule applies."""
    value, other = plain(value), plain(other)
    days = [isinstance(v, date) for v in (value, other)]
    if any(days) and (not all(days) or type(value) is not type(other)):
        return None if all(days) else name == "ne"
    if isinstance(value, datetime) and (value.tzinfo is None) != (other.tzinfo is None):
        return None
    if isinstance(value, bool) != isinstance(other, bool):
        return name == "ne"
    if isinstance(value, bool) and name in BOUNDS:
        return False
    compare = {"gte": operator.ge, "lte": operator.le}.get(name) or getattr(operator, name)
    try:
        return bool(compare(value, other))
    except Exception:
        return name == "ne"


@given(VALUES, SCALARS, st.sampled_from(("eq", "ne", *BOUNDS)))
def test_values_compare_as_in_python(value: Any, other: Any, name: str) -> None:
    try:
        got = meets({name: other}, value)
    except ValueError:  # NaN, None and booleans are invalid bounds
        assert name in BOUNDS
        return
    items = [*value, value] if isinstance(value, list | tuple) else [value]
    said = [python_says("eq" if name == "ne" else name, item, other) for item in items]
    if None not in said:
        assert got == (any(said) != (name == "ne"))


@given(st.lists(st.one_of(VALUES, st.just(...)), max_size=12), st.data())
def test_column_evaluation_equals_evaluation_by_node(values: list, data: st.DataObject) -> None:
    """Evaluation once per distinct value equals evaluation of each node."""
    nodes = [
        Node("", {} if value is ... else {"field": value}, id=str(n), document_id=f"d{n % 3}")
        for n, value in enumerate(values)
    ]
    table = NodeTable()
    half = len(nodes) // 2
    for part in (nodes[:half], nodes[half:]):
        table.add(part)
        for _ in range(3):
            filters = data.draw(FILTERS)
            try:
                filter = parse_filters(filters)
            except ValueError:
                continue
            found = table.matching(filter)
            expected = [filter.matches(node) for node in nodes[: len(table)]]
            assert (found.mask.tolist() if found else [True] * len(table)) == expected
            inverse = table.matching(parse_filters({"not": filters} if filter else filters))
            assert found is None or (~found.mask).tolist() == inverse.mask.tolist()


REQUIREMENTS = st.one_of(
    SCALARS,
    st.lists(SCALARS, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(("eq", "ne", "contains", *BOUNDS)), SCALARS, min_size=1),
    st.dictionaries(
        st.sampled_from(("in", "nin", "any", "all")),
        st.lists(SCALARS, min_size=1, max_size=3),
        min_size=1,
    ),
    st.dictionaries(st.sampled_from(("exists", "empty")), st.booleans(), min_size=1),
    st.dictionaries(st.just("like"), st.text("aB%_\\", min_size=1), min_size=1),
)

FIELDS = st.fixed_dictionaries({"field": REQUIREMENTS})

FILTERS: st.SearchStrategy = st.recursive(
    st.one_of(FIELDS, st.just({"document.id": ["d1", "d2"]})),
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(lambda some: {"or": some}),
        st.lists(parts, min_size=1, max_size=3).map(lambda some: {"and": some}),
        parts.map(lambda part: {"not": part}),
    ),
    max_leaves=4,
)


@given(st.text("aB%_\\", min_size=1), st.text("aAbB%_\\", max_size=6))
def test_like_equals_regular_expression(pattern: str, text: str) -> None:
    import re

    tokens = re.findall(r"\\.|.", pattern)
    form = "".join(
        ".*" if t == "%" else "." if t == "_" else re.escape(t[-1].lower()) for t in tokens
    )
    assert meets({"like": pattern}, text) == bool(re.fullmatch(form, text.lower()))


def test_like_takes_linear_time() -> None:
    assert not meets({"like": "%a" * 2_000 + "b"}, "a" * 200_000)


@pytest.mark.parametrize("bound", ["last year", "31.01.2024", "now"])
def test_date_compared_with_other_text_is_logged(bound, caplog):
    graph = NodeGraph(progress=False)
    graph.add([Document(f"tea {n}", {"date": f"2024-01-3{n}"}) for n in range(9)])
    graph.search("tea", filters={"date": {"gte": bound}})
    lines = [text for text in caplog.messages if "dates must be written" in text]
    assert 0 < len(lines) <= 4  # one per search of a group, not per document
    assert all(repr(bound) in line for line in lines)


@pytest.mark.parametrize(("field", "bound"), [("2024-01-30", "2024"), ("b", "a"), (3, 2)])
def test_usual_bounds_are_not_logged(field, bound, caplog):
    graph = NodeGraph(progress=False)
    graph.add([Document("tea", {"field": field})])
    assert graph.search("tea", filters={"field": {"gte": bound}})
    assert not caplog.messages
