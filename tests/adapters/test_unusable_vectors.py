"""A text without a usable vector is left out of vector search, in both frameworks."""

from typing import Any

import pytest
from llama_index.core.schema import TextNode
from support.embedding_models import LangChainVectors, LlamaIndexVectors

from nodekin.adapters import langchain, llama_index
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever

TEXTS = ["green tea", "no vector", "black tea", "rice"]


def vector(text: str) -> list[float]:
    if text == "no vector":
        return [0.0, 0.0, 0.0]
    return [1.0, float("tea" in text), float(len(text))]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Any:
    def messages() -> list[str]:
        return [r.getMessage() for r in caplog.records if "no usable vector" in r.getMessage()]

    return messages


async def test_langchain_vector_store(warnings: Any) -> None:
    store = langchain.NodeGraphVectorStore.from_texts(TEXTS, LangChainVectors(vector))
    for _ in range(2):
        found = store.similarity_search("tea", k=4)
        assert {document.page_content for document in found} == {*TEXTS} - {"no vector"}
        assert await store.asimilarity_search("tea", k=4) == found
    (message,) = warnings()
    assert "for 1 text, first 'no vector'" in message


async def test_llama_index_retriever(warnings: Any) -> None:
    nodes = [TextNode(text=text) for text in TEXTS]
    graph = NodeGraph(embed=LlamaIndexVectors(vector=vector), progress=False)
    graph.add([node.text for node in nodes])
    retriever = llama_index.NodeGraphRetriever(Retriever(graph, "ROOT", "cosine", top_k=4))
    for _ in range(2):
        found = retriever.retrieve("tea")
        assert {result.node.text for result in found} == {*TEXTS} - {"no vector"}
        again = await retriever.aretrieve("tea")
        assert [result.node.text for result in again] == [result.node.text for result in found]
    (message,) = warnings()
    assert "for 1 text, first 'no vector'" in message
