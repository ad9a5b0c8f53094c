"""LangChain's own suites for document indexes, nothing overridden."""

import pytest
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)

from nodekin.adapters.langchain.document_index import NodeGraphIndex
from nodekin.nodegraph import NodeGraph


@pytest.fixture(params=["memory", "file"])
def graph(request, tmp_path):
    store = tmp_path / "graph.nodekin" if request.param == "file" else None
    with NodeGraph(store=store, progress=False) as graph:
        yield graph


class TestNodeGraphIndex(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self, graph):
        return NodeGraphIndex(graph=graph)


class TestNodeGraphIndexAsync(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self, graph):
        return NodeGraphIndex(graph=graph)


class TestOfDocuments(DocumentIndexerTestSuite):
    """The one line that makes the graph, too."""

    @pytest.fixture
    def index(self):
        return NodeGraphIndex.from_documents([])


class TestOfDocumentsAsync(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self):
        return NodeGraphIndex.from_documents([])
