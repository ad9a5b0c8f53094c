"""Metadata of nodes."""

from collections import Counter

import pytest
from support.node_texts import texts

from nodekin.nodegraph import Document, Node, NodeGraph

pytestmark = pytest.mark.usefixtures("every_store")


def test_metadata_merges_document_ancestors_and_node() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("a b", {"topic": "t", "level": "document"}, id="1"))
    graph.create_node_group(
        "line", lambda text: [Node(text, {"level": "line", "line": 1})], version="1"
    )
    graph.create_node_group("word", lambda text: [Node("a", {"level": "word"}), "b"], "line")
    a, b = graph.nodes("word")
    assert a.metadata == {"topic": "t", "level": "word", "line": 1}
    assert b.metadata == {"topic": "t", "level": "line", "line": 1}
    assert (a.own_metadata, b.own_metadata) == ({"level": "word"}, {})
    assert graph.node("1").metadata == {"topic": "t", "level": "document"}


def test_searched_text_without_a_graph() -> None:
    assert Node("tea", {"title": "Cups"}).searched_text == "Cups\ntea"
    node = Node("tea", {"colour": "brown"}, search_text="colour")
    assert ("brown" in node.searched_text, node.searched_sources) == (True, ("colour",))


def test_new_metadata_reruns_no_text_transform() -> None:
    graph = NodeGraph(progress=False)
    calls: Counter[str] = Counter()

    def split(text: str) -> list[str]:
        calls[text] += 1
        return text.split()

    def topic(node: Node) -> str:
        calls["topic of " + node.text] += 1
        return f"{node.text}: {node.metadata['topic']}"

    graph.create_node_group("word", split, version="1")
    graph.create_node_group("topic", topic, parent="word", trans_node=True, version="1")
    graph.add([Document("a b", {"topic": "old"}, id="1"), Document("c", {"topic": "o"}, id="2")])
    graph.add(Document(" ", id="without words"))
    ids = [node.id for node in graph.nodes("word")]
    assert texts(graph.nodes("topic")) == ["a: old", "b: old", "c: o"]
    calls.clear()
    revision = graph.reader.revision("word")
    graph.add(Document("a b", {"topic": "new"}, id="1"))
    graph.add(Document(" ", {"topic": "new"}, id="without words"))
    assert [node.metadata["topic"] for node in graph.nodes("word")] == ["new", "new", "o"]
    assert [node.id for node in graph.nodes("word")] == ids
    assert [node.id for node in graph.reader.changes("word", revision).added] == ids[:2]
    assert texts(graph.nodes("topic")) == ["a: new", "b: new", "c: o"]
    assert calls == {"topic of a": 1, "topic of b": 1}
