"""Rows that are not what was written are an error, not another text."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from contextlib import closing
from enum import Enum
from pathlib import Path

import pytest
from stress import Tally, amount

from nodekin.nodegraph import Document, Embedder, EntityExtractor, NodeGraph, StoreError
from nodekin.retrievers import Retriever, as_retriever

SEED = int(os.environ.get("NODEKIN_SEED") or 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a graph's file, closed."""
    path = tmp_path / "graph.db"
    with opened(path) as graph:
        tea = Document("green tea\nblack tea", {"kind": "tea"}, id="a", search_text=["kind"])
        graph.add([tea, Document("x", id="b")])
        graph.link("a", "b")
        Retriever(graph, "line", "cosine")("tea")
    return path


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aemt"] for text in texts]


def opened(path: Path) -> NodeGraph:
    graph = NodeGraph(store=path, embed=Embedder(letters, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines, version="1")
    return graph


def read_all(graph: NodeGraph) -> None:
    [(node.text, dict(node.metadata)) for node in graph.nodes("line")]
    graph.nodes("ROOT")
    graph.linked("a")
    [node.embedding() for node in graph.nodes("line")]


def run(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE pages SET text = replace(text, 'tea', 'pea')", "a part of a text is not what"),
        ("UPDATE versions SET metadata = replace(metadata, 'tea', 'pea')", "document's metadata"),
        ("UPDATE nodes SET begin = NULL WHERE place = 1", "of group 'line', document 'a', is not"),
        ("UPDATE nodes SET place = 7 WHERE place = 1", "is not what was written"),
        ("UPDATE derivations SET version = 2 WHERE version = 1", "is not what was written"),
        ("UPDATE documents SET id = 'c' WHERE id = 'b'", "document 'c', is not what was written"),
        ("UPDATE links SET weight = 3", "a link of node 'a' is not what was written"),
        ("DELETE FROM nodes WHERE place = 1", "group 'line' has 2 nodes of 3 in it"),
        ("UPDATE pages SET checksum = NULL", "a part of a text is not what"),
        ("UPDATE pages SET checksum = text", "a part of a text is not what"),
        ("UPDATE pages SET text = CAST(text AS BLOB)", "a part of a text is not what"),
        ("UPDATE pages SET key = key + 1 WHERE key = 1 << 20", "part of a document is missing"),
        ("UPDATE versions SET checksum = NULL", "document's metadata"),
        ("UPDATE versions SET search_text = NULL WHERE search_text = 1", "document's metadata"),
        ("UPDATE search_texts SET checksum = NULL", "a text to search with"),
        ("UPDATE search_texts SET value = replace(value, 'kind', 'kine')", "a text to search with"),
        ("UPDATE nodes SET checksum = NULL WHERE place = 1", "is not what was written"),
        ("UPDATE links SET checksum = NULL", "a link of node 'a' is not what was written"),
        ("UPDATE groups SET sequence = 'x' WHERE name = 'line'", "group 'line' has no revision"),
        ("UPDATE memory SET checksum = NULL", "a value of 'embedding letters' is not what"),
        ("UPDATE memory SET value = 'tea'", "a value of 'embedding letters' is not what"),
        ("UPDATE memory SET value = 7", "a value of 'embedding letters' is not what"),
        ("UPDATE pages SET text = 1.5", "a part of a text is not what"),
        ("UPDATE pages SET text = CAST(x'ff' AS TEXT)", "the file is damaged"),
        ("UPDATE links SET target = 'zz'", "a link of node 'a' is not what was written"),
    ],
)
def test_a_damaged_row_is_an_error(path: Path, statement: str, message: str) -> None:
    run(path, statement)
    with opened(path) as graph, pytest.raises(StoreError, match=message) as caught:
        read_all(graph)
    assert "SQLite finds its file intact, so don't delete it" in str(caught.value)


