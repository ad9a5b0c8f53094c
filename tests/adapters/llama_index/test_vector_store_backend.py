"""LlamaIndex vector stores as indexes of a graph, compared with the built-in index."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.schema import Document as LlamaIndexDocument
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult
from support import distances

from nodekin.adapters.llama_index import as_index
from nodekin.nodegraph import Document, Embedder, NodeGraph, split_sentences
from nodekin.retrievers import Retriever

LETTERS = "aeioust茶红绿水"


def counts(texts: list[str]) -> list[list[float]]:
    """Count letters. Each count is positive, since a vector of zeros is an error."""
    return [[0.1 + text.lower().count(letter) for letter in LETTERS] for text in texts]


WORDS = "tea|a teapot|red tea|红茶|绿茶 and tea|water|水|stone|a|xyz|tea".split("|")


def made(size: int = 40, **settings: Any) -> NodeGraph:
    graph = NodeGraph(embed=Embedder(counts, name="letters"), progress=False, **settings)
    graph.add(
        [
            LlamaIndexDocument(
                text=f"{WORDS[at % len(WORDS)]} {'o' * (at % 7)}. {WORDS[at * 3 % len(WORDS)]}!",
                metadata={"even": at % 2, "at": at},
                id_=f"d{at}",
            )
            for at in range(size)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


class ByIds(SimpleVectorStore):
    """A store that can only delete by source."""


ByIds.delete_nodes = BasePydanticVectorStore.delete_nodes  # type: ignore[method-assign]


class WithNodes(SimpleVectorStore):
    """A store that returns nodes with scores of its own."""

    _nodes: dict[str, Any] = {}  # noqa: RUF012

    def add(self, nodes: Any, **kwargs: Any) -> list[str]:
        self._nodes.update((node.node_id, node) for node in nodes)
        return super().add(nodes, **kwargs)

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        for i in node_ids:
            self._nodes.pop(i, None)
        super().delete_nodes(node_ids, filters)

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[Any]:
        return [self._nodes[i] for i in node_ids if i in self._nodes]

    def query(self, query: Any, **kwargs: Any) -> VectorStoreQueryResult:
        found = super().query(query, **kwargs)
        nodes = [self._nodes[i] for i in found.ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=[9.0] * len(nodes), ids=None)


QUERIES = ["red tea", "水 water", "茶", "o", "stone house"]


def pairs(results: Any) -> list[tuple[str, float]]:
    return [(result.node.id, result.score) for result in results]


@pytest.mark.parametrize("store", [SimpleVectorStore, ByIds, WithNodes])
@pytest.mark.parametrize(
    "settings",
    [
        {"top_k": 1},
        {"target": "ROOT", "top_k": 5, "lift": "sum"},
        {"filters": {"at": {"gte": 35}}, "target": "ROOT", "top_k": 3},
        {"min_score": 0.8, "top_k": 30},
    ],
)
def test_results_equal_results_of_built_in_index(
    store: Callable[[], BasePydanticVectorStore], settings: dict[str, Any]
) -> None:
    graph = made()
    mine = Retriever(graph, "sentence", "cosine", **settings)
    theirs = Retriever(graph, "sentence", "cosine", index=as_index(store()), **settings)
    for query in QUERIES:
        assert pairs(theirs(query)) == pairs(mine(query))
        assert pairs(asyncio.run(theirs.aretrieve(query))) == pairs(mine(query))
    assert [pairs(each) for each in theirs.batch(QUERIES)] == [pairs(mine(q)) for q in QUERIES]
    graph.remove(["d2", "d36"])
    assert [pairs(theirs(query)) for query in QUERIES] == [pairs(mine(q)) for q in QUERIES]


def test_wrong_arguments_raise() -> None:
    for wrong in (None, "store", SimpleVectorStore):
        with pytest.raises(TypeError, match="store must be a LlamaIndex vector store"):
            as_index(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must return a LlamaIndex vector store"):
        Retriever(made(2), "ROOT", "cosine", index=as_index(lambda group: group))("tea")


class EuclideanStore(SimpleVectorStore):
    """A store with L2 distances, the default of many stores."""

    def query(self, query: Any, **kwargs: Any) -> VectorStoreQueryResult:
        vectors = self.data.embedding_dict
        ids = distances.nearest(vectors, query.query_embedding, query.similarity_top_k)
        return VectorStoreQueryResult(ids=ids, similarities=[1.0] * len(ids))


def test_store_of_l2_distances_gives_cosines() -> None:
    graph = NodeGraph(embed=distances.uneven, progress=False)
    graph.add([Document(text, id=str(n)) for n, text in enumerate(distances.TEXTS)])
    plain = Retriever(graph, "ROOT", "cosine", top_k=5)
    foreign = Retriever(graph, "ROOT", "cosine", top_k=5, index=as_index(EuclideanStore()))
    for query in distances.QUERIES:
        assert foreign.retrieve(query) == plain.retrieve(query)
