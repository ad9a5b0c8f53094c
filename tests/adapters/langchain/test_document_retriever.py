"""The first lines: a retriever of documents in one, as people type them for LangChain's own."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from nodekin.adapters.langchain import NodeGraphIndex, NodeGraphRetriever, NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph, UnknownGroupError, split_sentences
from nodekin.retrievers import Retriever

DOCUMENTS = [
    Document(
        "Green tea is steamed. Black tea is fermented. Tea comes from leaves.",
        metadata={"source": "tea.md", "year": 1999}, id="tea",
    ),
    Document(
        "Rivers run to the sea. The sea is salty. Fish live in both.",
        metadata={"source": "river.md", "year": 2005}, id="river",
    ),
    Document(
        "绿茶是蒸青的。红茶是发酵的。茶来自云南的大树。",
        metadata={"source": "茶.md", "year": 2010}, id="茶",
    ),
    Document(
        "Coffee is roasted. Coffee comes from beans. It is drunk hot.",
        metadata={"source": "coffee.md", "year": 2015}, id="coffee",
    ),
]  # fmt: skip
QUESTIONS = ["Which tea is fermented?", "Where do rivers run?", "红茶: hot or salty?", "hot beans"]


class Pairs(Embeddings):
    """Counts pairs of characters, so that hardly any two cosines are equal."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        counts = np.full(1024, 0.001)
        for one, two in pairwise(f" {text.lower()} "):
            counts[(ord(one) * 31 + ord(two)) % 1024] += 1
        return counts.tolist()


def splitter(size):
    return RecursiveCharacterTextSplitter(
        separators=[". ", "。", ""], chunk_size=size, chunk_overlap=0, keep_separator="end"
    )


def ids(documents):
    return [document.id for document in documents]


def texts(documents):
    return [document.page_content for document in documents]


@pytest.mark.parametrize("embedding", [None, Pairs()])
def test_documents_come_back_as_they_were_given(embedding):
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, embedding)
    documents = retriever.invoke("Black tea is fermented.")
    assert documents[0] == DOCUMENTS[0]
    given = {document.id: document for document in DOCUMENTS}
    assert all(document == given[document.id] for document in documents)


def test_as_many_documents_as_langchain_returns_by_default():
    many = [Document(f"Tea number {n}.", id=str(n)) for n in range(9)]
    assert len(NodeGraphRetriever.from_documents(many).invoke("tea")) == 4
    assert len(NodeGraphRetriever.from_documents(many, k=2).invoke("tea")) == 2
    assert len(NodeGraphRetriever.from_documents(many, k=2).invoke("tea", k=7)) == 7


def test_bm25_retriever_from_documents():
    pytest.importorskip("rank_bm25", reason="BM25Retriever needs rank-bm25")
    community = pytest.importorskip(
        "langchain_community.retrievers",
        reason="BM25Retriever is in langchain-community",
        exc_type=ImportError,
    )
    theirs = community.BM25Retriever.from_documents(
        DOCUMENTS, k=2, preprocess_func=lambda text: text.lower().replace(".", "").split()
    )
    ours = NodeGraphRetriever.from_documents(DOCUMENTS, k=2)
    for question in ("fermented tea", "rivers run", "roasted beans"):
        assert ours.invoke(question)[0] == theirs.invoke(question)[0]
    assert ids(ours.invoke("红茶发酵吗？"))[:1] == ["茶"] != ids(theirs.invoke("红茶发酵吗？"))[:1]


def test_the_best_sentence_is_the_evidence():
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, details=True)
    metadata = retriever.invoke("Is black tea fermented?", k=1)[0].metadata
    assert metadata["evidence"] == "Black tea is fermented."
    assert (
        DOCUMENTS[0].page_content[metadata["start"] : metadata["end"]] == "Black tea is fermented."
    )


