"""Nodes with the names of passages."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph, TransformError
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({}, TypeError, "reads one passage: declare its group without scope='group'"),
        ({"find": "Oslo".format}, TypeError, "several names, got one text: 'Oslo'"),
    ],
)
def test_invalid_use_of_extractor_raises(settings: Any, error: Any, says: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add("text")
    scope = "node" if settings else "group"
    graph.create_node_group("entity", EntityExtractor(**settings), scope=scope)
    with pytest.raises(TransformError, match=says):
        graph.nodes("entity")


def test_find_without_function_raises() -> None:
    with pytest.raises(TypeError, match="find must be a function from a text to names, got 3"):
        EntityExtractor(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("stored", [False, True])
def test_extractor_reads_only_new_passages(stored: bool, tmp_path: Path) -> None:
    read: list[str] = []

    def find(text: str) -> list[str]:
        read.append(text)
        return text.split()

    with NodeGraph(store=tmp_path / "graph" if stored else None, progress=False) as graph:
        graph.add([Document(f"Tea {number}", id=str(number)) for number in range(50)])
        graph.create_node_group("mention", EntityExtractor(find))
        assert [node.parent_id for node in graph.nodes("mention")] == [str(n) for n in range(50)]
        read.clear()
        graph.remove("7")
        graph.add(Document("Tea now", id="new"))
        assert len(graph.nodes("mention")) == 50
        assert read == ["Tea now"]
