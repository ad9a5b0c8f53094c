"""Texts, sizes and length functions for testing splitters, and a function that checks chunks."""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from nodekin.nodegraph import count_tokens
from support.stress import LONG

ENGLISH = st.text("ab .,!?\n", max_size=120)


CHINESE = st.text("天地。！？，；“”\n　", max_size=120)


WORDS = st.sampled_from("茶|是饮料|。|，|Tea| is| a drink|. |, |\n|\n\n|# | 3.5|```\n".split("|"))


MIXED = st.lists(WORDS, max_size=60).map("".join)


TEXTS = st.one_of(ENGLISH, CHINESE, MIXED, st.text(max_size=60))


def thirds(text: str) -> int:
    """Return the length of a text such that the lengths of its parts do not add up to the total."""
    return len(text) // 3 + 1


SIZES = st.tuples(st.integers(2, 30), st.integers(0, 29)).map(lambda s: (s[0], s[1] % s[0]))


LENGTHS = st.sampled_from([count_tokens, len, thirds])


def check_chunks(
    text: str, spans: Sequence[tuple[int, int]], size: int, overlap: int, length: Callable
) -> None:
    covered = 0
    for begin, end in spans:
        assert begin < end
        assert text[begin:end] == text[begin:end].strip()
        assert length(text[begin:end]) <= size
        assert covered < end, "each reaches further than the one before"
        assert not text[covered:begin].strip(), "only white space is lost"
        assert length(text[begin:covered]) <= overlap or begin >= covered
        covered = end
    assert not text[covered:].strip()
    starts = [begin for begin, _ in spans]
    assert starts == sorted(set(starts))


MANY = 1_000_000 if LONG else 200_000

LONG_LINES = {
    "no punctuation": "a" * 10 * MANY,
    "Chinese without punctuation": "茶" * 3 * MANY,
    "words": "tea " * (MANY // 4),
    "sentences": "In the year 3. He came. " * (MANY // 24),
    "Chinese sentences": "茶是一种饮料，用叶子泡。" * (MANY // 36),
    "full stops": "." * MANY,
    "white space": "# a" + " " * MANY + "b",
}
