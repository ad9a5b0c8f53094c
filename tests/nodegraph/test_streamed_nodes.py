"""Nodes that are read as they are iterated are those that a list would have."""

from nodekin.nodegraph import NodeGraph


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
