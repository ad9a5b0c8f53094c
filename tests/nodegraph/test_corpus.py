"""A graph of files that is kept: what happened to the files while it was closed."""

import os
import pickle
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from node_texts import texts

from nodekin.nodegraph import Document, NodeGraph, ReadError, corpus


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"{name} one\n{name} two", encoding="utf-8")
    return folder


def opened(docs: Path | None, tmp_path: Path) -> NodeGraph:
    graph = NodeGraph(docs, store=tmp_path / "graph", progress=False)
    graph.create_node_group("line", str.splitlines)
    return graph


def line_texts(graph: NodeGraph) -> list[str]:
    return [node.text for node in graph.nodes("line")]


def test_opened_again_everything_is_built(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        lines = graph.nodes("line")
    with opened(docs, tmp_path) as graph:
        assert graph.groups["line"].built
        assert graph.groups["line"].size == 6
        assert graph.nodes("line") == lines
        assert graph.reader.revision("ROOT") == opened(None, tmp_path).reader.revision("ROOT")


def test_what_changed_while_it_was_closed_is_found(docs: Path, tmp_path: Path) -> None:
    opened(docs, tmp_path).close()
    (docs / "a.txt").write_text("a new", encoding="utf-8")
    (docs / "b.txt").unlink()
    (docs / "d.txt").write_text("d one", encoding="utf-8")
    with opened(docs, tmp_path) as graph:
        assert line_texts(graph) == ["a new", "c one", "c two", "d one"]


def test_without_its_source_it_is_what_it_was_until_refreshed(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        before = line_texts(graph)
    (docs / "a.txt").unlink()
    with opened(None, tmp_path) as graph:
        assert line_texts(graph) == before
        report = graph.refresh()
        assert (report.removed, report.unchanged) == (["docs/a.txt"], 2)
        assert line_texts(graph) == before[2:]


def test_only_the_source_that_is_named_is_looked_at(docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.txt").write_text("x", encoding="utf-8")
    with opened(docs, tmp_path) as graph:
        graph.add(other)
    (other / "x.txt").write_text("y", encoding="utf-8")
    with opened(docs, tmp_path) as graph:
        assert line_texts(graph)[-1] == "x"
        assert graph.refresh().updated == ["other/x.txt"]
        assert line_texts(graph)[-1] == "y"


def test_a_folder_that_has_moved_is_known_by_its_name(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        lines = graph.nodes("line")
        revision = graph.reader.revision("ROOT")
    moved = tmp_path / "elsewhere" / "docs"
    moved.parent.mkdir()
    shutil.move(docs, moved)
    with opened(moved, tmp_path) as graph:
        assert graph.reader.revision("ROOT") == revision
        assert graph.nodes("line") == lines
        assert graph.refresh().unchanged == 3
        (moved / "a.txt").unlink()
        assert graph.refresh().removed == ["docs/a.txt"]


def test_refresh_reads_only_files_with_changed_bytes(docs: Path, tmp_path: Path) -> None:
    opened(docs, tmp_path).close()
    (docs / "b.txt").touch()
    (docs / "c.txt").write_text("changed", encoding="utf-8")
    with opened(docs, tmp_path) as graph:
        assert (graph.read_report.read, graph.read_report.unchanged) == (1, 2)
        assert graph.node("docs/c.txt").text == "changed"
        graph.add(Document("by hand", id="docs/a.txt"))
        assert graph.refresh().updated == ["docs/a.txt"]  # the file has the last word


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files whose bytes are looked at; changes of just now count as old ones."""
    names: list[str] = []
    whole = corpus._hash
    monkeypatch.setattr(corpus, "_hash", lambda path: names.append(path.name) or whole(path))
    now = time.time_ns
    monkeypatch.setattr(corpus.time, "time_ns", lambda: now() + 3_000_000_000)
    return names


def test_bytes_are_looked_at_where_size_or_times_say_that_they_changed(
    docs: Path, tmp_path: Path, hashed: list[str]
) -> None:
    opened(docs, tmp_path).close()
    assert hashed == ["a.txt", "b.txt", "c.txt"]
    hashed.clear()
    with opened(docs, tmp_path) as graph:
        assert hashed == []
        before = (docs / "b.txt").stat()
        (docs / "b.txt").write_text("B one\nB two", encoding="utf-8")  # of the same length
        os.utime(docs / "b.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.utime(docs / "c.txt", ns=(0, 0))
        assert graph.refresh().updated == ["docs/b.txt"]
        assert hashed == ["b.txt", "c.txt"]
        hashed.clear()
        assert graph.refresh().unchanged == 3
        assert hashed == []


def test_bytes_of_files_that_changed_just_now_are_always_looked_at(
    docs: Path, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = max(path.stat().st_ctime_ns for path in docs.iterdir())
    monkeypatch.setattr(corpus.time, "time_ns", lambda: newest + 1_000_000_000)
    with opened(docs, tmp_path) as graph:
        hashed.clear()
        graph.refresh()
        assert hashed == ["a.txt", "b.txt", "c.txt"]


def test_a_file_that_can_not_be_read_keeps_its_document(docs: Path, tmp_path: Path) -> None:
    opened(docs, tmp_path).close()
    (docs / "a.txt").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ReadError, match="is not utf-16: byte 0xff at offset 2"):
        NodeGraph(docs, store=tmp_path / "graph", on_error="raise")
    graph = NodeGraph(docs, store=tmp_path / "graph")
    assert [failure.document for failure in graph.failures] == ["docs/a.txt"]
    assert graph.node("docs/a.txt").text.startswith("a one")
    graph.close()


def test_what_travels_between_folders_is_renamed_in_any_number(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        graph.build("line")
        (docs / "sub").mkdir()
        for name in "abc":
            (docs / f"{name}.txt").rename(docs / "sub" / f"{name}.txt")
        (docs / "copy.txt").write_text("a one\na two", encoding="utf-8")  # one more of a
        report = graph.refresh()
        assert len(report.renamed) == 3
        assert len(report.added) == 1
        assert (report.removed, report.updated, report.unchanged) == ([], [], 0)
        fresh = NodeGraph(docs)
        fresh.create_node_group("line", str.splitlines)
        assert {n.id: n.text for n in graph.nodes("line")} == {
            n.id: n.text for n in fresh.nodes("line")
        }
        assert {n.parent_id for n in graph.nodes("line")} == set(fresh._store.document_ids())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text(f"{name}1 {name}2", encoding="utf-8")
    return folder


def test_refresh_tells_what_changed_and_takes_it_in(folder: Path) -> None:
    calls: Counter[str] = Counter()

    def split(text: str) -> list[str]:
        calls[text] += 1
        return text.split()

    graph = NodeGraph(str(folder), progress=False)
    graph.add(Document("own", id="own"))
    graph.create_node_group("word", split, version="1")
    assert texts(graph.nodes("word")) == ["a1", "a2", "b1", "b2", "c1", "c2", "own"]
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_text("new", encoding="utf-8")
    (folder / "d.txt").write_text("d1", encoding="utf-8")
    calls.clear()
    report = graph.refresh()
    assert report.added == ["docs/d.txt"]
    assert report.updated == ["docs/b.txt"]
    assert report.removed == ["docs/a.txt"]
    assert report.unchanged == 1
    assert texts(graph.nodes("word")) == ["new", "c1", "c2", "own", "d1"]
    assert calls == {"new": 1, "d1": 1}
    again = graph.refresh()
    assert (again.added, again.updated, again.removed, again.unchanged) == ([], [], [], 3)


def test_a_removed_file_comes_back_with_refresh(folder: Path) -> None:
    graph = NodeGraph(folder, progress=False)
    graph.remove("docs/a.txt")
    assert graph.refresh().added == ["docs/a.txt"]


def test_an_unreadable_file_changes_nothing(folder: Path) -> None:
    graph = NodeGraph(folder, progress=False, on_error="raise")
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="is not utf-16: byte 0x00 at offset 2"):
        graph.refresh()
    assert len(graph.nodes("ROOT")) == 3
    with pytest.raises(ReadError, match="is not utf-16: byte 0x00 at offset 2"):
        NodeGraph(folder, on_error="raise")


def test_an_unreadable_file_is_skipped_and_keeps_what_it_gave_until_it_is_gone(
    folder: Path,
) -> None:
    graph = NodeGraph(folder, progress=False)
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    assert graph.refresh().removed == []
    (failure,) = graph.failures
    assert (failure.document, failure.group) == ("docs/b.txt", "ROOT")
    assert graph.node("docs/b.txt").text == "b1 b2"
    (folder / "b.txt").write_text("mended", encoding="utf-8")
    assert graph.refresh().updated == ["docs/b.txt"]
    assert graph.failures == []
    (folder / "b.txt").write_bytes(b"\xff\xfe\x00")
    graph.refresh()
    (folder / "b.txt").unlink()
    assert graph.refresh().removed == ["docs/b.txt"]
    assert graph.failures == []


def test_a_graph_of_files_that_travelled_can_be_refreshed(folder: Path) -> None:
    other = pickle.loads(pickle.dumps(NodeGraph(folder)))
    (folder / "a.txt").write_text("new", encoding="utf-8")
    assert other.refresh().updated == ["docs/a.txt"]


def test_a_folder_that_is_removed_is_read_no_more(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        graph.add("tea")
        graph.remove(docs)
        assert [node.text for node in graph.nodes("ROOT")] == ["tea"]
        assert graph.refresh().added == []
        with pytest.raises(LookupError, match=r"no file in .*docs was read; the graph reads"):
            graph.remove(docs)
        graph.add(docs)
        assert len(graph.nodes("ROOT")) == 4


def test_a_file_that_is_removed_stays_away_until_it_is_added(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        graph.remove(docs / "b.txt")
        assert texts(graph.nodes("ROOT")) == ["a one\na two", "c one\nc two"]
        (docs / "b.txt").write_text("b three", "utf-8")
    with opened(docs, tmp_path) as graph:  # which reads the folder again
        assert texts(graph.nodes("ROOT")) == ["a one\na two", "c one\nc two"]
        assert graph.refresh().added == []
        graph.add(docs / "b.txt")
        assert sorted(texts(graph.nodes("ROOT"))) == ["a one\na two", "b three", "c one\nc two"]
        graph.remove(docs / "b.txt")
        graph.add(docs)
        assert len(graph.refresh().added) == 0
        assert "b three" in texts(graph.nodes("ROOT"))


def test_all_that_is_named_is_removed_or_nothing(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        with pytest.raises(LookupError):
            graph.remove([docs / "a.txt", docs / "x.txt"])
        with pytest.raises(LookupError):
            graph.remove([docs / "a.txt", "no such document"])
        assert len(graph.nodes("ROOT")) == 3
        graph.remove([docs / "a.txt", "docs/b.txt"])
        assert texts(graph.nodes("ROOT")) == ["c one\nc two"]
        assert graph.refresh().added == ["docs/b.txt"]  # removed by its id: its file gives it again
