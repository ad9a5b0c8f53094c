"""Passages that are big enough to answer from."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chunk_checks import LENGTHS, TEXTS, check_chunks

from nodekin.nodegraph import Document, NodeGraph, PassageSplitter, count_tokens
from nodekin.retrievers import Retriever
from nodekin.retrievers.answers.sources import passage_title

BLOCKS = st.sampled_from(
    [
        *("# Tea\n", "## Green 绿\n\n", "### Deep\n", "Title\n=====\n", "Rst\n***\n\n"),
        *("Steps follow:\n\n", "步骤如下：\n", "- one\n- two\n", "1. first\n\n   more of it\n\n"),
        *("| a | b |\n| 茶 | c |\n", "    code()\n\n    more()\n\n"),
        *("```python\nx = 1\n\n# no\ny = 2\n```\n", "```\nunclosed\n"),
        *("A sentence. Another one, with words.\n\n", "茶是一种饮料。绿茶不发酵，红茶发酵。\n"),
        *("\n\n", "  \t"),
    ]
)

DOCUMENTS = st.lists(BLOCKS, max_size=25).map("".join)


@given(TEXTS | DOCUMENTS, st.integers(1, 40), LENGTHS, st.booleans())
def test_passages_cover_text_within_size(
    text: str, size: int, length: Callable, headings: bool
) -> None:
    nodes = PassageSplitter(size, headings, length)(text)
    assert [node.text for node in nodes] == [text[node.start : node.end] for node in nodes]
    check_chunks(text, [(n.start or 0, n.end or 0) for n in nodes], size * 3 // 2, 0, length)
    for node in nodes:
        assert len(node.own_metadata["headings"]) <= (6 if headings else 0)


@given(DOCUMENTS)
def test_small_text_stays_whole(text: str) -> None:
    size = count_tokens(text) * 2 // 3 + 1
    assert [n.text for n in PassageSplitter(size)(text)] == [text.strip()] * bool(text.strip())


def passages(text: str, size: int, **settings) -> list[str]:
    return [node.text for node in PassageSplitter(size, **settings)(text)]


FILLER = "Words that fill the page and say nothing. " * 4  # 36 tokens or so


@pytest.mark.parametrize(
    "block",
    [
        "Boil it like this:\n\n    boil(water)\n\n    pour(water)",
        "Boil it like this:\n\n```python\nboil(water)\n\n# then\npour(water)\n```",
        "Boil it like this:\n\n- boil water\n\n- pour it",
        "Two kinds:\n\n| kind | leaf |\n|---|---|\n| green | raw |",
        *("Say this::\n\n   >>> boil(water)\n   'hot'", "有两种茶：\n\n- 绿茶\n- 红茶"),
        *("有两种茶：\n| 绿茶 | 不发酵 |\n| 红茶 | 发酵 |", "Tea\n***\n\nGreen tea is steamed."),
        "object.boil(water)\n\n   Boil the water, and return it.",
        "- boil water\n\n  for five minutes",
    ],
)
def test_blocks_stay_whole(block: str) -> None:
    text = f"{FILLER}\n\n{block}\n\n{FILLER}"
    assert any(block in passage for passage in passages(text, 40))
    assert len(passages(text, 40)) > 1


def test_introduction_stays_with_long_block() -> None:
    code = "\n".join(f"    step_{number}(water)" for number in range(40))
    first, *rest = passages(f"Do all of this:\n\n{code}", 60)
    assert first.startswith("Do all of this:\n\n    step_0(water)\n")
    assert len(rest) > 2


def headed(text: str, size: int) -> list[tuple[list[str], str]]:
    return [(n.own_metadata["headings"], n.text) for n in PassageSplitter(size)(text)]


def test_large_sections_are_separate_passages() -> None:
    green, black = f"## Green\n\n{FILLER.strip()}", f"## Black\n\n{FILLER.strip()}"
    assert headed(f"# Tea\n\n{green}\n\n{black}\n", 40) == [
        (["Tea", "Green"], f"# Tea\n\n{green}"),
        (["Tea", "Black"], black),
    ]


def test_parts_of_section_keep_headings() -> None:
    nodes = headed(f"# Tea\n\n## Green\n\n{FILLER}\n\n{FILLER}\n\n{FILLER}", 40)
    assert len(nodes) == 3
    assert nodes[0][1].startswith("# Tea\n\n## Green\n\nWords")
    assert all(headings == ["Tea", "Green"] for headings, _ in nodes)


def test_headings_false_ignores_comments() -> None:
    code = "x = 1\n# Next\ny = 2\n"
    assert [n.own_metadata["headings"] for n in PassageSplitter(4, headings=False)(code)] == [
        []
    ] * 3


def test_passages_are_found_by_headings() -> None:
    text = f"# Tea\n\n{FILLER}\n\n## 绿茶\n\n{FILLER}\n\n{FILLER}"
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id="tea.md")])
    graph.create_node_group("passage", PassageSplitter(40))
    for node in graph.nodes("passage"):
        assert text[node.start : node.end] == node.text
    (passage, *_) = PassageSplitter(40)(graph.nodes("ROOT")[0])
    assert passage.own_metadata["headings"] == ["Tea"]
    (found, *_) = Retriever(graph, "passage")("绿茶")
    assert found.node.own_metadata["headings"] == ["Tea", "绿茶"]


def test_size_below_one_raises() -> None:
    with pytest.raises(ValueError, match="chunk_size must be 1 or more"):
        PassageSplitter(0)


ROWS = "\n".join(f"| Tea {n} | {n} |" for n in range(40))


@pytest.mark.parametrize("page_break", ["", "\f"])
def test_parts_of_table_have_head(
    page_break: str,
) -> None:
    before = "Words of a paragraph that fills the passage. " * 9
    rows = ROWS.replace("| Tea 20 |", f"{page_break}| Tea 20 |")
    text = (
        f"# Prices\n\n{before}\n\nTable 2. Prices\n\n| Tea | a\\|b |\n| --- | --- |\n{rows}\n\nEnd."
    )
    graph = NodeGraph(progress=False)
    graph.add(Document(text, id="a"))
    graph.create_node_group("passage", PassageSplitter(60))
    first, *others = [node for node in graph.nodes("passage") if "| Tea " in node.text]
    assert "Table 2. Prices\n\n| Tea | a\\|b |" in first.text
    assert "table_head" not in first.metadata
    assert len(others) > 3
    for node in others:
        assert node.text.startswith("| Tea ")
        assert node.text in text
        assert node.metadata["table_head"] == "Tea | a\\|b"
        assert node.searched_text.startswith("Prices\nTea | a\\|b\n| Tea ")
        assert passage_title(node) == "Prices › Tea | a\\|b"
