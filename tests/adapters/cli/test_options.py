import pytest

from nodekin.adapters.cli.options import parse_conditions
from nodekin.nodegraph import Node
from nodekin.retrievers import parse_filters


@pytest.mark.parametrize(
    ("condition", "value", "good"),
    [
        ("year=2020", 2020, True),
        ("year=2020", "2020", True),
        ("year>=2020", 2019, False),
        ("year>2019.5", 2020, True),
        ("day<=2020-01-31", "2020-01-30", True),
        ("author = 陆羽", "陆羽", True),
        ("url=http://a?b=c", "http://a?b=c", True),
        ("draft=true", True, True),
        ("draft=true", 1, False),
        ("n=nan", "nan", True),
    ],
)
def test_a_condition_decides(condition, value, good):
    filters = parse_conditions([condition])
    (field,) = filters
    assert parse_filters(filters).matches(Node("", {field: value})) is good


def test_bounds_of_one_field_are_a_range():
    assert parse_conditions(["y>=1", "y<9"]) == {"y": {"gte": 1, "lt": 9}}


@pytest.mark.parametrize("given", [["year"], ["=2"], ["year="], ["y=1", "y>2"]])
def test_what_is_no_condition_is_an_error(given):
    with pytest.raises(ValueError, match=r"filter"):
        parse_conditions(given)
