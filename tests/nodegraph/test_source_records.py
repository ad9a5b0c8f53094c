"""The stored records of files: which files are hashed again."""

import os
import time
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions, source_records
from nodekin.nodegraph.errors import OnError


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"{name} one\n{name} two", encoding="utf-8")
    return folder


def opened(docs: Path, tmp_path: Path) -> NodeGraph:
    return NodeGraph(docs, store=tmp_path / "graph", progress=False)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of hashed files. Recent changes count as old."""
    names: list[str] = []
    whole = source_records._hash
    monkeypatch.setattr(
        source_records, "_hash", lambda path: names.append(path.name) or whole(path)
    )
    now = time.time_ns
    monkeypatch.setattr(source_records.time, "time_ns", lambda: now() + 3_000_000_000)
    return names


def test_refresh_hashes_files_with_changed_size_or_times(
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


def test_refresh_hashes_recently_changed_files(
    docs: Path, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = max(path.stat().st_ctime_ns for path in docs.iterdir())
    monkeypatch.setattr(source_records.time, "time_ns", lambda: newest + 1_000_000_000)
    with opened(docs, tmp_path) as graph:
        hashed.clear()
        graph.refresh()
        assert hashed == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize("on_error", [None, "skip"])
def test_oversized_file_is_not_hashed(
    on_error: OnError | None, docs: Path, hashed: list[str]
) -> None:
    (docs / "b.txt").write_text("b" * 100, encoding="utf-8")
    options = ReadOptions(max_bytes=50)
    graph = NodeGraph(docs, reading=options, on_error=on_error, progress=False)
    graph.refresh()
    graph.add(docs / "a.txt")
    assert hashed == ["a.txt", "c.txt"]
    assert [failure.document for failure in graph.failures] == ["docs/b.txt"]
    (docs / "b.txt").write_text("small", encoding="utf-8")
    assert graph.refresh().added == ["docs/b.txt"]
    hashed.clear()
    with pytest.raises(ReadError, match=r"has 5 bytes, more than the 4 of ReadOptions"):
        NodeGraph(docs / "b.txt", reading=ReadOptions(max_bytes=4), on_error="raise")
    assert hashed == []


def test_grown_file_keeps_its_document(docs: Path, hashed: list[str]) -> None:
    graph = NodeGraph(docs, reading=ReadOptions(max_bytes=50), progress=False)
    hashed.clear()
    (docs / "b.txt").write_text("b" * 100, encoding="utf-8")
    assert graph.refresh().removed == []
    assert graph.node("docs/b.txt").text == "b one\nb two"
    assert hashed == []
