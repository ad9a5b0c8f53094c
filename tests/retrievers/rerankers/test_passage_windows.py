"""Long passages cut into windows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import count_tokens
from nodekin.nodegraph.splitters.chunking import measured
from nodekin.retrievers.rerankers.cross_encoder_reranker import default_overlap, passage_windows

TEXTS = st.text(st.sampled_from("ab c\n.,!?长江茶。，、；“”1 "), max_size=200)


def windows_of(text, limit, overlap, length):
    return passage_windows(text, limit, overlap, measured(text, length))


def cut(*args):
    return [args[0][begin:end] for begin, end in windows_of(*args)]


def test_windows_start_and_end_at_sentences() -> None:
    text = "长江是中国最长的河流。它发源于青海省。它流入东海。茶是一种饮品。"
    assert cut(text, 20, 10, len) == [
        "长江是中国最长的河流。它发源于青海省。",
        "它发源于青海省。它流入东海。",
        "它流入东海。茶是一种饮品。",
    ]


def test_windows_split_at_clauses_then_words() -> None:
    assert cut("one two, three four, five six", 16, 0, len) == [
        "one two,",
        "three four,",
        "five six",
    ]
    assert cut("one two, three four", 10, 0, len) == ["one two,", "three four"]
    assert cut("aaa bbb ccc", 8, 4, len) == ["aaa bbb", "bbb ccc"]
    assert cut("abcdefghij", 4, 2, len) == ["abcd", "cdef", "efgh", "ghij"]
    assert cut("abcdefghij", 4, 0, len) == ["abcd", "efgh", "ij"]


def test_default_overlap_is_limited() -> None:
    assert [default_overlap(limit) for limit in (1, 7, 70, 500)] == [0, 2, 20, 80]
    windows = windows_of("x" * 1000, 350, default_overlap(350), len)
    shared = [one[1] - two[0] for one, two in pairwise(windows)]
    assert all(70 <= each <= 80 for each in shared)


def test_character_above_limit_is_one_window() -> None:
    assert cut("aXb", 2, 1, lambda text: len(text) + 9 * text.count("X")) == ["a", "X", "b"]


@given(TEXTS, st.integers(1, 30), st.integers(0, 20), st.sampled_from([len, count_tokens]))
def test_windows_cover_any_text(text, limit, overlap, length) -> None:
    overlap = min(overlap, limit - 1)
    windows = windows_of(text, limit, overlap, length)
    assert windows
    seen = [False] * len(text)
    for begin, end in windows:
        assert 0 <= begin <= end <= len(text)
        assert length(text[begin:end]) <= limit
        seen[begin:end] = [True] * (end - begin)
    assert all(was or c.isspace() for was, c in zip(seen, text, strict=True))
    for (begin, end), (after, later) in pairwise(windows):
        assert begin < after
        assert end < later
        assert length(text[after:end]) <= overlap  # the shared text
    assert windows == windows_of(text, limit, overlap, length)


@given(st.integers(1, 400), st.integers(4, 60))
def test_windows_measure_length_rarely(size, limit) -> None:
    calls = []

    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    windows = windows_of("x" * size, limit, default_overlap(limit), length)
    assert len(calls) <= 1 + 24 * len(windows)
