"""Use the embedding model of a graph in LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from ...nodegraph.concurrency import in_thread
from ...nodegraph.graph import NodeGraph
from .nodes import NamedByClass


def embedding_of(graph: NodeGraph) -> BaseEmbedding | None:
    """Return the first embedding model of a graph as a LlamaIndex model.

    Return None if the graph has no embedding model.
    """
    key = next(iter(graph.embeddings.embedders), None)
    return None if key is None else GraphEmbedding(graph, key)


class GraphEmbedding(NamedByClass, BaseEmbedding):
    """A LlamaIndex embedding model that calls the model of a graph, which caches the vectors.

    Args:
        graph: The graph.
        key: The key of the embedding model.
    """

    _graph: NodeGraph = PrivateAttr()
    _key: str = PrivateAttr()

    def __init__(self, graph: NodeGraph, key: str) -> None:
        super().__init__(model_name=graph.embeddings.embedder(key).name)
        self._graph = graph
        self._key = key

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._graph.embeddings.query_vectors([query], self._key)[0].tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await in_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._graph.embeddings.vectors([*texts], self._key).tolist()
        return vectors
