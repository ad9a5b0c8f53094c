"""LangChain's own suite for vector stores, nothing overridden."""

import pytest
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from nodekin.adapters.langchain.vector_store import NodeGraphVectorStore
from nodekin.nodegraph import NodeGraph


class TestInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        with NodeGraph(embed=self.get_embeddings(), progress=False) as graph:
            yield NodeGraphVectorStore(graph)


class TestOfDocuments(VectorStoreIntegrationTests):
    """The one line that makes the graph, too."""

    @pytest.fixture
    def vectorstore(self):
        return NodeGraphVectorStore.from_documents([], self.get_embeddings())


class TestOfTexts(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        return NodeGraphVectorStore.from_texts([], self.get_embeddings())


class TestInAFile(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        file = tmp_path / "graph.nodekin"
        with NodeGraph(embed=self.get_embeddings(), store=file, progress=False) as graph:
            yield NodeGraphVectorStore(graph)


class TestByWords(VectorStoreIntegrationTests):
    """Without any model: the words are compared."""

    @pytest.fixture
    def vectorstore(self):
        """Every document has to be found, as in a search by vectors: so all share a word."""
        return NodeGraphVectorStore(NodeGraph(progress=False), similarity=AlmostSame())


class AlmostSame:
    """Scores how many letters two texts share."""

    name = "letters"
    mode = "text"

    def open(self, graph, group, key=None):
        from nodekin.retrievers.indexes.scan_index import ScanIndex

        return graph.shared(("letters", group), lambda: ScanIndex(graph, group))

    def prepare(self, query, indexes):
        def scores(nodes, vectors):
            return [len({*query} & {*n.text}) - abs(len(query) - len(n.text)) for n in nodes]

        return scores
