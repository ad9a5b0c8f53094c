"""A million tiny nodes: built, walked, changed. Some seconds; left out with -k "not million"."""

from collections.abc import Iterator

import pytest

from nodekin.nodegraph import Document, NodeGraph

DOCUMENTS, LINES = 200, 5_000


@pytest.fixture(scope="module")
def graph() -> Iterator[NodeGraph]:
    with NodeGraph(progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(
            Document("\n".join(f"{n} {line}" for line in range(LINES)), {"n": n}, id=str(n))
            for n in range(DOCUMENTS)
        )
        yield graph


def test_a_million_nodes_are_built_and_placed(graph: NodeGraph) -> None:
    nodes = graph.nodes("line")
    assert len(nodes) == graph.groups["line"].size == DOCUMENTS * LINES
    assert len({node.id for node in nodes}) == len(nodes)
    for at in (0, 4_999, 5_000, 777_777, 999_999):
        node = nodes[at]
        assert node.text == f"{at // LINES} {at % LINES}"
        assert node.root.text[node.start : node.end] == node.text
        assert node.metadata == {"n": at // LINES}


def test_a_million_nodes_can_be_walked(graph: NodeGraph) -> None:
    nodes = graph.nodes("line")
    some = [nodes[at] for at in (700_000, 3, 700_001, 999_999)]
    assert [root.id for root in graph.find("ROOT")(some)] == ["0", "140", "199"]
    assert graph.find("line")(nodes[5_000].root) == nodes[5_000:10_000]
    assert nodes[5_000].root.children["line"] == nodes[5_000:10_000]
    assert len(graph.find("line")(graph.nodes("ROOT"))) == len(nodes)


def test_a_million_nodes_and_one_document_changes(graph: NodeGraph) -> None:
    before = graph.revision("line")
    graph.nodes("line")
    graph.update(Document("100 0\nnew", {"n": 100}, id="100"))
    graph.nodes("line")
    changes = graph.changes("line", before)
    assert not changes.complete
    assert len(changes.removed) == LINES - 1
    assert [node.text for node in changes.added] == ["new"]
