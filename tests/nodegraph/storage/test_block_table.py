"""Texts of documents in blocks, and texts of nodes as spans of them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.node import Node
from nodekin.nodegraph.storage.block_table import BLOCK, StoredBlocks, TextSpan
from nodekin.nodegraph.storage.sqlite import SQLiteDatabase

LINES = [f"{number}. 绿茶 tea é {'leaf ' * (number % 40)}" for number in range(300)]


@given(
    texts=st.lists(st.text(st.characters(codec=None, categories=None), max_size=40), min_size=1),
    times=st.integers(1, 200),
    data=st.data(),
)
@settings(max_examples=amount(60, 600), deadline=None)
def test_read_returns_any_span(texts: list[str], times: int, data: st.DataObject) -> None:
    database = SQLiteDatabase(None)
    blocks = StoredBlocks(database)
    stored = {key: text * times for key, text in enumerate(texts, start=1)}
    blocks.write(stored)
    spans: list[TextSpan] = []
    for key, text in stored.items():
        start = data.draw(st.integers(0, len(text)))
        spans.append(TextSpan(key, start, data.draw(st.integers(0, len(text) - start))))
    expected = [stored[key][start : start + length] for key, start, length in spans]
    assert blocks.read(spans) == expected
    blocks.delete([1])
    assert blocks.read(
        [TextSpan(key, 0, len(text)) for key, text in stored.items() if key > 1]
    ) == [text for key, text in stored.items() if key > 1]


@pytest.mark.parametrize("span", [TextSpan(1, 0, BLOCK + 1), TextSpan(2, 0, 1), TextSpan(1, -1, 1)])
def test_missing_blocks_raise(span: TextSpan) -> None:
    blocks = StoredBlocks(SQLiteDatabase(None))
    blocks.write({1: "x" * BLOCK})
    with pytest.raises((KeyError, ValueError)):
        blocks.read([span])


def lines_of(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, "line")
    graph.create_node_group("shout", lambda text: f"{text.upper()}!", "line")
    return graph


def counts(path: Path, *queries: str) -> list[int]:
    with closing(sqlite3.connect(path)) as db:
        return [db.execute(query).fetchone()[0] for query in queries]


OWN_TEXTS = "SELECT count(*) FROM nodes WHERE text IS NOT NULL"
BLOCKS = "SELECT count(*) FROM blocks"


def test_file_has_each_text_once(tmp_path: Path) -> None:
    text = "\n".join(LINES)
    with lines_of(tmp_path / "g") as graph:
        graph.add(Document(text, id="a"))
        assert [node.text for node in graph.nodes("line")] == LINES
        assert [node.text for node in graph.nodes("word")] == text.split()
        assert [node.text for node in graph.nodes("shout")] == [f"{n.upper()}!" for n in LINES]
    with lines_of(tmp_path / "g") as graph:
        assert [node.text for node in graph.nodes("line")] == LINES
        assert [node.text for node in graph.nodes("word")] == text.split()
        assert [node.text for node in graph.nodes("shout")] == [f"{n.upper()}!" for n in LINES]
        assert graph.node("a").text == text
    assert counts(tmp_path / "g", OWN_TEXTS, BLOCKS) == [len(LINES), -(-len(text) // BLOCK)]


def test_edits_keep_spans_and_free_old_texts(tmp_path: Path) -> None:
    with lines_of(tmp_path / "g") as graph:
        for number in range(4):
            lines = [*LINES[:200], f"edit {number}", *LINES[200 + number :]]
            graph.add(Document("\n".join(lines), id="a"))
            assert [node.text for node in graph.nodes("line")] == lines
            if number % 2:
                assert [node.text for node in graph.nodes("word")] == "\n".join(lines).split()
        stale = [node.text for node in graph.nodes("shout")]
        assert stale == [f"{line.upper()}!" for line in lines]
        graph.add(Document("\n".join(lines), {"year": 2024}, id="a"))  # the text is not changed
        assert [node.text for node in graph.nodes("line")] == lines
    size = -(-len("\n".join(lines)) // BLOCK)
    assert counts(tmp_path / "g", BLOCKS)[0] <= 2 * size  # the words were not built again
    with lines_of(tmp_path / "g") as graph:
        assert len(graph.nodes("word")) == len("\n".join(lines).split())
        assert len(graph.nodes("shout")) == len(lines)
    assert counts(tmp_path / "g", BLOCKS)[0] == size
    with lines_of(tmp_path / "g") as graph:
        graph.remove(["a"])
    assert counts(tmp_path / "g", BLOCKS)[0] == 0


def test_unmoved_node_with_text_elsewhere_keeps_its_text(tmp_path: Path) -> None:
    """A transform's node stays equal although its document no longer contains its text."""

    def pieces(node: Node) -> list[str]:
        return ["tea", node.text]

    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("piece", pieces, trans_node=True)
        for text in ("tea one", "cup two", "tea three"):
            graph.add(Document(text, id="a"))
            assert [node.text for node in graph.nodes("piece")] == ["tea", text]
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("piece", pieces, trans_node=True)
        assert [node.text for node in graph.nodes("piece")] == ["tea", "tea three"]
