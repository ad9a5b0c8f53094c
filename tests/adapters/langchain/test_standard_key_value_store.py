"""LangChain's own suites for key-value stores, nothing overridden."""

import pytest
from langchain_core.documents import Document
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

from nodekin.adapters.langchain.key_value_store import NodeGraphStore
from nodekin.nodegraph import NodeGraph


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    file = tmp_path / "graph.nodekin" if request.param == "file" else None
    with NodeGraph(store=file, progress=False) as graph:
        yield NodeGraphStore(graph)


@pytest.fixture
def documents():
    """Values, whose ids are not the suites' keys."""
    return (
        Document("Tea.", id="a", metadata={"page": 1}),
        Document("河流入海。", id="b", metadata={"nodekin": "mine"}),
        Document("", id="c"),
    )


class TestNodeStore(BaseStoreSyncTests[Document]):
    @pytest.fixture
    def kv_store(self, store):
        return store

    @pytest.fixture
    def three_values(self, documents):
        return documents


class TestNodeStoreAsync(BaseStoreAsyncTests[Document]):
    @pytest.fixture
    async def kv_store(self, store):
        return store

    @pytest.fixture
    def three_values(self, documents):
        return documents
