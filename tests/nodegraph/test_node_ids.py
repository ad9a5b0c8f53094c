"""Ids stay when other things change; spans are true in every group below the root."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
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


def built(text: str, **documents: str) -> NodeGraph:
    graph = NodeGraph()
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    graph.add([Document(text, id="doc"), *(Document(t, id=i) for i, t in documents.items())])
    return graph


def ids(graph: NodeGraph, group: str = "sentence") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in graph.nodes(group):
        if node.document_id == "doc":
            found.setdefault(node.text, []).append(node.id)
    return found


TEXT = "Tea is hot. It is good.\n\nIce is not. Why?\n\n冰很冷。茶很热。"


def test_the_same_in_every_run_and_on_every_machine() -> None:
    code = (
        "from nodekin.nodegraph import *;"
        "graph = NodeGraph();"
        "graph.create_node_group('sentence', SentenceSplitter(4, 0));"
        f"graph.add(Document({TEXT!r}, {{'topic': 'tea'}}, id='doc'));"
        "print([node.id for node in graph.nodes('sentence')])"
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
    assert len(runs) == 1
    graph = NodeGraph()
    graph.create_node_group("word", str.split)
    graph.add(Document("Tea", id="doc"))
    assert graph.nodes("word")[0].id == "7bb92e26ac9cd1d5718fbf99"


def test_other_documents_and_their_order_do_not_matter() -> None:
    before = ids(built(TEXT))
    graph = NodeGraph()
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    graph.add([Document("Tea is hot.", id="other"), Document(TEXT, {"new": 1}, id="doc")])
    assert ids(graph) == before
    other = {node.id for node in graph.nodes("sentence") if node.document_id == "other"}
    assert not other & {i for each in before.values() for i in each}


@pytest.mark.parametrize(
    "edited",
    [
        "New. Paragraph.\n\n" + TEXT,
        TEXT + "\n\nNew.",
        TEXT.replace("\n\n冰", "\n\nNew one.\n\n冰"),
        TEXT.replace("Why?", "New. Why?"),
        TEXT.replace("\n\n", "\n\n\n\n"),
    ],
)
def test_edits_elsewhere_do_not_matter(edited: str) -> None:
    before = ids(built(TEXT))
    graph = built(TEXT)
    graph.nodes("sentence")
    graph.update(Document(edited, id="doc"))
    for after in (ids(graph), ids(built(edited))):
        assert {text: after[text] for text in before} == before


def test_repeated_texts_are_told_apart_by_their_count() -> None:
    once = ids(built("Yes.\n\nNo."))
    many = ids(built("No.\n\nYes.\n\nYes.\n\nYes. No."))
    assert many["Yes."][:1] == once["Yes."]
    assert many["No."][:1] == once["No."]
    assert len(set(many["Yes."] + many["No."])) == 5


def test_groups_and_contents_count() -> None:
    graph = built("Yes.")
    graph.create_node_group(
        "answer", lambda text: [Node("Yes."), Node("Yes.", content="Yes, it is")]
    )
    found = [graph.nodes(group)[0].id for group in ("ROOT", "paragraph", "sentence", "answer")]
    found += [graph.nodes("answer")[1].id]
    assert len(set(found)) == 5
    with_metadata = built("Yes.")
    with_metadata.create_node_group("answer", lambda text: Node("Yes.", {"page": 3}))
    assert with_metadata.nodes("answer")[0].id == graph.nodes("answer")[0].id


PIECES = st.sampled_from(
    [
        *(
            "茶是一种饮料",
            "。",
            "，",
            "“水呢？”",
            "……",
            "\u3000",
            "Tea is hot",
            ". ",
            ", ",
            "! ",
            "e.g. ",
        ),
        *(
            "\n",
            "\n\n",
            " \n \n",
            "\r\n",
            "# Head\n",
            "- item\n",
            "```\n",
            "===\n",
            "3.14",
            " ",
            "𠮷",
        ),
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
@settings(max_examples=300, deadline=None)
def test_spans_are_true_however_deep(text: str, splitters: Sequence[Any]) -> None:
    graph = NodeGraph()
    graph.add(Document(text, id="doc"))
    parent = "ROOT"
    for depth, splitter in enumerate(splitters):
        graph.create_node_group(f"level {depth}", splitter, parent=parent)
        parent = f"level {depth}"
        nodes = graph.nodes(parent)
        covered: set[int] = set()
        for node in nodes:
            assert node.start is not None
            assert node.end is not None
            assert text[node.start : node.end] == node.text
            assert node.parent is not None
            assert node.parent.start is not None
            assert node.start - node.parent.start == node.offset
            covered.update(range(node.start, node.end))
        assert all(character.isspace() for at, character in enumerate(text) if at not in covered)
        assert len({node.id for node in nodes}) == len(nodes)


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


def test_a_rule_may_choose_among_nodes() -> None:
    """What a rule that sees nodes hands on is placed where it stands."""
    graph = NodeGraph()
    graph.add(Document("to be or not to be", {"by": "him"}, id="doc"))
    graph.create_node_group("part", lambda text: [Node(text[:6], {"part": 1}, start=0), text[6:]])
    graph.create_node_group("word", str.split, parent="part")
    graph.create_node_group(
        "long", lambda node: node if len(node.text) > 2 else [], parent="word", trans_node=True
    )
    graph.create_node_group("words", lambda node: node.children["word"], "part", trans_node=True)
    assert [(n.text, n.start, n.end) for n in graph.nodes("long")] == [("not", 9, 12)]
    assert [(n.text, n.start) for n in graph.nodes("words")] == [
        (n.text, n.start) for n in graph.nodes("word")
    ]
    assert graph.nodes("words")[0].metadata == {"by": "him", "part": 1}
    assert not {n.id for n in graph.nodes("words")} & {n.id for n in graph.nodes("word")}
