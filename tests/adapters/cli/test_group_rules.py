from hypothesis import given
from hypothesis import strategies as st

from nodekin.adapters.cli.group_rules import split_passages


def _texts(text, **settings):
    return [node.text for node in split_passages(text, **settings)]


def test_headings_stay_with_what_follows():
    assert _texts("# 茶\n绿茶。\n\nTitle\n=====\n\nText.") == [
        "# 茶\n绿茶。",
        "Title\n=====\n\nText.",
    ]


def test_a_heading_at_the_end_is_not_lost():
    assert _texts("Text.\n\n## More\n") == ["Text.", "## More"]


def test_long_paragraphs_are_parted():
    parts = _texts("绿茶不经过发酵。" * 20, size=40)
    assert len(parts) > 3
    assert "".join(parts) == "绿茶不经过发酵。" * 20


@given(st.text(st.sampled_from("ab茶。#=- \n."), max_size=200), st.integers(1, 50))
def test_nothing_is_lost_and_places_are_true(text, size):
    nodes = split_passages(text, size)
    assert all(text[node.start : node.end] == node.text for node in nodes)
    ends = [0, *(node.end for node in nodes)]
    starts = [*(node.start for node in nodes), len(text)]
    assert all(not text[end:start].strip() for end, start in zip(ends, starts, strict=True))
