"""Stable ids and exact spans."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

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

WORDS = st.sampled_from(["tea", "water", "a", "b", "茶", "水。", "is it?", "Yes.", "é"])
LINES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
TEXTS = st.lists(LINES, max_size=6).map("\n".join)
GROUPS = ("line", "sentence", "word", "chunk", "piece")


def make_graph(texts: dict[str, str]) -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("sentence", SentenceSplitter(8, 0), parent="line")
    graph.create_node_group("word", str.split, parent="sentence")
    graph.create_node_group("chunk", SentenceSplitter(6, 2))
    graph.create_node_group("piece", lambda node: node.text.split(), "chunk", trans_node=True)
    graph.add([Document(text, id=i) for i, text in texts.items()])
    return graph


@given(before=st.lists(LINES, max_size=3), after=st.lists(LINES, max_size=3), line=LINES)
def test_line_keeps_its_ids_among_other_lines(
    before: list[str], after: list[str], line: str
) -> None:
    marked = f"only here {line}"
    alone = make_graph({"1": marked})
    among = make_graph({"1": "\n".join([*before, marked, *after])})
    (node,) = alone.nodes("line")
    assert node.id in {n.id for n in among.nodes("line")}
    (only,) = [n for n in alone.nodes("word") if n.text == "only"]
    assert [n.id for n in among.nodes("word") if n.text == "only"] == [only.id]


@given(words=st.lists(st.sampled_from(["x", "y", "z"]), max_size=12), at=st.integers(0, 12))
def test_ids_of_repeated_texts_are_numbered(words: list[str], at: int) -> None:
    """The n-th "x" keeps its id when other words come in between."""

    def ids(words: list[str]) -> dict[tuple[str, int], str]:
        graph = NodeGraph(progress=False)
        graph.add(Document(" ".join(words), id="1"))
        graph.create_node_group("word", str.split)
        seen: Counter[str] = Counter()
        found = {}
        for node in graph.nodes("word"):
            found[node.text, seen[node.text]] = node.id
            seen[node.text] += 1
        return found

    before = ids(words)
    after = ids([*words[:at], "new", *words[at:]])
    assert after.keys() - before.keys() == {("new", 0)}
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after)


def test_id_depends_on_document_group_and_content() -> None:
    def ids(document: str, group: str, text: str, content: str | None = None) -> str:
        graph = NodeGraph(progress=False)
        graph.add(Document("x", id=document))
        graph.create_node_group(group, lambda _: Node(text, content=content), version="1")
        return graph.nodes(group)[0].id

    first = ids("1", "word", "x")
    assert ids("1", "word", "x") == first
    others = [ids("2", "word", "x"), ids("1", "term", "x"), ids("1", "word", "y")]
    others += [ids("1", "word", "x", "answer"), ids("1", "word", "x", "another")]
    assert len({first, *others}) == 6


def test_ids_equal_those_of_earlier_releases() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("a b a", id="1"))
    graph.create_node_group("word", str.split)
    assert [node.id for node in graph.nodes("word")] == [
        "936ef71ba00719fc396c28ad",
        "393779f18609d4504d72a515",
        "8b22428e929d739492015e4b",
    ]


PIECES = st.sampled_from(
    [
        *("茶是一种饮料", "。", "，", "“水呢？”", "……", "\u3000", "Tea is hot", ". ", ", ", "! "),
        *("\n", "\n\n", " \n \n", "\r\n", "# Head\n", "- item\n", "```\n", "===\n", "3.14", "𠮷"),
    ]
)
DEEP_TEXTS = st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60))
SPLITTERS = st.sampled_from(
    [
        *(SentenceSplitter(12, 4), SentenceSplitter(9, 3, length=len), SentenceSplitter(3, 0)),
        *(RecursiveSplitter(12, 4), RecursiveSplitter(7, 2, length=len), RecursiveSplitter(2, 1)),
        *(MarkdownSplitter(), MarkdownSplitter(2, 6, 2), split_sentences, split_paragraphs),
    ]
)


@given(DEEP_TEXTS, st.lists(SPLITTERS, min_size=1, max_size=3))
@settings(max_examples=amount(66, 200))
def test_nested_splitters_cover_the_text(text: str, splitters: Sequence[Any]) -> None:
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
        # Lines without words, such as rules, are in no sentence.
        left = [character for at, character in enumerate(text) if at not in covered]
        assert not any(map(str.isalnum, left))


def test_returned_input_nodes_keep_their_spans() -> None:
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


def test_rewritten_text_has_no_span() -> None:
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
