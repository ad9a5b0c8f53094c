"""Retrievers around retrievers: fusion, windows, merging, completion, references, links."""

from typing import TYPE_CHECKING

from ...nodegraph.lazy_names import lazy_names

if TYPE_CHECKING:
    from .auto_merge import AutoMergeRetriever
    from .default_retriever import DefaultRetriever
    from .document_completion import DocumentCompletionRetriever
    from .fusion import FusionRetriever
    from .link_graph import LinkOptions
    from .link_retriever import LinkRetriever
    from .recursive import RecursiveRetriever
    from .reweighting import with_weights
    from .window import WindowRetriever
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".auto_merge": "AutoMergeRetriever",
            ".default_retriever": "DefaultRetriever",
            ".document_completion": "DocumentCompletionRetriever",
            ".fusion": "FusionRetriever",
            ".link_graph": "LinkOptions",
            ".link_retriever": "LinkRetriever",
            ".recursive": "RecursiveRetriever",
            ".reweighting": "with_weights",
            ".window": "WindowRetriever",
        },
    )

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
