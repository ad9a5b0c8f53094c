"""Chunks parted at the strongest separators."""

from collections.abc import Callable
from typing import Any

import pytest
from chunk_checks import (
    LENGTHS,
    SIZES,
    TEXTS,
    check_chunks,
)
from hypothesis import given, settings
from stress import amount

from nodekin.nodegraph import RecursiveSplitter


@given(TEXTS, SIZES, LENGTHS)
@settings(max_examples=amount(100, 300))
def test_recursive_chunks_cover_text(text: str, sizes: tuple[int, int], length: Callable) -> None:
    splitter = RecursiveSplitter(*sizes, length=length)
    spans = splitter.spans(text)
    check_chunks(text, spans, *sizes, length)
    assert splitter(text) == [text[begin:end] for begin, end in spans]


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
