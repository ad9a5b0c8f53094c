"""Turns and transactions: what may happen while a thread holds the lock of a graph."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.nodegraph.storage.node_table import PAGE
from nodekin.retrievers import RerankRetriever, Retriever, ScoredNode


@pytest.fixture(params=["memory", "file"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> NodeGraph:
    path = None if request.param == "memory" else tmp_path / "g"
    graph = NodeGraph(store=path, progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"tea {n}\nleaf {n}", id=f"d{n}") for n in range(50)])
    graph.build("line")
    return graph


def test_change_inside_a_search_raises(graph: NodeGraph) -> None:
    with (
        graph.reader.reading("line"),
        pytest.raises(RuntimeError, match="cannot be changed, and no group built, inside"),
    ):
        graph.add("more")
    graph.add("more")
    assert len(graph.nodes("line")) == 101


def test_failed_transaction_is_rolled_back(graph: NodeGraph) -> None:

    def fail() -> None:
        with graph._store.transactions.transaction():
            graph._store.change_documents([Document("lost", id="lost")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [node.id for node in graph.nodes("ROOT")] == [f"d{n}" for n in range(50)]
    graph.add(Document("kept", id="kept"))
    assert graph.nodes("line")[-1].text == "kept"


def test_sleeping_reranker_does_not_hold_the_graph(graph: NodeGraph) -> None:
    asleep = threading.Barrier(8)

    class Sleeping:
        name = "sleeping"

        def rerank(self, results: Sequence[ScoredNode], query: str) -> list[ScoredNode]:
            asleep.wait(60)  # reached only if all eight threads are here together
            return list(results)

    retriever = RerankRetriever(Retriever(graph, "line", "bm25", top_k=3), Sleeping())
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(retriever("tea")))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [6] * 8  # two lines of each of three documents


@pytest.mark.parametrize("reads", ["nodes", "changes"])
def test_abandoned_iteration_does_not_block_a_writer(graph: NodeGraph, reads: str) -> None:
    count = 2 * PAGE
    graph.add(Document("\n".join(f"line {n}" for n in range(count)), id="long"))
    read: Sequence[Node] = graph.nodes("line")
    if reads == "changes":
        read = graph.reader.changes("line", 0).added
    nodes = iter(read)
    first = next(nodes)
    thread = threading.Thread(target=graph.add, args=("another document",))
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "an unfinished iteration blocks a writer"
    assert first.text == "tea 0"
    assert [node.text for node in nodes][-1] == f"line {count - 1}"
    assert len(graph.nodes("line")) == 101 + count
