"""The systems compared by ``quality.py --models``: nodekin, LangChain, LlamaIndex and haystack.

All systems use the same texts, the same vectors of the same model, and the same ``top_k``,
including the parts of a fusion. All other settings are defaults. Titles are added before the texts,
except for nodekin, which searches titles in the metadata.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from harness import EmbeddingModel, Ranking, graph_of, titled

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset

TOP_K = 10

# number of characters in a child chunk of ParentDocumentRetriever, as in its documentation
_CHILD = 400

System = tuple[str, Any]
"""A pair of the name of a system and its retriever."""

Family = Callable[[Dataset, EmbeddingModel], Iterator[System]]
"""A function that yields systems. It raises ImportError if their package is not installed."""

DEFAULT = "nodekin, default"


def nodekin_systems(dataset: Dataset, model: EmbeddingModel) -> Iterator[System]:
    """Yield nodekin's default search and the retrievers of which it consists."""
    graph = _graph(dataset, model)
    yield DEFAULT, DefaultRetriever(graph, top_k=TOP_K)
    yield "nodekin, words", DefaultRetriever(graph, top_k=TOP_K, embed_keys=[])
    sentences = Retriever(graph, "passage sentence", "cosine", target="passage", top_k=TOP_K)
    yield "nodekin, vectors of sentences", sentences
    yield "nodekin, vectors of passages", Retriever(graph, "passage", "cosine", top_k=TOP_K)


def variants_of_nodekin(dataset: Dataset, model: EmbeddingModel) -> Iterator[System]:
    """Yield nodekin's default search with different options."""
    graph = _graph(dataset, model)
    unlinked = DefaultRetriever(graph, top_k=TOP_K, follow_links=False)
    yield "nodekin, without links", unlinked
    for vectors in ("sentences", "passages"):
        retriever = DefaultRetriever(graph, top_k=TOP_K, vectors=vectors)
        yield f"nodekin, default with vectors of {vectors}", retriever


def _graph(dataset: Dataset, model: EmbeddingModel) -> NodeGraph:
    graph = graph_of(dataset, embed=model.embedder())
    DefaultRetriever(graph).build()
    graph.build("passage", embed=True)
    graph.build("passage sentence", embed=True)
    return graph


def langchain_systems(dataset: Dataset, model: EmbeddingModel) -> Iterator[System]:
    """Yield LangChain's vector store, EnsembleRetriever and ParentDocumentRetriever."""
    from langchain_classic.retrievers import EnsembleRetriever, ParentDocumentRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.stores import InMemoryStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    documents = [
        Document(text, id=name, metadata={"id": name}) for name, text in titled(dataset).items()
    ]
    store = _langchain_store(model)
    store.add_documents(documents)
    vectors = store.as_retriever(search_kwargs={"k": TOP_K})
    yield "LangChain, vectors", _of_langchain(dataset, vectors)
    words = BM25Retriever.from_documents(documents, k=TOP_K)
    both: Any = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])
    yield "LangChain, EnsembleRetriever", _of_langchain(dataset, both)
    parents = ParentDocumentRetriever(
        vectorstore=_langchain_store(model),
        docstore=InMemoryStore(),
        child_splitter=RecursiveCharacterTextSplitter(chunk_size=_CHILD, chunk_overlap=0),
        search_kwargs={"k": TOP_K},
    )
    parents.add_documents(documents)
    yield "LangChain, ParentDocumentRetriever", _of_langchain(dataset, parents)


def _langchain_store(model: EmbeddingModel) -> Any:
    """Return an empty FAISS vector store for LangChain."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import Embeddings

    class CachedEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return model.embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return model.embed_queries([text])[0].tolist()

    dimension = len(model.embed_queries(["dimension"])[0])
    index = faiss.IndexFlatL2(dimension)
    return FAISS(CachedEmbeddings(), index, InMemoryDocstore(), {})


def _of_langchain(dataset: Dataset, retriever: Any) -> Ranking:
    def rank(query: str) -> list[str]:
        return [document.metadata["id"] for document in retriever.invoke(query)]

    return Ranking(dataset, rank)


def llama_index_systems(dataset: Dataset, model: EmbeddingModel) -> Iterator[System]:
    """Yield LlamaIndex's VectorStoreIndex, and three ways to fuse it with its BM25Retriever."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [TextNode(id_=name, text=text) for name, text in titled(dataset).items()]
    index = VectorStoreIndex(nodes, embed_model=_llama_index_model(model))
    vectors = index.as_retriever(similarity_top_k=TOP_K)
    yield "LlamaIndex, vectors", _of_llama_index(dataset, vectors)
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=TOP_K)
    for mode in ("reciprocal_rerank", "relative_score", "dist_based_score"):
        both = QueryFusionRetriever(
            [vectors, words],
            llm=MockLLM(),
            mode=mode,
            similarity_top_k=TOP_K,
            num_queries=1,
            use_async=False,
        )
        yield f"LlamaIndex, QueryFusionRetriever, {mode}", _of_llama_index(dataset, both)


def _llama_index_model(model: EmbeddingModel) -> Any:
    from llama_index.core.embeddings import BaseEmbedding

    class CachedEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return model.embed([text])[0].tolist()

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return model.embed(texts).tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return model.embed_queries([query])[0].tolist()

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return CachedEmbedding()


def _of_llama_index(dataset: Dataset, retriever: Any) -> Ranking:
    def rank(query: str) -> list[str]:
        return [result.node.node_id for result in retriever.retrieve(query)]

    return Ranking(dataset, rank)


def haystack_systems(dataset: Dataset, model: EmbeddingModel) -> Iterator[System]:
    """Yield haystack's embedding retriever, and two ways to join it with its BM25 retriever."""
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers import (
        InMemoryBM25Retriever,
        InMemoryEmbeddingRetriever,
    )
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    texts = titled(dataset)
    vectors = model.embed([*texts.values()]).tolist()
    documents = [
        Document(id=name, content=text, embedding=vector)
        for (name, text), vector in zip(texts.items(), vectors, strict=True)
    ]
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(documents)
    by_vectors = InMemoryEmbeddingRetriever(store, top_k=TOP_K)
    by_words = InMemoryBM25Retriever(store, top_k=TOP_K)

    def vector_hits(query: str) -> list[Any]:
        vector = model.embed_queries([query])[0].tolist()
        return by_vectors.run(query_embedding=vector)["documents"]

    def joined(mode: str) -> Callable[[str], list[str]]:
        joiner = DocumentJoiner(join_mode=mode, top_k=TOP_K)

        def rank(query: str) -> list[str]:
            hits = [by_words.run(query=query)["documents"], vector_hits(query)]
            return [document.id for document in joiner.run(documents=hits)["documents"]]

        return rank

    def rank_vectors(query: str) -> list[str]:
        return [document.id for document in vector_hits(query)]

    yield "haystack, vectors", Ranking(dataset, rank_vectors)
    for mode in ("reciprocal_rank_fusion", "distribution_based_rank_fusion"):
        yield f"haystack, {mode}", Ranking(dataset, joined(mode))


FAMILIES: dict[str, Family] = {
    "nodekin": nodekin_systems,
    "variants": variants_of_nodekin,
    "LangChain": langchain_systems,
    "LlamaIndex": llama_index_systems,
    "haystack": haystack_systems,
}
