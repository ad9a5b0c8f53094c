"""Test nodekin's LlamaIndex classes in complete programs that do not need a network."""

import asyncio
from pathlib import Path

from llama_index.core import Document, MockEmbedding, StorageContext, load_index_from_storage
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever, VectorIndexRetriever
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters, VectorStoreQuery
from llama_index.retrievers.nodekin import NodeGraphIndex

DOCUMENTS = [
    Document(text="Green tea is steamed.", id_="green", metadata={"kind": "tea"}),
    Document(text="Black tea is fermented.", id_="black", metadata={"kind": "tea"}),
    Document(text="Beer is fermented.", id_="beer", metadata={"kind": "beer"}),
]
QUESTION = "Which tea is fermented?"


def sources(nodes: list) -> list:
    return [node.node.ref_doc_id for node in nodes]


def test_retriever_and_engine_answer() -> None:
    retriever = NodeGraphIndex.from_documents(DOCUMENTS, similarity="bm25").as_retriever()
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert sources(retriever.retrieve(QUESTION))[0] == "black"
    assert sources(asyncio.run(retriever.aretrieve(QUESTION)))[0] == "black"
    assert sources(engine.query(QUESTION).source_nodes)[0] == "black"


def test_retriever_is_fused_by_llama_index() -> None:
    index = NodeGraphIndex.from_documents(DOCUMENTS, similarity="bm25")
    fusion = QueryFusionRetriever(
        [index.as_retriever()], llm=MockLLM(), num_queries=1, use_async=False
    )
    assert sources(fusion.retrieve(QUESTION))[0] == "black"


def test_vector_store_applies_filters() -> None:
    index = NodeGraphIndex.from_documents(DOCUMENTS, embed_model=MockEmbedding(embed_dim=8))
    filters = MetadataFilters(filters=[ExactMatchFilter(key="kind", value="beer")])
    retriever = VectorIndexRetriever(index, filters=filters)
    assert sources(retriever.retrieve(QUESTION)) == ["beer"]
    index.vector_store.delete("beer")
    query = VectorStoreQuery(query_str="beer", mode="text_search")
    assert index.vector_store.query(query).ids == []


def test_index_is_persisted_and_loaded(tmp_path: Path) -> None:
    index = NodeGraphIndex.from_documents(DOCUMENTS, similarity="bm25")
    index.storage_context.persist(str(tmp_path))
    loaded = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path)))
    assert sources(loaded.as_retriever().retrieve(QUESTION))[0] == "black"
