"""A LlamaIndex vector store as the index of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import NodeRelationship, TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery

from ...nodegraph.graph import NodeGraph
from ..vector_store_index import EmbeddedNode, StoreIndexes, VectorBackend, store_indexes
from .nodes import related

MakeStore = Callable[[str], BasePydanticVectorStore]
"""A function that returns a group's vector store, empty or from an earlier process."""

_GROUP = "nodekin_group"

_FINGERPRINT = "nodekin_vector"  # hash of a stored vector's model and text


def as_index(
    store: BasePydanticVectorStore | MakeStore, *, name: str | None = None
) -> StoreIndexes:
    """Return an index for ``Retriever(index=)`` that keeps vectors in a LlamaIndex vector store.

    Use this if the vectors must be in an external engine. New and changed nodes are written before
    the next search. Results and scores equal those of the built-in index, which is faster on one
    machine. See ``docs/stores.md``, "Engines".

    The store requires no model. It returns candidates, and cosines are computed from the graph's
    vectors. The graph records the written rows, so a new process looks up only a sample. Lost rows
    are rewritten. Foreign rows are ignored.

    Args:
        store: A vector store for one graph and one embedding, or a function that returns the store
            of a named group. Several groups may share a store, which makes searches slower.
        name: A name by which a later process recognizes the store. It is required if the graph is
            in a file and the store has neither a name nor an address, such as a store in memory.

    Raises:
        TypeError: If the store is neither a vector store nor a function.
        ValueError: At the first search, if a required name is missing.

    Example:
        >>> from llama_index.core.vector_stores import SimpleVectorStore
        >>> from nodekin.nodegraph import NodeGraph
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
    kind = BasePydanticVectorStore
    arguments = _group_name
    return store_indexes(store, "LlamaIndex", kind, arguments, LlamaIndexBackend, name)


def _group_name(graph: NodeGraph, group: str, key: str) -> tuple[str]:
    return (group,)


class LlamaIndexBackend(VectorBackend):
    """The operations of a LlamaIndex vector store that an index needs."""

    _store: BasePydanticVectorStore

    def nearest_ids(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nearest nodes."""
        query = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=count)
        result = self._store.query(query)
        nodes = result.nodes or ()
        return [node.node_id for node in nodes] if result.ids is None else list(result.ids)

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return the fingerprints of nodes in the store, or None if it cannot look up ids."""
        try:
            nodes = self._store.get_nodes(node_ids=list(ids))
        except NotImplementedError:
            return None
        return {node.node_id: str(node.metadata.get(_FINGERPRINT, "")) for node in nodes}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes."""
        if self._deletes_nodes:
            self._store.delete_nodes(node_ids=list(ids))
        else:
            for i in ids:
                self._store.delete(i)

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes with their vectors."""
        self._store.add([self._text_node(node) for node in nodes])

    @property
    def _deletes_nodes(self) -> bool:
        return type(self._store).delete_nodes is not BasePydanticVectorStore.delete_nodes

    def _text_node(self, embedded: EmbeddedNode) -> TextNode:
        """Return a node for the store. Many stores allow only a few flat metadata fields."""
        node = embedded.node
        metadata = {_GROUP: node.group, _FINGERPRINT: embedded.fingerprint}
        return TextNode(
            id_=node.id,
            text=node.text,
            embedding=embedded.vector.tolist(),
            metadata=metadata,
            excluded_embed_metadata_keys=list(metadata),
            excluded_llm_metadata_keys=list(metadata),
            # Some stores can delete only by source, so each node is its own source.
            relationships={NodeRelationship.SOURCE: related(node.id)},
        )
