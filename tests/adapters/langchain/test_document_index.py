import asyncio

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from letters import Letters
from pydantic import ValidationError

from nodekin.adapters.langchain.document_index import NodeGraphIndex
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import DefaultRetriever, FusionRetriever, Retriever


@pytest.fixture(params=["memory", "file"])
def graph(request, tmp_path):
    file = tmp_path / "graph.nodekin" if request.param == "file" else None
    with NodeGraph(store=file, embed=Letters(), progress=False) as graph:
        graph.create_node_group("sentence", split_sentences)
        yield graph


@pytest.fixture
def documents(graph):
    words = Retriever(graph, "sentence", "bm25", target="ROOT")
    meaning = Retriever(graph, "sentence", "cosine", target="ROOT")
    return NodeGraphIndex(graph=graph, retriever=FusionRetriever([words, meaning]), k=1)


@pytest.fixture
def records():
    records = InMemoryRecordManager(namespace="test")
    records.create_schema()
    return records


def pages(**texts):
    return [Document(text, metadata={"source": name}) for name, text in texts.items()]


def texts(graph, group="ROOT"):
    return sorted(node.text.strip() for node in graph.nodes(group))


SETTINGS = {"source_id_key": "source", "key_encoder": "sha256"}


async def run(mode, *args, **settings):
    if mode == "sync":
        return index(*args, **settings, **SETTINGS)
    return await aindex(*args, **settings, **SETTINGS)


async def test_incremental_cleanup(documents, graph, records, mode):
    """A page that changed loses its old parents and children; others stay."""
    first = pages(tea="Tea is green. Tea is hot.", 河="河流入海。河很长。")
    done = await run(mode, first, records, documents, cleanup="incremental")
    assert (done["num_added"], done["num_deleted"]) == (2, 0)
    assert documents.invoke("hot tea")[0].metadata["source"] == "tea"
    assert texts(graph, "sentence") == ["Tea is green.", "Tea is hot.", "河很长。", "河流入海。"]
    again = await run(mode, first, records, documents, cleanup="incremental")
    assert (again["num_skipped"], again["num_added"], again["num_deleted"]) == (2, 0, 0)
    changed = pages(tea="Tea is green. Tea is cold.")
    done = await run(mode, changed, records, documents, cleanup="incremental")
    assert (done["num_added"], done["num_deleted"]) == (1, 1)
    assert texts(graph, "sentence") == ["Tea is cold.", "Tea is green.", "河很长。", "河流入海。"]
    assert documents.invoke("hot or cold?")[0].page_content == "Tea is green. Tea is cold."


async def test_full_cleanup(documents, graph, records, mode):
    await run(mode, pages(tea="Tea.", 河="河。"), records, documents, cleanup="full")
    done = await run(mode, pages(河="河。", milk="Milk."), records, documents, cleanup="full")
    assert (done["num_added"], done["num_skipped"], done["num_deleted"]) == (1, 1, 1)
    assert texts(graph) == texts(graph, "sentence") == ["Milk.", "河。"]
    done = await run(mode, [], records, documents, cleanup="full")
    assert (done["num_deleted"], texts(graph)) == (2, [])
    assert documents.invoke("milk") == []


async def test_only_what_changed_is_embedded(graph, documents, records):
    model = graph.embeddings.embedder("default").embed.__self__
    first = pages(tea="Tea is green. Tea is hot.", 河="河流入海。河很长。")
    index(first, records, documents, cleanup="full", **SETTINGS)
    documents.invoke("tea")
    assert len(model.passages) == 4
    index(
        [*pages(tea="Tea is green. Tea is cold."), first[1]],
        *(records, documents),
        **SETTINGS,
        cleanup="full",
    )
    documents.invoke("tea")
    assert [text.strip() for text in model.passages[4:]] == ["Tea is cold."]


def test_the_default_searches_documents():
    graph = NodeGraph(progress=False)
    documents = NodeGraphIndex(graph=graph, k=1)
    documents.upsert([Document("红茶是红的。", id="茶"), Document("Tea is hot.", id="tea")])
    assert [d.id for d in documents.invoke("红茶")] == ["茶"]
    with_model = NodeGraphIndex(graph=NodeGraph(embed=Letters(), progress=False))
    assert isinstance(with_model.retriever, DefaultRetriever)
    assert [name for name, _ in with_model.retriever.inner_retrievers][2:] == ["default"]


def test_all_that_a_retriever_can(documents):
    documents.upsert(
        [Document("Tea.", id="1", metadata={"n": 1}), Document("Tea!", id="2", metadata={"n": 2})]
    )
    assert [d.id for d in documents.invoke("tea", k=2, filter={"n": 2})] == ["2"]
    (found,) = documents.invoke("tea")
    assert documents.get([found.id]) == [found]
    with pytest.raises(TypeError):
        documents.invoke("tea", top_k=2)


def test_what_was_got_is_what_was_put(documents):
    document = Document("Tea.", id="t", metadata={"tags": ["a"], "day": None})
    documents.upsert([document])
    assert documents.get(["t"]) == [document]
    documents.get(["t"])[0].metadata["tags"].append("b")
    assert documents.get(["t"]) == [document]
    assert document.metadata == {"tags": ["a"], "day": None}


@pytest.mark.parametrize(
    "call",
    [
        lambda it: it.upsert([], ids=["1"]),
        lambda it: it.delete([], everything=True),
        lambda it: it.get([], group="x"),
    ],
)
def test_unknown_arguments_are_refused(documents, call):
    with pytest.raises(TypeError, match="has no argument"):
        call(documents)


def test_two_documents_with_one_id_change_nothing(documents, graph):
    with pytest.raises(ValueError, match="two different documents"):
        documents.upsert([Document("a", id="1"), Document("b", id="1")])
    assert graph.nodes("ROOT") == []


def test_what_is_no_graph_is_refused():
    with pytest.raises(ValidationError, match="graph"):
        NodeGraphIndex(graph="graph")


async def test_nothing_blocks_the_event_loop(tmp_path, records):
    graph = NodeGraph(store=tmp_path / "g.nodekin", embed=Letters(), progress=False)
    documents = NodeGraphIndex(graph=graph)
    with blockbuster_ctx():
        await aindex(pages(tea="Tea."), records, documents, cleanup="full", **SETTINGS)
        assert len(await documents.ainvoke("tea")) == 1
        await aindex(pages(河="河。"), records, documents, cleanup="full", **SETTINGS)
        assert len(await documents.aget([n.id for n in await documents.ainvoke("tea")])) == 1
    await asyncio.to_thread(graph.close)
