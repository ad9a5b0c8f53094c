"""Refresh of served folders after changes, with a minimum interval."""

import threading

import pytest

from nodekin.adapters.source_refresh import SourceRefresh
from nodekin.nodegraph import NodeGraph


class Clock:
    """A manually advanced clock."""

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


def test_source_refresh_checks_once_per_interval(graph, folder) -> None:
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


def test_source_refresh_waits_longer_after_slow_checks(graph, folder, monkeypatch) -> None:
    clock = Clock()
    refresh, real = SourceRefresh(5, clock), NodeGraph.refresh

    def slow(self):
        clock.now += 10
        return real(self)

    monkeypatch.setattr(NodeGraph, "refresh", slow)
    refresh(graph)
    (folder / "tea.md").unlink()
    clock.now = 200
    assert refresh(graph) is False
    clock.now = 211
    assert refresh(graph) is True
    assert not graph.reader.document_ids()


def test_requests_during_a_check_do_not_wait(graph, monkeypatch) -> None:
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


def test_failed_refresh_is_logged(graph, folder, monkeypatch, caplog) -> None:
    def failing(self):
        raise ValueError("two files have one id")

    monkeypatch.setattr(NodeGraph, "refresh", failing)
    assert SourceRefresh(0, Clock())(graph) is False
    assert "two files have one id" in caplog.text
