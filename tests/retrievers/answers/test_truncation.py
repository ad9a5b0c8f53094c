import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import count_tokens
from nodekin.retrievers.answers.sources import cut, split

TEXTS = st.lists(
    st.sampled_from(
        ["Tea is hot. ", "茶很热。", "Rivers flow!\n", "河流。\n\n", "x" * 30 + " ", "好" * 20, " "]
    ),
    max_size=12,
).map("".join)
LENGTHS = st.sampled_from([len, count_tokens, lambda text: len(text) // 4 + 1])


@pytest.mark.parametrize(
    ("text", "longest", "at", "expected"),
    [
        ("One. Two. Three. Four.", 100, 0, "One. Two. Three. Four."),
        ("One. Two. Three. Four.", 9, 0, "One. Two."),
        ("One. Two. Three. Four.", 12, 17, "Three. Four."),
        ("One. Two. Three. Four.", 16, 5, "One. Two. Three."),
        ("第一句。第二句。第三句。", 8, 9, "第二句。第三句。"),
        ("A sentence of many words. End.", 13, 0, "A sentence of"),
        ("A sentence of many words. End.", 15, 0, "A sentence of"),
        ("一个没有句号的很长的句子", 5, 0, "一个没有句"),
        ("Tea.", 0, 0, ""),
    ],
)
def test_cut_at_sentence_ends_around_a_place(text, longest, at, expected) -> None:
    assert cut(text, lambda part: len(part) <= longest, at) == expected


@given(TEXTS, st.integers(0, 40), LENGTHS, st.integers(0, 200))
def test_cut_text_fits_and_is_a_part(text, longest, length, at) -> None:
    part = cut(text, lambda part: length(part) <= longest, at)
    assert part in text
    assert not part or length(part) <= longest


@given(TEXTS, st.integers(1, 40), LENGTHS)
def test_parts_fit_and_lose_nothing(text, longest, length) -> None:
    parts = split(text, lambda part: length(part) <= longest)
    assert all(length(part) <= longest for part in parts)
    if length("x") <= longest:
        assert "".join("".join(parts).split()) == "".join(text.split())
