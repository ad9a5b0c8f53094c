from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.vectorstores import VectorStore
from langchain_nodekin import NodeGraphVectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests


class TestNodeGraphVectorStore(VectorStoreIntegrationTests):
    """Run LangChain's standard tests on a vector store in memory."""

    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return NodeGraphVectorStore(self.get_embeddings())


class TestNodeGraphVectorStoreInFile(VectorStoreIntegrationTests):
    """Run LangChain's standard tests on a vector store in a file."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        store = NodeGraphVectorStore(self.get_embeddings(), store=tmp_path / "tea.nodekin")
        yield store
        store.graph.close()
