"""A hundred thousand tiny nodes are searched; with ``make stress`` a million."""

from collections.abc import Iterator

import pytest
import stress

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever

pytestmark = pytest.mark.slow

SIZE = 1_000_000 if stress.LONG else 100_000


@pytest.fixture(scope="module")
def lines() -> Iterator[Retriever]:
    with NodeGraph(progress=False) as graph:
        graph.create_node_group("line", str.splitlines)
        graph.add(Document("\n".join(f"a {number}" for number in range(SIZE)), id="big"))
        yield Retriever(graph, "line", top_k=5)


def texts(results) -> list[str]:
    return [result.node.text for result in results]


def test_many_ties_follow_document_order(lines: Retriever) -> None:
    results = lines.retrieve("a")
    assert texts(results) == ["a 0", "a 1", "a 2", "a 3", "a 4"]
    assert len({result.score for result in results}) == 1


def test_rare_word_finds_one_of_many_nodes(lines: Retriever) -> None:
    assert texts(lines("77777")) == ["a 77777"]
    assert texts(lines("77777 a")) == ["a 77777"]  # a single letter is ignored
    assert texts(lines("88888 a b")) == ["a 88888"]
    assert lines(str(SIZE)) == []


def test_many_nodes_lift_to_document(lines: Retriever) -> None:
    (result,) = Retriever(lines.graphs[0], "line", target="ROOT", top_k=1).retrieve("12 345")
    assert result.node.id == "big"
    assert {evidence.node.text for evidence in result.evidence} <= {"a 12", "a 345"}


def test_many_nodes_follow_added_and_removed_document(lines: Retriever) -> None:
    (graph,) = lines.graphs
    graph.add(Document("a 77777\nnew", id="small"))
    assert [r.node.document_id for r in lines("77777")] == ["big", "small"]
    assert texts(lines("new")) == ["new"]
    graph.remove("small")
    assert [r.node.document_id for r in lines("77777")] == ["big"]
    assert lines("new") == []
