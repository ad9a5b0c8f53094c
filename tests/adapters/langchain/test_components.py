"""LangChain's components that compare documents, over our retrievers and over BM25Retriever."""

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_community.document_transformers import EmbeddingsRedundantFilter
from langchain_community.retrievers import BM25Retriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from support.langchain_runs import call
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph

TEXTS = [
    "Green tea is steamed.",
    "Black tea is fermented.",
    "Oolong tea is half fermented.",
    "White tea is dried.",
]
DOCUMENTS = [
    Document(text, id=f"tea-{n}", metadata={"source": f"{n}.md", "tags": ["tea"]})
    for n, text in enumerate(TEXTS)
]
PHRASINGS = "green tea is steamed\nblack tea is fermented\noolong tea"


def of_graph():
    graph = NodeGraph(progress=False)
    graph.add(DOCUMENTS)
    return NodeGraphRetriever.from_graph(graph)


RETRIEVERS = {
    "documents": lambda: NodeGraphRetriever.from_documents(DOCUMENTS),
    "vectors": lambda: NodeGraphRetriever.from_documents(DOCUMENTS, Letters()),
    "bm25": lambda: NodeGraphRetriever.from_documents(DOCUMENTS, similarity="bm25"),
    "strategy": lambda: NodeGraphRetriever.from_documents(
        DOCUMENTS, strategy="rewrite", llm=FakeListChatModel(responses=["tea is"])
    ),
    "graph": of_graph,
    "vector store": lambda: NodeGraphVectorStore.from_documents(
        DOCUMENTS, Letters()
    ).as_retriever(),
}


def multi_query(retriever):
    model = FakeListChatModel(responses=[PHRASINGS])
    return MultiQueryRetriever.from_llm(retriever, model, include_original=True)


def ensemble(retriever):
    return EnsembleRetriever(retrievers=[retriever, BM25Retriever.from_documents(DOCUMENTS)])


def merger(retriever):
    return MergerRetriever(retrievers=[retriever, retriever])


def compression(retriever):
    redundant = EmbeddingsRedundantFilter(embeddings=Letters(), similarity_threshold=0.9999)
    pipeline = DocumentCompressorPipeline(transformers=[redundant])
    return ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=retriever)


def count(documents):
    """Return the number of documents, and the number of different documents."""
    different = []
    for document in documents:
        if document not in different:
            different.append(document)
    return len(documents), len(different)


@pytest.mark.parametrize("component", [multi_query, ensemble, merger])
@pytest.mark.parametrize("kind", RETRIEVERS)
async def test_component_finds_as_many_as_over_bm25(kind, component, mode):
    ours = await call(component(RETRIEVERS[kind]()), mode, "tea is")
    theirs = await call(component(BM25Retriever.from_documents(DOCUMENTS)), mode, "tea is")
    assert count(ours) == count(theirs)
    assert all(document in DOCUMENTS for document in ours)


@pytest.mark.parametrize("kind", RETRIEVERS)
async def test_compressed_documents_equal_those_over_bm25(kind, mode):
    ours = await call(compression(RETRIEVERS[kind]()), mode, "tea is")
    theirs = await call(compression(BM25Retriever.from_documents(DOCUMENTS)), mode, "tea is")
    assert count(ours) == count(theirs)
    given = {document.page_content: document.metadata for document in DOCUMENTS}
    for document in ours:  # the filter adds its vectors to the metadata
        kept = {k: v for k, v in document.metadata.items() if k in given[document.page_content]}
        assert kept == given[document.page_content]
        assert {"relevance_score", "place"}.isdisjoint(document.metadata)
