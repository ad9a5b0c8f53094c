"""What can be wrong with a graph's file is said in words, and takes nothing with it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from graph_files import fill, opened, tables, words

from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.nodegraph.sqlite.connection import integrity_faults
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore

# What is no graph


def test_a_text_file_is_refused_and_left_alone(path: Path) -> None:
    text = "Tea is a drink made of leaves.\n" * 200
    path.write_text(text)
    with pytest.raises(StoreError, match="no nodekin graph; give the graph a path of its own") as e:
        NodeGraph(store=path)
    assert str(path) in str(e.value)
    assert path.read_text() == text


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE documents (id, text)")
    database.execute("INSERT INTO documents VALUES ('a', 'ours')")
    database.commit()
    database.close()
    before = tables(path)
    with pytest.raises(StoreError, match="not a nodekin graph; give the graph a path of its own"):
        NodeGraph(store=path)
    assert tables(path) == before


def test_an_empty_file_becomes_a_graph(path: Path) -> None:
    path.touch()
    fill(path)
    with opened(path) as graph:
        assert len(graph.nodes("ROOT")) == 30


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder; a graph is kept in a file"):
        NodeGraph(store=tmp_path)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*missing; make it first"):
        NodeGraph(store=tmp_path / "missing" / "graph")
    assert list(tmp_path.iterdir()) == []


# Damage


def read_all(path: Path) -> None:
    with opened(path) as graph:
        for group in ("ROOT", "word"):
            graph.nodes(group)


def test_damaged_pages_are_called_so(path: Path) -> None:
    fill(path, 300)
    size = path.stat().st_size
    with path.open("r+b") as raw:
        raw.seek(4096 * 2)
        raw.write(b"\xa5" * (size - 4096 * 3))
    with pytest.raises(StoreError, match=r"damaged; restore a backup, or delete it") as caught:
        read_all(path)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_is_called_damaged(path: Path) -> None:
    fill(path, 300)
    os.truncate(path, path.stat().st_size // 3)
    with pytest.raises(StoreError, match=r"damaged; restore a backup, or delete it"):
        read_all(path)


def test_integrity_faults_name_damage(path: Path) -> None:
    fill(path, 300)
    assert integrity_faults(path) == []
    with path.open("r+b") as raw:
        raw.seek(4096 * 2)
        raw.write(b"\xa5" * 4096)
    assert integrity_faults(path)
    path.write_bytes(b"not a database" * 1000)
    assert integrity_faults(path) == ["file is not a database"]


# A full disk


def letters(text: str) -> list[str]:
    return list(text)


@contextmanager
def full(graph: NodeGraph, path: Path) -> Iterator[None]:
    """Let the file grow by no more than what is free in it."""
    store = graph._store
    assert isinstance(store, SQLiteStore)
    with store.transaction() as db:
        (pages,) = db.row("PRAGMA page_count")
        most = db.row("PRAGMA max_page_count")
    db.row(f"PRAGMA max_page_count = {pages}")
    yield
    db.row(f"PRAGMA max_page_count = {most[0]}")


def test_a_disk_that_is_full_refuses_documents_whole(path: Path) -> None:
    fill(path)
    graph = opened(path)
    before = [node.id for node in graph.nodes("ROOT")]
    new = [Document("green " * 2000, id=f"new{i}") for i in range(40)]
    with full(graph, path):
        with pytest.raises(StoreError, match="full: nothing was changed; make room on the disk"):
            graph.add(new)
        assert [node.id for node in graph.nodes("ROOT")] == before
        assert len(words(graph)) == 30 * 42
    graph.add(new)
    assert len(graph.nodes("ROOT")) == 70
    graph.close()


def test_a_disk_that_fills_up_during_a_build(path: Path) -> None:
    fill(path)
    graph = opened(path)
    graph.create_node_group("letter", letters)
    with full(graph, path):
        with pytest.raises(StoreError, match="full: nothing was changed; make room on the disk"):
            graph.nodes("letter")
        assert len(words(graph)) == 30 * 42
    fresh = NodeGraph(progress=False)
    fresh.create_node_group("letter", letters)
    fresh.add([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
    assert [n.id for n in graph.nodes("letter")] == [n.id for n in fresh.nodes("letter")]
    graph.close()


LIMITED = """
import resource, signal, sys
from pathlib import Path
from nodekin.nodegraph import NodeGraph, StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
graph = NodeGraph(store=path, progress=False)
graph.remove([f"d{i}" for i in range(10)])
most = max(each.stat().st_size for each in path.parent.iterdir()) + 4096
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]) or most, hard))
for act in (graph.compact, lambda: graph.add("x" * 9_000_000)):
    try:
        act()
        print("did it")
    except StoreError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
graph.compact()
print(len(graph.nodes("ROOT")))
graph.close()
"""


def test_a_disk_that_is_full_while_the_file_is_compacted(path: Path) -> None:
    pytest.importorskip("resource", reason="limits on files are Unix's")
    fill(path, 200)
    command = [sys.executable, "-W", "error", "-c", LIMITED, str(path), "65536"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    compacted, added, left = ran.stdout.splitlines()
    for said in (compacted, added):
        assert str(path) in said
        assert said.endswith("make room on the disk and try again")
    assert "nothing was changed" in compacted
    assert "nothing was changed" in added
    assert left == "190"
    with opened(path) as graph:
        assert len(words(graph)) == 190 * 42


# Damage that an error message quotes


def test_a_damaged_error_message_is_an_error_of_the_store(path: Path) -> None:
    """SQLite quotes the damaged schema, which is no text any more."""
    NodeGraph(store=path).close()
    content = path.read_bytes()
    assert b"CASCADE" in content
    path.write_bytes(content.replace(b" CASCADE", b" \xc3ASCADE"))
    with pytest.raises(StoreError, match="restore a backup"):
        NodeGraph(store=path).nodes("ROOT")
