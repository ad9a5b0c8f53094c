"""Use a LlamaIndex vector store as the index of a graph's embeddings."""

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
"""A function that takes the name of a group and returns a vector store, new or already filled."""

_GROUP = "nodekin_group"

# metadata field with a hash of the model and the text of a stored vector
_FINGERPRINT = "nodekin_vector"


def as_index(
    store: BasePydanticVectorStore | MakeStore, *, name: str | None = None
) -> StoreIndexes:
    """Use a LlamaIndex vector store as the vector index of retrievers: ``Retriever(index=...)``.

    This is useful if the vectors must be stored in an existing vector database. On a single
    machine, the built-in index is faster, and results and scores are the same. New and changed
    nodes are written to the store before the next search. See "Engines" in ``docs/stores.md``.

    The store does not need an embedding model. It only proposes candidates, whose cosine
    similarities are computed from the vectors in the graph. Since the graph records which rows were
    written, a new process needs to look up only a sample of them. Rows that the store has lost are
    written again, and rows that do not belong to the graph are ignored.

    Args:
        store: A vector store for one graph and one embedding, or a function that takes the name of
            a group and returns its vector store. Several groups may share a store, but this makes
            searches slower.
        name: A name by which later processes recognize the store. It is required if the graph is
            saved in a file, but the store has neither a name nor an address, as is the case for
            in-memory stores.

    Raises:
        TypeError: If the store is neither a vector store nor a function.
        ValueError: If a required name is missing. This error is raised by the first search.

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
    """The operations that an index needs, implemented for LlamaIndex vector stores."""

    _store: BasePydanticVectorStore

    def nearest_ids(self, vector: npt.NDArray[np.float32], count: int) -> list[str]:
        """Return the ids of the nodes that are nearest to a vector."""
        query = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=count)
        result = self._store.query(query)
        nodes = result.nodes or ()
        return [node.node_id for node in nodes] if result.ids is None else list(result.ids)

    def stored(self, ids: Sequence[str]) -> dict[str, str] | None:
        """Return a dictionary from the ids of stored nodes to their fingerprints.

        Return None if the store cannot look up ids.
        """
        try:
            nodes = self._store.get_nodes(node_ids=list(ids))
        except NotImplementedError:
            return None
        return {node.node_id: str(node.metadata.get(_FINGERPRINT, "")) for node in nodes}

    def delete(self, ids: Sequence[str]) -> None:
        """Delete nodes from the store."""
        if self._deletes_nodes:
            self._store.delete_nodes(node_ids=list(ids))
        else:
            for i in ids:
                self._store.delete(i)

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        """Add nodes and their vectors to the store."""
        self._store.add([self._text_node(node) for node in nodes])

    @property
    def _deletes_nodes(self) -> bool:
        return type(self._store).delete_nodes is not BasePydanticVectorStore.delete_nodes

    def _text_node(self, embedded: EmbeddedNode) -> TextNode:
        """Convert a node for the store.

        Many stores allow only a few metadata fields with simple values.
        """
        node = embedded.node
        metadata = {_GROUP: node.group, _FINGERPRINT: embedded.fingerprint}
        return TextNode(
            id_=node.id,
            text=node.text,
            embedding=embedded.vector.tolist(),
            metadata=metadata,
            excluded_embed_metadata_keys=list(metadata),
            excluded_llm_metadata_keys=list(metadata),
            # Some stores can delete nodes only by their source, so each node is stored as its own
            # source.
            relationships={NodeRelationship.SOURCE: related(node.id)},
        )
