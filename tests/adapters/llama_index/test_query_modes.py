"""Query modes of vector stores, compared with LlamaIndex's own vector store."""

import asyncio
from typing import Any

import pytest
from llama_index.core.retrievers import VectorIndexRetriever
from support.llama_index_drinks import QUERY, Indexes, found, nodes

from nodekin.adapters.llama_index import NodeGraphIndex


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"similarity_top_k": 4},
        {"node_ids": ["n1", "n4"], "similarity_top_k": 6},
        {"vector_store_query_mode": "mmr", "similarity_top_k": 4},
        {
            "vector_store_query_mode": "mmr",
            "similarity_top_k": 5,
            "vector_store_kwargs": {"mmr_threshold": 0.9},
        },
        {
            "vector_store_query_mode": "mmr",
            "similarity_top_k": 4,
            "vector_store_kwargs": {"mmr_threshold": 0.0},
        },
    ],
)
def test_query_mode_returns_nodes_of_simple_store(indexes: Indexes, options: Any) -> None:
    theirs, ours = (found(VectorIndexRetriever(index, **options)) for index in indexes)
    assert len(theirs) > 1
    assert ours == theirs
    mode = {"vector_store_query_mode": "default", **options}
    assert found(indexes[1].as_retriever(**mode)) == theirs


def test_async_query_equals_query(indexes: Indexes) -> None:
    for mode in ("default", "hybrid", "mmr", "text_search", "sparse"):
        retriever = VectorIndexRetriever(indexes[1], vector_store_query_mode=mode)
        results = asyncio.run(retriever.aretrieve(QUERY))
        assert [result.node_id for result in results] == [row[0] for row in found(retriever)]
        own = indexes[1].as_retriever(vector_store_query_mode=mode)
        ids = [result.node_id for result in asyncio.run(own.aretrieve(QUERY))]
        assert ids == [result.node_id for result in own.retrieve(QUERY)]


def test_text_search_ranks_by_words(indexes: Indexes) -> None:
    for mode in ("text_search", "sparse"):
        retriever = VectorIndexRetriever(indexes[1], 9, mode)
        expected = found(indexes[1].as_retriever(similarity="bm25", similarity_top_k=9))
        assert found(retriever) == expected
        assert len(expected) == 4


def test_hybrid_alpha_weighs_vectors(indexes: Indexes) -> None:
    def ids(**options: Any) -> list[str]:
        retriever = VectorIndexRetriever(indexes[1], similarity_top_k=4, **options)
        return [row[0] for row in found(retriever)]

    hybrid: dict[str, Any] = {"vector_store_query_mode": "hybrid"}
    assert ids(alpha=1.0, **hybrid) == ids()
    assert ids(alpha=0.0, **hybrid) == ids(vector_store_query_mode="text_search")
    assert len(ids(alpha=0.5, hybrid_top_k=2, sparse_top_k=1, **hybrid)) == 2
    default = indexes[1].as_retriever(similarity_top_k=4).retrieve(QUERY)
    assert ids(**hybrid) == [result.node_id for result in default]


def test_index_without_model_searches_words_in_each_mode() -> None:
    index = NodeGraphIndex(nodes(), similarity="bm25")
    assert not index.vector_store.is_embedding_query
    for mode in ("default", "hybrid", "mmr", "text_search"):
        (result,) = VectorIndexRetriever(index, 1, mode).retrieve("oolong")
        assert result.node_id == "n2"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_store_query_mode": "svm"}, "must be one of default, .*, mmr, got 'svm'"),
        ({"vector_store_query_mode": "hybrid", "alpha": 2}, "alpha must be a number from 0 to 1"),
        ({"alpha": 0.5}, r"\['alpha'\] require a vector_store_query_mode"),
        (
            {"vector_store_query_mode": "mmr", "vector_store_kwargs": {"mmr": 1}},
            "vector_store_kwargs has no argument 'mmr'",
        ),
    ],
)
def test_wrong_mode_raises(indexes: Indexes, options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        indexes[1].as_retriever(**options)
