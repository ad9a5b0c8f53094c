"""Chunks of whole sentences."""

from collections.abc import Callable

import pytest
from chunk_checks import LENGTHS, SIZES, TEXTS, check_chunks
from hypothesis import given, settings
from stress import amount

from nodekin.nodegraph import SentenceSplitter
from nodekin.nodegraph.splitters.sentences import sentence_spans


@given(TEXTS, SIZES, LENGTHS)
@settings(max_examples=amount(100, 300))
def test_sentence_chunks_cover_text(text: str, sizes: tuple[int, int], length: Callable) -> None:
    splitter = SentenceSplitter(*sizes, length=length)
    spans = splitter.spans(text)
    check_chunks(text, spans, *sizes, length)
    assert splitter(text) == [text[begin:end] for begin, end in spans]


@given(TEXTS)
def test_fitting_sentences_stay_whole(text: str) -> None:
    sentences = sentence_spans(text)
    size = max([1, *(end - begin for begin, end in sentences)])
    for begin, end in SentenceSplitter(size, size // 2, length=len).spans(text):
        assert begin in [first for first, _ in sentences]
        assert end in [last for _, last in sentences]


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
    ],
)
def test_sentence_splitter_packs_sentences(
    size: int, overlap: int, text: str, chunks: list[str]
) -> None:
    made = SentenceSplitter(size, overlap, length=len)(text)
    assert made == [chunk.strip() for chunk in chunks]
