"""A graph as the record manager of ``index()``, and as a store of documents by their ids."""

import asyncio
import itertools

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from letters import Letters

from nodekin.adapters.langchain import (
    NodeGraphRecordManager,
    NodeGraphRetriever,
    NodeGraphStore,
    stores,
)
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever

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


# Documents by their ids


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add([Document("Tea. Milk.", id="tea", metadata={"n": 1}), Document("河。海。", id="河")])
    graph.create_node_group("sentence", split_sentences)
    return graph


def test_pieces_by_id(graph):
    store = NodeGraphStore(graph, "sentence", details="nested")
    keys = list(store.yield_keys())
    found = store.mget(keys)
    assert [d.page_content.strip() for d in found] == ["Tea.", "Milk.", "河。", "海。"]
    assert [d.metadata["nodekin"]["parent_id"] for d in found] == ["tea", "tea", "河", "河"]
    assert store.mget(["tea", keys[0]]) == [None, found[0]]


def test_pieces_can_not_be_changed(graph):
    store = NodeGraphStore(graph, "sentence")
    (key, *_) = store.yield_keys()
    for change in (lambda: store.mset([("x", Document("x"))]), lambda: store.mdelete([key])):
        with pytest.raises(ValueError, match=r"NodeGraphStore\(graph\)"):
            change()


def test_what_is_put_is_in_the_graph(graph):
    store = NodeGraphStore(graph)
    store.mset([("cup", Document("Cups of tea.")), ("cup", Document("A cup of milk."))])
    found = Retriever(graph, "sentence", target="ROOT").retrieve("cup")
    assert [(each.node.id, each.node.text) for each in found] == [("cup", "A cup of milk.")]
    store.mdelete(["cup", "none"])
    assert Retriever(graph, "sentence").retrieve("cup") == []


def test_a_piece_is_no_document_and_stays(graph):
    store = NodeGraphStore(graph)
    (piece, *_) = NodeGraphStore(graph, "sentence").yield_keys()
    assert store.mget([piece]) == [None]
    store.mdelete([piece])
    assert len(graph.nodes("sentence")) == 4


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=6,
)
documents = st.builds(
    lambda text, id, metadata: Document(text, id=id, metadata=metadata),
    st.text(max_size=20),
    st.none() | st.text(min_size=1, max_size=5),
    st.dictionaries(st.sampled_from(["a", "nodekin", "id"]), values, max_size=3),
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), documents, max_size=4))
def test_nothing_is_lost(given):
    store = NodeGraphStore(NodeGraph(progress=False))
    store.mset(list(given.items()))
    assert store.mget(list(given)) == list(given.values())
    assert list(store.yield_keys()) == list(given)


def test_it_serves_langchains_parent_retriever():
    """With the same parents as in LangChain's own store."""
    texts = [Document("Tea is hot.\n\nMilk is not.", id="t"), Document("河流。\n\n入海。")]
    found = []
    for docstore in (NodeGraphStore(NodeGraph(progress=False)), InMemoryStore()):
        retriever = ParentDocumentRetriever(
            vectorstore=InMemoryVectorStore(Letters()),
            docstore=docstore,
            child_splitter=CharacterTextSplitter(separator="\n\n", chunk_size=5, chunk_overlap=0),
        )
        retriever.add_documents(texts, ids=["1", "2"])
        found.append([retriever.invoke(query) for query in ("milk", "河", "hot tea")])
    ours, theirs = found
    assert ours[0][0].page_content == "Tea is hot.\n\nMilk is not."
    assert ours == theirs


async def test_nothing_blocks_the_event_loop(tmp_path):
    graph = NodeGraph(store=tmp_path / "g.nodekin", progress=False)
    store = NodeGraphStore(graph)
    with blockbuster_ctx():
        await store.amset([("tea", Document("Tea."))])
        assert [key async for key in store.ayield_keys(prefix="t")] == ["tea"]
        assert (await store.amget(["tea"]))[0].page_content == "Tea."
        await store.amdelete(["tea"])
        assert await store.amget(["tea"]) == [None]
    await asyncio.to_thread(graph.close)


def test_a_wrong_group_or_graph(graph):
    with pytest.raises(LookupError, match="sentence"):
        NodeGraphStore(graph, "sentences")
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        NodeGraphStore("graph")
