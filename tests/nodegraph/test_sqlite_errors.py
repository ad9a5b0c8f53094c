"""What can be wrong with a graph's file is said in words, and takes nothing with it."""

import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, StoreError, TransformError
from nodekin.nodegraph.sqlite import SQLiteStore, connection, file

UPGRADE = """
-- Whether somebody has read it.
ALTER TABLE documents ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET seen = 1;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def opened(path: Path, **settings: Any) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False, **settings)
    graph.create_node_group("word", str.split)
    return graph


def fill(path: Path, count: int = 30) -> None:
    with opened(path) as graph:
        graph.add(
            [Document(f"tea {i} " + "leaf " * 40, {"n": i}, id=f"d{i}") for i in range(count)]
        )
        graph.build("word")


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is in a file, by table, and which version it has."""
    database = sqlite3.connect(path)
    try:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {name: database.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        return {**rows, "version": database.execute("PRAGMA user_version").fetchall()}
    finally:
        database.close()


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


# Older and newer files


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    fill(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = tables(path)
    with pytest.raises(StoreError, match=r"newer nodekin \(format 99, .*upgrade nodekin"):
        NodeGraph(store=path)
    assert tables(path) == before


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Give today's program one more step than its files have."""

    def more(step: str) -> None:
        steps = [*connection.MIGRATIONS, step]
        for module in (connection, file):
            monkeypatch.setattr(module, "MIGRATIONS", steps)

    return more


def test_an_older_file_becomes_a_newer_one(path: Path, migrations: Callable[[str], None]) -> None:
    fill(path)
    before = tables(path)
    migrations(UPGRADE)
    with opened(path) as graph:
        assert [node.id for node in graph.nodes("ROOT")] == [f"d{i}" for i in range(30)]
        assert len(graph.nodes("word")) == 30 * 42
    now = tables(path)
    assert {row[-1] for row in now["documents"]} == {1}
    assert now["nodes"] == before["nodes"]
    assert now["version"] == [(before["version"][0][0] + 1,)]


def test_a_migration_that_fails_leaves_the_older_file_whole(
    path: Path, migrations: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    before = tables(path)
    with monkeypatch.context() as patch:
        for module in (connection, file):
            patch.setattr(
                module, "MIGRATIONS", [*connection.MIGRATIONS, UPGRADE + "DROP TABLE never;"]
            )
        with pytest.raises(StoreError, match="no such table: never"):
            NodeGraph(store=path)
    assert tables(path) == before
    migrations(UPGRADE)
    with opened(path) as graph:
        assert len(graph.nodes("word")) == 30 * 42


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


def words(graph: NodeGraph) -> list[str]:
    return [node.text for node in graph.nodes("word")]


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
        assert said.endswith("nothing was changed; make room on the disk and try again")
    assert left == "190"
    with opened(path) as graph:
        assert len(words(graph)) == 190 * 42


# A file that can only be read


def test_what_can_only_be_read_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)
    graph = opened(path)
    assert len(words(graph)) == 30 * 42
    writes: list[Callable[[], object]] = [
        lambda: graph.add("more"),
        lambda: graph.remove("d1"),
        lambda: graph.link("d1", "d2"),
        graph.compact,
    ]
    for write in writes:
        with pytest.raises(StoreError, match=r"can only be read, .*can't be written"):
            write()
    graph.create_node_group("letter", letters)
    with pytest.raises(StoreError, match="can only be read"):
        graph.nodes("letter")
    assert len(words(graph)) == 30 * 42
    graph.close()
    assert path.read_bytes() == before


def read_as_nobody(path: Path) -> None:
    os.setgid(65534)
    os.setuid(65534)
    graph = opened(path)
    assert len(words(graph)) == 30 * 42
    with pytest.raises(StoreError, match="can only be read"):
        graph.add("more")
    graph.close()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else"
)
def test_somebody_without_the_right_to_write_can_read() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's folders are closed to others
    try:
        folder.chmod(0o755)
        fill(folder / "graph")
        (folder / "graph").chmod(0o644)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                read_as_nobody(folder / "graph")
                code = 0
            except PermissionError:
                code = 77
            except BaseException as error:
                os.write(2, repr(error).encode())
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == 77:
            pytest.skip("this root may not become somebody else")
        assert code == 0
        with opened(folder / "graph") as graph:
            assert len(words(graph)) == 30 * 42
    finally:
        shutil.rmtree(folder)


# What no file can hold


def test_metadata_that_no_file_can_hold_is_refused_by_name(path: Path) -> None:
    fill(path)
    graph = opened(path)
    new = [Document("good", id="good"), Document("bad", {"how": [object()]}, id="bad one")]
    with pytest.raises(TypeError, match=r"metadata of document 'bad one': object <object .*file"):
        graph.add(new)
    assert len(graph.nodes("ROOT")) == 30
    assert graph.add(new[:1]) == ["good"]
    assert words(graph)[-1] == "good"
    graph.close()


def awkward(text: str) -> list[Node]:
    value = object() if "bad" in text else 1
    return [Node(text, {"value": value}), Node(text, content=value)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_nodes_that_no_file_can_hold_leave_other_documents_unharmed(
    path: Path, num_workers: int
) -> None:
    graph = opened(path)
    graph.create_node_group("made", awkward, version="1", num_workers=num_workers)
    graph.add([Document(text, id=text) for text in ("one", "bad", "two")])
    with pytest.raises(TransformError, match=r"document 'bad'.*object <object .*kept in a file"):
        graph.nodes("made")
    (failure,) = graph.build("made", on_error="skip")
    assert failure.document == "bad"
    graph.close()
    with opened(path, on_error="skip") as graph:
        graph.create_node_group("made", awkward, version="1")
        assert [(n.document_id, n.content) for n in graph.nodes("made")] == [
            ("one", "one"),
            ("one", 1),
            ("two", "two"),
            ("two", 1),
        ]


# What comes back as it was

METADATA: dict[str, Any] = {
    "tuple": (1, ("a", [2])),
    "set": {1, "a", frozenset({2})},
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 12, 30, 1, 5, timezone.utc),
    "raw": b"\0\xff",
    "price": Decimal("1.10"),
    "id": UUID(int=7),
    "most": math.inf,
    "least": -math.inf,
    "nested": {1: {None: "n"}, (1, 2): {"deep": {3.5: True}}, "$type": "tuple"},
    "half \ud800": "a half \udfff of a character",
    "nul\0": "a\0b",
    "": None,
    "yes": True,
    "large": 2**80,
}
STRANGE = [
    "tea",
    "nul\0id",
    "half \ud83d",
    "halves \ud83d\ude00",
    "😀",
    "0" * 24,
    "surrogatepass",
    " ",
]


def test_documents_come_back_as_they_were(path: Path) -> None:
    documents = [
        Document(f"{name} a\0b {name}\ud800 c", {**METADATA, "name": name}, id=name)
        for name in STRANGE
    ]
    with opened(path) as graph:
        graph.add(documents)
        graph.create_node_group("same", lambda text: Node(text, METADATA, (text, 1)), version="1")
        graph.build("same")
    fresh = NodeGraph(progress=False)
    fresh.create_node_group("word", str.split)
    fresh.add(documents)
    with opened(path) as graph:
        graph.create_node_group("same", lambda text: Node(text, METADATA, (text, 1)), version="1")
        found = [(n.id, n.text, dict(n.metadata)) for n in graph.nodes("ROOT")]
        assert found == [(d.id, d.text, d.metadata) for d in documents]
        assert [list(metadata) for *_, metadata in found] == [list(d.metadata) for d in documents]
        assert [type(value) for value in found[0][2].values()] == [
            type(value) for value in documents[0].metadata.values()
        ]
        ours = [(n.id, n.text, n.metadata, n.document_id) for n in graph.nodes("word")]
        assert ours == [(n.id, n.text, n.metadata, n.document_id) for n in fresh.nodes("word")]
        for node in graph.nodes("same"):
            assert node.content == (node.text, 1)
            assert node.metadata == {**METADATA, "name": node.document_id}
        before = graph.revision("ROOT")
        graph.add(documents)  # nothing has changed, whatever the values look like
        assert graph.revision("ROOT") == before
        graph.remove(STRANGE)
        assert graph.nodes("word") == graph.nodes("ROOT") == []


def test_a_number_that_is_none_comes_back(path: Path) -> None:
    with opened(path) as graph:
        graph.add(Document("tea", {"score": float("nan"), "in": [float("nan")]}, id="tea"))
        graph.build("word")
    with opened(path) as graph:
        (word,) = graph.nodes("word")
        assert math.isnan(word.metadata["score"])
        assert math.isnan(word.metadata["in"][0])
