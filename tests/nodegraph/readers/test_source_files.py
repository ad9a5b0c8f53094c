"""Reports and options of readers."""

from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.readers.source_files import check_encoding


def test_report_counts_other_encodings(tmp_path: Path) -> None:
    for name, encoding in (("a", "gb18030"), ("b", "gb18030"), ("c", "utf-16"), ("d", "utf-8-sig")):
        (tmp_path / f"{name}.txt").write_bytes(f"红茶是全发酵茶。{name}".encode(encoding))
    graph = NodeGraph(tmp_path, progress=False)
    assert str(graph.read_report) == "4 read; not in UTF-8: 2 gb18030, 1 utf-16"
    assert [node.text[-1] for node in graph.nodes("ROOT")] == ["a", "b", "c", "d"]
    assert not any("\ufeff" in node.text for node in graph.nodes("ROOT"))


def test_unknown_encoding_raises() -> None:
    assert check_encoding("gb18030") == "gb18030"
    with pytest.raises(ValueError, match="unknown encoding 'gb99'"):
        check_encoding("gb99")
