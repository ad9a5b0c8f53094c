"""Chunks of sentences and of parts at the strongest separators, and their lengths."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chunk_checks import LENGTHS, LONG_LINES, SIZES, TEXTS, check_chunks
from support.stress import amount

from nodekin.nodegraph import (
    MarkdownSplitter,
    PassageSplitter,
    RecursiveSplitter,
    SentenceSplitter,
    count_tokens,
)
from nodekin.nodegraph.splitters.chunking import locate, measured, shorten


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
        ((0, 0), "chunk_size must be 1 or more, got 0"),
        ((-5, 0), "chunk_size must be 1 or more, got -5"),
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
    longer = text + " " * 2_000  # counted once
    assert measured(longer, count_tokens)(start, end) == count_tokens(text[start:end])
    assert measured(text, len)(start, end) == end - start


@pytest.mark.parametrize("kind", [SentenceSplitter, RecursiveSplitter])
@given(TEXTS, SIZES, LENGTHS)
@settings(max_examples=amount(100, 300))
def test_chunks_cover_text(
    kind: Any, text: str, sizes: tuple[int, int], length: Callable[[str], int]
) -> None:
    splitter = kind(*sizes, length=length)
    spans = splitter.spans(text)
    check_chunks(text, spans, *sizes, length)
    assert splitter(text) == [text[begin:end] for begin, end in spans]


@pytest.mark.parametrize(
    ("size", "overlap", "text", "chunks"),
    [
        (6, 0, "一二。三四。五六。", ["一二。三四。", "五六。"]),
        (6, 3, "一二。三四。五六。", ["一二。三四。", "三四。五六。"]),
        (6, 2, "一二。三四。五六。", ["一二。三四。", "五六。"]),
        (9, 6, "一二。三四。五六。七八。", ["一二。三四。五六。", "三四。五六。七八。"]),
        (4, 0, "一二，三四，五六。", ["一二，", "三四，", "五六。"]),
        (5, 0, "one two three four", ["one", "two", "three", "four"]),
        (3, 0, "一二三四五六七", ["一二三", "四五六", "七"]),
        (8, 4, "a! b! c! d!", ["a! b! c!", "c! d!"]),  # "b! c!" would be 5 to repeat
        (10, 0, "He ran. It hid.", ["He ran.", "It hid."]),
        (15, 0, "He ran. It hid.", ["He ran. It hid."]),
        (14, 0, "He ran. It hid.", ["He ran.", "It hid."]),
        (3, 0, "abcdefg", ["abc", "def", "g"]),
        (5, 0, "", []),
        (5, 0, " \n ", []),
        (7, 0, "He ran.\n\n---\n\nIt hid.", ["He ran.", "---", "It hid."]),
        (2, 0, "# #", ["#", "#"]),
    ],
)
def test_sentence_splitter_packs_sentences(
    size: int, overlap: int, text: str, chunks: list[str]
) -> None:
    made = SentenceSplitter(size, overlap, length=len)(text)
    assert made == [chunk.strip() for chunk in chunks]


@pytest.mark.parametrize(
    ("size", "overlap", "text", "chunks"),
    [
        (9, 0, "aa bb\ncc\n\ndd ee", ["aa bb\ncc", "dd ee"]),
        (6, 0, "aa bb\ncc\n\ndd ee", ["aa bb", "cc", "dd ee"]),
        (20, 0, "aa bb\ncc\n\ndd ee", ["aa bb\ncc\n\ndd ee"]),
        (5, 0, "aa\r\n\r\nbb\r\n\r\ncc", ["aa", "bb", "cc"]),
        (5, 0, "一二三。四五六。", ["一二三。", "四五六。"]),
        (4, 0, "一二“三。”四", ["一二“三", "。”", "四"]),
        (7, 0, "一二“三。”四", ["一二“三。”四"]),
        (5, 3, "a b c d e", ["a b c", "b c d", "c d e"]),
        (2, 0, "abcde", ["ab", "cd", "e"]),
        (2, 1, "abcde", ["ab", "cd", "e"]),
        (4, 0, "ab\n  \u3000\ncd", ["ab", "cd"]),
    ],
)
def test_recursive_splitter_uses_strongest_separators(
    size: int, overlap: int, text: str, chunks: list[str]
) -> None:
    assert RecursiveSplitter(size, overlap, length=len)(text) == chunks


def test_given_separators_are_used() -> None:
    splitter = RecursiveSplitter(4, 0, separators=[r"\|"], length=len)
    assert splitter("ab|cd|efghij") == ["ab|", "cd|", "efgh", "ij"]
    assert RecursiveSplitter(3, 0, separators=[], length=len)("ab cd") == ["ab", "cd"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"separators": "\n\n"}, "a list of expressions, not one"),
        ({"separators": ["("]}, r"must be regular expressions, got '\('"),
        ({"separators": [r"\s*"]}, "matches the empty text"),
    ],
)
def test_invalid_separators_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecursiveSplitter(**settings)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\u3000", 0),
        ("长江有多长？", 6),
        ("tea", 1),
        ("kilometres", 2),
        ("6300", 2),
        ("snake_case __init__", 2 + 1 + 3),
        ("I'm 3.14.", 3 + 4),
        ("カタカナ한국어ไทย", 4 + 3 + 3),
        ("Größe", 1),
    ],
)
def test_count_tokens_of_texts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(), st.text())
def test_count_tokens_of_parts_bounds_whole(a: str, b: str) -> None:
    assert max(count_tokens(a), count_tokens(b)) <= count_tokens(a + b)
    assert count_tokens(a + b) <= count_tokens(a) + count_tokens(b)


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Understanding misunderstandings", "Understanding "),
        ("1234567890 and more", "1234567890 "),
        ("茶是一种饮料，很多人喝。", "茶是一种"),
        ("a" * 60, "a" * 24),
        ("ab", "ab"),
    ],
)
def test_shorten_ends_at_whole_word(text: str, beginning: str) -> None:
    assert shorten(text, 4) == beginning


WRONG_TYPES = [
    *((splitter, "chunk_size") for splitter in (SentenceSplitter, RecursiveSplitter)),
    *((splitter, "chunk_overlap") for splitter in (SentenceSplitter, RecursiveSplitter)),
    *((splitter, "length") for splitter in (SentenceSplitter, RecursiveSplitter)),
    (RecursiveSplitter, "separators"),
    *((MarkdownSplitter, name) for name in ("max_level", "chunk_size", "length")),
    *((PassageSplitter, name) for name in ("chunk_size", "length", "headings")),
]


@pytest.mark.parametrize(("splitter", "name"), WRONG_TYPES)
@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}, b"x"])
def test_wrong_type_of_setting_raises(splitter: type, name: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name} must be .*, got "):
        splitter(**{name: value})


@pytest.mark.parametrize("value", ["x", True, None])
def test_chunk_size_must_be_integer(value: object) -> None:
    with pytest.raises(TypeError, match=f"^chunk_size must be an integer, got {value!r}$"):
        SentenceSplitter(chunk_size=value)
