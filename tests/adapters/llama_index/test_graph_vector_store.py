"""The vector store of an index, compared with LlamaIndex's own vector store."""

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import VectorIndexAutoRetriever, VectorIndexRetriever
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import (
    MetadataInfo,
    SimpleVectorStore,
    VectorStoreInfo,
    VectorStoreQuery,
)
from llama_index.core.vector_stores import utils as vector_store_utils
from support.llama_index_drinks import QUERY, Indexes, filters, found, nodes
from support.llama_index_models import ScriptedLLM, Words

from nodekin.adapters.llama_index import NodeGraphIndex, NodeGraphVectorStore
from nodekin.retrievers import restrict

FILTERS = [
    ("kind", "==", "tea"),
    ("kind", "!=", "tea"),
    ("year", ">", 2005),
    ("year", ">=", 2005),
    ("year", "<", 2005),
    ("year", "<=", 2005),
    ("year", "in", [1999, 2021]),
    ("year", "nin", [1999, 2021]),
    ("kind", "in", ["tea", "beer"]),
    ("kind", "nin", ["tea", "beer"]),
    ("tags", "any", ["black", "water"]),
    ("tags", "all", ["black", "leaf"]),
    ("tags", "contains", "leaf"),
    ("kind", "text_match", "ea"),
    ("kind", "text_match_insensitive", "TEA"),
    ("tags", "is_empty", None),
    ("kind", "is_empty", None),
    ("doc_id", "==", "d1"),
    ("ref_doc_id", "in", ["d0", "d2"]),
    ("document_id", "!=", "d0"),
    ("doc_id", "nin", ["d1"]),
]


# Early versions of LlamaIndex's store drop nodes without the field, and know fewer operators.
IS_EARLY = not hasattr(vector_store_utils, "build_metadata_filter_fn")
OF_LATER_VERSIONS = ("!=", "nin", "text_match_insensitive", "not")


def skip_in_early_versions(operator: str) -> None:
    if IS_EARLY and operator in OF_LATER_VERSIONS:
        pytest.skip(f"this version of SimpleVectorStore has another {operator!r}")


@pytest.mark.parametrize("condition", FILTERS)
def test_filter_selects_nodes_of_simple_store(
    indexes: Indexes, condition: tuple[str, str, Any]
) -> None:
    skip_in_early_versions(condition[1])
    options: Any = {"similarity_top_k": 6, "filters": filters(condition)}
    theirs, ours = (found(VectorIndexRetriever(index, **options)) for index in indexes)
    assert ours == theirs
    assert found(indexes[1].as_retriever(similarity="cosine", **options)) == theirs


@pytest.mark.parametrize("how", ["and", "or", "not"])
def test_joined_filters_select_nodes_of_simple_store(indexes: Indexes, how: str) -> None:
    skip_in_early_versions(how)
    joined = filters(("kind", "==", "tea"), ("year", ">", 2000), how=how)
    theirs, ours = (
        found(VectorIndexRetriever(index, similarity_top_k=6, filters=joined)) for index in indexes
    )
    assert ours == theirs


@pytest.mark.parametrize("query", ["fermented tea", ""])
def test_auto_retriever_returns_nodes_of_filters(query: str) -> None:
    spec = (
        f'{{"query": "{query}", "filters": [{{"key": "year", "value": 2005, "operator": "=="}}],'
        ' "top_k": 2}'
    )
    info = VectorStoreInfo(
        content_info="drinks",
        metadata_info=[MetadataInfo(name="year", type="int", description="the year")],
    )
    index = NodeGraphIndex(nodes(), embed_model=Words(texts=[]))
    llm = ScriptedLLM(answer=spec, prompts=[])
    retriever = VectorIndexAutoRetriever(index, vector_store_info=info, llm=llm)
    assert {result.node_id for result in retriever.retrieve("tea of 2005")} == {"n1", "n3"}


# Changes


def test_added_nodes_are_found_in_index(indexes: Indexes) -> None:
    index = indexes[1]
    node = TextNode(text="Mate tea is fermented?", id_="new", embedding=[1.0] * 128)
    assert index.vector_store.add([node]) == ["new"]
    assert "new" in index.index_struct.nodes_dict
    (result,) = index.as_retriever(similarity="bm25", similarity_top_k=1).retrieve("mate")
    assert result.node_id == "new"


