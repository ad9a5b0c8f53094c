"""Formats without the readers of ``adapters/files``."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, TransformError
from nodekin.nodegraph.readers import formats

INSTALL = r'get the readers of PDF, Office and others: pip install "nodekin\[files\]"'


def clear() -> None:
    for function in (formats._plugins, formats._by_suffix):
        function.cache_clear()


@pytest.fixture(autouse=True)
def _without_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "nodekin.adapters.files.file_formats", None)
        yield
    clear()


def test_missing_reader_names_the_package(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    (tmp_path / "b.txt").write_text("Tea.")
    with pytest.raises(ReadError, match=rf"no reader for '\.pdf' files .*{INSTALL}"):
        NodeGraph(tmp_path / "a.pdf", progress=False)
    graph = NodeGraph(tmp_path, progress=False)
    assert [node.text for node in graph.nodes("ROOT")] == ["Tea."]
    assert str(graph.read_report) == "1 read, 1 skipped: 1 without a reader"
    (record,) = caplog.records
    assert 'pip install "nodekin[files]"' in record.getMessage()


def test_programs_without_grammar_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def tea(): ...")
    graph = NodeGraph(tmp_path, progress=False)
    graph.create_node_group("line", str.splitlines)
    assert [node.place for node in graph.nodes("line")] == ["a.py, line 1"]
    with pytest.raises(TransformError, match=r"the symbols of programs \(a\.py\) require .*pip"):
        graph.nodes("symbol")
