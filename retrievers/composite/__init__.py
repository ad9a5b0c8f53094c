"""Retrievers around retrievers: fusion, windows, merging, completion, references, links."""

from .auto_merge import AutoMergeRetriever
from .default_retriever import DefaultRetriever
from .document_completion import DocumentCompletionRetriever
from .fusion import FusionRetriever
from .link_graph import LinkOptions
from .link_retriever import LinkRetriever
from .recursive import RecursiveRetriever
from .reweighting import with_weights
from .window import WindowRetriever

__all__ = [
    "AutoMergeRetriever",
    "DefaultRetriever",
    "DocumentCompletionRetriever",
    "FusionRetriever",
    "LinkOptions",
    "LinkRetriever",
    "RecursiveRetriever",
    "WindowRetriever",
    "with_weights",
]