def test_ids_are_read_without_nodes_and_a_lost_one_is_an_error(path: Path) -> None:
    with opened(path) as graph:
        assert graph.reader.ids("line") == [node.id for node in graph.nodes("line")]
    run(path, "DELETE FROM nodes WHERE place = 1")
    with opened(path) as graph, pytest.raises(StoreError, match="has 2 nodes of 3 in it"):
        graph.reader.ids("line")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nodes SET begin = NULL WHERE place = 1",
        "UPDATE nodes SET place = 7 WHERE place = 1",
        "UPDATE nodes SET size = 2 WHERE derivation = 3",
        "UPDATE nodes SET text = 'pea', metadata = 'no JSON' WHERE place = 1",
        "UPDATE nodes SET parent = id WHERE derivation = 3",
        "UPDATE nodes SET checksum = NULL WHERE derivation = 3",
        "UPDATE memory SET value = 'tea'",
        "UPDATE groups SET name = 'lime' WHERE name = 'line'",
        "UPDATE documents SET id = 'c' WHERE id = 'b'",
        "UPDATE documents SET id = 7 WHERE id = 'a'",
        "UPDATE nodes SET id = 'c' WHERE id = 'b'",
    ],
)
def test_what_was_derived_is_made_again(path: Path, statement: str) -> None:
    with opened(path) as graph:
        right = [(n.id, n.text, n.order, n.parent_id, n.start) for n in graph.nodes("line")]
    run(path, statement)
    with opened(path) as graph:
        assert graph.reader.verify()
        given = [(n.id, n.text, n.order, n.parent_id, n.start) for n in graph.nodes("line")]
        assert given == right
        assert graph.reader.verify() == []
        assert [len(node.embedding()) for node in graph.nodes("line")] == [4, 4, 4]
        assert [node.id for node in graph.linked("a")] == ["b"]


def test_what_was_not_derived_is_named_until_it_is_given_again(path: Path) -> None:
    run(path, "UPDATE pages SET text = replace(text, 'tea', 'pea')")
    run(path, "UPDATE links SET weight = 3")
    with opened(path) as graph:
        damaged = graph.reader.verify()
        assert damaged[0] == "node 'a' of group 'ROOT', document 'a', is not what was written"
        assert ["of group 'line', document 'a'" in text for text in damaged[1:3]] == [True, True]
        assert damaged[3] == (
            "a link of node 'a' to 'b', type 'related', is not what was written, and is deleted; "
            "link them again"
        )
        assert graph.reader.verify() == damaged[:1]
        with pytest.raises(StoreError, match="a part of a text is not what was written"):
            graph.nodes("line")
        graph.update(Document("green tea\nblack tea", {"kind": "tea"}, id="a"))
        graph.link("a", "b", weight=2)
        assert graph.reader.verify() == []
        assert [node.text for node in graph.nodes("line")] == ["green tea", "black tea", "x"]
        assert [link.weight for link in graph.links("a")] == [2]


