"""Retrievers of other frameworks, recognised by their shape, as retrievers of this package."""

from .coercion import as_retriever
from .configured_retriever import ConfiguredRetriever, configured
from .foreign_node import ForeignNode
from .foreign_retriever import ForeignRetriever, check_in_graph
from .outputs import fuse_outputs, is_answer, read_output

__all__ = [
    "ConfiguredRetriever",
    "ForeignNode",
    "ForeignRetriever",
    "as_retriever",
    "check_in_graph",
    "configured",
    "fuse_outputs",
    "is_answer",
    "read_output",
]
