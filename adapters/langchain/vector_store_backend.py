"""A LangChain vector store as the index of a graph's embeddings."""

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
"""A function that takes a model and the name of a group, and returns the vector store."""

_ID = "node_id"
_GROUP = "group"
_FINGERPRINT = "made_of"

_REQUIRED = ("similarity_search_by_vector", "delete")

_SAME_MODEL = 0.99  # lowest cosine of two vectors that one model returns for the same text


def as_index(store: VectorStore | MakeStore, *, name: str | None = None) -> StoreIndexes:
    """Return an index in a LangChain vector store, for ``Retriever(index=)``.

    Use it if the vectors have to be in your vector engine. New and changed nodes are written before
    the next search. Targets, filters, fusions, recursion and scores work as with the built-in
    index, which is faster on one machine. See ``docs/stores.md``, "Engines".

    The store returns candidates for the query's vector. Cosines are computed from the graph's
    vectors. The graph records the written rows, so a new process checks only a sample. Lost rows
    are rewritten. Foreign rows in the store are ignored.

    Args:
        store: A function that creates the store of a group. Its arguments are a LangChain embedding
            model that returns the graph's vectors, and the group's name. A single store is also
            accepted, for one graph and one of its embeddings. All groups share it, which makes
            searches slower. The store's model must be the graph's, preferably
            ``GraphEmbeddings(graph)``. With other models, a store that does not compare cosines
            needs vectors of unit length.
        name: A name by which a later process recognizes the store. It is required if the graph is
            in a file and the store has neither a name nor an address, such as a store in memory.

    Raises:
        TypeError: If ``store`` is not a store or a function, or cannot search by vector or delete.
        ValueError: At the first search, if a required name is missing.

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
    """The operations of a LangChain vector store that an index needs.

    Args:
        store: The vector store.

    Raises:
        TypeError: If the store cannot search by vector or delete.
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
        """Return the ids of the nearest nodes."""
        documents = self._store.similarity_search_by_vector(vector.tolist(), k=count)
        return [_node_id(document) for document in documents]

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return the fingerprints of the stored nodes.

        Return None if the store cannot look up ids.
        """
        try:
            documents = self._store.get_by_ids(ids)
        except NotImplementedError:
            return None
        return {_node_id(d): str(d.metadata.get(_FINGERPRINT, "")) for d in documents}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes.

        Raises:
            ValueError: If the store returns False.
        """
        if self._store.delete(list(ids)) is False:
            raise ValueError(
                f"the vector store {self.name} did not delete {len(ids)} nodes, the first of them "
                f"{ids[0]!r}; see its log, and search again"
            )

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes. The store embeds their texts, and ``GraphEmbeddings`` returns stored vectors.

        Raises:
            ValueError: If the store's model is not the graph's model.
        """
        self._check_model(nodes[0].text, nodes[0].vector)
        documents = [
            # Many stores allow only few, flat metadata fields.
            Document(
                row.text,
                metadata={_ID: row.node.id, _GROUP: row.node.group, _FINGERPRINT: row.fingerprint},
                id=row.node.id,
            )
            for row in nodes
        ]
        self._store.add_documents(documents, ids=[row.node.id for row in nodes])

    def _check_model(self, text: str, vector: npt.NDArray[np.float32]) -> None:
        """Compare the store's model with the graph's model, using one text."""
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
    """Return the id of a document's node. Some stores drop the ids of documents."""
    return document.id or str(document.metadata.get(_ID, ""))


class GraphEmbeddings(Embeddings):
    """A LangChain embedding model that returns a graph's vectors, with unit length.

    The graph's own model may be a function, or a model of LlamaIndex or sentence-transformers.
    Vectors are cached by the graph. With unit length, stores that compare by inner product or by L2
    rank nodes like stores that compare cosines.

    Args:
        graph: The node graph.
        key: The key of the graph's model. It is optional if the graph has one model.

    Raises:
        LookupError: If the key is unknown, or missing in a graph with several models.

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
        """Return the vectors of passages."""
        return _rows(self.graph.embeddings.vectors(texts, self.key))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return _rows(self.graph.embeddings.query_vectors([text], self.key))[0]

    async def aembed_query(self, text: str) -> list[float]:
        """Async version of ``embed_query``, in a thread if the model has no async method."""
        return _rows(await self.graph.embeddings.aquery_vectors([text], self.key))[0]


def _rows(vectors: Any) -> list[list[float]]:
    rows: list[list[float]] = unit(np.asarray(vectors)).tolist()
    return rows