def test_a_damaged_document_is_read_from_its_file_again(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.txt").write_text("green tea\nblack tea")
    with opened(path) as graph:
        graph.add(tmp_path / "docs")
        graph.build("line")
    run(path, "UPDATE pages SET checksum = 3")
    with opened(path) as graph:
        assert graph.reader.verify()
        graph.refresh()
        assert [node.text for node in graph.nodes("line")] == ["green tea", "black tea"]
        assert graph.reader.verify() == []


@pytest.mark.parametrize(
    ("lost", "message", "named"),
    [
        ("a", "a node is missing that links to 'b'", "a link to 'b', type 'related', has lost its"),
        ("b", "'b' is missing, to which 'a' links", "a link of node 'a' to 'b', type 'related'"),
    ],
)
def test_a_link_whose_node_is_lost_is_an_error(
    path: Path, lost: str, message: str, named: str
) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        ((trigger,),) = db.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
        db.execute("DROP TRIGGER links_go")
        db.execute("DELETE FROM nodes WHERE id = ?", [lost])
        db.execute(trigger)
    with opened(path) as graph:
        with pytest.raises(StoreError, match=message):
            graph.linked("b", incoming=True) if lost == "a" else graph.linked("a")
        damaged = graph.reader.verify()
        assert f"document {lost!r} is lost; add it again" in damaged
        assert any(text.startswith(named) and text.endswith("again") for text in damaged)
        assert graph.reader.verify() == [f"document {lost!r} is lost; add it again"]
        graph.add(Document("x", id=lost))
        assert graph.reader.verify() == []


@pytest.mark.slow
def test_whatever_a_cell_holds_it_is_said_and_mended(tmp_path: Path) -> None:
    """The order of links and of documents is not mended."""
    choose, tally, path = random.Random(SEED), Tally(f"cells, seed {SEED}"), tmp_path / "g"

    def reopened() -> NodeGraph:
        graph = opened(path)
        graph.create_node_group("entity", EntityExtractor(), scope="group")
        return graph

    documents = [
        Document(f"Tea {n} of Anna.\nMilk {n} of Anna.", {"n": n}, id=f"d{n}") for n in range(5)
    ]
    with reopened() as graph:
        graph.add(documents)
        right = contents(graph)
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        names = [
            (table, column)
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if table not in ("state", "sqlite_sequence")
            for _, column, *_ in db.execute(f"PRAGMA table_info({table})")
        ]
    odd = ["NULL", "7", "x'00ff'", "1.5", "CAST(x'ff41' AS TEXT)", "9223372036854775807"]
    cells = [
        (table, column, value)
        for table, column in names
        for value in odd[: 5 if column in ("key", "name") else 6]
        if (table, column) not in [("links", "key"), ("documents", "key")]
    ]
    for table, column, value in choose.sample(cells, amount(60, len(cells))):
        for file in tmp_path.glob("g-*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        path.write_bytes(whole)
        with tally.trying(f"{table}.{column} = {value}"):
            try:
                with closing(sqlite3.connect(path)) as db, db:
                    row = f"(SELECT count(*) / 2 FROM {table})"
                    key = "sequence" if table == "journal" else "rowid"
                    middle = f"(SELECT {key} FROM {table} LIMIT 1 OFFSET {row})"
                    db.execute(f"UPDATE {table} SET {column} = {value} WHERE {key} = {middle}")
            except sqlite3.Error:
                tally.note("refused by SQLite")
                continue
            with reopened() as graph:
                try:
                    wrong = contents(graph) != right
                except StoreError:
                    tally.note("said so")
                    wrong = True
            with reopened() as graph:
                assert graph.reader.verify() or not wrong
                graph.add(documents)
                assert sorted(map(str, contents(graph))) == sorted(map(str, right))
    tally.check()
    assert tally.notes["said so"] > tally.tried / 4


def test_a_sentence_that_names_another_passage_as_its_parent_is_an_error(tmp_path: Path) -> None:
    documents = [Document(f"Tea {n} is green. Milk {n} is white.", id=f"d{n}") for n in range(3)]
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.add(documents)
        assert len(as_retriever(graph)("tea")) == 3
    sentences = "SELECT n.key FROM nodes n JOIN derivations d ON d.key = n.derivation JOIN groups "
    sentences += "ON groups.key = d.grp WHERE groups.name = 'passage sentence'"
    passage = "(SELECT min(parent) FROM nodes)"
    for parent in (passage, "randomblob(12)"):
        run(tmp_path / "g", f"UPDATE nodes SET parent = {parent} WHERE key IN ({sentences})")
        with NodeGraph(store=tmp_path / "g", progress=False) as graph:
            retriever = as_retriever(graph)
            with pytest.raises(StoreError, match="of group 'passage sentence', document 'd"):
                retriever("tea")


def test_a_node_that_is_its_own_parent_ends_a_walk_with_an_error(path: Path) -> None:
    run(path, "UPDATE nodes SET parent = id, checksum = NULL WHERE derivation = 3")
    with closing(sqlite3.connect(path)) as db, db:  # which wrote no checksums of these
        for table in ("memory", "search_texts"):
            db.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        db.execute("PRAGMA user_version = 6")
    with opened(path) as graph:
        line = graph.nodes("line")[0]
        assert line.parent_id == line.id
        with pytest.raises(StoreError, match="is its own ancestor"):
            graph.find("ROOT")(line)
        graph.link(line, line, "member")
        with pytest.raises(StoreError, match="is its own ancestor"):
            Retriever(graph, "line", target="ROOT")("tea")


class Name(str, Enum):
    """A text that is written in another way than it is shown."""

    CITES = "cites"
    ID = "an id"


def test_values_that_sqlite_returns_in_another_form_are_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "forms.db"
    with NodeGraph(store=path, progress=False) as graph:
        graph.add([Document("Tea.", id=Name.ID), Document("Water.", id="b")])
        graph.link("an id", "b", Name.CITES, weight=1)
        graph.link("b", "an id", "sim", weight=-0.0)
        graph.create_node_group(Name.CITES, str.split)
        graph.build("cites")
    with NodeGraph(store=path, progress=False) as graph:
        assert [node.id for node in graph.nodes("ROOT")] == ["an id", "b"]
        assert [link.type for link in graph.links("an id")] == ["cites"]
        assert [link.weight for link in graph.links("b")] == [0.0]
        assert list(graph.reader.verify()) == []


def contents(graph: NodeGraph) -> list[object]:
    """Return the texts, spans, metadata, links and order of a graph, and what its vectors find."""
    nodes = [node for group in ("ROOT", "line", "entity") for node in graph.nodes(group)]
    return [
        *(
            (n.id, n.text, n.start, n.end, n.parent_id, n.document_id, str(n.metadata))
            for n in nodes
        ),
        *(graph.links(n) for n in nodes),
        *(graph.links(n, incoming=True) for n in nodes),
        graph.reader.document_ids(),
        [(r.node.id, round(r.score, 5)) for r in Retriever(graph, "line", "cosine")("Tea 3")],
    ]


def test_no_bit_that_flips_changes_an_answer_in_silence(tmp_path: Path) -> None:
    choose, tally, path = random.Random(SEED), Tally(f"flipped bits, seed {SEED}"), tmp_path / "g"

    def reopened() -> NodeGraph:
        graph = opened(path)
        graph.create_node_group("entity", EntityExtractor(), scope="group")
        return graph

    random.seed(SEED)  # of revisions: the same file, and so the same bits, each time
    with reopened() as graph:
        texts = [f"Tea {n} of Anna.\nMilk {n} of Anna." for n in range(12)]
        graph.add(Document(text, {"n": n}, id=f"d{n}") for n, text in enumerate(texts))
        graph.link("d0", [f"d{n}" for n in (7, 2, 9, 4, 1)], "cites", metadata={"page": 3})
        for n in (8, 3, 6):
            graph.link(f"d{n}", "d1", "cites")
        right = contents(graph)
    whole = path.read_bytes()
    used = [at for at, byte in enumerate(whole) if byte]
    for _ in range(amount(80, 3_000)):
        for file in tmp_path.glob("g-*"):
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        damaged, at = bytearray(whole), choose.choice(used)
        damaged[at] ^= 1 << choose.randrange(8)
        path.write_bytes(damaged)
        with tally.trying(f"byte {at}"):
            try:
                with reopened() as graph:
                    given = contents(graph)
                    if given != right:  # only where an index of SQLite has lost a row
                        tally.note("seen by verify alone")
                        assert any(text.startswith("SQLite: ") for text in graph.reader.verify())
                        assert graph.reader.verify() or contents(graph) == right
                    else:
                        tally.note("still right")
            except (StoreError, LookupError):
                tally.note("said so")
    tally.check()
    assert tally.notes["said so"] > tally.tried / 4


def test_an_index_of_sqlite_that_has_lost_rows_is_made_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'links_to'"
        ).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size + 3 : (root - 1) * size + 5] = b"\0\0"  # the number of its cells
    path.write_bytes(content)
    with opened(path) as graph:
        assert any("index links_to" in text for text in graph.reader.verify())
        assert graph.reader.verify() == []
        assert [link.source for link in graph.links("b", incoming=True)] == ["a"]


def test_tables_that_are_not_those_that_were_made_are_named(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        change = "replace(sql, 'weight REAL', 'weight REAK')"
        db.execute(f"UPDATE sqlite_master SET sql = {change} WHERE name = 'links'")
    with opened(path) as graph:
        assert "SQLite: the tables are not those that were made" in graph.reader.verify()
