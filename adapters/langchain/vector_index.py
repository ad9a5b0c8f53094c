"""Let a LangChain vector store be the index of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from ...nodegraph import Node, NodeGraph
from ...retrievers.indexes import unit
from ...retrievers.protocols import Similarity
from ...retrievers.similarities import Cosine, with_index
from ..vector_store_index import StoreIndex

MakeStore = Callable[[Embeddings, str], VectorStore]
"""Makes a vector store, empty or that of last time, of a model and the name of a group."""

_ID, _GROUP, _MARK = "node_id", "group", "made_of"

_NEEDED = ("similarity_search_by_vector", "delete")

_ALIKE = 0.99  # the cosine of two vectors of one text by one model, at least


def as_index(store: VectorStore | MakeStore) -> StoreIndexes:
    """Let a LangChain vector store hold and search a graph's vectors, for ``Retriever(index=)``.

    Choose it where vectors have to lie in an engine of yours. The store is kept in step with the
    graph: what comes and goes there comes and goes here, before the next search. The graph stays
    what is searched: targets, filters, fusions, recursion and scores are as with the built-in
    index, which is quicker on one machine.

    The store is asked for nodes by the query's vector, for more of them as long as filters or
    ties leave too few. Cosines are the graph's own, computed from its vectors. Where the store
    finds fewer than there are, all are compared one by one, so that none is missing, and the log
    says so.

    What a store has of an earlier process is used where it can be asked (``get_by_ids``), and
    written again where not. What else is in it stays.

    Args:
        store: A function that makes a store, from a LangChain model that gives the graph's
            vectors, and the name of the group: each group has a store of its own then, and no
            text is embedded twice. Or a store, whose model has to be that of the graph, best
            ``GraphEmbeddings(graph)``. It is for one graph and one of its embeddings; several
            groups may share it, at the price of longer searches.

    Raises:
        TypeError: If it is neither, or a store that can't search by vector or delete.

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
    if isinstance(store, VectorStore):
        _check_store(store)
    elif not callable(store) or isinstance(store, type):
        raise TypeError(
            "as_index takes a LangChain VectorStore, or a function (embeddings, group) that makes "
            f"one, not {store!r:.80}"
        )
    return StoreIndexes(store)


@dataclass(frozen=True, slots=True)
class StoreIndexes:
    """Make the index of a graph's group; the same store makes the same index.

    Attributes:
        store: The vector store, or what makes one for a group.
    """

    store: VectorStore | MakeStore
    _keys: dict[int, str] = field(default_factory=dict, repr=False)

    @property
    def cosine(self) -> Similarity:
        """The similarity that searches in the store: for what takes no ``index=``.

        ``RecursiveRetriever(graph, groups, target, as_index(...).cosine)``
        """
        return with_index(Cosine(), self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreIndexes) and self.store is other.store

    def __hash__(self) -> int:
        return hash((StoreIndexes, id(self.store)))

    def __call__(
        self, graph: NodeGraph, group: str, key: str | None, similarity: Similarity
    ) -> StoreIndex:
        """Return the index of a group's embeddings of one key.

        Raises:
            TypeError: If the similarity is not the cosine, or no vector store was made.
            ValueError: If the store has vectors of another of the graph's embeddings.
        """
        if key is None or not isinstance(similarity, Cosine):
            raise TypeError(
                f"a vector store is an index for the similarity 'cosine', not for "
                f"{similarity.name!r}"
            )
        embeddings = GraphEmbeddings(graph, key)
        store = self.store
        if not isinstance(store, VectorStore):
            store = store(embeddings, group)
            if not isinstance(store, VectorStore):
                raise TypeError(
                    f"the function that as_index was given made {store!r:.80}, which is no "
                    "LangChain VectorStore"
                )
            _check_store(store)
        elif self._keys.setdefault(id(graph), key) != key:
            raise ValueError(
                f"the vector store has vectors of the embedding {self._keys[id(graph)]!r}, and "
                f"can't have those of {key!r} too; search one (embed_keys=[...]), or give as_index "
                "a function that makes a store for each"
            )
        return StoreIndex(graph, group, key, LangChainBackend(store))


class LangChainBackend:
    """Do with a LangChain vector store what an index needs.

    Args:
        store: The vector store.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._checked = isinstance(store.embeddings, GraphEmbeddings)
        self.name = type(store).__name__

    def nearest_names(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nearest nodes."""
        found = self._store.similarity_search_by_vector(vector.tolist(), k=count)
        return [_node_id(document) for document in found]

    def held(self, ids: Sequence[str]) -> dict[str, str]:
        """Return which of these nodes the store has; none where it can't say."""
        try:
            found = self._store.get_by_ids(ids)
        except NotImplementedError:  # adding an id again updates it, as stores have it
            return {}
        return {_node_id(each): str(each.metadata.get(_MARK, "")) for each in found}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes.

        Raises:
            ValueError: If the store says that it did not.
        """
        if self._store.delete(list(ids)) is False:
            raise ValueError(
                f"the vector store {self.name} did not delete {len(ids)} nodes, the first of them "
                f"{ids[0]!r}; see its log, and ask again"
            )

    def add(self, nodes: Sequence[Node], vectors: Any, marks: Sequence[str]) -> None:
        """Add nodes, whose texts the store embeds: from what the graph has, if it was made so.

        Raises:
            ValueError: If the store's model is not that of the graph.
        """
        self._check_model(nodes[0].text, vectors[0])
        documents = [
            # Little metadata, since many stores allow but few and flat fields.
            Document(node.text, metadata={_ID: node.id, _GROUP: node.group, _MARK: m}, id=node.id)
            for node, m in zip(nodes, marks, strict=True)
        ]
        self._store.add_documents(documents, ids=[node.id for node in nodes])

    def _check_model(self, text: str, vector: npt.NDArray[np.float32]) -> None:
        """Look whether the store's model is the graph's, by one text."""
        model = self._store.embeddings
        if self._checked or model is None:
            return
        theirs, ours = unit(model.embed_documents([text]))[0], unit(vector)
        if theirs.shape != ours.shape or float(theirs @ ours) < _ALIKE:
            raise ValueError(
                f"the vector store embeds by {type(model).__name__}, and the graph by another "
                "model; make the store with GraphEmbeddings(graph)"
            )
        self._checked = True


def _node_id(document: Document) -> str:
    """Return the id of the node that a document stands for; some stores lose documents' ids."""
    return document.id or str(document.metadata.get(_ID, ""))


def _check_store(store: VectorStore) -> None:
    for method in _NEEDED:
        if getattr(type(store), method) is getattr(VectorStore, method):
            raise TypeError(
                f"{type(store).__name__} has no {method}(), which an index needs; choose another "
                "vector store, or the built-in index"
            )


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
