"""The search of given nodes by their words and vectors, with weights of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import Self

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.composite.default_retriever import DefaultRetriever
from ...retrievers.composite.document_retriever import DocumentRetriever
from ...retrievers.composite.fusion import FusionRetriever


class NodeSearch(DocumentRetriever):
    """A retriever of nodes by their words and by the vectors of a group, in a fixed proportion.

    Given weights replace this retriever by the default search of the nodes.

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
        """Return a copy with given weights of words and vectors.

        Raises:
            ValueError: If vectors of another group than the nodes are compared.
        """
        if self.group != ROOT:
            raise ValueError(
                f"weights= requires the group 'node' or 'sentence', got {self.group!r}; use "
                "as_retriever(group='node', weights=...)"
            )
        other = self.with_option(weights=weights)
        top_k = self.top_k or 1
        other.inner = DefaultRetriever(
            self.graph, ROOT, top_k=top_k, vectors="passages", **other.options
        )
        return other
