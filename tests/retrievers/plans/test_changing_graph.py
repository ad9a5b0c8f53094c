"""Composites on a graph that changes while they search."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from support.moving_documents import COMPOSITES, OWNER, QUERY, WAYS, documents, moving_graph

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import MultiQueryRetriever, RerankRetriever, Retriever, WindowRetriever


class Changing:
    """A retriever that changes the graph after its first search."""

    takes_filters = True

    def __init__(self, inner: Any, change: Callable[[], object]) -> None:
        self.inner, self.change, self.calls = inner, change, 0

    def retrieve(self, query: str, **options: Any) -> Any:
        results = self.inner.retrieve(query, **options)
        self.calls += 1
        if self.calls == 1:
            self.change()
        return results

    async def aretrieve(self, query: str, **options: Any) -> Any:
        return self.retrieve(query, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_of_moving_documents_returns_only_the_tenants(name: str, way: str) -> None:
    graph = moving_graph()
    composite = COMPOSITES[name](
        graph, lambda inner: Changing(inner, lambda: graph.add(documents(1)))
    )
    results = WAYS[way](composite)
    assert results
    assert all(result.node.metadata["tenant"] == OWNER["tenant"] for result in results)


def test_model_is_called_once_though_the_graph_changes() -> None:
    graph, prompts = moving_graph(), []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return "Which tea has milk?"

    inner = Changing(Retriever(graph, "line"), lambda: graph.add(documents(1)))
    MultiQueryRetriever(inner, model).retrieve(QUERY)
    assert len(prompts) == 1


def teas() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"Green tea {i}.\nMilk {i}.", id=str(i)) for i in range(40)])
    return graph


def around(kind: str, inner: Any) -> Any:
    if kind == "rerank":
        return RerankRetriever(inner, "longest_first", top_k=3)
    return WindowRetriever(inner, top_k=3)


@pytest.mark.parametrize("kind", ["rerank", "window"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_removed_results_are_replaced(kind: str, way: str) -> None:
    graph = teas()
    found = [hit.node.document_id for hit in Retriever(graph, "line").retrieve("tea", top_k=12)]
    removed = found[:5]
    composite = around(kind, Changing(Retriever(graph, "line"), lambda: graph.remove(removed)))
    if way == "sync":
        results = composite.retrieve("tea")
    else:
        results = asyncio.run(composite.aretrieve("tea"))
    assert len(results) == 3
    assert not {result.node.document_id for result in results} & {*removed}


def test_lookup_error_of_inner_retriever_is_not_retried() -> None:
    calls: list[str] = []

    class Failing:
        def retrieve(self, query: str, **options: Any) -> Any:
            calls.append(query)
            raise LookupError("nothing there")

        async def aretrieve(self, query: str, **options: Any) -> Any:
            return self.retrieve(query, **options)

    with pytest.raises(LookupError, match="nothing there"):
        RerankRetriever(Failing(), "longest_first").retrieve(QUERY)
    assert calls == [QUERY]
