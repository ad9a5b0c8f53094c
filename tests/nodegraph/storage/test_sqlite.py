"""SQLite files: foreign and damaged ones, full disks, several processes, forks and interrupts."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.nodegraph.storage.sqlite import faults_of
from nodekin.retrievers import Retriever


def filled(path: Path | None, count: int = 50) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"tea {n}\nleaf {n}", id=f"d{n}") for n in range(count)])
    graph.build("line")
    return graph


def test_reopened_graph_derives_nothing(tmp_path: Path) -> None:
    derived: list[str] = []

    def split(text: str) -> list[str]:
        derived.append(text)
        return text.split()

    for _ in range(2):
        with NodeGraph(store=tmp_path / "g", progress=False) as graph:
            graph.create_node_group("word", split, version="1")
            graph.add([Document("green tea", id="a"), Document("milk", id="b")])
            assert [node.text for node in graph.nodes("word")] == ["green", "tea", "milk"]
            assert len(Retriever(graph, "word", target="ROOT")("tea")) == 1
    assert derived == ["green tea", "milk"]


def test_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    filled(tmp_path / "g").close()
    with sqlite3.connect(tmp_path / "g") as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(StoreError, match="has format 7, and this nodekin reads format 3; index"):
        NodeGraph(store=tmp_path / "g")


def test_file_of_another_program_is_rejected(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "g") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(StoreError, match="not a nodekin graph; choose another path"):
        NodeGraph(store=tmp_path / "g")
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(StoreError, match="not a nodekin graph; choose another path"):
        NodeGraph(store=tmp_path / "text")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM counters",
        "UPDATE node_groups SET name = X'80' WHERE key > 0",
        "UPDATE nodes SET text = X'C328'",  # not UTF-8
        "UPDATE nodes SET text = X'FF41'",  # half of a character
    ],
)
def test_damaged_rows_raise_an_error_with_a_remedy(damage: str, tmp_path: Path) -> None:
    filled(tmp_path / "g").close()
    with sqlite3.connect(tmp_path / "g") as db:
        db.execute(damage)
    db.close()
    graph = NodeGraph(store=tmp_path / "g", progress=False)
    graph.create_node_group("line", str.splitlines)
    with pytest.raises(StoreError, match="restore a backup, or index the documents again"):
        graph.nodes("line")


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the folder is missing"):
        NodeGraph(store=tmp_path / "missing" / "g")
    with pytest.raises(StoreError, match="the path is a folder"):
        NodeGraph(store=tmp_path)


def test_deleted_file_raises_until_the_graph_is_closed(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g")
    (tmp_path / "g").unlink()
    with pytest.raises(StoreError, match="was deleted or replaced while the graph was open"):
        graph.add("more")
    with pytest.raises(StoreError, match="was deleted or replaced while the graph was open"):
        graph.nodes("line")


@pytest.mark.parametrize("change", ["deleted", "replaced", "folder"])
def test_close_after_deleted_file_opens_the_new_one(
    change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    graph = filled(folder / "g", count=300)
    assert Retriever(graph, "line", "bm25")("tea")  # an index that is worth saving
    if change == "replaced":
        filled(tmp_path / "new", count=1).close()
        (tmp_path / "new").replace(folder / "g")
    elif change == "folder":
        shutil.rmtree(folder)
        folder.mkdir()
    else:
        (folder / "g").unlink()
    graph.close()
    graph.close()
    assert "was not stored" in caplog.text
    assert not (folder / "g-indexes").exists()
    assert len(graph.nodes("line")) == (2 if change == "replaced" else 0)
    graph.add("new")
    assert len(Retriever(graph, "line", "bm25")("new")) == 1
    graph.close()
    with NodeGraph(store=folder / "g", progress=False) as other:
        assert other.nodes("ROOT")[-1].text == "new"


def test_full_disk_raises_and_loses_nothing(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g")
    database = graph._store.database
    ((pages,),) = database.rows("PRAGMA page_count")
    database.rows(f"PRAGMA max_page_count = {pages + 5}")
    with pytest.raises(StoreError, match="nothing was changed; free disk space and retry"):
        graph.add(Document("tea " * 100_000, id="large"))
    assert len(graph.nodes("line")) == 100
    graph.remove([f"d{n}" for n in range(40)])
    assert len(graph.nodes("line")) == 20
    graph.close()
    assert len(graph.nodes("ROOT")) == 10


def test_compact_shrinks_the_file(tmp_path: Path) -> None:
    graph = NodeGraph(store=tmp_path / "g", progress=False)
    graph.add([Document("tea " * 10_000, id=f"d{n}") for n in range(50)])
    graph.remove([f"d{n}" for n in range(49)])
    graph.compact()
    assert (tmp_path / "g").stat().st_size < 500_000
    assert [node.id for node in graph.nodes("ROOT")] == ["d49"]


def test_long_build_empties_the_log(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g", 5_000)
    assert (tmp_path / "g-wal").stat().st_size < 1_000_000
    graph.close()
    assert not faults_of(tmp_path / "g")


def test_build_beside_a_reader_keeps_the_log(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g")
    reader = sqlite3.connect(tmp_path / "g")
    reader.execute("BEGIN")
    count = "SELECT count(*) FROM documents"
    (before,) = reader.execute(count).fetchone()
    graph.add([Document(f"tea {n}\nleaf {n}", id=f"new{n}") for n in range(5_000)])
    graph.build("line")
    assert (tmp_path / "g-wal").stat().st_size > 1_000_000
    assert reader.execute(count).fetchone() == (before,)
    reader.close()
    graph.add([Document("tea", id="last")])
    assert len(graph.nodes("line")) == 10_101
    graph.close()


def test_searches_run_while_the_file_is_compacted(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g")
    other = sqlite3.connect(tmp_path / "g", isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM nodes").fetchone()  # the log cannot be truncated yet
    with ThreadPoolExecutor(2) as pool:
        compacting = pool.submit(graph.compact)
        try:
            for _ in range(50):
                search = pool.submit(lambda: len(graph.nodes("line")))
                assert search.result(30) == 100
                time.sleep(0.01)
            assert not compacting.done()
        finally:
            other.execute("ROLLBACK")
            other.close()
        compacting.result(60)


def test_compact_inside_a_turn_raises(tmp_path: Path) -> None:
    graph = filled(tmp_path / "g")
    with graph.reader.reading("line"), pytest.raises(RuntimeError, match="inside a retrieval"):
        graph.compact()


_TWO_WRITERS = """
import sys
from nodekin.nodegraph import Document, NodeGraph
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
graph = NodeGraph(store=path, progress=False)
graph.create_node_group("line", str.splitlines)
for n in range(count):
    graph.add(Document(f"{name} {n}\\nx", id=f"{name}{n}"))
    if n % 3 == 0:
        graph.build("line")
    if n % 5 == 4:
        graph.remove(f"{name}{n - 2}")
