import re
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph


def test_nothing_to_build_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.create_node_group("word", str.split)
    ids = graph.add(["a", "b"])
    graph.nodes("word")
    assert "building word" in capsys.readouterr().err
    graph.remove(ids[0])
    assert len(graph.nodes("word")) == 1
    assert capsys.readouterr().err == ""


def test_a_failing_build_closes_its_bar(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.add("a")
    graph.create_node_group("bad", lambda text: 1 / 0)
    with pytest.raises(RuntimeError, match="division by zero"):
        graph.nodes("bad")
    assert capsys.readouterr().err.endswith("\n")


def test_reading_names_the_file_and_how_long_the_rest_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one.html", "two.txt"):
        (tmp_path / name).write_text("<html><p>Tea.</p></html>")
    NodeGraph(tmp_path, progress=True)
    drawn = capsys.readouterr().err
    assert "reading" in drawn
    assert "2/2" in drawn
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", drawn)  # the time it took, and what remains
    assert "two.txt" in drawn or "one.html" in drawn
