"""Files of other formats."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from graph_files import fill, opened, tables

from nodekin.nodegraph import NodeGraph, StoreError

REFUSED = r"has format 99, but this nodekin reads only format 1; index the documents again"


def test_file_of_another_format_raises_and_stays_unchanged(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    before = tables(path)
    with pytest.raises(StoreError, match=REFUSED):
        NodeGraph(store=path)
    assert tables(path) == before


def test_format_that_changes_while_open_raises(path: Path) -> None:
    with opened(path) as graph:
        graph.add(["tea"])
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA user_version = 99")
        with pytest.raises(StoreError, match=REFUSED):
            graph.add(["water"])
        assert [node.text for node in graph.nodes("ROOT")] == ["tea"]
