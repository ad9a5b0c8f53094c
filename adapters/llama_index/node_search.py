"""The search of nodes by their words and by the vectors of another group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import Self

from ...nodegraph.graph import NodeGraph
from ...retrievers.composite.document_retriever import DocumentRetriever
from ...retrievers.composite.fusion import FusionRetriever


class NodeSearch(DocumentRetriever):
    """A retriever of nodes by their words and by the vectors of a group, in a fixed proportion.

    Args:
        fusion: The retriever of words and vectors.
        graph: The graph, whose documents are the nodes.
        group: The group whose vectors are compared.
        options: Options of the default search, such as ``index``.
    """

    def __init__(
        self, fusion: FusionRetriever, graph: NodeGraph, group: str, options: Mapping[str, Any]
    ) -> None:
        super().__init__(fusion, graph, options)
        self.group = group

    def with_weights(self, weights: Mapping[str, float]) -> Self:
        """Raise an error, since the proportion is fixed.

        Raises:
            ValueError: Always. The message names the groups whose weights can be set.
        """
        raise ValueError(
            f"weights= requires the group 'node' or 'sentence', got {self.group!r}; use "
            "as_retriever(group='node', weights=...)"
        )
