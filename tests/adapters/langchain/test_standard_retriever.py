"""LangChain's own suite for retrievers, nothing overridden."""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_tests.integration_tests import RetrieversIntegrationTests

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph, split_sentences
from nodekin.retrievers import Retriever


class TestNodeGraphRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return NodeGraphRetriever

    @property
    def retriever_constructor_params(self):
        graph = NodeGraph(progress=False)
        graph.add([f"Tea number {n} is a drink. It has {n} leaves." for n in range(5)])
        graph.create_node_group("sentence", split_sentences)
        return {"retriever": Retriever(graph, "sentence", "bm25", target="ROOT")}

    @property
    def retriever_query_example(self):
        return "Which tea is a drink?"


class TestOfDocuments(RetrieversIntegrationTests):
    """The one line over documents, searched by words."""

    @property
    def retriever_constructor(self):
        return NodeGraphRetriever.from_documents

    @property
    def retriever_constructor_params(self):
        texts = (f"Tea number {n} is a drink. It has {n} leaves." for n in range(5))
        return {"documents": [Document(text) for text in texts]}

    @property
    def retriever_query_example(self):
        return "Which tea is a drink?"


class TestOfDocumentsByMeaning(TestOfDocuments):
    """The same with an embedding model."""

    @property
    def retriever_constructor_params(self):
        model = DeterministicFakeEmbedding(size=32)
        return {**super().retriever_constructor_params, "embedding": model}
