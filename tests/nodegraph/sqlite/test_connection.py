"""What can be wrong with a graph's file is said in words, and takes nothing with it."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from graph_files import fill, opened, tables, words

from nodekin.nodegraph import Document, NodeGraph, StoreError
from nodekin.nodegraph.sqlite.connection import checksum, row_checksum
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


# Older and newer files


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


FULL_DISK = """
import sys
from nodekin.nodegraph import Document, NodeGraph, StoreError

graph = NodeGraph(store=sys.argv[1], progress=False)
graph.create_node_group("line", str.splitlines)
count = 0
try:
    while True:
        texts = ["\\n".join(f"tea {count} {i} {line}" for line in range(60)) for i in range(10)]
        graph.add([Document(text, id=f"d{count}-{i}") for i, text in enumerate(texts)])
        graph.add([Document("cup " * 20_000, id=f"long{count}-{i}") for i in range(5)])
        graph.build("line")
        count += 1
except StoreError as error:
    assert "make room on the disk" in str(error), error
with open(sys.argv[1] + ".rest", "wb", buffering=0) as rest:  # to the last byte
    try:
        while rest.write(bytes(512)):
            pass
    except OSError:
        pass
before = len(graph.nodes("ROOT"))
graph.remove([f"long{n}-{i}" for n in range(count) for i in range(5)])  # most of it, at once
try:
    graph.remove([f"d{n}-{i}" for n in range(count) for i in range(5)])
except StoreError as error:
    assert str(error).endswith("try again, or remove fewer at once"), error
    for n in range(count):
        graph.remove([f"d{n}-{i}" for i in range(5)])
left = before - 10 * count
try:
    graph.compact()
except StoreError as error:
    assert "is added uses the room" in str(error), error
assert len(graph.nodes("ROOT")) == left
graph.add([Document("cup", id=f"new{n}") for n in range(5)])  # in the room of what was removed
graph.close()
again = NodeGraph(store=sys.argv[1], progress=False)
assert len(again.nodes("ROOT")) == left + 5
print("emptied")
"""


@pytest.mark.slow
def test_a_disk_that_is_full_is_emptied_from_within(tmp_path: Path) -> None:
    """On a disk of its own, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=24m disk '{disk}'"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    command = f'{mount} && exec "$0" -c "$1" "$2"'
    run = ["unshare", "-rm", "sh", "-c", command, sys.executable, FULL_DISK, str(disk / "graph")]
    ran = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "emptied\n"), ran.stderr[-3000:]


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
    assert "it is as large as before" in compacted
    assert "nothing was changed" in added
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


def test_what_others_wrote_and_closed_meanwhile_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    reader = opened(path)
    assert len(words(reader)) == 30 * 42
    monkeypatch.undo()
    with opened(path) as graph:
        graph.add("more")
        assert len(words(graph)) == 30 * 42 + 1
    assert not path.with_name("graph-wal").exists()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert len(words(reader)) == 30 * 42 + 1


def read_as_nobody(path: Path, read: int, added: int) -> None:
    os.setgid(65534)
    os.setuid(65534)
    graph = opened(path)
    assert len(words(graph)) == 30 * 42
    with pytest.raises(StoreError, match="can only be read"):
        graph.add("more")
    os.write(read, b"1")
    assert os.read(added, 1)  # by who has the file open from now on
    assert len(words(graph)) == 30 * 42 + 1
    graph.close()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else"
)
def test_somebody_without_the_right_to_write_can_read() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's folders are closed to others
    (is_read, read), (is_added, added) = os.pipe(), os.pipe()
    try:
        folder.chmod(0o755)
        fill(folder / "graph")
        (folder / "graph").chmod(0o644)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                read_as_nobody(folder / "graph", read, is_added)
                code = 0
            except PermissionError:
                code = 77
            except BaseException as error:
                os.write(2, repr(error).encode())
            finally:
                os._exit(code)
        os.close(read)
        with opened(folder / "graph") as graph:
            if os.read(is_read, 1):
                graph.add("more")
                assert len(words(graph)) == 30 * 42 + 1
                os.write(added, b"1")
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == 77:
            pytest.skip("this root may not become somebody else")
        assert code == 0
    finally:
        for end in (is_read, is_added, added):
            os.close(end)
        shutil.rmtree(folder)


# What no file can hold


# What comes back as it was


def test_a_damaged_error_message_is_an_error_of_the_store(path: Path) -> None:
    """SQLite quotes the damaged schema, which is no text any more."""
    NodeGraph(store=path).close()
    content = path.read_bytes()
    assert b"CASCADE" in content
    path.write_bytes(content.replace(b" CASCADE", b" \xc3ASCADE"))
    with pytest.raises(StoreError, match="restore a backup"):
        NodeGraph(store=path).nodes("ROOT")


def test_checksums_stay_as_they_are() -> None:
    """Those in files were written by earlier versions."""
    written = [("tea", 1), (b"tea", 1), (None, 1 << 20), ("茶", (1 << 32) + 5), (b"", -3)]
    assert [checksum(*row) for row in written] == [
        *(2403646853, 2415565672, 4293918719, 3947846431, 2)
    ]
    assert row_checksum("a", None, 1.0, 2.5, True, -0.0, b"x\0") == 2961484790
