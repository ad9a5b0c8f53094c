"""Let a LlamaIndex vector store be the index of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import NodeRelationship, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from ...nodegraph import Node, NodeGraph
from ...retrievers.protocols import Similarity
from ...retrievers.similarities import Cosine, with_index
from ..vector_store_index import StoreIndex
from .nodes import GROUP, related

MakeStore = Callable[[str], BasePydanticVectorStore]
"""Makes a vector store, empty or that of last time, for a group of a name."""

_VECTOR = "nodekin_vector"  # hash of the model and the text that a stored vector was made of


def as_index(store: BasePydanticVectorStore | MakeStore) -> StoreIndexes:
    """Let a LlamaIndex vector store hold and search a graph's vectors: ``Retriever(index=)``.

    Choose it where vectors have to lie in an engine of yours. The store is kept in step with the
    graph: what comes and goes there comes and goes here, before the next search. The graph stays
    what is searched: targets, filters, fusions, recursion and scores are as with the built-in
    index, which is quicker on one machine.

    The vectors are the graph's own; the store needs no model. It is asked for nodes by the
    query's vector, for more of them as long as filters or ties leave too few; cosines are computed
    anew from the graph's vectors. Where the store finds fewer than there are, the rest is compared
    one by one, so that none is missing, and the log says so.

    What a store has of an earlier process is used where it can be asked (``get_nodes``), and
    written again where not. What else is in it stays.

    Args:
        store: A vector store, for one graph and one of its embeddings; several groups may share
            it, at the price of longer searches. Or a function from the name of a group to a
            store, so that each has its own.

    Raises:
        TypeError: If it is neither.

    Example:
        >>> from llama_index.core.vector_stores import SimpleVectorStore
        >>> from nodekin.retrievers import Retriever
        >>> def letters(texts):
        ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
        >>> graph = NodeGraph(embed=letters)
        >>> ids = graph.add(["banana", "lemon tree", "kiwi"])
        >>> store = SimpleVectorStore()
        >>> retriever = Retriever(graph, "ROOT", "cosine", index=as_index(store), top_k=1)
        >>> [result.node.text for result in retriever("papaya")]
        ['banana']
        >>> sorted(store.data.embedding_dict) == sorted(ids)
        True
    """
    if not isinstance(store, BasePydanticVectorStore) and not (
        callable(store) and not isinstance(store, type)
    ):
        raise TypeError(
            "as_index takes a LlamaIndex vector store such as SimpleVectorStore(), or a function "
            f"from the name of a group to one, not {store!r:.80}"
        )
    return StoreIndexes(store)


@dataclass(frozen=True, slots=True)
class StoreIndexes:
    """Make the index of a graph's group; the same store makes the same index.

    Attributes:
        store: The vector store, or what makes one for a group.
    """

    store: BasePydanticVectorStore | MakeStore
    _keys: dict[int, str] = field(default_factory=dict, repr=False, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreIndexes) and self.store is other.store

    def __hash__(self) -> int:
        return hash((StoreIndexes, id(self.store)))

    @property
    def cosine(self) -> Similarity:
        """The cosine by this index, for what takes a similarity only: ``RecursiveRetriever``."""
        return with_index(Cosine(), self)

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
                f"a vector store is an index for the similarity 'cosine', not {similarity.name!r}"
            )
        store = self.store
        if not isinstance(store, BasePydanticVectorStore):
            store = store(group)
            if not isinstance(store, BasePydanticVectorStore):
                raise TypeError(
                    f"as_index was given a function that makes {store!r:.80} for the group "
                    f"{group!r}, which is no LlamaIndex vector store"
                )
        elif self._keys.setdefault(id(graph), key) != key:
            raise ValueError(
                f"the vector store has vectors of the embedding {self._keys[id(graph)]!r}, and "
                f"can't have those of {key!r} too; search one (embed_keys=[...]) or give a store "
                "to each"
            )
        return StoreIndex(graph, group, key, LlamaIndexBackend(store))


class LlamaIndexBackend:
    """Do with a LlamaIndex vector store what an index needs.

    Args:
        store: The vector store.
    """

    def __init__(self, store: BasePydanticVectorStore) -> None:
        self._store = store
        self.name = type(store).__name__

    def nearest_names(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nearest nodes."""
        wanted = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=count)
        found = self._store.query(wanted)
        if found.ids is not None:
            return list(found.ids)
        return [node.node_id for node in found.nodes or ()]

    def held(self, ids: Sequence[str]) -> dict[str, str]:
        """Return which of these nodes the store has; where it can't say, perhaps all."""
        try:
            found = self._store.get_nodes(node_ids=list(ids))
        except NotImplementedError:  # it may have any of them, in any form
            return dict.fromkeys(ids, "")
        return {node.node_id: str(node.metadata.get(_VECTOR, "")) for node in found}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes."""
        if self._deletes_nodes:
            self._store.delete_nodes(node_ids=list(ids))
        else:
            for i in ids:
                self._store.delete(i)

    def add(
        self, nodes: Sequence[Node], vectors: npt.NDArray[np.float32], marks: Sequence[str]
    ) -> None:
        """Add nodes with their vectors."""
        given = zip(nodes, vectors.tolist(), marks, strict=True)
        self._store.add([self._stored(node, vector, mark) for node, vector, mark in given])

    @property
    def _deletes_nodes(self) -> bool:
        return type(self._store).delete_nodes is not BasePydanticVectorStore.delete_nodes

    def _stored(self, node: Node, vector: list[float], mark: str) -> TextNode:
        """Make what the store gets: little metadata, since many allow but few and flat fields."""
        facts = {GROUP: node.group, _VECTOR: mark}
        # A store that deletes by source only can delete a node that is its own.
        source = node.document_id if self._deletes_nodes and node.document_id else node.id
        return TextNode(
            id_=node.id,
            text=node.text,
            embedding=vector,
            metadata=facts,
            excluded_embed_metadata_keys=list(facts),
            excluded_llm_metadata_keys=list(facts),
            relationships={NodeRelationship.SOURCE: related(source)},
        )
