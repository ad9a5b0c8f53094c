"""Progress bars on stderr."""

import io
import re
import sys
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph


def test_empty_build_draws_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.create_node_group("word", str.split)
    ids = graph.add(["a", "b"])
    graph.nodes("word")
    assert "building word" in capsys.readouterr().err
    graph.remove(ids[0])
    assert len(graph.nodes("word")) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("progress", [False, None])
def test_no_bar_without_a_terminal(
    progress: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = NodeGraph(progress=progress)
    graph.add(["a b", "c"])
    graph.create_node_group("word", str.split)
    assert len(graph.nodes("word")) == 3
    assert capsys.readouterr() == ("", "")


def test_build_of_several_groups_draws_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    graph = NodeGraph(progress=True)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add(["a b\nc", "d"])
    graph.build("word")
    drawn = capsys.readouterr().err
    assert drawn.count("\n") == 1
    assert drawn.endswith("\n")
    assert "building line" in drawn
    assert "building word" in drawn
    assert "2/2" in drawn


def test_reading_bar_shows_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one.html", "two.txt"):
        (tmp_path / name).write_text("<html><p>Tea.</p></html>")
    NodeGraph(tmp_path, progress=True)
    drawn = capsys.readouterr().err
    assert "reading" in drawn
    assert "2/2" in drawn
    assert re.search(r"\d\d:\d\d<\d\d:\d\d", drawn)  # elapsed and remaining time


def test_quick_build_leaves_no_empty_terminal_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    graph = NodeGraph()
    graph.create_node_group("word", str.split)
    graph.add(["a b", "c"])
    graph.nodes("word")
    assert "\n" not in capsys.readouterr().err


class Terminal(io.StringIO):
    """A terminal that keeps what is drawn."""

    def isatty(self) -> bool:
        return True


def test_short_tasks_leave_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    graph = NodeGraph()
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add(["a b\nc", "d"])
    graph.build("word")
    assert terminal.getvalue().rpartition("\r")[2] == ""
    assert "building" not in terminal.getvalue()
