"""Filters of the command line."""

import pytest

from nodekin.adapters.cli.search_command import parse_conditions
from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters


@pytest.mark.parametrize(
    ("conditions", "value", "good"),
    [
        (["f=2020"], 2020, True),
        (["f=2020"], "2020", True),
        (["f = 陆羽"], "陆羽", True),
        (["f=http://a?b=c"], "http://a?b=c", True),
        (["f=true"], True, True),
        (["f=nan"], "nan", True),
        (["f=1", "f=2"], 2, True),
        (['{"f": {"like": "t%"}}'], "Tea", True),
        (['{"f": {"any": ["tea", "ice"]}}', "f=x"], ["ice", "x"], True),
    ],
)
def test_parse_conditions_decides(conditions, value, good):
    assert parse_filters(parse_conditions(conditions)).matches(Node("", {"f": value})) is good


def test_parse_conditions_with_operator_and_document_names():
    assert parse_filters(parse_conditions(["or=5"])).matches(Node("", {"or": 5}))
    by_file = parse_filters(parse_conditions(["document.id=notes/a.md"]))
    assert by_file.matches(Node("", document_id="notes/a.md"))
    assert parse_conditions([]) == {}


@pytest.mark.parametrize("given", ["year", "=2", "year=", " = ", "", "{"])
def test_invalid_condition_raises(given):
    with pytest.raises(ValueError, match=r"filter|Expecting"):
        parse_conditions([given])
