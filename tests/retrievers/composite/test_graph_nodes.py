"""Documents of another engine become nodes of a graph."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest
from langchain_core.documents import Document as Page
from langchain_core.retrievers import BaseRetriever as LangChainRetriever

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    GraphNodesRetriever,
    Retriever,
    WindowRetriever,
    restrict,
)

TEXTS = {
    "tea": "Green tea is steamed.\nBlack tea is fermented.\nTea keeps a year.",
    "nile": "The Nile is long.\nIt runs north.",
}


class Engine(LangChainRetriever):
    """An engine that finds copies of nodes by their first words."""

    pages: list[Page]

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Page]:
        words = query.split()
        return [page for page in self.pages if any(word in page.page_content for word in words)]


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", lambda text: text.split("\n"))
    graph.add([Document(text, {"topic": name}, id=name) for name, text in TEXTS.items()])
    return graph


def engine_of(graph: NodeGraph, *, key: str | None = None) -> Engine:
    pages = [
        Page(
            f"copy of {node.text}",
            metadata={**node.metadata, **({key: node.id} if key else {})},
            id=None if key else node.id,
        )
        for node in graph.nodes("line")
    ]
    return Engine(pages=pages)


def texts(results: Sequence) -> list[str]:
    return [result.text for result in results]


@pytest.mark.parametrize("key", [None, "pk"])
def test_documents_of_engine_become_nodes(graph: NodeGraph, key: str | None) -> None:
    found = GraphNodesRetriever(engine_of(graph, key=key), graph, key)
    results = found.retrieve("fermented steamed")
    assert texts(results) == ["Green tea is steamed.", "Black tea is fermented."]
    assert [result.score for result in results] == [1, 1 / 2]
    assert {result.node.graph for result in results} == {graph}
    assert texts(asyncio.run(found.aretrieve("fermented", top_k=1))) == ["Black tea is fermented."]
    assert results[0].evidence[0].node == results[0].node


def test_nodes_of_engine_have_parents_and_neighbors(graph: NodeGraph) -> None:
    found = GraphNodesRetriever(engine_of(graph), graph)
    assert texts(WindowRetriever(found, 1, 0).retrieve("fermented")) == [
        "Green tea is steamed.\nBlack tea is fermented."
    ]
    merged = AutoMergeRetriever(found, ratio=0.5, target="ROOT").retrieve("fermented steamed")
    assert texts(merged) == [TEXTS["tea"]]
    fused = FusionRetriever([found, Retriever(graph, "line", "bm25")]).retrieve("fermented")
    assert texts(fused)[0] == "Black tea is fermented."


def test_documents_without_node_are_left_out_and_logged(
    graph: NodeGraph, caplog: pytest.LogCaptureFixture
) -> None:
    found = GraphNodesRetriever(engine_of(graph), graph)
    graph.remove(["tea"])
    with caplog.at_level(logging.WARNING):
        assert texts(found.retrieve("fermented long")) == ["The Nile is long."]
    (record,) = [each for each in caplog.records if "are no nodes" in each.getMessage()]
    assert "1 of 2 documents" in record.getMessage()


def test_conditions_hold_for_nodes(graph: NodeGraph) -> None:
    found = GraphNodesRetriever(lambda query, k=9: engine_of(graph).invoke(query)[:k], graph)
    assert texts(found.retrieve("fermented long", filters={"topic": "nile"})) == [
        "The Nile is long."
    ]
    assert texts(restrict(found, {"topic": "tea"}).retrieve("fermented long")) == [
        "Black tea is fermented."
    ]


def test_engine_needs_graph(graph: NodeGraph) -> None:
    with pytest.raises(TypeError, match="graph must be a NodeGraph, got 'tea'"):
        GraphNodesRetriever(engine_of(graph), "tea")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="GraphNodesRetriever if their ids are ids of nodes"):
        WindowRetriever(engine_of(graph))
