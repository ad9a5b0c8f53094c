"""Let a graph's embedding model be a LangChain one that embeds no text twice."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from ...nodegraph import NodeGraph


class GraphEmbeddings(Embeddings):
    """Give a graph's embedding model to LangChain code, with all that it has embedded before.

    Whatever form the model has in the graph (a function, LlamaIndex, sentence-transformers), this
    is a LangChain one. Vectors come from the graph, which keeps them by model and text, in its
    file too where it has one.

    Args:
        graph: The node graph.
        key: Which of its embeddings; None where it has but one.

    Raises:
        LookupError: If the graph has no such embedding.

    Example:
        >>> graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts])
        >>> GraphEmbeddings(graph).embed_query("tea")
        [3.0, 1.0]
    """

    def __init__(self, graph: NodeGraph, key: str | None = None) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        self.graph = graph
        self.key = graph.embeddings.key(key)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of passages."""
        vectors: list[list[float]] = self.graph.embeddings.vectors(texts, self.key).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        vector: list[float] = self.graph.embeddings.query_vectors([text], self.key)[0].tolist()
        return vector

    async def aembed_query(self, text: str) -> list[float]:
        """Do the same by the model's async form, in a thread where it has none."""
        made = await self.graph.embeddings.aquery_vectors([text], self.key)
        vector: list[float] = made[0].tolist()
        return vector
