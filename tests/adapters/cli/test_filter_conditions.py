import pytest

from nodekin.adapters.cli.search_command import parse_conditions
from nodekin.nodegraph import Node
from nodekin.retrievers.filters import parse_filters


@pytest.mark.parametrize(
    ("conditions", "value", "good"),
    [
        (["f=2020"], 2020, True),
        (["f=2020"], "2020", True),
        (["f>=2020"], 2019, False),
        (["f>2019.5"], 2020, True),
        (["f>2019.5"], "2020", True),
        (["f<=2020-01-31"], "2020-01-30", True),
        (["f<=2020-01-31"], "31 January 2020 12:00", True),
        (["f = 陆羽"], "陆羽", True),
        (["f=http://a?b=c"], "http://a?b=c", True),
        (["f=true"], True, True),
        (["f=true"], 1, False),
        (["f=nan"], "nan", True),
        (["f!=2020"], 2020, False),
        (["f!=2020"], "2020", False),
        (["f!=2020"], 2021, True),
        (["f!=1", "f!=2"], 2, False),
        (["f~TEA"], "green tea", True),
        (["f~te_"], "tea", False),
        (["f~t%a"], "green tea", False),
        (["f!~tea"], "green tea", False),
        (["f=1", "f=2"], 2, True),
        (["f>=1", "f<9"], 9, False),
        (["f>=1", "f<9", "f!=5"], 5, False),
        (["f=1", "f=5", "f>2"], 1, False),
        (["f in 1, 2"], 2, True),
        (["f nin 1,2"], 2, False),
        (["f any tea,ice"], ["ice", "x"], True),
        (["f all tea,ice"], ["ice", "x"], False),
        (["f contains ea"], "tea", True),
        (["f like t%"], "Tea", True),
        (["f like_case t%"], "Tea", False),
        (["f ne a = b"], "a = b", False),
        (["f exists true"], None, True),
        (["f empty true"], "", True),
        (["metadata.f=1"], 1, True),
    ],
)
def test_conditions_decide(conditions, value, good):
    assert parse_filters(parse_conditions(conditions)).matches(Node("", {"f": value})) is good


def test_fields_with_the_names_of_operators_and_documents():
    assert parse_filters(parse_conditions(["or=5"])).matches(Node("", {"or": 5}))
    by_file = parse_filters(parse_conditions(["document.id~notes"]))
    assert by_file.matches(Node("", document_id="notes/a.md"))
    assert parse_conditions([]) == {}


@pytest.mark.parametrize(
    "given",
    ["year", "=2", "year=", " = ", "", "f exists maybe", "f has 5", "f>=1/2/2024", "f>true"],
)
def test_what_is_no_condition_is_an_error(given):
    with pytest.raises(ValueError, match=r"filter"):
        parse_conditions([given])


@pytest.mark.slow
@pytest.mark.parametrize("part", [" ", "a", "a ", "a\t!", "!", "%", "in "])
def test_reading_takes_time_in_proportion_to_what_a_user_writes(part):
    """With the square of it these would take minutes."""
    long = part * 200_000
    for text in (long, f"f~{long}", f"{long}=5", f"f in {long}"):
        try:
            filter = parse_filters(parse_conditions([text]))
        except ValueError:
            continue
        filter.matches(Node("", {"f": "a " * 200_000}))