def test_pipeline_writes_to_store() -> None:
    index = NodeGraphIndex([], embed_model=Words(texts=[]))
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(), Words(texts=[])], vector_store=index.vector_store
    )
    asyncio.run(pipeline.arun(documents=[Document(text="Green tea is steamed.", id_="tea")]))
    (result,) = index.as_retriever().retrieve("steamed")
    assert result.node.ref_doc_id == "tea"
    index.vector_store.delete("tea")
    assert index.as_retriever().retrieve("steamed") == []


def test_deleted_nodes_are_not_found(indexes: Indexes) -> None:
    options: Any = {"similarity_top_k": 9}
    for index in indexes:
        index.vector_store.delete("d0")
        index.vector_store.delete_nodes(["n2", "n3"], filters(("kind", "==", "coffee")))
    ids = [{row[0] for row in found(VectorIndexRetriever(i, **options))} for i in indexes]
    assert ids[1] == ids[0] == {"n2", "n4", "n5"}
    indexes[1].vector_store.clear()
    assert indexes[1].as_retriever().retrieve(QUERY) == []


def test_get_nodes_meets_ids_and_filters(indexes: Indexes) -> None:
    store = indexes[1].vector_store
    assert [node.node_id for node in store.get_nodes()] == [f"n{number}" for number in range(6)]
    some = asyncio.run(store.aget_nodes(["n1", "n0"], filters(("year", "==", 2005))))
    assert [node.node_id for node in some] == ["n1"]


def test_restriction_applies_to_store(indexes: Indexes) -> None:
    index = indexes[1]
    retriever = restrict(VectorIndexRetriever(index, 9), {"kind": "tea"})
    assert {result.node.id for result in retriever.retrieve(QUERY)} == {"n0", "n1"}


# Persistence


def test_vector_store_index_works_over_store(tmp_path: Path) -> None:
    for _ in range(2):  # the second time from the file
        index = NodeGraphIndex([], embed_model=Words(texts=[]), store=tmp_path / "graph")
        theirs = VectorStoreIndex.from_vector_store(index.vector_store, Words(texts=[]))
        if not index.index_struct.nodes_dict:
            theirs.insert_nodes(nodes())
        assert [row[0] for row in found(theirs.as_retriever())] == ["n1", "n2"]
        index.graph.close()


def test_loaded_index_has_equal_store(indexes: Indexes, tmp_path: Path) -> None:
    indexes[1].storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded: Any = load_index_from_storage(context, embed_model=Words(texts=[]))
    expected = found(VectorIndexRetriever(indexes[0], 6))
    assert found(VectorIndexRetriever(loaded, 6)) == expected


def test_persisted_vectors_are_read_by_simple_store(indexes: Indexes, tmp_path: Path) -> None:
    path = str(tmp_path / "vectors" / "store.json")
    indexes[1].vector_store.persist(path)
    query = VectorStoreQuery(
        Words(texts=[]).get_query_embedding(QUERY), 6, filters=filters(("year", ">", 2000))
    )
    read = SimpleVectorStore.from_persist_path(path).query(query)
    assert read.ids == indexes[1].vector_store.query(query).ids


def test_store_comes_back_without_index(indexes: Indexes) -> None:
    store = indexes[1].vector_store
    query = VectorStoreQuery(query_str="coffee", mode="text_search")
    for copy in (
        NodeGraphVectorStore.from_dict(store.to_dict()),
        NodeGraphVectorStore.from_json(store.to_json()),
        pickle.loads(pickle.dumps(store)),
    ):
        assert copy.is_embedding_query
        with pytest.raises(ValueError, match="the index is missing"):
            copy.query(query)
        assert copy.rebind(indexes[1]).query(query).ids == ["n3"]


def test_from_vector_store_answers_with_line_to_write(indexes: Indexes) -> None:
    assert NodeGraphIndex.from_vector_store(indexes[1].vector_store) is indexes[1]
    with pytest.raises(TypeError, match=r"write NodeGraphIndex.from_documents\(documents, storage"):
        NodeGraphIndex.from_vector_store(SimpleVectorStore())
