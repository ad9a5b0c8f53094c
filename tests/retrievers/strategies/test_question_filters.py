"""Conditions of replies: names, operators and values that are mended or dropped."""

from typing import Any

import pytest

from nodekin.retrievers import FilterField, parse_filters
from nodekin.retrievers.strategies.question_filters import usable_filters

FIELDS = {
    "year": FilterField("number", minimum=1990, maximum=2024),
    "day": FilterField("date", minimum="2020-01-01", maximum="2024-12-31"),
    "kind": FilterField("text", values=("Tea Time", "报告"), is_complete=True),
    "author": FilterField("text", values=("Kim",)),
    "public": FilterField("bool"),
    "or": FilterField("number"),
    "code": FilterField(),
    "edition": FilterField("text", values=("1999", "2005"), is_complete=True),
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"year": 2000}, {"year": 2000}),
        ({"YEAR": "2,000"}, {"year": 2000}),
        ({"metadata.year": "2000年"}, {"year": 2000}),
        ({"year": {"$gte": "1995"}}, {"year": {"gte": 1995}}),
        ({"year": {"between": [1995, 2000]}}, {"year": {"gte": 1995, "lte": 2000}}),
        ({"year": {"Greater Than": 1995, "before": 2001}}, {"year": {"gt": 1995, "lt": 2001}}),
        ({"day": "2024/1/31"}, {"day": "2024-01-31"}),
        ({"day": "2024年5月"}, {"day": {"gte": "2024-05", "lte": "2024-05"}}),
        ({"day": 2024}, {"day": {"gte": "2024", "lte": "2024"}}),
        ({"day": {"lt": "2024年5月1日"}}, {"day": {"lt": "2024-05-01"}}),
        ({"kind": "tea_time"}, {"kind": "Tea Time"}),
        ({"kind": ["报告", "novel"]}, {"kind": ["报告"]}),
        ({"kind": {"ne": "报告"}}, {"kind": {"ne": "报告"}}),
        ({"kind": {"ne": ["报告"]}}, {"kind": {"nin": ["报告"]}}),
        ({"author": "Lee"}, {"author": "Lee"}),
        ({"author": {"contains": "ee"}}, {"author": {"contains": "ee"}}),
        ({"public": "yes"}, {"public": True}),
        ({"public": {"exists": True}}, {"public": {"exists": True}}),
        ({"or": 3}, {"metadata.or": 3}),
        ({"edition": {"gte": "2000"}}, {"edition": {"gte": "2000"}}),
        ({"code": ["a", 1]}, {"code": ["a", 1]}),
        (
            {"OR": [{"year": 2000}, {"author": "Kim"}]},
            {"or": [{"year": 2000}, {"author": "Kim"}]},
        ),
        ({"$not": {"year": 2000}}, {"not": {"year": 2000}}),
        ([{"year": {"gt": 1999}}, {"year": {"lt": 2005}}], None),
        ("{'year': 2000}", {"year": 2000}),
        ({"year": {"gte": 1995, "lt": None}}, {"year": {"gte": 1995}}),
        ({}, None),
        ([], None),
        (None, None),
        ("none", None),
    ],
)
def test_usable_conditions_are_kept(given: Any, expected: Any) -> None:
    found = usable_filters(given, FIELDS)
    assert not found.dropped
    if isinstance(given, list) and given:
        expected = {"and": given}
    assert found.filters == expected
    parse_filters(found.filters)


@pytest.mark.parametrize(
    "given",
    [
        {"writer": "Kim"},
        {"year": "soon"},
        {"year": True},
        {"year": 1800},
        {"year": {"gt": 2024}},
        {"year": {"lt": 1990}},
        {"year": float("inf")},
        {"year": {"gte": [1, 2]}},
        {"year": {"near": 2000}},
        {"year": {"between": 2000}},
        {"day": "31 January"},
        {"day": "2024-13-01"},
        {"day": {"gt": "2025"}},
        {"kind": "novel"},
        {"kind": ["novel", "poem"]},
        {"kind": ""},
        {"kind": None},
        {"author": {"like": 3}},
        {"public": "maybe"},
        {"public": {"exists": "perhaps"}},
        {"xor": [{"year": 2000}]},
        {"or": [{"year": 2000}, {"writer": "Kim"}]},
        {"not": {"writer": "Kim"}},
        {"not": {"and": [{"year": 2000}, {"writer": "Kim"}]}},
        [3],
        "year is 2000",
        7,
    ],
    ids=str,
)
def test_other_conditions_are_dropped_with_a_note(given: Any) -> None:
    found = usable_filters(given, {k: v for k, v in FIELDS.items() if k != "or"})
    assert found.filters is None
    assert found.dropped


def test_dropped_condition_keeps_the_others() -> None:
    found = usable_filters({"year": 2000, "writer": "Kim", "kind": "novel"}, FIELDS)
    assert found.filters == {"year": 2000}
    assert found.dropped == ("'writer': unknown field", "'kind': impossible value 'novel'")


def test_number_of_conditions_is_limited() -> None:
    many: Any = [{"year": {"ne": number}} for number in range(10_000)]
    found = usable_filters(many, FIELDS)
    assert found.filters is not None
    assert len(found.filters["and"]) < 100
    assert len(found.dropped) < 100
