"""A graph as the record manager of ``index()``, beside LangChain's own in memory."""

import itertools

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore
from letters import Letters

from nodekin.adapters.langchain import NodeGraphRecordManager, NodeGraphRetriever, stores

SETTINGS = {"source_id_key": "source", "key_encoder": "sha256"}


def pages(*texts):
    """Return pages whose source is their first letter."""
    return [Document(text, metadata={"source": text[0]}) for text in texts]


async def run(mode, cleanup, texts, records, destination, **settings):
    arguments = (pages(*texts), records, destination)
    if mode == "sync":
        return index(*arguments, cleanup=cleanup, **SETTINGS, **settings)
    with blockbuster_ctx():
        return await aindex(*arguments, cleanup=cleanup, **SETTINGS, **settings)


RUNS = [
    (None, ["a one", "b two", "c three"]),
    ("incremental", ["a one", "b two"]),
    ("incremental", ["a other", "a more"]),
    ("scoped_full", ["a more"]),
    ("full", ["b two", "d four"]),
    ("full", []),
]


@pytest.mark.parametrize("by_function", [False, True])
async def test_it_counts_as_langchains_own(mode, by_function):
    theirs = InMemoryRecordManager(namespace="test")
    theirs.create_schema()
    retriever = NodeGraphRetriever.from_documents([])
    key = (lambda document: document.metadata["source"]) if by_function else "source"
    records = NodeGraphRecordManager(retriever.graph, key)
    store = InMemoryVectorStore(Letters())
    for cleanup, texts in RUNS:
        expected = await run(mode, cleanup, texts, theirs, store)
        assert await run(mode, cleanup, texts, records, retriever) == expected, cleanup
        in_graph = sorted(node.text for node in retriever.graph.nodes("ROOT"))
        assert in_graph == sorted(item["text"] for item in store.store.values())


async def test_what_was_removed_from_the_graph_is_added_again(mode):
    """A record manager of its own says that it was skipped."""
    graph = NodeGraphRetriever.from_documents([]).graph
    theirs = InMemoryRecordManager(namespace="test")
    theirs.create_schema()
    counts = []
    for records in (theirs, NodeGraphRecordManager(graph)):
        retriever = NodeGraphRetriever(graph=graph)
        await run(mode, "incremental", ["a one", "b two"], records, retriever)
        graph.remove([graph.nodes("ROOT")[0].id])
        again = await run(mode, "incremental", ["a one", "b two"], records, retriever)
        counts.append((again["num_added"], again["num_skipped"], len(graph.nodes("ROOT"))))
    assert counts == [(0, 2, 1), (1, 1, 2)]
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        NodeGraphRecordManager("graph")


async def test_another_process_goes_on(tmp_path, mode):
    path = tmp_path / "g.nodekin"
    for texts, expected in ((["a one", "b two"], (2, 0, 0)), (["a one", "b other"], (1, 1, 1))):
        retriever = NodeGraphRetriever.from_documents([], store=path)
        records = NodeGraphRecordManager(retriever.graph)
        done = await run(mode, "full", texts, records, retriever)
        assert (done["num_added"], done["num_skipped"], done["num_deleted"]) == expected
        retriever.graph.close()


async def test_what_is_gone_is_deleted_although_the_clock_is_set_back(mode, monkeypatch):
    now = itertools.count(1_000.0, -1)
    monkeypatch.setattr(stores.time, "time", lambda: next(now))
    retriever = NodeGraphRetriever.from_documents([])
    records = NodeGraphRecordManager(retriever.graph)
    for texts, deleted in ((["a one", "b two"], 0), (["a one"], 1), ([], 1)):
        done = await run(mode, "full", texts, records, retriever)
        assert done["num_deleted"] == deleted
