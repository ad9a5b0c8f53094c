"""The stored records of files: which files are hashed again."""

import os
import time
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, source_records


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
