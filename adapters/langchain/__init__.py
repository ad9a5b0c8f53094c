"""nodekin in LangChain: retrievers, stores, query engines, and conversion in both directions."""

from typing import TYPE_CHECKING, Any

from ...nodegraph.models import as_embedder, as_llm
from ...retrievers import as_retriever
from ..extras import extra

with extra("langchain", "langchain_core"):
    from ..tool_filters import FilterField
    from .corpus_toolkit import corpus_toolkit
    from .document_index import NodeGraphIndex
    from .documents import from_document, to_document
    from .fuse_documents import fuse_documents
    from .key_value_store import NodeGraphStore
    from .query_engine import NodeGraphQueryEngine
    from .query_transforms import (
        decompose_query,
        expand_query,
        hypothesize,
        rewrite_query,
        route_query,
        transform_query,
    )
    from .reranker import NodeGraphReranker
    from .retriever import NodeGraphRetriever
    from .splitter_transform import as_transform
    from .structured_filter import StructuredFilter
    from .tools import answer_tool, retriever_tool
    from .vector_store import NodeGraphVectorStore
    from .vector_store_backend import GraphEmbeddings, as_index

if TYPE_CHECKING:
    from .file_loader import FileLoader
    from .text_splitter import NodeTextSplitter

__all__ = [
    "FileLoader",
    "FilterField",
    "GraphEmbeddings",
    "NodeGraphIndex",
    "NodeGraphQueryEngine",
    "NodeGraphReranker",
    "NodeGraphRetriever",
    "NodeGraphStore",
    "NodeGraphVectorStore",
    "NodeTextSplitter",
    "StructuredFilter",
    "answer_tool",
    "as_embedder",
    "as_index",
    "as_llm",
    "as_retriever",
    "as_transform",
    "corpus_toolkit",
    "decompose_query",
    "expand_query",
    "from_document",
    "fuse_documents",
    "hypothesize",
    "retriever_tool",
    "rewrite_query",
    "route_query",
    "to_document",
    "transform_query",
]


def __getattr__(name: str) -> Any:
    # Their bases load langchain-text-splitters, which not everyone has and which takes long.
    if name == "FileLoader":
        from .file_loader import FileLoader

        return FileLoader
    if name == "NodeTextSplitter":
        from .text_splitter import NodeTextSplitter

        return NodeTextSplitter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
