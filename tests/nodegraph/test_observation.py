"""What a block has read is of one state, or it is told."""

import threading
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.locking import OutsideHoldError, observing


def opened(store: Path | None = None) -> NodeGraph:
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.add(Document("green tea", id="a"))
    return graph


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_change_is_seen_and_what_is_built_is_none(kind: str, tmp_path: Path) -> None:
    with opened(None if kind == "memory" else tmp_path / "graph") as graph:
        with observing() as observation:
            with graph.reader.reading("line"):
                pass
            graph.nodes("word")  # is built now
            assert observation.is_current()
            graph.update(Document("black tea", id="a"))
            assert not observation.is_current()
        with observing() as observation:
            graph.nodes("ROOT")
            assert observation.is_current()
            graph.link("a", "a", "same")
            assert not observation.is_current()


def test_what_another_thread_builds_after_a_change_is_no_build_of_the_block() -> None:
    graph = opened()

    def change() -> None:
        graph.update(Document("black tea", id="a"))
        graph.build("word")

    with observing() as observation:
        graph.nodes("line")
        thread = threading.Thread(target=change)
        thread.start()
        thread.join()
        graph.build("line")
        assert not observation.is_current()


def test_nothing_is_read_that_is_not_held() -> None:
    graph, other = opened(), opened()
    with observing() as observation:
        graph.nodes("line")
        with observation.hold():
            assert [node.text for node in graph.nodes("line")] == ["green tea"]
            with pytest.raises(OutsideHoldError):
                graph.nodes("word")
            with pytest.raises(OutsideHoldError):
                other.nodes("line")
        with observation.hold():  # it is known now what has to be held
            assert len(graph.nodes("word")) + len(other.nodes("line")) == 3


def test_what_is_not_observed_is_not_noted() -> None:
    graph = opened()
    with observing() as observation:
        pass
    graph.nodes("line")
    graph.add("more")
    assert observation.is_current()
