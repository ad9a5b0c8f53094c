from itertools import pairwise

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.adapters.cli.output import best_sentence, columns, cut, matches, pad, snippet, wrap

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
        ("Die Flüsse sind lang, und der Fluss ist tief.", "Fluss", ["Flüsse", "Fluss"]),
        ("Книги и реки", "книга", ["Книги"]),
        ("नदियाँ और पहाड़", "नदियों", ["नदियाँ"]),
        ("เรือจอดในท่าเรือ", "ท่าเรือ", ["เรือ", "ท่าเรือ"]),
        ("ดื่มน้ำชา", "น้ำชา", ["น้ำชา"]),
        ("Tàu ở cảng là tàu", "tàu", ["Tàu", "tàu"]),
        ("x = getUserName(y)", "user name", ["getUserName"]),
        ("call run_target now", "run_target", ["run", "target"]),
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


WRAPPED = st.text(st.sampled_from("ab cé茶，。《》 x1！\n\te\u0301"), max_size=120)


def test_chinese_takes_two_columns_and_marks_none():
    assert columns("绿茶 tea") == 8
    assert columns("《茶》，") == 8
    assert columns("e\u0301") == 1
    assert columns(click.style("绿茶", fg="red")) == 4
    assert pad("茶", 4) == "茶  "


def test_chinese_breaks_anywhere_but_before_a_closing_mark():
    assert wrap("绿茶不发酵，红茶发酵。", 10) == ["绿茶不发酵，", "红茶发酵。"]


def test_words_are_not_broken():
    assert wrap("green tea is steamed", 10) == ["green tea", "is steamed"]
    assert wrap("abcdefghijkl", 5) == ["abcde", "fghij", "kl"]


def test_colour_does_not_count():
    marked = click.style("green", fg="red")
    assert [click.unstyle(line) for line in wrap(f"{marked} tea is good", 9)] == [
        "green tea",
        "is good",
    ]


@given(WRAPPED, st.integers(6, 40))
def test_nothing_is_lost_and_lines_fit(text, width):
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(columns(line) <= width + 2 for line in lines)


@given(WRAPPED, st.integers(1, 40))
def test_what_is_cut_fits_and_says_so(text, width):
    short = cut(text, width)
    assert columns(short) <= width
    assert short == text or short.endswith("…")
