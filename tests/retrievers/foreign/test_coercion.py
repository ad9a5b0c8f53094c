"""Conversion of objects into retrievers by their methods."""

import asyncio

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    QueryEngine,
    Retriever,
    as_retriever,
)


def test_as_retriever_returns_own_retriever_unchanged():
    retriever = Retriever(NodeGraph(progress=False), "ROOT")
    assert as_retriever(retriever) is retriever


def test_as_retriever_returns_custom_class_unchanged():
    class Own:
        def retrieve(self, query, *, top_k=None, filters=None):
            return []

        async def aretrieve(self, query, **options):
            return []

    own = Own()
    assert as_retriever(own) is own


def test_retrieve_without_top_k_and_filters_raises():
    class Bare:
        def retrieve(self, query): ...

        async def aretrieve(self, query): ...

    with pytest.raises(TypeError, match="that take a query, top_k and filters"):
        FusionRetriever([Bare()])


def test_as_retriever_wraps_graph_and_rejects_class():
    assert isinstance(as_retriever(NodeGraph(progress=False)), DefaultRetriever)
    with pytest.raises(TypeError, match="go into SubQuestionRetriever"):
        QueryEngine({"teas": 3}, str)
    with pytest.raises(TypeError, match="inner must be an object"):
        as_retriever(Retriever, "inner")


def test_query_engine_as_retriever_returns_answer_and_filters():
    graph = NodeGraph(progress=False)
    graph.add(["Tea is a drink.", "The Nile is a river."])
    engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "A drink [1].")
    (result,) = as_retriever(engine).retrieve("What is tea?")
    assert result.node.text == "A drink [1]."
    assert [m.similarity for m in result.evidence] == ["answer of QueryEngine", "bm25"]
    assert result.evidence[1].node.graph is graph
    assert as_retriever(engine).retrieve("What is tea?", filters={"topic": "rivers"}) == []
    assert as_retriever(engine, name="drinks").retrieve("tea")[0].node.metadata == {
        "title": "drinks: tea"
    }


def test_async_function_searches_inside_and_outside_event_loop():
    async def search(query, top_k=5):
        await asyncio.sleep(0)
        return [f"{query} is a drink.", "Milk."][:top_k]

    async def in_notebook():
        return as_retriever(search).retrieve("Tea", top_k=1)

    for results in (asyncio.run(in_notebook()), as_retriever(search).retrieve("Tea", top_k=1)):
        assert [result.node.text for result in results] == ["Tea is a drink."]
