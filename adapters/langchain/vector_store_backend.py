"""Use a LangChain vector store as the index of a graph's embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ...nodegraph.graph import NodeGraph
from ...retrievers.indexes.nearest_vectors import unit
from ..vector_store_index import EmbeddedNode, StoreIndexes, VectorBackend, store_indexes

logger = logging.getLogger(__name__)

MakeStore = Callable[[Embeddings, str], VectorStore]
"""A function that takes an embedding model and the name of a group, and returns a vector store."""

_ID = "node_id"
_GROUP = "group"
_FINGERPRINT = "made_of"

_REQUIRED = ("similarity_search_by_vector", "delete")

# minimum cosine of two vectors of the same text to assume that they come from the same model
_SAME_MODEL = 0.99


def as_index(store: VectorStore | MakeStore, *, name: str | None = None) -> StoreIndexes:
    """Use a LangChain vector store as the vector index of retrievers: ``Retriever(index=...)``.

    This is useful if the vectors must be stored in an existing vector database. On a single
    machine, the built-in index is faster. New and changed nodes are written to the store before the
    next search. Targets, filters, fusion, recursion and scores work in the same way as with the
    built-in index. See "Engines" in ``docs/stores.md``.

    The store only proposes candidates. Their cosine similarities are computed from the vectors in
    the graph. Since the graph records which rows were written, a new process needs to check only a
    sample of them. Rows that the store has lost are written again, and rows that do not belong to
    the graph are ignored.

    Args:
        store: A function that creates the vector store for a group. It is called with a LangChain
            embedding model that returns the graph's vectors, and with the name of the group.
            Alternatively, a single vector store can be given for one graph and one of its
            embeddings. All groups then share it, which makes searches slower. Its model must be the
            model of the graph, preferably in the form of ``GraphEmbeddings(graph)``. If it is a
            different object and the store does not compare cosines, the model must return vectors
            of unit length.
        name: A name by which later processes recognize the store. It is required if the graph is
            saved in a file, but the store has neither a name nor an address, as is the case for
            in-memory stores.

    Raises:
        TypeError: If ``store`` is neither a vector store nor a function, or does not support
            searching by vector and deleting.
        ValueError: If a required name is missing. This error is raised by the first search.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> def letters(texts):
        ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
        >>> graph = NodeGraph(embed=letters)
        >>> ids = graph.add(["banana", "lemon tree", "kiwi"])
        >>> index = as_index(lambda embeddings, group: InMemoryVectorStore(embeddings))
        >>> retriever = Retriever(graph, "ROOT", "cosine", index=index, top_k=1)
        >>> [result.node.text for result in retriever("papaya")]
        ['banana']
    """
    return store_indexes(store, "LangChain", VectorStore, _arguments, LangChainBackend, name)


def _arguments(graph: NodeGraph, group: str, key: str) -> tuple[GraphEmbeddings, str]:
    return GraphEmbeddings(graph, key), group


class LangChainBackend(VectorBackend):
    """The operations that an index needs, implemented for LangChain vector stores.

    Args:
        store: The vector store.

    Raises:
        TypeError: If the store does not support searching by vector and deleting.
    """

    def __init__(self, store: VectorStore) -> None:
        for method in _REQUIRED:
            if getattr(type(store), method) is getattr(VectorStore, method):
                raise TypeError(
                    f"{type(store).__name__} has no {method}(), which an index requires; choose "
                    "another vector store, or the built-in index"
                )
        super().__init__(store)
        self._checked = isinstance(store.embeddings, GraphEmbeddings)

    def nearest_ids(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nodes that are nearest to a vector."""
        documents = self._store.similarity_search_by_vector(vector.tolist(), k=count)
        return [_node_id(document) for document in documents]

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return a dictionary from the ids of stored nodes to their fingerprints.

        Return None if the store cannot look up ids.
        """
        try:
            documents = self._store.get_by_ids(ids)
        except NotImplementedError:
            return None
        return {_node_id(d): str(d.metadata.get(_FINGERPRINT, "")) for d in documents}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes from the store.

        Raises:
            ValueError: If the store reports a failure by returning False.
        """
        if self._store.delete(list(ids)) is False:
            raise ValueError(
                f"the vector store {self.name} did not delete {len(ids)} nodes, the first of them "
                f"{ids[0]!r}; see its log, and search again"
            )

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes to the store.

        The store calls its embedding model with the texts. If the model is a ``GraphEmbeddings``,
        it returns cached vectors.

        Raises:
            ValueError: If the embedding model of the store differs from the model of the graph.
        """
        self._check_model(nodes[0].text, nodes[0].vector)
        documents = [
            # Many stores allow only a few metadata fields with simple values.
            Document(
                row.text,
                metadata={_ID: row.node.id, _GROUP: row.node.group, _FINGERPRINT: row.fingerprint},
                id=row.node.id,
            )
            for row in nodes
        ]
        self._store.add_documents(documents, ids=[row.node.id for row in nodes])

    def _check_model(self, text: str, vector: npt.NDArray[np.float32]) -> None:
        """Check that the store and the graph use the same model by embedding one text with both."""
        model = self._store.embeddings
        if self._checked or model is None:
            return
        own = np.asarray(model.embed_documents([text])[0])
        stored = unit(own)
        expected = unit(vector)
        if stored.shape != expected.shape or float(stored @ expected) < _SAME_MODEL:
            raise ValueError(
                f"the vector store embeds with {type(model).__name__}, the graph with another "
                "model; create the store with GraphEmbeddings(graph)"
            )
        if not np.isclose(np.linalg.norm(own), 1, atol=1e-3):
            logger.warning(
                "the vectors of %s in the vector store %s are not of unit length; unless the store "
                "compares cosines, its results are wrong: create it with GraphEmbeddings(graph)",
                type(model).__name__,
                self.name,
            )
        self._checked = True


def _node_id(document: Document) -> str:
    """Return the node id of a document.

    Some stores do not keep the ids of documents, so the id is also read from the metadata.
    """
    return document.id or str(document.metadata.get(_ID, ""))


class GraphEmbeddings(Embeddings):
    """A LangChain embedding model that returns the vectors of a graph, scaled to unit length.

    The model of the graph itself may be a function or a model from LlamaIndex or
    sentence-transformers. The graph caches the vectors. Because of the unit length, vector stores
    rank nodes equally by inner product, L2 distance and cosine.

    Args:
        graph: The node graph.
        key: The key of the embedding model. It is optional if the graph has only one model.

    Raises:
        LookupError: If the key is unknown, or if it is missing although the graph has several
            models.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph(embed=lambda texts: [[len(text), 4] for text in texts])
        >>> [round(number, 1) for number in GraphEmbeddings(graph).embed_query("tea")]
        [0.6, 0.8]
    """

    def __init__(self, graph: NodeGraph, key: str | None = None) -> None:
        self.graph = graph
        self.key = graph.embeddings.key(key)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector for each passage."""
        return _rows(self.graph.embeddings.vectors(texts, self.key))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return _rows(self.graph.embeddings.query_vectors([text], self.key))[0]

    async def aembed_query(self, text: str) -> list[float]:
        """Async version of ``embed_query``. It uses a thread if the model has no async method."""
        return _rows(await self.graph.embeddings.aquery_vectors([text], self.key))[0]


def _rows(vectors: Any) -> list[list[float]]:
    rows: list[list[float]] = unit(np.asarray(vectors)).tolist()
    return rows
