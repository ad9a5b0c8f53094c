"""The retriever is a Runnable like any other."""

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.retrievers import Retriever


def ids(documents):
    return [document.id for document in documents]


class Failing:
    """Fails as often as it is told to, then asks another."""

    def __init__(self, inner, times):
        self.inner = inner
        self.times = times

    def retrieve(self, query, *, top_k=None, filters=None):
        if self.times > 0:
            self.times -= 1
            raise ConnectionError("gone")
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


def test_schemas_and_graph(retriever):
    assert retriever.get_input_jsonschema()["type"] == "string"
    assert retriever.get_output_jsonschema()["type"] == "array"
    names = [node.name for node in retriever.get_graph().nodes.values()]
    assert "NodeGraphRetriever" in names
    chain = retriever | RunnableLambda(len, name="count")
    assert "NodeGraphRetriever" in chain.get_graph().draw_mermaid()


async def test_with_config(retriever):
    seen = []
    named = retriever.with_config(run_name="look up", tags=["t"]).with_listeners(
        on_start=lambda run: seen.append((run.name, run.tags))
    )
    assert ids(named.invoke("fermented tea", k=1)) == ["tea"]
    assert ids(await named.ainvoke("fermented tea", k=1)) == ["tea"]
    assert seen == [("look up", ["t"])] * 2


async def test_with_listeners(retriever):
    seen = []
    listened = retriever.with_listeners(
        on_start=lambda run: seen.append("start"), on_end=lambda run: seen.append("end")
    )
    listened.invoke("tea")
    await listened.ainvoke("tea")
    assert seen == ["start", "end"] * 2


async def test_bind(retriever):
    bound = retriever.bind(k=1, filter={"topic": "rivers"})
    assert ids(bound.invoke("tea")) == ["rivers"]
    assert ids(await bound.ainvoke("tea")) == ["rivers"]
    assert ids((RunnableLambda(str.lower) | bound).invoke("TEA")) == ["rivers"]


async def test_with_retry(native):
    def retrying(times):
        return NodeGraphRetriever(retriever=Failing(native, times)).with_retry(
            stop_after_attempt=3, wait_exponential_jitter=False
        )

    assert len(retrying(2).invoke("tea")) == 3
    assert len(await retrying(2).ainvoke("tea")) == 3
    with pytest.raises(ConnectionError):
        retrying(3).invoke("tea")


async def test_with_fallbacks(native, retriever):
    failing = NodeGraphRetriever(retriever=Failing(native, 10**6))
    assert failing.with_fallbacks([retriever]).invoke("tea") == retriever.invoke("tea")
    safe = failing.with_fallbacks([retriever])
    assert await safe.ainvoke("tea") == retriever.invoke("tea")


async def test_configurable_fields(retriever, native):
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"),
        filter=ConfigurableField(id="filter"),
        score_threshold=ConfigurableField(id="threshold"),
        retriever=ConfigurableField(id="engine"),
    )
    assert len(configurable.invoke("tea")) == 3
    assert len(configurable.invoke("tea", {"configurable": {"k": 1}})) == 1
    config = {"configurable": {"k": 2, "filter": {"topic": "printing"}}}
    assert ids(await configurable.ainvoke("tea", config)) == ["press"]
    assert configurable.with_config(configurable={"threshold": 1e6}).invoke("tea") == []
    assert retriever.k is None
    prepared, _ = configurable.prepare({"configurable": {"k": 1}})
    assert prepared.retriever is native


async def test_configurable_alternatives(retriever, graph):
    lines = NodeGraphRetriever(retriever=Retriever(graph, "sentence"))
    either = retriever.configurable_alternatives(
        ConfigurableField(id="answer_with"), default_key="documents", sentences=lines
    )
    config = {"configurable": {"answer_with": "sentences"}}
    assert either.invoke("fermented tea") == retriever.invoke("fermented tea")
    assert either.invoke("fermented tea", config) == lines.invoke("fermented tea")
    assert await either.ainvoke("fermented tea", config) == lines.invoke("fermented tea")
    assert [d.page_content for d in either.invoke("black tea", config, k=1)] == [
        "Black tea is fermented."
    ]


async def test_stream(retriever):
    assert list(retriever.stream("tea")) == [retriever.invoke("tea")]
    assert [each async for each in retriever.astream("tea")] == [retriever.invoke("tea")]


def test_map_and_assign(retriever):
    assert [ids(each) for each in retriever.map().invoke(["printing press", "dry rivers"])] == [
        ["press"],
        ["rivers"],
    ]


def test_it_is_a_retriever(retriever):
    assert isinstance(retriever, BaseRetriever)
    assert repr(retriever).startswith("NodeGraphRetriever(retriever=Retriever('sentence' -> 'ROOT'")


def test_a_copy_shares_the_engine(retriever):
    assert retriever.model_copy(update={"k": 1}).retriever is retriever.retriever
