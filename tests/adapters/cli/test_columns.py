import click
from hypothesis import given
from hypothesis import strategies as st

from nodekin.adapters.cli.snippet import columns, cut, pad, wrap

TEXTS = st.text(st.sampled_from("ab cé茶，。《》 x1！\n\te\u0301"), max_size=120)


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


@given(TEXTS, st.integers(6, 40))
def test_nothing_is_lost_and_lines_fit(text, width):
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(columns(line) <= width + 2 for line in lines)


@given(TEXTS, st.integers(1, 40))
def test_what_is_cut_fits_and_says_so(text, width):
    short = cut(text, width)
    assert columns(short) <= width
    assert short == text or short.endswith("…")