"""


def test_threads_create_one_file(tmp_path: Path) -> None:
    def create(path: Path, start: threading.Barrier) -> int:
        start.wait(60)
        with NodeGraph(store=path, progress=False) as graph:
            return len(graph.nodes("ROOT"))

    for number in range(amount(60, 600)):
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(create, tmp_path / f"g{number}", start) for _ in range(4)]
            assert [call.result() for call in calls] == [0] * 4


def test_processes_that_write_and_build_lose_nothing(tmp_path: Path) -> None:
    count = amount(15, 300)
    command = [sys.executable, "-c", _TWO_WRITERS, str(tmp_path / "g")]
    writers = [subprocess.Popen([*command, name, str(count)]) for name in "abc"]
    assert [writer.wait(600) for writer in writers] == [0, 0, 0]
    removed = {n - 2 for n in range(count) if n % 5 == 4}
    graph = NodeGraph(store=tmp_path / "g", progress=False)
    graph.create_node_group("line", str.splitlines)
    ids = {node.id for node in graph.nodes("ROOT")}
    assert ids == {f"{name}{n}" for name in "abc" for n in range(count) if n not in removed}
    fresh = NodeGraph(progress=False)
    fresh.create_node_group("line", str.splitlines)
    fresh.add([Document(node.text, id=node.id) for node in graph.nodes("ROOT")])
    assert [node.id for node in graph.nodes("line")] == [node.id for node in fresh.nodes("line")]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks need a POSIX system")
@pytest.mark.parametrize("kind", ["memory", "wal", "rollback journal"])
def test_forked_children_search_amid_threads(kind: str, tmp_path: Path) -> None:
    graph = filled(None if kind == "memory" else tmp_path / "g", 200)
    if kind == "rollback journal":
        assert graph._store.database.rows("PRAGMA journal_mode = DELETE") == [("delete",)]
    stop = threading.Event()
    errors: list[BaseException] = []

    def repeat(work: object) -> None:
        n = 0
        while not stop.is_set():
            n += 1
            try:
                work(n)  # type: ignore[operator]
            except BaseException as error:
                errors.append(error)
                return

    search = Retriever(graph, "line", "bm25", top_k=3)
    for text in ("tea", "leaf"):  # imports all modules: a fork during an import may hang
        graph.add(text)
        search(text)
    works = [lambda n: search("tea leaf")] * 3 + [
        lambda n: graph.add(Document(f"tea again {n}", id=f"new{n % 20}"))
    ]
    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        for _ in range(amount(8, 60)):
            child = os.fork()
            if child == 0:
                os._exit(0 if len(Retriever(graph, "line", "bm25", top_k=3)("tea")) == 3 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    assert not errors
    graph.add(Document("the parent goes on", id="last"))
    assert search("parent goes")[0].node.root.id == "last"


_BUILD = """
import sys
from nodekin.nodegraph import Document, NodeGraph
graph = NodeGraph(store=sys.argv[1], progress=False)
graph.create_node_group("line", str.splitlines)
graph.create_node_group("word", str.split, parent="line")
print("ready", flush=True)
for n in range(100_000):
    graph.add([Document(f"tea {n} {i}\\nleaf", id=f"d{i}") for i in range(20)])
    graph.build("word")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a process")
