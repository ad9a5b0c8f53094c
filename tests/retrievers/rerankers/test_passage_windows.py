"""Long passages cut into windows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import count_tokens
from nodekin.nodegraph.splitters.chunking import measured
from nodekin.retrievers.rerankers.cross_encoder_reranker import passage_windows

TEXTS = st.text(st.sampled_from("ab c\n.,!?长江茶。，、；“”1 "), max_size=200)


def windows_of(text, limit, overlap, length):
    return passage_windows(text, limit, overlap, measured(text, length))


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
