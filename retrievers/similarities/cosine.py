"""The cosine similarity of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ..protocols import Index

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cosine:
    """Score nodes by the angle between their embedding and the query's, from -1 to 1.

    Matches the same meaning in other words; ``Bm25`` matches the very words, names and numbers.
    ``FusionRetriever`` combines both. Needs a graph with an embedding model:
    ``NodeGraph(..., embed=model)``.

    Every node has a cosine, so that a search always returns ``top_k`` nodes; a
    ``similarity_cut_off`` leaves out the distant ones. Scores are rounded to six decimals.

    Example:
        >>> def letters(texts):
        ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph(embed=letters)
        >>> ids = graph.add(["banana", "lemon tree", "kiwi"])
        >>> [result.node.text for result in Retriever(graph, "ROOT", "cosine")("papaya")]
        ['banana', 'lemon tree', 'kiwi']
    """

    name: str = "cosine"
    mode: ClassVar[Literal["embedding"]] = "embedding"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> Index[Vector]:
        """Return the index of a group's embeddings of one key, shared by all retrievers.

        Where an engine searches the graph's vectors, the index is there.

        Raises:
            LookupError: If the graph has no such embedding.
        """
        from ..indexes.shared_indexes import open_vectors

        return open_vectors(graph, group, "default" if key is None else key)

    def prepare(self, query: Vector, indexes: Sequence[Index[Vector]]) -> Vector:
        """Return the query's vector as it is."""
        return query
