"""Retrievers around retrievers that fuse, merge, widen, complete and follow links."""

from .auto_merge import AutoMergeRetriever
from .document_completion import CompletionRetriever
from .fusion import FusionRetriever
from .link_retriever import LinkRetriever
from .recursive import RecursiveRetriever
from .window import WindowRetriever

__all__ = [
    "AutoMergeRetriever",
    "CompletionRetriever",
    "FusionRetriever",
    "LinkRetriever",
    "RecursiveRetriever",
    "WindowRetriever",
]
