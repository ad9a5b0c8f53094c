"""Graphs of files: refreshes after changes of the files."""

import pickle
import shutil
from pathlib import Path

import pytest
from support.node_texts import texts

from nodekin.nodegraph import Document, NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.readers import folder_scan


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


def test_open_refreshes_its_source(docs: Path, tmp_path: Path) -> None:
    opened(docs, tmp_path).close()
    (docs / "a.txt").write_text("a new", encoding="utf-8")
    (docs / "b.txt").unlink()
    (docs / "d.txt").write_text("d one", encoding="utf-8")
    with opened(docs, tmp_path) as graph:
        assert line_texts(graph) == ["a new", "c one", "c two", "d one"]


def test_open_refreshes_only_the_named_source(docs: Path, tmp_path: Path) -> None:
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


def test_moved_folder_keeps_its_ids(docs: Path, tmp_path: Path) -> None:
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


def test_moved_files_are_new_documents(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        graph.build("line")
        (docs / "sub").mkdir()
        for name in "abc":
            (docs / f"{name}.txt").rename(docs / "sub" / f"{name}.txt")
        (docs / "copy.txt").write_text("a one\na two", encoding="utf-8")  # one more of a
        report = graph.refresh()
        added = [f"docs/{name}.txt" for name in ("copy", "sub/a", "sub/b", "sub/c")]
        assert sorted(report.added) == added
        assert report.removed == ["docs/a.txt", "docs/b.txt", "docs/c.txt"]
        assert (report.updated, report.unchanged) == ([], 0)
        fresh = NodeGraph(docs)
        fresh.create_node_group("line", str.splitlines)
        assert {n.id: n.text for n in graph.nodes("line")} == {
            n.id: n.text for n in fresh.nodes("line")
        }
        assert {n.parent_id for n in graph.nodes("line")} == set(fresh._store.nodes.ids("ROOT"))


def test_failed_refresh_changes_nothing(docs: Path) -> None:
    graph = NodeGraph(docs, progress=False, on_error="raise")
    (docs / "a.txt").unlink()
    (docs / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ReadError, match="is not UTF-16: byte 0x00 at offset 2"):
        graph.refresh()
    assert len(graph.nodes("ROOT")) == 3
    with pytest.raises(ReadError, match="is not UTF-16: byte 0x00 at offset 2"):
        NodeGraph(docs, on_error="raise")


def test_unreadable_file_is_a_failure_until_removed(
    docs: Path,
) -> None:
    graph = NodeGraph(docs, progress=False)
    (docs / "b.txt").write_bytes(b"\xff\xfe\x00")
    assert graph.refresh().removed == []
    (failure,) = graph.failures
    assert (failure.document, failure.group) == ("docs/b.txt", "ROOT")
    assert graph.node("docs/b.txt").text == "b one\nb two"
    (docs / "b.txt").write_text("mended", encoding="utf-8")
    assert graph.refresh().updated == ["docs/b.txt"]
    assert graph.failures == []
    (docs / "b.txt").write_bytes(b"\xff\xfe\x00")
    graph.refresh()
    (docs / "b.txt").unlink()
    assert graph.refresh().removed == ["docs/b.txt"]
    assert graph.failures == []


def test_pickled_graph_refreshes_its_files(docs: Path) -> None:
    other = pickle.loads(pickle.dumps(NodeGraph(docs)))
    (docs / "a.txt").write_text("new", encoding="utf-8")
    assert other.refresh().updated == ["docs/a.txt"]


def test_removed_folder_is_not_refreshed(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        graph.add("tea")
        graph.remove(docs)
        assert [node.text for node in graph.nodes("ROOT")] == ["tea"]
        assert graph.refresh().added == []
        with pytest.raises(LookupError, match=r"docs is not a source of the graph; the sources"):
            graph.remove(docs)
        graph.add(docs)
        assert len(graph.nodes("ROOT")) == 4


def test_removed_file_stays_excluded_until_added(docs: Path, tmp_path: Path) -> None:
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


def test_remove_is_all_or_nothing(docs: Path, tmp_path: Path) -> None:
    with opened(docs, tmp_path) as graph:
        with pytest.raises(LookupError):
            graph.remove([docs / "a.txt", docs / "x.txt"])
        with pytest.raises(LookupError):
            graph.remove([docs / "a.txt", "no such document"])
        assert len(graph.nodes("ROOT")) == 3
        graph.remove([docs / "a.txt", "docs/b.txt"])
        assert texts(graph.nodes("ROOT")) == ["c one\nc two"]
        assert graph.refresh().added == ["docs/b.txt"]  # removed by its id: its file gives it again


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of scanned sources."""
    names: list[str] = []
    whole = folder_scan.scan_files

    def counted(source: str | Path, options: ReadOptions | None = None) -> folder_scan.FolderScan:
        names.append(Path(source).name)
        return whole(source, options)

    monkeypatch.setattr(folder_scan, "scan_files", counted)
    return names


def test_open_scans_each_source_once(docs: Path, tmp_path: Path, scanned: list[str]) -> None:
    """Opening many files takes time in proportion to their number."""
    files = sorted(docs.iterdir())
    for _ in range(2):
        NodeGraph(files, store=tmp_path / "graph", progress=False).close()
        assert scanned == ["a.txt", "b.txt", "c.txt"]
        scanned.clear()


def test_add_scans_a_known_folder_once(docs: Path, tmp_path: Path, scanned: list[str]) -> None:
    with opened(docs, tmp_path) as graph:
        scanned.clear()
        (docs / "a.txt").write_text("a new", encoding="utf-8")
        (docs / "sub").mkdir()
        (docs / "sub" / "d.txt").write_text("d", encoding="utf-8")
        ids = graph.add([docs / "a.txt", docs / "sub", docs / "b.txt"])
        assert ids == ["docs/a.txt", "docs/sub/d.txt", "docs/b.txt"]
        assert scanned == ["docs"]
        assert graph.node("docs/a.txt").text == "a new"


def test_read_report_covers_all_paths(docs: Path, tmp_path: Path) -> None:
    files = sorted(docs.iterdir())
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.txt").write_text("x", encoding="utf-8")
    (other / "y.unknown").write_text("\0\1\2", encoding="utf-8")
    (other / ".hidden").write_text("z", encoding="utf-8")
    with NodeGraph(files[:2], store=tmp_path / "graph", progress=False) as graph:
        assert graph.read_report.read == 2
    files[0].write_text("changed", encoding="utf-8")
    with NodeGraph([*files, other], store=tmp_path / "graph", progress=False) as graph:
        report = graph.read_report
        assert (report.read, report.unchanged) == (3, 1)
        assert report.unsupported == [str(other / "y.unknown")]
        assert report.passed_over == {"hidden": 1}
        assert texts(graph.nodes("ROOT")) == ["changed", "b one\nb two", "c one\nc two", "x"]


def test_open_reads_a_file_inside_a_source_once(docs: Path, tmp_path: Path) -> None:
    for _ in range(2):
        sources = [docs, docs / "a.txt", docs]
        with NodeGraph(sources, store=tmp_path / "graph", progress=False) as graph:
            assert graph.reader.document_ids() == ["docs/a.txt", "docs/b.txt", "docs/c.txt"]
            assert graph.sources == [docs]


def test_open_keeps_files_of_overlapping_sources(docs: Path, tmp_path: Path) -> None:
    with NodeGraph([docs / "a.txt", docs], store=tmp_path / "graph", progress=False) as graph:
        ids = graph.reader.document_ids()
        assert set(graph.sources) == {docs / "a.txt", docs}
    with NodeGraph([docs / "a.txt"], store=tmp_path / "graph", progress=False) as graph:
        assert graph.reader.document_ids() == ids


def test_open_rejects_an_id_of_another_source(docs: Path, tmp_path: Path) -> None:
    opened(docs, tmp_path).close()
    twin = tmp_path / "twin" / "docs"
    twin.mkdir(parents=True)
    with opened(twin, tmp_path) as graph:
        assert len(graph.nodes("ROOT")) == 3
    (twin / "a.txt").write_text("twin", encoding="utf-8")
    with pytest.raises(ValueError, match=r"the same document id 'docs/a\.txt'"):
        opened(twin, tmp_path)
