from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.adapters.cli.snippet import best_sentence, columns, matches, snippet

TEXTS = st.text(st.sampled_from("ab 茶绿。. \nTea"), max_size=200)


def _found(text, query):
    return [text[begin:end] for begin, end in matches(text, query)]


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Many rivers ran.", "What is a river?", ["rivers"]),
        ("绿茶不发酵，红茶发酵。", "绿茶怎么发酵", ["绿茶", "发酵", "发酵"]),
        ("他写的《茶经》。", "谁写了茶经", ["茶经"]),
        ("茶是饮品。", "茶", ["茶"]),
        ("C++ and C", "c++", ["C++"]),
        ("Camellia sinensis 茶树", "茶树 camellia", ["Camellia", "茶树"]),
        ("nothing here", "zebra", []),
        ("", "tea", []),
    ],
)
def test_matches(text, query, found):
    assert _found(text, query) == found


def test_the_sentence_with_most_different_words_wins():
    text = "Tea, tea, tea. Green tea is steamed. Milk."
    begin, end = best_sentence(text, matches(text, "steamed tea"))
    assert text[begin:end] == "Green tea is steamed."


def test_a_long_text_is_shown_around_the_match():
    text = "Nothing of note. " * 30 + "Green tea is steamed. " + "And so on it goes. " * 30
    shown = snippet(text, "steamed", 80, "[{}]".format)
    assert shown.startswith("… Green tea is [steamed]. And so on")
    assert shown.endswith(" …")
    assert columns(shown) <= 82


def test_a_match_far_into_one_sentence_is_shown():
    text = "茶" * 300 + "陆羽写了茶经" + "叶" * 300 + "。"
    shown = snippet(text, "陆羽", 60, "[{}]".format)
    assert "[陆羽]" in shown
    assert columns(shown) <= 62


def test_the_part_that_matched_may_be_told():
    text = "One. Two. " * 20 + "Three. " + "Four. " * 20
    at = text.index("Three")
    assert snippet(text, "nothing", 40, str, (at, at + 6)).startswith("… Three. Four.")


@given(TEXTS, st.sampled_from(["tea", "绿茶", "a 茶", ""]), st.integers(20, 100))
def test_a_snippet_fits_and_is_of_the_text(text, query, room):
    shown = snippet(text, query, room, str)
    assert columns(shown) <= room
    bare = "".join(shown.replace("…", "").split())
    assert bare in "".join(text.split())


@given(TEXTS, st.sampled_from(["tea", "绿茶", "a 茶"]))
def test_matches_are_apart_and_in_order(text, query):
    found = matches(text, query)
    assert all(a < b for a, b in found)
    assert all(one[1] < two[0] for one, two in pairwise(found))
