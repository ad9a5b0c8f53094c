"""Nodes that are read as they are iterated are those that a list would have."""

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.journal import Journal


def test_streamed_nodes_are_the_nodes() -> None:
    with NodeGraph(progress=False) as graph:
        graph.create_node_group("word", str.split)
        graph.add(["green tea", "black tea"])
        expected = graph.nodes("word")
        with graph.reader.reading("word"):
            changes = graph.reader.changes("word", 0, stream=True)
            assert changes.complete
            assert changes.revision == graph.reader.revision("word")
            for _ in range(2):
                assert list(changes.added) == expected
            assert len(changes.added) == 4
            assert all(node.graph is graph for node in changes.added)
            assert changes.added[1] == expected[1]
            assert changes.added[1:3] == expected[1:3]
            assert not graph.reader.changes("word", changes.revision, stream=True).added


@pytest.mark.parametrize("stream", [False, True])
def test_the_journal_is_read_once_for_what_has_changed(monkeypatch, stream: bool) -> None:
    read: list[str] = []
    changes = Journal.changes
    monkeypatch.setattr(Journal, "changes", lambda *args: read.append(args[1]) or changes(*args))
    with NodeGraph(progress=False) as graph:
        graph.create_node_group("word", str.split)
        graph.add("green tea")
        with graph.reader.reading("word"):
            revision = graph.reader.revision("word")
        graph.add("black")
        with graph.reader.reading("word"):
            read.clear()
            added = graph.reader.changes("word", revision, stream=stream).added
        assert [node.text for node in added] == ["black"]
        assert read == ["word"]
