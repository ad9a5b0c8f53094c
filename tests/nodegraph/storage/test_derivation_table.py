"""Writing derivations: which nodes change."""

from pathlib import Path

import pytest

from nodekin.nodegraph import Document, NodeGraph


@pytest.mark.parametrize(
    ("text", "year", "removed", "added"),
    [
        ("one\ntwo\nsix", 1, ["three"], ["six"]),
        ("one\ntwo", 1, ["three"], []),
        ("one\ntwo\nthree\nfour", 1, [], ["four"]),
        # Nodes that move, or inherit other metadata, are changed.
        ("two\nthree", 1, ["one", "two", "three"], ["two", "three"]),
        ("one\ntwo\nthree", 2, ["one", "two", "three"], ["one", "two", "three"]),
    ],
)
def test_changes_have_only_nodes_that_differ(
    text: str, year: int, removed: list[str], added: list[str], tmp_path: Path
) -> None:
    with NodeGraph(store=tmp_path / "g", progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add([Document("one\ntwo\nthree", {"year": 1}, id="a"), Document("other", id="b")])
        before = {node.id: node.text for node in graph.nodes("line")}
        revision = graph.reader.revision("line")
        graph.add(Document(text, {"year": year}, id="a"))
        graph.build("line")
        changes = graph.reader.changes("line", revision)
        assert [before[i] for i in changes.removed] == removed
        assert [node.text for node in changes.added] == added
