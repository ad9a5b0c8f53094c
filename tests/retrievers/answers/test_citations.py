import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Node
from nodekin.retrievers import ScoredNode
from nodekin.retrievers.answers.answer import Source, cited_numbers, flag_cited


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Tea [1].", [1]),
        ("茶【1】，河［2］。", [1, 2]),
        ("Tea [1, 3] and [2，4]、[5；6].", [1, 3, 2, 4, 5, 6]),
        ("Tea [1][3][1].", [1, 3]),
        ("Tea [2-4], [7–8].", [2, 3, 4, 7, 8]),
        ("Tea [^2].", [2]),
        ("Tea [Passage 2], [Sources 1 and 3], 【资料4】, [来源 5、6].", [2, 1, 3, 4, 5, 6]),
        ("Tea 【1†source】.", [1]),
        ("Tea [1†L2-L9].", [1]),
        ("[4-2]", [4, 2]),
        ("(1) Tea. （2）茶。 1. One", []),
        ("In [2019] and [1234].", []),
        ("See [1](https://example.org).", []),
        ("`x[1]` and ```\ny[2]\n``` but [3]", [3]),
        ("```\nan open fence [1]", []),
        ("[] [a] [1.5] [-1] [note 1]", []),
        ("[1†tea, 2†milk and 3] [# 4] [Source #5,6]", [1, 2, 3, 4, 5, 6]),
        (f"[{', '.join(map(str, range(1, 41)))}, 'x']", []),  # takes for ever if read in many ways
        (f"[{' and '.join(f'{n}†a' for n in range(1, 41))}, 'x'", []),
        (f"[{'1†a and 2 and ' * 40}x", []),
        ("", []),
    ],
)
def test_numbers_that_are_cited(text, numbers) -> None:
    assert cited_numbers(text) == numbers


@given(st.text(alphabet="[]【】0123456789-–,，、 and源来†^`(", max_size=60))
def test_any_text_can_be_read(text) -> None:
    numbers = cited_numbers(text)
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number <= 999 for number in numbers)


@given(st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=4), max_size=5))
def test_written_citations_are_parsed(groups) -> None:
    text = " tea ".join(f"[{', '.join(map(str, group))}]" for group in groups)
    assert cited_numbers(text) == list(dict.fromkeys(n for group in groups for n in group))


def test_cited_sources_are_marked() -> None:
    sources = [Source(n, ScoredNode(Node("x"), 1.0), "x") for n in (1, 2, 3)]
    marked, notes = flag_cited(sources, "Tea [2], [0] and [5-7].", certain=[3])
    assert [source.cited for source in marked] == [False, True, True]
    assert notes == ["the answer cites [0], [5], [6], [7], which is the number of no source"]
    assert flag_cited(sources, "[900-999]")[1][0].endswith(
        "and 92 more, which is the number of no source"
    )


def test_eight_unknown_numbers_are_listed_whole() -> None:
    (note,) = flag_cited([], "[10-17]")[1]
    assert note.startswith("the answer cites [10], [11], [12]")
    assert "more" not in note
