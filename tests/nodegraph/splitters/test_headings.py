"""Sections of Markdown, and their headings."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chunk_checks import LENGTHS, SIZES, TEXTS, check_chunks

from nodekin.nodegraph import MarkdownSplitter, NodeGraph
from nodekin.nodegraph.splitters.headings import headings_in, sections_of


@given(TEXTS, st.none() | SIZES, LENGTHS, st.integers(1, 6))
def test_markdown_sections_cover_text(
    text: str, sizes: tuple[int, int] | None, length: Callable, max_level: int
) -> None:
    size, overlap = sizes or (10**9, 0)
    splitter = MarkdownSplitter(max_level, sizes and size, overlap, length)
    nodes = splitter(text)
    assert [node.text for node in nodes] == [text[node.start : node.end] for node in nodes]
    check_chunks(text, [(node.start or 0, node.end or 0) for node in nodes], size, overlap, length)
    for node in nodes:
        level, headings = node.own_metadata["level"], node.own_metadata["headings"]
        assert level <= max_level
        assert len(headings) <= level
        assert node.own_metadata["heading"] == (headings[-1] if level else "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_level": 0}, "max_level must be from 1 to 6, got 0"),
        ({"max_level": 7}, "max_level must be from 1 to 6, got 7"),
        ({"chunk_size": 0}, "chunk_size must be 1 or more"),
        ({"chunk_size": 3, "chunk_overlap": 3}, "less than chunk_size"),
        ({"chunk_overlap": 10}, "requires a chunk_size"),
    ],
)
def test_invalid_markdown_settings_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MarkdownSplitter(**settings)


def sections(text: str, **settings: Any) -> list[tuple[int, list[str], str]]:
    nodes = MarkdownSplitter(**settings)(text)
    return [(n.own_metadata["level"], n.own_metadata["headings"], n.text) for n in nodes]


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        (
            "Before.\n# A\na\n## B\nb\n### C\n## D\nd\n# E\n### F\nf",
            {},
            [
                *((0, [], "Before."), (1, ["A"], "# A\na"), (2, ["A", "B"], "## B\nb")),
                *((3, ["A", "B", "C"], "### C"), (2, ["A", "D"], "## D\nd"), (1, ["E"], "# E")),
                (3, ["E", "F"], "### F\nf"),
            ],
        ),
        (
            "# A\n## B\nb\n### C\nc",
            {"max_level": 2},
            [(1, ["A"], "# A"), (2, ["A", "B"], "## B\nb\n### C\nc")],
        ),
        (
            "Tea\n===\na\n\nGreen\n---\nb\n\n---\nc",  # underlined
            {},
            [(1, ["Tea"], "Tea\n===\na"), (2, ["Tea", "Green"], "Green\n---\nb\n\n---\nc")],
        ),
        (
            "- item\n---\n> quote\n===\n| a |\n---\n    code\n---",
            {},
            [(0, [], "- item\n---\n> quote\n===\n| a |\n---\n    code\n---")],
        ),
        (
            "# A\r\n```\r\n# no\r\n```\r\nB\r\n---\r\nb",
            {},
            [(1, ["A"], "# A\r\n```\r\n# no\r\n```"), (2, ["A", "B"], "B\r\n---\r\nb")],
        ),
        (
            "---\ntitle: Tea\n---\n# A\na",  # front matter
            {},
            [(0, [], "---\ntitle: Tea\n---"), (1, ["A"], "# A\na")],
        ),
        ("---\n\n# A\n\n---\na", {}, [(0, [], "---"), (1, ["A"], "# A\n\n---\na")]),
        (
            "# A\n一二三四五。六七八九十。\n## B\nb",
            {"chunk_size": 8, "length": len},
            [
                *((1, ["A"], "# A"), (1, ["A"], "一二三四五。"), (1, ["A"], "六七八九十。")),
                (2, ["A", "B"], "## B\nb"),
            ],
        ),
    ],
)
def test_headings_start_sections(
    text: str, settings: dict[str, Any], expected: list[tuple[int, list[str], str]]
) -> None:
    assert sections(text, **settings) == expected


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
def test_heading_lines_are_recognized(line: str, heading: str | None) -> None:
    nodes = MarkdownSplitter()(f"x\n\n{line}\ny")
    assert [n.own_metadata["heading"] for n in nodes][1:] == ([] if heading is None else [heading])


@pytest.mark.parametrize(
    "fenced",
    [
        *("```\n# no\n```", "```python\n# no\nx\n---\n```", "~~~\n# no\n```\n# no\n~~~"),
        *("````\n```\n# no\n```\n# no\n````", "   ```\n# no\n   ```  \nx"),
        "```\n# no\n~~~\n# no\n``` x\n# no\n```",
    ],
)
def test_code_has_no_headings(fenced: str) -> None:
    text = f"# A\n{fenced}\n# B"
    assert sections(text) == [(1, ["A"], f"# A\n{fenced}"), (1, ["B"], "# B")]
    unclosed = "# A\n```\n# no\n## no"
    assert sections(unclosed) == [(1, ["A"], unclosed)]


LONG_HEADINGS = [
    ("a.md", "# {}\n\nThe end is near. It is green.\n"),
    ("a.md", "{}\n===\n\nThe end is near. It is green.\n"),
    ("a.md", "# {}\n## {}\n### {}\n#### {}\n##### {}\n###### {}\n\nIt is green. It is near."),
    ("a.md", "# Tea\n\n## {}\n\nThe end is near. It is green.\n"),
    ("a.adoc", "= {}\n\nThe end is near. It is green.\n"),
    ("a.org", "* {}\n\nThe end is near. It is green.\n"),
    ("a.tex", "\\section{{{}}}\n\nThe end is near. It is green.\n"),
    ("a.toml", "[{}]\ntea = 1\n"),
    ("a.html", "<html><body><h1>{}</h1><p>The end is near. It is green.</p></body></html>"),
    ("a.html", "<html><title>{}</title><body><p>It is near. It is green.</p></body></html>"),
    ("a.jsonl", '{{"title": "{}", "text": "The end is near. It is green."}}'),
    ("a.jsonl", '{{"headings": ["Tea", "{}"], "text": "The end is near. It is green."}}'),
    ("a.eml", "Subject: {}\n\nThe end is near. It is green.\n"),
]


@pytest.mark.parametrize(("name", "form"), LONG_HEADINGS)
def test_long_headings_are_truncated_in_copies(tmp_path, name, form):
    heading = " ".join(f"Tea number {number} is green." for number in range(300))
    (tmp_path / name).write_text(form.format(*[heading] * form.count("{}")))
    graph = NodeGraph(tmp_path, progress=False)
    graph.search("tea")
    for group in (name for name in graph.groups if name != "ROOT"):
        for node in [*graph.nodes(group), *graph.nodes("section")]:
            assert all(len(text) <= 200 for text in node.own_metadata.get("headings", ()))
            assert len(node.searched_text) - len(node.text) < 6 * 210
            assert len(graph.reader.headings(node)) <= 7


def test_underlined_long_heading_is_text():
    heading = "Tea. " * 300
    text = f"{heading}\n{'=' * 2_000}\n\nGreen."
    sections = list(sections_of(text, headings_in(text, "a.rst")))
    assert [section.path for section in sections] == [()]
