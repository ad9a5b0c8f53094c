"""A LangChain vector store as the index of a graph's embeddings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ...nodegraph.concurrency import context_value
from ...nodegraph.graph import NodeGraph
from ...retrievers.indexes.nearest_vectors import unit
from ..vector_store_index import EmbeddedNode, StoreIndexes, store_indexes
from ..vector_store_record import row_count, store_identity

logger = logging.getLogger(__name__)

MakeStore = Callable[[Embeddings, str], VectorStore]
"""Returns a vector store for a model and the name of a group, empty or from an earlier process."""

_ID, _GROUP, _FINGERPRINT = "node_id", "group", "made_of"

_REQUIRED = ("similarity_search_by_vector", "delete")

_UNIT = 1e-3  # how far from 1 the length of a unit vector may be

_SAME_MODEL = 0.99  # the cosine of two vectors of one text by one model, at least


def as_index(store: VectorStore | MakeStore) -> StoreIndexes:
    """Store and search a graph's vectors in a LangChain vector store, for ``Retriever(index=)``.

    Use it if the vectors have to be in your own engine. New and changed nodes are written before
    the next search. Targets, filters, fusions, recursion and scores are those of the built-in
    index, which is faster on one machine. See ``docs/stores.md``, "Engines".

    The store returns candidates by the query's vector; cosines are computed from the graph's
    vectors. The graph records what was written, so that a new process looks up a sample only. If
    the store has lost rows, they are written again. Other rows in the store are ignored.

    Args:
        store: A function that creates the store of a group, from a LangChain embedding model
            that returns the graph's vectors, and the name of the group. Or a store for one graph
            and one of its embeddings, shared by several groups (searches are slower). Its model
            must be the graph's, best ``GraphEmbeddings(graph)``.

    Raises:
        TypeError: If ``store`` is neither, or can't search by vector or delete.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
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
    return store_indexes(store, "LangChain", VectorStore, _arguments, LangChainBackend)


def _arguments(graph: NodeGraph, group: str, key: str) -> tuple[GraphEmbeddings, str]:
    return GraphEmbeddings(graph, key), group


class LangChainBackend:
    """The operations of a LangChain vector store that an index needs.

    Args:
        store: The vector store.

    Raises:
        TypeError: If the store can't search by vector or delete.
    """

    def __init__(self, store: VectorStore) -> None:
        for method in _REQUIRED:
            if getattr(type(store), method) is getattr(VectorStore, method):
                raise TypeError(
                    f"{type(store).__name__} has no {method}(), which an index needs; choose "
                    "another vector store, or the built-in index"
                )
        self._store = store
        self._checked = isinstance(store.embeddings, GraphEmbeddings)
        self.name = type(store).__name__
        self.identity = store_identity(store)

    def nearest_ids(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nearest nodes."""
        documents = self._store.similarity_search_by_vector(vector.tolist(), k=count)
        return [_node_id(document) for document in documents]

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return the fingerprints of those nodes that the store has; None without look-up."""
        try:
            documents = self._store.get_by_ids(ids)
        except NotImplementedError:
            return None
        return {_node_id(d): str(d.metadata.get(_FINGERPRINT, "")) for d in documents}

    def count(self) -> int | None:
        """Return the number of rows; None if the store can't tell."""
        return row_count(self._store)

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
        """Add nodes. The store embeds their texts; ``GraphEmbeddings`` returns stored vectors.

        Raises:
            ValueError: If the store's model is not the graph's.
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
        with unit_vectors():
            self._store.add_documents(documents, ids=[row.node.id for row in nodes])

    def _check_model(self, text: str, vector: npt.NDArray[np.float32]) -> None:
        """Compare the store's model with the graph's, by one text."""
        model = self._store.embeddings
        if self._checked or model is None:
            return
        vectors = np.asarray(model.embed_documents([text]), np.float64)
        stored, expected = unit(vectors)[0], unit(vector)
        if stored.shape != expected.shape or float(stored @ expected) < _SAME_MODEL:
            raise ValueError(
                f"the vector store embeds by {type(model).__name__}, and the graph by another "
                "model; make the store with GraphEmbeddings(graph)"
            )
        self._checked = True
        length = float(np.linalg.norm(vectors[0]))
        if abs(length - 1) > _UNIT:
            logger.warning(
                "the vector store %s embeds by %s, whose vectors are not of unit length (the first "
                "has %.3g); unless the store measures the cosine, its results are wrong: make it "
                "with GraphEmbeddings(graph), which gives it unit vectors",
                *(self.name, type(model).__name__, length),
            )


def _node_id(document: Document) -> str:
    """Return the id of a document's node. Some stores drop the ids of documents."""
    return document.id or str(document.metadata.get(_ID, ""))


_units: ContextVar[bool] = ContextVar("unit_vectors", default=False)


def unit_vectors() -> AbstractContextManager[bool]:
    """Let ``GraphEmbeddings`` return unit vectors in the block: a store may compare by L2."""
    return context_value(_units, True)


class GraphEmbeddings(Embeddings):
    """Use a graph's embedding model, with all vectors it has computed before, in LangChain code.

    The model in the graph may be a function, or one of LlamaIndex or sentence-transformers. This
    is a LangChain model. Vectors come from the graph, which caches them by model and text, also in
    its file where it has one.

    Args:
        graph: The node graph.
        key: Which of its embeddings. None where it has but one.

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
        vectors = self.graph.embeddings.vectors(texts, self.key)
        rows: list[list[float]] = (unit(vectors) if _units.get() else vectors).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return list(map(float, self.graph.embeddings.query_vectors([text], self.key)[0]))

    async def aembed_query(self, text: str) -> list[float]:
        """Async version of ``embed_query``, in a thread where the model has none."""
        vectors = await self.graph.embeddings.aquery_vectors([text], self.key)
        return list(map(float, vectors[0]))
