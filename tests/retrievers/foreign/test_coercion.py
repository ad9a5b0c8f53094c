"""Conversion of objects into retrievers by their methods."""

import asyncio
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from support.foreign_retrievers import ways
from support.langchain_peers import DOCUMENTS, theirs
from support.langchain_peers import plain_retriever as plain
from support.langchain_runs import FinishedRuns, tree

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.adapters.llama_index import NodeGraphRetriever as LlamaIndexRetriever
from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    QueryEngine,
    Retriever,
    as_retriever,
)


@pytest.fixture
def graph() -> NodeGraph:
    made = NodeGraph(progress=False)
    made.add(
        [
            Document("Tea is a drink.", {"topic": "tea"}, id="tea"),
            Document("The Nile is a river.", {"topic": "rivers"}, id="nile"),
        ]
    )
    return made


def test_native_retrievers_and_graphs_are_accepted(graph: NodeGraph) -> None:
    class Own:
        def retrieve(self, query: str, *, top_k: Any = None, filters: Any = None) -> list[Any]:
            return []

        async def aretrieve(self, query: str, **options: Any) -> list[Any]:
            return []

    for retriever in (Retriever(graph, "ROOT"), Own()):
        assert as_retriever(retriever) is retriever
    assert isinstance(as_retriever(graph), DefaultRetriever)


def test_error_for_invalid_source_names_allowed_types() -> None:
    class Bare:
        def retrieve(self, query: str) -> None: ...

        async def aretrieve(self, query: str) -> None: ...

    for source in ("store", None, 3, InMemoryVectorStore, theirs(), Bare(), Retriever):
        with pytest.raises(TypeError, match=r"inner must be an object with .* LangChain or Llama"):
            as_retriever(source, "inner")
    with pytest.raises(TypeError, match="that take a query, top_k and filters"):
        FusionRetriever([Bare()])
    with pytest.raises(TypeError, match="wrap anything else in a function"):
        QueryEngine({"teas": 3}, str)


def test_query_engine_as_retriever_applies_filters(graph: NodeGraph) -> None:
    engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "A drink [1].")
    for results in ways(as_retriever(engine), "What is tea?", top_k=1):
        (result,) = results
        assert result.node.text == "A drink [1]."
        assert [m.similarity for m in result.evidence] == ["answer of QueryEngine", "bm25"]
        assert result.evidence[1].node.graph is graph
    assert as_retriever(engine).retrieve("What is tea?", filters={"topic": "coffee"}) == []
    named = as_retriever(engine, name="drinks").retrieve("tea")[0]
    assert named.node.metadata == {"title": "drinks: tea"}
    (result,) = as_retriever(engine.restricted({"topic": "rivers"})).retrieve("tea or river?")
    assert [match.node.id for match in result.evidence][1:] == ["nile"]


def test_async_function_searches_inside_and_outside_event_loop() -> None:
    async def search(query: str, top_k: int = 5) -> list[str]:
        await asyncio.sleep(0)
        return [f"{query} is a drink.", "Milk."][:top_k]

    async def in_notebook() -> list[Any]:
        return as_retriever(search).retrieve("Tea", top_k=1)

    every = [asyncio.run(in_notebook()), *ways(as_retriever(search), "Tea", top_k=1)]
    for results in every:
        assert [result.node.text for result in results] == ["Tea is a drink."]


def test_own_langchain_adapters_are_unwrapped(graph: NodeGraph) -> None:
    native = Retriever(graph, "ROOT")
    assert as_retriever(plain(native)) is native
    limited = NodeGraphRetriever(native, score_key=None, k=1, filter={"topic": ["tea", "rivers"]})
    for results in ways(as_retriever(limited), "tea river"):
        assert len(results) == 1
        assert results[0].node.graph is graph
    both = FusionRetriever([limited]).retrieve("tea river", filters={"topic": "rivers"}, top_k=3)
    assert [r.node.id for r in both] == ["nile"]
    store = NodeGraphVectorStore.from_graph(graph)
    assert as_retriever(store) is store.retriever
    wrapped = plain(native)
    assert len(as_retriever(wrapped.bind(k=1)).retrieve("tea river")) == 1
    assert len(as_retriever(wrapped.with_config(tags=["x"])).retrieve("tea river", top_k=2)) == 2


def test_adapter_invokes_langchain_retriever() -> None:
    store, queries = theirs(), ["green tea", "rivers"]
    expected = [store.similarity_search(query, k=2) for query in queries]
    wrapped = NodeGraphRetriever(store.as_retriever(), score_key=None, k=2)
    assert wrapped.batch(queries) == expected
    assert asyncio.run(wrapped.ainvoke("green tea")) == wrapped.invoke("green tea") == expected[0]
    finished = FinishedRuns()
    plain(FusionRetriever([store.as_retriever()])).invoke("tea", {"callbacks": [finished]})
    own = ("search", [("VectorStoreRetriever", [])])
    assert list(map(tree, finished.roots)) == [("NodeGraphRetriever", [("fuse", [own])])]


def test_fusion_merges_documents_of_foreign_retrievers() -> None:
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    both = FusionRetriever([theirs().as_retriever(), Retriever(graph, "ROOT")])
    assert len(both("black fermented tea")[0].evidence) == 2


class LangChainGuard(NodeGraphRetriever):
    """A retriever of LangChain that removes secrets."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [document for document in found if "secret" not in document.page_content]

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        found = await super()._aget_relevant_documents(query, run_manager=run_manager)
        return [document for document in found if "secret" not in document.page_content]


class LlamaIndexGuard(LlamaIndexRetriever):
    """A retriever of LlamaIndex that removes secrets."""

    def _retrieve(self, query_bundle: Any) -> Any:
        return [n for n in super()._retrieve(query_bundle) if "secret" not in n.text]

    async def _aretrieve(self, query_bundle: Any) -> Any:
        return [n for n in await super()._aretrieve(query_bundle) if "secret" not in n.text]


@pytest.mark.parametrize("guard", [LangChainGuard, LlamaIndexGuard])
async def test_replaced_search_of_an_adapter_is_called(guard: Any) -> None:
    graph = NodeGraph(progress=False)
    graph.add(["The open price is 10.", "The secret price is 3."])
    guarded = as_retriever(guard(Retriever(graph, "ROOT")))
    fused = FusionRetriever([guarded, guard(Retriever(graph, "ROOT"))])
    for retriever in (guarded, fused):
        assert [r.text for r in retriever.retrieve("price")] == ["The open price is 10."]
        found = await retriever.aretrieve("price", top_k=5)
        assert [r.text for r in found] == ["The open price is 10."]
