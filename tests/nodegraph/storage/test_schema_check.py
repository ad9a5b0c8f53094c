"""Graph files that a stranger wrote: other schemas and rows of wrong types are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph, StoreError

ENDLESS = (
    "CREATE VIEW documents AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS key, 'x' AS id FROM n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.add([Document("Green tea", {"year": 2024}, id=f"d{n}") for n in range(3)])
        graph.create_node_group("word", str.split, version="1")
        first, second, *_ = graph.nodes("word")
        graph.link(first, second, "next")
    return tmp_path / "graph"


def use(path: Path) -> list[str]:
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("word", str.split, version="1")
        words = graph.nodes("word")
        repr([(word.metadata, word.links, word.parent) for word in words])
        graph.add("Black tea")
        graph.search("tea")
        return [word.text for word in words]


def change(path: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement, values)
        db.commit()


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER TABLE documents RENAME TO old", ENDLESS),
        ("CREATE TRIGGER t AFTER INSERT ON nodes BEGIN DELETE FROM nodes; END",),
        ("CREATE VIEW more AS SELECT 1",),
        ("CREATE TABLE more (x)",),
        ("CREATE INDEX more ON nodes (abs(place))",),
        ("DROP INDEX nodes_by_place",),
        ("ALTER TABLE links ADD COLUMN more",),
        ("DROP TABLE kept",),
    ],
    ids=lambda statements: statements[-1][:30],
)
def test_file_of_other_schema_raises(path: Path, statements: tuple[str, ...]) -> None:
    change(path, *statements)
    with pytest.raises(StoreError, match=r"must have the tables of a graph.*restore a backup"):
        NodeGraph(store=path, progress=False)


@pytest.mark.parametrize(
    "statement", ["ANALYZE", "VACUUM", "REINDEX", "PRAGMA optimize", "PRAGMA journal_mode = DELETE"]
)
def test_file_after_maintenance_is_used(path: Path, statement: str) -> None:
    change(path, statement)
    assert use(path) == ["Green", "tea"] * 3


ADDED = {
    "TABLE notes": "CREATE TABLE notes (x)",
    "INDEX by_text": "CREATE INDEX by_text ON nodes (text)",
    "VIEW texts": "CREATE VIEW texts AS SELECT text FROM nodes",
    "TRIGGER t": "CREATE TRIGGER t AFTER INSERT ON nodes BEGIN SELECT 1; END",
}


@pytest.mark.parametrize("name", ADDED)
def test_error_says_how_to_remove_additions(path: Path, name: str) -> None:
    change(path, ADDED[name])
    with pytest.raises(StoreError, match=rf"also has {name}; .*\(DROP {name};\)"):
        use(path)
    change(path, f"DROP {name}")  # as the error says
    assert use(path) == ["Green", "tea"] * 3


def test_error_counts_many_additions(path: Path) -> None:
    change(path, *[f"CREATE TABLE extra{number} (x)" for number in range(5)])
    with pytest.raises(StoreError, match=r"TABLE extra2 and 2 more; .*\(DROP TABLE extra0;\)"):
        use(path)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        *(("counters", "value", "x"), ("counters", "value", 2**63 - 1), ("counters", "name", "x")),
        *(("node_groups", "name", 7), ("node_groups", "size", "x"), ("node_groups", "rules", b"x")),
        *(("node_groups", "revision", -1), ("node_groups", "built_for", b"x")),
        *(("documents", "id", 1.5), ("derivations", "source", "x"), ("derivations", "fields", 1)),
        *(("derivations", "fields", b"[" * 9_999),),
        *(("derivations", "fields", b"[1]"), ("derivations", "revision", "x")),
        *(("nodes", "place", "x"), ("nodes", "place", 2**40), ("nodes", "begin", "x")),
        *(("nodes", "begin", -5), ("nodes", "shift", b"x"), ("nodes", "metadata", b"null")),
        *(("nodes", "metadata", b'{"$type":"x","value":1}'), ("nodes", "text", 7)),
        *(("nodes", "metadata", b'{"$type":"date","value":"x"}'), ("nodes", "parent", 3)),
        *(("nodes", "length", "x"), ("nodes", "length", 2**61), ("nodes", "length", 1_000)),
        *(("derivations", "text", b"x"), ("derivations", "text", 99), ("blocks", "text", 7)),
        *(
            ("documents", "fields", 1),
            ("documents", "search_text", b"{}"),
            ("blocks", "text", b"\xc3"),
        ),
        *(("nodes", "content", "x"), ("nodes", "id", 2.5), ("links", "weight", b"x")),
        *(("links", "type", 1), ("links", "metadata", b"[]")),
    ],
)
def test_forged_row_raises_store_error(path: Path, table: str, column: str, value: Any) -> None:
    where = "rowid IN (SELECT max(rowid) FROM nodes)" if column == "id" else "1"
    if column == "id" and table == "documents":
        where = "key = 1"
    if table == "counters" and column == "name":
        where = "name = 'nodes'"
    if table == "node_groups" and column == "name":
        where = "key = 1"
    change(path, f"UPDATE {table} SET {column} = ? WHERE {where}", values=(value,))
    with pytest.raises(StoreError, match="restore a backup"):
        use(path)


def test_forged_size_of_group_raises_store_error(path: Path) -> None:
    change(path, "UPDATE node_groups SET size = 0")
    with pytest.raises(StoreError, match="restore a backup"), NodeGraph(store=path) as graph:
        graph.remove([node.id for node in graph.nodes("ROOT")])
