"""Programs as LangChain's users write them, with nodekin in the place of LangChain's own part."""

import json

import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumps, loads
from langchain_core.vectorstores import InMemoryVectorStore
from letters import Letters

from nodekin.adapters.langchain import (
    NodeGraphIndex,
    NodeGraphReranker,
    NodeGraphRetriever,
    NodeGraphVectorStore,
    retriever_tool,
)
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Reranker, Retriever

LOADED = [
    Document("Green tea is steamed.", metadata={"source": "docs/tea.md", "page": 1}, id="1"),
    Document("Black tea is fermented.", metadata={"source": "docs/tea.md"}, id="2"),
    Document("红茶是发酵的。", metadata={"source": "docs/zh.md", "tags": ["茶"]}, id="3"),
    Document("Coffee is roasted.", metadata={"source": "docs/coffee.md", "score": 7}, id="4"),
]

QUERIES = ["What is tea?", "tea, black or green", "fermented leaves"]


@pytest.fixture
def theirs():
    store = InMemoryVectorStore(Letters())
    store.add_documents(LOADED)
    return store.as_retriever(search_kwargs={"k": 3})


@pytest.fixture
def graph():
    graph = NodeGraph(embed=Letters(), progress=False)
    graph.add(LOADED)
    return graph


@pytest.fixture
def ours(graph):
    return NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine", top_k=3))


def phrasings():
    return FakeListChatModel(responses=["\n".join(QUERIES)])


def unique_union(rankings):
    """As in LangChain's "RAG from scratch"."""
    flat = [dumps(document) for ranking in rankings for document in ranking]
    return [loads(text, allowed_objects="core") for text in dict.fromkeys(flat)]


def rag_fusion(rankings, k=60):
    """As in LangChain's "RAG fusion"."""
    scores = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking):
            text = dumps(document)
            scores[text] = scores.get(text, 0) + 1 / (rank + k)
    return [loads(text, allowed_objects="core") for text in sorted(scores, key=scores.get)]


def test_d1_a_document_is_the_same_whatever_the_query(ours, theirs):
    for query in QUERIES:
        assert ours.invoke(query) == theirs.invoke(query)


def test_d1_langchains_multi_query_sees_that_documents_are_the_same(ours, theirs):
    found = MultiQueryRetriever.from_llm(retriever=ours, llm=phrasings()).invoke("tea")
    assert len({document.id for document in found}) == len(found)
    assert found == MultiQueryRetriever.from_llm(retriever=theirs, llm=phrasings()).invoke("tea")


@pytest.mark.parametrize("fuse", [unique_union, rag_fusion])
@pytest.mark.filterwarnings("ignore:The function `load")
def test_d1_dumps_of_a_document_is_a_key(ours, theirs, fuse):
    assert fuse(ours.map().invoke(QUERIES)) == fuse(theirs.map().invoke(QUERIES))


def test_d1_langchains_ensemble_merges_with_its_own_retrievers(ours, theirs):
    both = EnsembleRetriever(retrievers=[ours, theirs], weights=[0.5, 0.5])
    assert both.invoke("green tea") == theirs.invoke("green tea")


def test_d1_documents_are_as_large_in_json_as_langchains(ours, theirs):
    def size(documents):
        return len(json.dumps([document.model_dump() for document in documents]))

    assert size(ours.invoke("tea")) == size(theirs.invoke("tea"))


def test_d1_a_field_of_one_document_does_not_come_into_another(ours):
    by_id = {document.id: document.metadata for document in ours.invoke("tea")}
    assert by_id == {d.id: d.metadata for d in LOADED if d.id in by_id}
    assert len({frozenset(metadata) for metadata in by_id.values()}) > 1


@pytest.mark.parametrize("put", ["graph", "store", "index"])
def test_d1_an_edited_hit_that_is_put_back_pollutes_nothing(graph, ours, put):
    (hit,) = ours.invoke("coffee", k=1)
    hit.page_content = "Coffee is roasted and ground."
    add = {
        "graph": graph.add,
        "store": NodeGraphVectorStore(graph).add_documents,
        "index": NodeGraphIndex(graph=graph).upsert,
    }[put]
    add([hit])
    assert len(graph.nodes("ROOT")) == len(LOADED)
    node = graph.node("4")
    assert (node.text, node.metadata) == (hit.page_content, LOADED[3].metadata)


def test_d1_an_edited_piece_of_a_document_is_refused(graph):
    graph.create_node_group("sentence", split_sentences)
    (hit,) = NodeGraphRetriever(retriever=Retriever(graph, "sentence")).invoke("roasted")
    with pytest.raises(ValueError, match="taken by a node of group 'sentence'"):
        graph.add(hit)


def test_d1_every_face_returns_the_documents_as_they_were_added(graph, ours):
    by_id = {document.id: document for document in LOADED}
    query = "green tea"
    artifact = retriever_tool(ours, "search", "Search.").invoke(
        {"name": "search", "args": {"query": query}, "id": "1", "type": "tool_call"}
    )
    reranker = NodeGraphReranker(
        reranker=Reranker("ModuleReranker", model=lambda query, texts: [len(t) for t in texts])
    )
    for documents in (
        NodeGraphVectorStore(graph).similarity_search(query),
        NodeGraphIndex(graph=graph).invoke(query),
        reranker.compress_documents(LOADED, query),
        artifact.artifact,
    ):
        assert documents
        assert documents == [by_id[document.id] for document in documents]