@pytest.mark.parametrize("question", QUESTIONS)
def test_parent_document_retriever(question):
    theirs = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Pairs()),
        docstore=InMemoryStore(),
        child_splitter=splitter(26),
        search_kwargs={"k": 100},
    )
    theirs.add_documents(DOCUMENTS, ids=ids(DOCUMENTS))
    ours = NodeGraphRetriever.from_documents(DOCUMENTS, Pairs(), child_splitter=splitter(26))
    assert texts(ours.invoke(question)) == texts(theirs.invoke(question))


@pytest.mark.parametrize("question", QUESTIONS)
def test_parent_document_retriever_with_parents_of_its_own(question):
    theirs = ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(Pairs()),
        docstore=InMemoryStore(),
        child_splitter=splitter(26),
        parent_splitter=splitter(45),
        search_kwargs={"k": 100},
    )
    theirs.add_documents(DOCUMENTS)
    ours = NodeGraphRetriever.from_documents(
        DOCUMENTS, Pairs(), child_splitter=splitter(26), parent_splitter=splitter(45), k=3
    )
    expected = theirs.invoke(question)[:3]
    documents = ours.invoke(question)
    assert texts(documents) == texts(expected)
    assert [d.metadata for d in documents] == [d.metadata for d in expected]


def test_sentences_of_parents_by_default():
    retriever = NodeGraphRetriever.from_documents(
        DOCUMENTS, parent_splitter=splitter(50), details=True
    )
    (document,) = retriever.invoke("fermented")
    assert document.page_content == "Green tea is steamed. Black tea is fermented."
    assert document.metadata["evidence"] == "Black tea is fermented."
    parents = {node.parent_id for node in retriever.graph.nodes("parent sentence")}
    assert parents == set(ids(retriever.graph.nodes("parent")))


def test_from_texts():
    retriever = NodeGraphRetriever.from_texts(
        texts(DOCUMENTS), metadatas=[d.metadata for d in DOCUMENTS], ids=ids(DOCUMENTS)
    )
    assert retriever.invoke("roasted coffee", k=1) == [DOCUMENTS[3]]
    assert ids(NodeGraphRetriever.from_texts(["Tea."]).invoke("tea")) != [None]
    with pytest.raises(ValueError, match="1 texts and 2 metadatas"):
        NodeGraphRetriever.from_texts(["Tea."], metadatas=[{}, {}])
    with pytest.raises(TypeError, match="metadatas="):  # where BM25Retriever has them
        NodeGraphRetriever.from_texts(["Tea."], [{"source": "tea.md"}])


async def test_documents_are_added_updated_and_removed():
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS[:2])
    assert retriever.add_documents(DOCUMENTS[2:3]) == ["茶"]
    assert await retriever.aadd_documents([Document("Cocoa is ground.")], ids=["cocoa"]) == [
        "cocoa"
    ]
    assert ids(await retriever.ainvoke("ground cocoa")) == ["cocoa"]
    retriever.add_documents([Document("Tea is a plant.", id="tea")])
    assert ids(retriever.invoke("fermented")) == []
    assert ids(retriever.invoke("plant")) == ["tea"]
    retriever.graph.remove(["tea"])
    assert ids(retriever.invoke("plant")) == []


def test_a_file_is_opened_again(tmp_path):
    path = tmp_path / "tea.nodekin"
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, store=path)
    retriever.graph.close()
    again = NodeGraphRetriever.from_documents([], store=path)
    assert ids(again.invoke("fermented")) == ["tea"]
    again.graph.close()


def test_all_options_of_the_search_are_reached():
    retriever = NodeGraphRetriever.from_documents(
        DOCUMENTS,
        Pairs(),
        group="FineChunk",
        target="CoarseChunk",
        similarity="cosine",
        similarity_cut_off=0.1,
        lift="sum",
        index="default",
        filter={"year": {"gte": 2000}},
        child_k=3,
        score_threshold=0.2,
        details=True,
        k=2,
        tags=["notes"],
    )
    search = retriever.retriever
    assert isinstance(search, Retriever)
    assert (search.group_name, search.target, search.lift) == ("FineChunk", "CoarseChunk", "sum")
    assert search.similarity_cut_off == 0.1
    assert (retriever.child_k, retriever.k, retriever.tags) == (3, 2, ["notes"])
    years = [document.metadata["year"] for document in retriever.invoke("Tea comes from leaves.")]
    assert years
    assert min(years) >= 2000


