"""Rows that are not what was written are an error, not another text."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, NodeGraph, StoreError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a graph's file, closed."""
    path = tmp_path / "graph.db"
    with opened(path) as graph:
        graph.add(
            [Document("green tea\nblack tea", {"kind": "tea"}, id="a"), Document("x", id="b")]
        )
        graph.build("line")
    return path


def opened(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines, version="1")
    return graph


def run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE pages SET text = replace(text, 'tea', 'pea')", "a part of a text is not what"),
        ("UPDATE versions SET metadata = replace(metadata, 'tea', 'pea')", "document's metadata"),
        ("UPDATE nodes SET begin = NULL WHERE place = 1", "neither a text nor a place"),
        ("DELETE FROM nodes WHERE place = 1", "group 'line' has 2 nodes of 3 in it"),
    ],
)
def test_a_damaged_row_is_an_error(path: Path, statement: str, message: str) -> None:
    run(path, statement)
    with opened(path) as graph, pytest.raises(StoreError, match=message) as caught:
        [(node.text, dict(node.metadata)) for node in graph.nodes("line")]
    assert "SQLite finds its file intact, so don't delete it" in str(caught.value)


def test_what_was_written_before_there_were_checksums_is_read(path: Path) -> None:
    run(path, "UPDATE pages SET checksum = NULL")
    run(path, "UPDATE versions SET checksum = NULL")
    with opened(path) as graph:
        assert [node.text for node in graph.nodes("line")] == ["green tea", "black tea", "x"]
        assert graph.node("a").metadata["kind"] == "tea"