def test_interrupted_builds_leave_a_consistent_file(tmp_path: Path, interrupts: None) -> None:
    for number in range(amount(4, 200)):
        process = subprocess.Popen(
            [sys.executable, "-c", _BUILD, str(tmp_path / "g")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.003 * (number % 40))
        end = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < end:
            # Python prints and ignores an interrupt inside a finalizer, such as that of a generator
            # that any() has not finished, or a weakref callback: repeat the signal.
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
        process.kill()
        process.stdout.close()
        assert process.wait() not in (0, -signal.SIGKILL)
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.create_node_group("word", str.split, parent="line")
        fresh = NodeGraph(progress=False)
        fresh.create_node_group("line", str.splitlines)
        fresh.create_node_group("word", str.split, parent="line")
        fresh.add([Document(node.text, id=node.id) for node in graph.nodes("ROOT")])
        for group in ("line", "word"):
            found, expected = graph.nodes(group), fresh.nodes(group)
            assert [(n.id, n.text) for n in found] == [(n.id, n.text) for n in expected]
        assert faults_of(tmp_path / "g") == []


def test_copy_of_memory_replaces_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "g"
    filled(path, 3).close()
    memory = filled(None, 7)
    memory.reader.copy_to(path)
    with NodeGraph(store=path, progress=False) as graph:
        assert [node.id for node in graph.nodes("ROOT")] == [f"d{n}" for n in range(7)]
        graph.add("later")
        graph.reader.copy_to(tmp_path / "second")
    with NodeGraph(store=tmp_path / "second", progress=False) as graph:
        assert len(graph.nodes("ROOT")) == 8
