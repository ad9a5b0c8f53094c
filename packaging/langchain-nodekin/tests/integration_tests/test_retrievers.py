from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_nodekin import NodeGraphRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from ..documents import DOCUMENTS


class TestNodeGraphRetriever(RetrieversIntegrationTests):
    """Run LangChain's standard tests on a retriever that searches by words."""

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return NodeGraphRetriever.from_documents  # type: ignore[return-value]

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"documents": DOCUMENTS}

    @property
    def retriever_query_example(self) -> str:
        return "Which tea is a drink?"


class TestNodeGraphRetrieverWithModel(TestNodeGraphRetriever):
    """Run LangChain's standard tests on a retriever that searches by words and vectors."""

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"documents": DOCUMENTS, "embedding": DeterministicFakeEmbedding(size=32)}
