from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import (
    MarkdownSplitter,
    RecursiveSplitter,
    SentenceSplitter,
    count_tokens,
    split_paragraphs,
    split_sentences,
)
from nodekin.nodegraph.splitters.sentences import paragraph_spans, sentence_spans

ENGLISH = st.text("ab .,!?\n", max_size=120)
CHINESE = st.text("天地。！？，；“”\n　", max_size=120)
WORDS = st.sampled_from(
    [
        "茶",
        "是饮料",
        "。",
        "，",
        "Tea",
        " is",
        " a drink",
        ". ",
        ", ",
        "\n",
        "\n\n",
        "# ",
        " 3.5",
        "```\n",
    ]
)
MIXED = st.lists(WORDS, max_size=60).map("".join)
TEXTS = st.one_of(ENGLISH, CHINESE, MIXED, st.text(max_size=60))


def thirds(text: str) -> int:
    """Measure a text so that the parts' lengths don't add up to the whole's."""
    return len(text) // 3 + 1


SIZES = st.tuples(st.integers(2, 30), st.integers(0, 29)).map(lambda s: (s[0], s[1] % s[0]))
LENGTHS = st.sampled_from([count_tokens, len, thirds])


def check(
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


@given(TEXTS, SIZES, LENGTHS)
@settings(max_examples=300)
def test_sentence_splitter(text: str, sizes: tuple[int, int], length: Callable) -> None:
    splitter = SentenceSplitter(*sizes, length=length)
    spans = splitter.spans(text)
    check(text, spans, *sizes, length)
    assert splitter(text) == [text[begin:end] for begin, end in spans]


@given(TEXTS, SIZES, LENGTHS)
@settings(max_examples=300)
def test_recursive_splitter(text: str, sizes: tuple[int, int], length: Callable) -> None:
    splitter = RecursiveSplitter(*sizes, length=length)
    spans = splitter.spans(text)
    check(text, spans, *sizes, length)
    assert splitter(text) == [text[begin:end] for begin, end in spans]


@given(TEXTS, st.none() | SIZES, LENGTHS, st.integers(1, 6))
def test_markdown_splitter(
    text: str, sizes: tuple[int, int] | None, length: Callable, max_level: int
) -> None:
    size, overlap = sizes or (10**9, 0)
    splitter = MarkdownSplitter(max_level, sizes and size, overlap, length)
    nodes = splitter(text)
    assert [node.text for node in nodes] == [text[node.start : node.end] for node in nodes]
    check(text, [(node.start or 0, node.end or 0) for node in nodes], size, overlap, length)
    for node in nodes:
        level, headings = node.own_metadata["level"], node.own_metadata["headings"]
        assert level <= max_level
        assert len(headings) <= level
        assert node.own_metadata["heading"] == (headings[-1] if level else "")


@given(TEXTS)
def test_sentences_and_paragraphs(text: str) -> None:
    for spans, split in (
        (sentence_spans(text), split_sentences),
        (paragraph_spans(text), split_paragraphs),
    ):
        check(text, spans, len(text), 0, len)
        assert split(text) == [text[begin:end] for begin, end in spans]


@given(TEXTS)
def test_sentences_stay_whole_where_they_fit(text: str) -> None:
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
def test_sentence_chunks(size: int, overlap: int, text: str, chunks: list[str]) -> None:
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
def test_recursive_chunks(size: int, overlap: int, text: str, chunks: list[str]) -> None:
    assert RecursiveSplitter(size, overlap, length=len)(text) == chunks


def test_own_separators() -> None:
    splitter = RecursiveSplitter(4, 0, separators=[r"\|"], length=len)
    assert splitter("ab|cd|efghij") == ["ab|", "cd|", "efgh", "ij"]
    assert RecursiveSplitter(3, 0, separators=[], length=len)("ab cd") == ["ab", "cd"]


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
def test_bad_sizes(splitter: Callable, sizes: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        splitter(*sizes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"separators": "\n\n"}, "a list of expressions, not one"),
        ({"separators": ["("]}, r"'\(' is no regular expression"),
        ({"separators": [r"\s*"]}, "matches the empty text"),
    ],
)
def test_bad_separators(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RecursiveSplitter(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_level": 0}, "max_level must be in 1 to 6, not 0"),
        ({"max_level": 7}, "max_level must be in 1 to 6, not 7"),
        ({"chunk_size": 0}, "chunk_size must be 1 or more"),
        ({"chunk_size": 3, "chunk_overlap": 3}, "less than chunk_size"),
    ],
)
def test_bad_markdown_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MarkdownSplitter(**settings)


def sections(text: str, **settings: Any) -> list[tuple[int, list[str], str]]:
    nodes = MarkdownSplitter(**settings)(text)
    return [(n.own_metadata["level"], n.own_metadata["headings"], n.text) for n in nodes]


def test_markdown_headings_nest() -> None:
    text = "Before.\n# A\na\n## B\nb\n### C\n## D\nd\n# E\n### F\nf"
    assert sections(text) == [
        (0, [], "Before."),
        (1, ["A"], "# A\na"),
        (2, ["A", "B"], "## B\nb"),
        (3, ["A", "B", "C"], "### C"),
        (2, ["A", "D"], "## D\nd"),
        (1, ["E"], "# E"),
        (3, ["E", "F"], "### F\nf"),
    ]


