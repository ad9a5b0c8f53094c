"""Embedding and language models of LangChain in a graph."""

import asyncio

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_peers import LOADED, QUERIES
from letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.nodegraph import Embedder, EmbeddingError, LLMExtractor, NodeGraph, split_sentences
from nodekin.retrievers import Retriever


class AsyncLetters(Embeddings):
    """A model whose client is async only."""

    def __init__(self):
        self.passages = []

    def embed_documents(self, texts):
        raise NotImplementedError("async only")

    def embed_query(self, text):
        raise NotImplementedError("async only")

    async def aembed_documents(self, texts):
        await asyncio.sleep(0)
        self.passages += texts
        return Letters().embed_documents(texts)

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return Letters().embed_query(text)


async def test_async_only_embeddings_equal_langchain_store():
    model = AsyncLetters()
    theirs = InMemoryVectorStore(AsyncLetters())
    await theirs.aadd_documents(LOADED)
    store = NodeGraphVectorStore(NodeGraph(embed=model))
    await store.aadd_documents(LOADED)
    with blockbuster_ctx():
        assert await store.asimilarity_search("tea") == await theirs.asimilarity_search("tea")
        vector = Letters().embed_query("coffee")
        found = await store.asimilarity_search_by_vector(vector, k=1)
        assert found == await theirs.asimilarity_search_by_vector(vector, k=1)
        assert await store.amax_marginal_relevance_search("tea", k=2, fetch_k=4)
    assert sorted(model.passages) == sorted(document.page_content for document in LOADED)


async def test_concurrent_searches_embed_passages_once():
    model = AsyncLetters()
    graph = NodeGraph(embed=Embedder(model, batch_size=2), progress=False)
    graph.add(LOADED)
    graph.create_node_group("sentence", split_sentences)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "sentence", "cosine", target="ROOT"))
    await asyncio.gather(*(retriever.ainvoke(query) for query in QUERIES))
    assert len(model.passages) == len(set(model.passages)) == len(LOADED)
    graph.add(Document("Milk is white.", id="5"))
    (hit,) = await retriever.ainvoke("milk is white", k=1)
    assert hit.id == "5"
    assert len(await retriever.abatch(QUERIES)) == len(QUERIES)
    assert model.passages[-1] == "Milk is white."
    assert len(model.passages) == len(LOADED) + 1


async def test_failed_embedding_raises_and_is_retried():
    class Failing(AsyncLetters):
        fails = True

        async def aembed_documents(self, texts):
            if self.fails:
                raise ConnectionError("down")
            return await super().aembed_documents(texts)

    model = Failing()
    graph = NodeGraph(embed=model, progress=False)
    graph.add(LOADED)
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine"))
    with pytest.raises(EmbeddingError, match=r"Failing.* failed on 4 texts.*ConnectionError: down"):
        await retriever.ainvoke("tea")
    model.fails = False
    assert await retriever.ainvoke("tea")


def test_sync_search_with_async_model_raises():
    graph = NodeGraph(embed=AsyncLetters(), progress=False)
    graph.add(LOADED)
    with pytest.raises(EmbeddingError, match="async only"):
        NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine")).invoke("tea")


async def test_async_function_embeds_in_sync_code():
    async def embed(texts):
        await asyncio.sleep(0)
        return Letters().embed_documents(texts)

    graph = NodeGraph(embed=Embedder(embed, "letters"), progress=False)
    graph.add(LOADED)
    search = Retriever(graph, "ROOT", "cosine")
    found = [result.node.id for result in await search.aretrieve("green tea")]
    other = NodeGraph(embed=Embedder(embed, "letters"), progress=False)
    other.add(LOADED)
    alone = Retriever(other, "ROOT", "cosine")
    assert [result.node.id for result in alone.retrieve("green tea")] == found


TEXTS = ["Green tea is steamed.\n\nBlack tea is fermented.", "绿茶是蒸青的。\n\n红茶是发酵的。"]


async def test_langchain_embeddings_find_equal_texts():
    """Random ones: a text is like itself alone."""
    model = DeterministicFakeEmbedding(size=64)
    graph = NodeGraph(embed=model, progress=False)
    graph.add(TEXTS)
    graph.create_node_group("line", lambda text: text.split("\n\n"))
    retriever = Retriever(graph, "line", "cosine", top_k=1)
    for text in ("Black tea is fermented.", "绿茶是蒸青的。"):
        (found,) = retriever.retrieve(text)
        assert (found.node.text, found.score) == (text, 1.0)
        assert await retriever.aretrieve(text) == [found]
    node = graph.nodes("line")[0]
    expected = model.embed_query(node.text)
    assert graph.embedding(node).tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        FakeListChatModel(responses=["1. 茶\n2. tea"]),
        FakeListLLM(responses=["茶, tea"]),
        FakeListChatModel(responses=["茶、tea"]) | (lambda message: AIMessage(message.content)),
    ],
)
def test_langchain_models_extract_keywords(model):
    graph = NodeGraph(progress=False)
    graph.add(TEXTS[1])
    graph.create_node_group("keyword", LLMExtractor(model, task="keywords"))
    assert [node.text for node in graph.nodes("keyword")] == ["茶", "tea"]
