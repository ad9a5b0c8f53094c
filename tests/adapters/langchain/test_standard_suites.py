"""LangChain's own suites for retrievers and vector stores, nothing overridden."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever


class TestRetriever(RetrieversIntegrationTests):
    retriever_query_example = "Which tea is a drink?"
    retriever_constructor = NodeGraphRetriever

    @property
    def retriever_constructor_params(self):
        graph = NodeGraph(progress=False)
        graph.add([f"Tea number {n} is a drink. It has {n} leaves." for n in range(5)])
        graph.create_node_group("sentence", split_sentences)
        return {"retriever": Retriever(graph, "sentence", "bm25", target="ROOT")}


class TestRetrieverOfDocuments(RetrieversIntegrationTests):
    """The one line over documents, searched by words."""

    retriever_query_example = "Which tea is a drink?"
    retriever_constructor = NodeGraphRetriever.from_documents

    @property
    def retriever_constructor_params(self):
        texts = (f"Tea number {n} is a drink. It has {n} leaves." for n in range(5))
        return {"documents": [Document(text) for text in texts]}


class TestRetrieverOfDocumentsByMeaning(TestRetrieverOfDocuments):
    """The same with an embedding model."""

    @property
    def retriever_constructor_params(self):
        model = DeterministicFakeEmbedding(size=32)
        return {**super().retriever_constructor_params, "embedding": model}


class TestVectorStoreOfDocuments(VectorStoreIntegrationTests):
    """A store created with its graph."""

    @pytest.fixture
    def vectorstore(self):
        return NodeGraphVectorStore.from_documents([], self.get_embeddings())


class TestVectorStoreInAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        file = tmp_path / "graph.nodekin"
        with NodeGraph(embed=self.get_embeddings(), store=file, progress=False) as graph:
            yield NodeGraphVectorStore.from_graph(graph)