def test_markdown_max_level() -> None:
    text = "# A\n## B\nb\n### C\nc"
    assert sections(text, max_level=2) == [
        (1, ["A"], "# A"),
        (2, ["A", "B"], "## B\nb\n### C\nc"),
    ]


def test_markdown_underlined_headings() -> None:
    assert sections("Tea\n===\na\n\nGreen\n---\nb\n\n---\nc") == [
        (1, ["Tea"], "Tea\n===\na"),
        (2, ["Tea", "Green"], "Green\n---\nb\n\n---\nc"),
    ]
    assert sections("- item\n---\n> quote\n===\n| a |\n---\n    code\n---") == [
        (0, [], "- item\n---\n> quote\n===\n| a |\n---\n    code\n---")
    ]


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# Tea", "Tea"),
        ("   ## Green tea ##  ", "Green tea"),
        ("#\tTab", "Tab"),
        ("# C#", "C#"),
        ("# C #", "C"),
        ("# 茶 #1", "茶 #1"),
        ("#", ""),
        ("## ##", ""),
        ("#Tea", None),
        ("####### Seven", None),
        ("    # code", None),
        ("text # no", None),
        ("#!/bin/sh", None),
    ],
)
def test_markdown_heading_lines(line: str, heading: str | None) -> None:
    nodes = MarkdownSplitter()(f"x\n\n{line}\ny")
    assert [n.own_metadata["heading"] for n in nodes][1:] == ([] if heading is None else [heading])


@pytest.mark.parametrize(
    "fenced",
    [
        "```\n# no\n```",
        "```python\n# no\nx\n---\n```",
        "~~~\n# no\n```\n# no\n~~~",
        "````\n```\n# no\n```\n# no\n````",
        "   ```\n# no\n   ```  \nx",
        "```\n# no\n~~~\n# no\n``` x\n# no\n```",
    ],
)
def test_markdown_code_has_no_headings(fenced: str) -> None:
    text = f"# A\n{fenced}\n# B"
    assert sections(text) == [(1, ["A"], f"# A\n{fenced}"), (1, ["B"], "# B")]
    unclosed = "# A\n```\n# no\n## no"
    assert sections(unclosed) == [(1, ["A"], unclosed)]


def test_markdown_windows_line_ends() -> None:
    assert sections("# A\r\n```\r\n# no\r\n```\r\nB\r\n---\r\nb") == [
        (1, ["A"], "# A\r\n```\r\n# no\r\n```"),
        (2, ["A", "B"], "B\r\n---\r\nb"),
    ]


def test_markdown_front_matter_is_no_heading() -> None:
    assert sections("---\ntitle: Tea\n---\n# A\na") == [
        (0, [], "---\ntitle: Tea\n---"),
        (1, ["A"], "# A\na"),
    ]


def test_a_markdown_rule_at_the_top_is_no_front_matter() -> None:
    assert sections("---\n\n# A\n\n---\na") == [(0, [], "---"), (1, ["A"], "# A\n\n---\na")]


def test_markdown_splits_long_sections() -> None:
    text = "# A\n一二三四五。六七八九十。\n## B\nb"
    made = sections(text, chunk_size=8, length=len)
    assert made == [
        (1, ["A"], "# A"),
        (1, ["A"], "一二三四五。"),
        (1, ["A"], "六七八九十。"),
        (2, ["A", "B"], "## B\nb"),
    ]


LONG_LINES = {
    "no punctuation": "a" * 10_000_000,
    "Chinese without punctuation": "茶" * 3_333_333,
    "words": "tea " * 250_000,
    "sentences": "In the year 3. He came. " * 40_000,
    "Chinese sentences": "茶是一种饮料，用叶子泡。" * 30_000,
    "full stops": "." * 1_000_000,
    "white space": "# a" + " " * 1_000_000 + "b",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG_LINES.values(), ids=LONG_LINES)
@pytest.mark.parametrize(
    "splitter",
    [SentenceSplitter(), RecursiveSplitter(), MarkdownSplitter(chunk_size=1024)],
    ids=lambda splitter: type(splitter).__name__,
)
def test_a_long_line(splitter: Callable[[str], list], text: str) -> None:
    chunks = [getattr(chunk, "text", chunk) for chunk in splitter(text)]
    assert text.startswith(chunks[0])
    assert text.rstrip().endswith(chunks[-1])
    assert max(map(count_tokens, chunks)) <= 1024
    assert sum(map(len, chunks)) >= len(text) - text.count(" ")


@pytest.mark.parametrize("text", LONG_LINES.values(), ids=LONG_LINES)
def test_sentences_and_paragraphs_of_a_long_line(text: str) -> None:
    assert split_paragraphs(text) == [text.rstrip()]
    assert sum(map(len, split_sentences(text))) >= len(text) - text.count(" ")


def test_an_overlap_of_whole_sections_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a chunk_size"):
        MarkdownSplitter(chunk_overlap=10)
