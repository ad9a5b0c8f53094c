"""A served folder is read again when it changed, not more often than is good for it."""

import os
import threading

import pytest

from nodekin.adapters.server_access import SourceRefresh
from nodekin.nodegraph import NodeGraph


class Clock:
    """A time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tea.md").write_text("Green tea is steamed.", "utf-8")
    return tmp_path


@pytest.fixture
def graph(folder):
    return NodeGraph(folder, progress=False, on_error="skip")


def test_it_looks_once_in_some_seconds(graph, folder) -> None:
    clock = Clock()
    refresh = SourceRefresh(5, clock)
    assert refresh(graph) is False
    (folder / "coffee.md").write_text("Coffee is roasted.", "utf-8")
    clock.now = 4
    assert refresh(graph) is False
    clock.now = 6
    assert refresh(graph) is True
    assert len(graph.reader.document_ids()) == 2
    clock.now = 20
    assert refresh(graph) is False


def test_after_a_long_look_it_waits_longer(graph, folder, monkeypatch) -> None:
    clock = Clock()
    refresh, real = SourceRefresh(5, clock), NodeGraph.refresh

    def slow(self):
        clock.now += 10
        return real(self)

    monkeypatch.setattr(NodeGraph, "refresh", slow)
    refresh(graph)
    (folder / "tea.md").unlink()
    clock.now = 100
    assert refresh(graph) is False
    clock.now = 211
    assert refresh(graph) is True
    assert not graph.reader.document_ids()


def test_nothing_is_read_where_nothing_changed(graph, folder, monkeypatch) -> None:
    refresh = SourceRefresh(0, Clock())
    refresh(graph)
    monkeypatch.setattr(NodeGraph, "refresh", lambda self: pytest.fail("it was read again"))
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.md").write_text("x", "utf-8")
    assert refresh(graph) is False


def test_the_same_size_at_another_time(graph, folder) -> None:
    refresh = SourceRefresh(0, Clock())
    refresh(graph)
    (folder / "tea.md").write_text("Black tea is steamed.", "utf-8")
    os.utime(folder / "tea.md", ns=(0, 12345))
    assert refresh(graph) is True
    assert graph.node(graph.reader.document_ids()[0]).text.startswith("Black")


def test_who_comes_meanwhile_does_not_wait(graph, monkeypatch) -> None:
    refresh, looking, go_on = SourceRefresh(0, Clock()), threading.Event(), threading.Event()

    def slow(self):
        looking.set()
        assert go_on.wait(60)
        return real(self)

    real = NodeGraph.refresh
    monkeypatch.setattr(NodeGraph, "refresh", slow)
    first = threading.Thread(target=refresh, args=[graph])
    first.start()
    assert looking.wait(60)
    assert refresh(graph) is False
    go_on.set()
    first.join(60)


def test_what_can_not_be_read_is_logged(graph, folder, monkeypatch, caplog) -> None:
    def failing(self):
        raise ValueError("two files have one id")

    monkeypatch.setattr(NodeGraph, "refresh", failing)
    assert SourceRefresh(0, Clock())(graph) is False
    assert "two files have one id" in caplog.text


def test_the_sources_of_a_graph(graph, folder) -> None:
    assert graph.sources == [folder]
    assert NodeGraph(progress=False).sources == []
