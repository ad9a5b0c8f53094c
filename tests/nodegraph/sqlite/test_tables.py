"""Texts of documents are stored once, in pages, while something derived from them is."""

import sqlite3
from contextlib import closing
from pathlib import Path

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore


def count(path: Path, table: str) -> int:
    database = sqlite3.connect(path)
    try:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        database.close()


def test_a_node_may_lie_across_pages(path: Path) -> None:
    lines = [f"{number} " + "茶" * 20_000 for number in range(5)]
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(Document("\n".join(lines), id="a"))
        graph.build("line")
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        assert [node.text for node in graph.nodes("line")] == lines
        assert graph.node("a").text == "\n".join(lines)
    assert count(path, "pages") == 4


def test_a_text_is_there_once_in_pages_and_nodes_are_places_in_it(path: Path) -> None:
    text = "\n".join(f"Tea number {n} is green." for n in range(3_000))
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add([Document(text, id="long"), Document("Short.", id="short")])
        graph.build("line")
    with closing(sqlite3.connect(path)) as db:
        pages = [page for (page,) in db.execute("SELECT text FROM pages ORDER BY key")]
        (copies,) = db.execute("SELECT count(*) FROM nodes WHERE text IS NOT NULL").fetchone()
    assert pages == [text[:32_768], text[32_768:65_536], text[65_536:], "Short."]
    assert copies == 0


def test_a_version_goes_with_what_was_derived_from_it(path: Path) -> None:
    with NodeGraph(store=path, progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(Document("one\ntwo", id="a"))
        graph.build("line")
        graph.add(Document("one\nthree", id="a"))
        assert count(path, "versions") == 2  # the lines are still those of the first
        graph.build("line")
        assert count(path, "versions") == 1
        graph.remove("a")
    assert (count(path, "versions"), count(path, "pages")) == (0, 0)


def test_a_revision_of_another_history_gives_the_whole_group(path: Path) -> None:
    store = SQLiteStore(path)
    store.change_documents([Document("text", id="a")])
    revision = store.revision("ROOT")
    store.change_documents([Document("other", id="b")])
    assert not store.changes("ROOT", revision).complete
    assert store.changes("ROOT", revision + 1).complete
    store.close()
