"""Writing derivations: which nodes change."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nodekin.nodegraph import ROOT, Document, NodeGraph
from nodekin.nodegraph.hashing import full_digest
from nodekin.nodegraph.storage.columns import to_id


@pytest.mark.parametrize(
    ("text", "year", "removed", "added"),
    [
        ("one\ntwo\nsix", 1, ["three"], ["six"]),
        ("one\ntwo", 1, ["three"], []),
        ("one\ntwo\nthree\nfour", 1, [], ["four"]),
        # Nodes that move, or inherit other metadata, are changed.
        ("two\nthree", 1, ["one", "two", "three"], ["two", "three"]),
        ("one\ntwo\nthree", 2, ["one", "two", "three"], ["one", "two", "three"]),
    ],
)
def test_changes_have_only_nodes_that_differ(
    text: str, year: int, removed: list[str], added: list[str], tmp_path: Path
) -> None:
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add([Document("one\ntwo\nthree", {"year": 1}, id="a"), Document("other", id="b")])
        before = {node.id: node.text for node in graph.nodes("line")}
        revision = graph.reader.revision("line")
        graph.add(Document(text, {"year": year}, id="a"))
        graph.build("line")
        changes = graph.reader.changes("line", revision)
        assert [before[i] for i in changes.removed] == removed
        assert [node.text for node in changes.added] == added


def test_hash_of_no_metadata_takes_no_space(tmp_path: Path) -> None:
    def build() -> int:
        with NodeGraph(store=tmp_path / "g", progress=False) as graph:
            graph.create_node_group("line", str.splitlines, version="1")
            graph.add([Document("one\ntwo", id="a"), Document("six", {"year": 1}, id="b")])
            graph.build("line")
            return graph.reader.revision("line")

    revision = build()
    with closing(sqlite3.connect(tmp_path / "g")) as db:
        rows = db.execute(
            "SELECT rule, metadata FROM derivations ORDER BY grp, document"
        ).fetchall()
        assert [len(metadata) for _, metadata in rows] == [0, 12, 0, 12]
        assert [len(rule) for rule, _ in rows[:2]] == [0, 12]
        full = to_id(full_digest({}))
        db.execute("UPDATE derivations SET metadata = ? WHERE metadata = x''", [full])
        db.execute("UPDATE derivations SET rule = ? WHERE rule = x''", [full])
        db.commit()
    assert build() == revision


def test_rows_of_new_documents_equal_the_rows_that_are_read(tmp_path: Path) -> None:
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        store = graph.reader._store
        graph.add([Document("one", {"year": 1}, id="b"), Document("two", id="a")])
        graph.add([Document("six", search_text="year", id="c"), Document("ten", id="d")])
        graph.add(Document("ten again", id="d"))
        graph.remove(["a"])
        graph.add(Document("two again", {"year": 2}, id="a"))
        selections = (None, ["a", "b"], ["d", "c"])
        rows = [store._derivations.stored(ROOT, ids) for ids in selections]
        stamps = [[*store.stamps(ROOT, ids).items()] for ids in selections]
        assert [*rows[1]] == ["b", "a"]
        store.transactions.forget()
        for ids, known, stamped in zip(selections, rows, stamps, strict=True):
            assert [*store._derivations.stored(ROOT, ids).items()] == [*known.items()]
            assert [*store.stamps(ROOT, ids).items()] == stamped


def test_document_changed_by_another_graph_is_not_read_from_memory(tmp_path: Path) -> None:
    path = tmp_path / "g"
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("line", str.splitlines, version="1")
        graph.add([Document("one\ntwo", id="a"), Document("six", id="b")])
        with NodeGraph(store=path, progress=False) as other:
            other.add(Document("one\nthree", {"year": 1}, id="a"))
            other.remove(["b"])
            other.add(Document("seven", id="c"))
        assert [node.text for node in graph.nodes("line")] == ["one", "three", "seven"]
        assert graph.nodes("line")[0].metadata == {"year": 1}
