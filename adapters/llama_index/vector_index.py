"""Let a LlamaIndex vector store be the index of a graph's embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from ...nodegraph import NodeGraph
from ...retrievers import Cosine, Similarity
from ...retrievers.indexes import with_index
from .store_index import StoreIndex

MakeStore = Callable[[str], BasePydanticVectorStore]
"""Makes a vector store, empty or that of last time, for a group of a name."""


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
        return StoreIndex(graph, group, key, store)
