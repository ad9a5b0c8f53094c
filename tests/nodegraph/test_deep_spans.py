"""Spans are true in every group below the root, whatever made it and however deep it lies."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodekin.nodegraph import (
    Document,
    MarkdownSplitter,
    Node,
    NodeGraph,
    RecursiveSplitter,
    SentenceSplitter,
    split_paragraphs,
    split_sentences,
)

PIECES = st.sampled_from(
    [
        *("茶是一种饮料", "。", "，", "“水呢？”", "……", "\u3000", "Tea is hot", ". ", ", ", "! "),
        *("\n", "\n\n", " \n \n", "\r\n", "# Head\n", "- item\n", "```\n", "===\n", "3.14", "𠮷"),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60))
SPLITTERS = st.sampled_from(
    [
        *(SentenceSplitter(12, 4), SentenceSplitter(9, 3, length=len), SentenceSplitter(3, 0)),
        *(RecursiveSplitter(12, 4), RecursiveSplitter(7, 2, length=len), RecursiveSplitter(2, 1)),
        *(MarkdownSplitter(), MarkdownSplitter(2, 6, 2), split_sentences, split_paragraphs),
    ]
)


@given(TEXTS, st.lists(SPLITTERS, min_size=1, max_size=3))
@settings(max_examples=200)
def test_splitters_below_splitters(text: str, splitters: Sequence[Any]) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document(text, id="doc"))
    parent = "ROOT"
    for depth, splitter in enumerate(splitters):
        graph.create_node_group(f"level {depth}", splitter, parent=parent)
        parent = f"level {depth}"
        covered: set[int] = set()
        for node in graph.nodes(parent):
            assert node.start is not None
            assert node.end is not None
            assert text[node.start : node.end] == node.text
            covered.update(range(node.start, node.end))
        assert all(character.isspace() for at, character in enumerate(text) if at not in covered)


def test_spans_end_where_a_text_was_rewritten() -> None:
    graph = NodeGraph()
    graph.add("tea is hot")
    graph.create_node_group("loud", str.upper)
    graph.create_node_group("word", str.split, parent="loud")
    assert [(n.text, n.start, n.offset) for n in graph.nodes("loud")] == [
        ("TEA IS HOT", None, None)
    ]
    assert [(n.text, n.start, n.offset) for n in graph.nodes("word")] == [
        ("TEA", None, 0),
        ("IS", None, 4),
        ("HOT", None, 7),
    ]


def test_nodes_that_a_rule_hands_on_are_placed_where_they_stand() -> None:
    graph = NodeGraph()
    graph.add(Document("to be or not to be", {"by": "him"}, id="doc"))
    graph.create_node_group("part", lambda text: [Node(text[:6], {"part": 1}, start=0), text[6:]])
    graph.create_node_group("word", str.split, parent="part")
    graph.create_node_group(
        "long", lambda node: node if len(node.text) > 2 else [], parent="word", trans_node=True
    )
    graph.create_node_group("words", lambda node: node.children["word"], "part", trans_node=True)
    assert [(n.text, n.start, n.end) for n in graph.nodes("long")] == [("not", 9, 12)]
    words = graph.nodes("word")
    graph.nodes("words")
    assert [(n.text, n.start) for n in graph.nodes("words")] == [(n.text, n.start) for n in words]
    assert graph.nodes("words")[0].metadata == {"by": "him", "part": 1}
    assert not {n.id for n in graph.nodes("words")} & {n.id for n in words}


def test_ids_and_spans_are_the_same_in_another_process() -> None:
    code = (
        "from nodekin.nodegraph import *;"
        "graph = NodeGraph();"
        "graph.create_node_group('part', SentenceSplitter(4, 0));"
        "graph.create_node_group('tag', lambda t: [Node(t, {'tags': {'a', 'b', 'c'}})], 'part');"
        "graph.add(Document('Tea is hot. 冰很冷。', {'tags': {'x', 'y', 'z'}}));"
        "print([(n.id, n.start, n.end) for n in graph.nodes('part') + graph.nodes('tag')])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    (printed,) = runs
    assert printed.count(b"(") == 4
