import datetime
from typing import Any

import pytest

from nodekin.retrievers.strategies.filter_field import field_of


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 2.5], ("number", 1, 3)),
        ([3, None, float("nan"), ""], ("number", 3, 3)),
        (["2024-01-31", "2023-12"], ("date", "2023-12", "2024-01-31")),
        (
            ["2024-01-31T10:00Z", "2024-01-31T09:00Z"],
            ("date", "2024-01-31T09:00Z", "2024-01-31T10:00Z"),
        ),
        (
            [datetime.date(2024, 1, 3), "2023-01-01"],
            ("date", "2023-01-01", datetime.date(2024, 1, 3)),
        ),
        (["1999", "2001"], ("text", None, None)),
        (["2024-01-31", "soon"], ("text", None, None)),
        ([True, False], ("bool", None, None)),
        ([1, "one"], ("any", None, None)),
        ([1, True], ("any", None, None)),
    ],
)
def test_type_and_range_follow_all_values(values: Any, expected: Any) -> None:
    field = field_of(values)
    assert field is not None
    assert (field.type, field.minimum, field.maximum) == expected


@pytest.mark.parametrize("values", [[], [None], [{"a": 1}], [[{"a": 1}]], [b"x"]])
def test_values_without_comparison_give_no_field(values: Any) -> None:
    assert field_of(values) is None


def test_frequent_values_are_first_and_limited() -> None:
    field = field_of([f"v{n % 30:02}" for n in range(40)])
    assert field is not None
    assert len(field.values) == 20
    assert field.values[:11] == (*(f"v{n:02}" for n in range(10)), "v10")
    assert not field.is_complete
