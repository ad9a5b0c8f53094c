"""Embedding and language models of LangChain in a graph."""

import asyncio

from blockbuster import blockbuster_ctx
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from support.langchain_peers import LOADED, QUERIES
from support.letters import Letters

from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
from nodekin.nodegraph import Embedder, NodeGraph, split_sentences
from nodekin.retrievers import Retriever


class AsyncLetters(Embeddings):
    """A model that embeds queries only in event loops."""

    def __init__(self):
        self.passages = []

    def embed_documents(self, texts):
        self.passages += texts
        return Letters().embed_documents(texts)

    def embed_query(self, text):
        raise NotImplementedError("async only")

    async def aembed_query(self, text):
        await asyncio.sleep(0)
        return Letters().embed_query(text)


async def test_async_embeddings_equal_langchain_store():
    model = AsyncLetters()
    theirs = InMemoryVectorStore(AsyncLetters())
    await theirs.aadd_documents(LOADED)
    store = NodeGraphVectorStore(model)
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
