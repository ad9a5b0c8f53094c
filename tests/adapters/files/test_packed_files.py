"""Report of a missing optional package with the number of skipped files."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.workers import process_workers

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def test_missing_extra_is_reported_with_file_count(tmp_path, monkeypatch) -> None:
    program = "import sys; sys.modules['mammoth'] = None; " + process_workers._PROGRAM
    monkeypatch.setattr(process_workers, "_PROGRAM", program)
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a.docx", "b.docx"):
        (docs / name).write_bytes((SAMPLES / "手册.docx").read_bytes())
    (docs / "c.txt").write_text("Tea.")
    graph = NodeGraph(docs, progress=False)
    assert [node.id for node in graph.nodes("ROOT")] == ["docs/c.txt"]
    assert str(graph.read_report) == (
        '1 read, 2 skipped: 2 in need of pip install "nodekin[files]"'
    )
    assert "mammoth is not installed" in str(graph.failures[0].error)
    with pytest.raises(ReadError, match=r"pip install \"nodekin\[files\]\""):
        NodeGraph(docs, progress=False, reading=ReadOptions(strict=True))
