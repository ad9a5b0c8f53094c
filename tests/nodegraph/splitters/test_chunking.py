from collections.abc import Callable

import pytest
from chunk_checks import LONG_LINES
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import (
    MarkdownSplitter,
    PassageSplitter,
    RecursiveSplitter,
    SentenceSplitter,
    count_tokens,
)
from nodekin.nodegraph.splitters.chunking import locate, measured


@pytest.mark.parametrize(
    ("pieces", "text", "spans"),
    [
        ([], "abc", []),
        (["a b", "b c"], "a b c", [(0, 3), (2, 5)]),
        (["a", "a", "a"], "a, a, a", [(0, 1), (3, 4), (6, 7)]),
        (["aa", "aa"], "aaa", [(0, 2), (1, 3)]),
        (["ab ab", "ab ab"], "ab ab ab", [(0, 5), (3, 8)]),
        (["the tea", "the"], "the tea, the cup", [(0, 7), (9, 12)]),
        (["late", "early"], "early, late", [(7, 11), (0, 5)]),
        (["Tea", "new", "cup"], "Tea or cup", [(0, 3), None, (7, 10)]),
        (["a", "a"], "a", [(0, 1), (0, 1)]),
        ([""], "abc", [None]),
        (["abc"], "", [None]),
        (["茶。", "茶。"], "茶。水。茶。", [(0, 2), (4, 6)]),
    ],
)
def test_locate_returns_spans(pieces: list[str], text: str, spans: list) -> None:
    assert locate(pieces, text) == spans


def test_locate_finds_distant_pieces() -> None:
    text = "begin " + "x " * 20_000 + "end"
    assert locate(["begin", "end", "begin"], text) == [(0, 5), (40_006, 40_009), (0, 5)]


class Counting(str):
    """A text that adds up how many characters its searches may have to look at."""

    looked = 0

    def find(self, piece, begin=0, end=None):  # type: ignore[override]
        stop = len(self) if end is None else min(end, len(self))
        Counting.looked += max(0, stop - begin)
        return str.find(self, piece, begin, stop)


def test_locate_is_bounded_for_missing_pieces() -> None:
    text = Counting("word " * 100_000)
    assert locate([f"new {n}" for n in range(2_000)], text) == [None] * 2_000
    assert Counting.looked < 100 * len(text)  # not 2,000 times


@given(st.text("ab ", max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6))))
def test_located_spans_equal_pieces(text: str, cuts: list[tuple[int, int]]) -> None:
    pieces = [text[at : at + size] for at, size in cuts]
    for piece, span in zip(pieces, locate(pieces, text), strict=True):
        assert (span is None) == (piece == "")
        assert span is None or text[slice(*span)] == piece


@given(st.lists(st.text("天ab", min_size=1, max_size=3), max_size=12), st.sampled_from(" \n,"))
def test_locate_finds_ordered_pieces(pieces: list[str], separator: str) -> None:
    expected, at = [], 0
    for piece in pieces:
        expected.append((at, at + len(piece)))
        at += len(piece) + 1
    assert locate(pieces, separator.join(pieces)) == expected


@pytest.mark.parametrize("splitter", [SentenceSplitter, RecursiveSplitter])
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 0), "chunk_size must be 1 or more, not 0"),
        ((-5, 0), "chunk_size must be 1 or more, not -5"),
        ((5, 5), r"less than chunk_size \(5\), not 5"),
        ((5, -1), "chunk_overlap must be 0 or more .* not -1"),
    ],
)
def test_invalid_sizes_raise(splitter: Callable, sizes: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        splitter(*sizes)


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG_LINES.values(), ids=LONG_LINES)
@pytest.mark.parametrize(
    "splitter",
    [
        SentenceSplitter(),
        RecursiveSplitter(),
        MarkdownSplitter(chunk_size=1024),
        PassageSplitter(682),
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_splitters_split_long_lines(splitter: Callable[[str], list], text: str) -> None:
    chunks = [getattr(chunk, "text", chunk) for chunk in splitter(text)]
    assert text.startswith(chunks[0])
    assert text.rstrip().endswith(chunks[-1])
    assert max(map(count_tokens, chunks)) <= 1024
    assert sum(map(len, chunks)) >= len(text) - text.count(" ")


@given(st.text("aB12 _\n.,\u0301é²٣茶ไทยい한", max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_measured_spans_equal_measured_texts(text: str, start: int, end: int) -> None:
    start, end = sorted([min(start, len(text)), min(end, len(text))])
    assert measured(text, count_tokens)(start, end) == count_tokens(text[start:end])
    assert measured(text, len)(start, end) == end - start