@pytest.mark.parametrize("name", ["top_k", "filters", "search_kwargs", "kk"])
def test_an_unknown_option_is_told_what_there_is(name):
    with pytest.raises(TypeError, match=f"no argument '{name}'; there is k, child_splitter"):
        NodeGraphRetriever.from_documents(DOCUMENTS, **{name: 3})


def test_a_splitter_and_a_group_exclude_each_other():
    with pytest.raises(ValueError, match="child_splitter makes the group"):
        NodeGraphRetriever.from_documents(DOCUMENTS, child_splitter=splitter(9), group="ROOT")
    with pytest.raises(ValueError, match="parent_splitter makes the group"):
        NodeGraphRetriever.from_documents(DOCUMENTS, parent_splitter=splitter(9), target="ROOT")
    with pytest.raises(UnknownGroupError):
        NodeGraphRetriever.from_documents(DOCUMENTS, group="chunk")
    with pytest.raises(TypeError, match="for texts there are"):
        NodeGraphRetriever.from_documents(["Tea."])


def test_from_graph():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    graph.create_node_group("line", split_sentences)
    retriever = NodeGraphRetriever.from_graph(graph, group="line", k=1)
    assert retriever.graph is graph
    assert retriever.invoke("salty sea") == [DOCUMENTS[1]]
    with pytest.raises(TypeError, match="graph is a NodeGraph"):
        NodeGraphRetriever.from_graph(DOCUMENTS)


def test_a_retriever_without_a_graph_says_so():
    graph = NodeGraph(progress=False)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "ROOT"))
    with pytest.raises(ValueError, match="has no graph"):
        retriever.add_documents(DOCUMENTS)


def test_transforms_of_nodekin_are_splitters():
    retriever = NodeGraphRetriever.from_documents(
        DOCUMENTS, child_splitter=lambda text: text.split(" "), details=True
    )
    assert retriever.invoke("fermented")[0].metadata["evidence"] == "fermented."


def test_within_an_ensemble():
    words = NodeGraphRetriever.from_documents(DOCUMENTS)
    meaning = NodeGraphVectorStore.from_documents(DOCUMENTS, Pairs()).as_retriever()
    both = EnsembleRetriever(retrievers=[words, meaning], weights=[0.5, 0.5])
    assert both.invoke("Which tea is fermented?")[0] == DOCUMENTS[0]
    assert len(both.invoke("Which tea is fermented?")) == 4


def test_a_document_index_has_the_same_first_line():
    documents = NodeGraphIndex.from_documents(DOCUMENTS, k=1)
    documents.delete(["tea"])
    assert ids(documents.invoke("Is coffee or tea roasted?")) == ["coffee"]


def test_pickled():
    retriever = NodeGraphRetriever.from_documents(DOCUMENTS, child_splitter=splitter(26))
    assert pickle.loads(pickle.dumps(retriever)).invoke("salty", k=1) == [DOCUMENTS[1]]


@pytest.mark.parametrize("embedding", [None, Pairs()])
def test_a_vector_store_with_and_without_an_embedding(embedding):
    store = NodeGraphVectorStore.from_documents(DOCUMENTS, embedding)
    assert store.similarity_search("Black tea is fermented.", k=1) == [DOCUMENTS[0]]
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("Coffee is roasted.") == [DOCUMENTS[3]]
    parents = NodeGraphVectorStore.from_documents(
        DOCUMENTS, embedding, group="FineChunk", target="ROOT"
    )
    assert parents.similarity_search("The sea is salty.", k=1) == [DOCUMENTS[1]]
    metadatas = [document.metadata for document in DOCUMENTS]
    store = NodeGraphVectorStore.from_texts(
        texts(DOCUMENTS), embedding, metadatas, ids=ids(DOCUMENTS)
    )
    assert store.as_retriever().invoke("Coffee is roasted.")[0] == DOCUMENTS[3]
