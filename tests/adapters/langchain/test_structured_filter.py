import pytest
from langchain_core.structured_query import (
    Comparator,
    Comparison,
    Operation,
    Operator,
    StructuredQuery,
)

from nodekin.adapters.langchain import StructuredFilter

COMPARED = {
    "eq": Comparison(Comparator.EQ, "topic", "tea"),
    "from": Comparison(Comparator.GTE, "year", 2000),
    "to": Comparison(Comparator.LT, "year", 2012),
    "in": Comparison(Comparator.IN, "topic", ["tea", "coffee"]),
}


@pytest.mark.parametrize(
    ("names", "filter"),
    [
        (["eq"], {"topic": "tea"}),
        (["from", "to"], {"year": {"gte": 2000, "lt": 2012}}),
        (["in", "from"], {"topic": ["tea", "coffee"], "year": {"gte": 2000}}),
    ],
)
def test_conditions_joined_by_and(names, filter):
    directive = Operation(Operator.AND, [COMPARED[name] for name in names])
    assert directive.accept(StructuredFilter()) == filter


def test_filters_that_are_not_supported_are_errors():
    made = StructuredFilter()
    either = Operation(Operator.OR, [COMPARED["eq"], Comparison(Comparator.EQ, "topic", "sea")])
    assert either.accept(made) == {"topic": ["tea", "sea"]}
    day = {"date": "2024-01-31", "type": "date"}
    assert Comparison(Comparator.LTE, "day", day).accept(made) == {"day": {"lte": "2024-01-31"}}
    both = Operation(Operator.AND, [COMPARED["eq"], COMPARED["in"]])
    assert both.accept(made) == {"topic": "tea"}
    assert made.visit_structured_query(StructuredQuery(query="x", filter=None)) == ("x", {})
    for wrong in (
        Operation(Operator.OR, [COMPARED["eq"], COMPARED["from"]]),
        Operation(Operator.OR, [COMPARED["from"], COMPARED["to"]]),
        Operation(Operator.NOT, [COMPARED["eq"]]),
        Operation(Operator.AND, [COMPARED["eq"], Comparison(Comparator.EQ, "topic", "sea")]),
        Operation(Operator.AND, [COMPARED["from"], COMPARED["from"]]),
        Comparison(Comparator.NE, "topic", "tea"),
        Comparison(Comparator.LIKE, "topic", "t%"),
    ):
        with pytest.raises(ValueError, match=r"."):
            wrong.accept(made)
