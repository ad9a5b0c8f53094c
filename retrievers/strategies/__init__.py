"""Query strategies: retrievers that let a model say what to search for."""

from .query_transform import Forms, QueryTransform
from .rewrite import QueryRewrite, QueryRewriteRetriever
from .transform_retriever import TransformRetriever

__all__ = [
    "Forms",
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryTransform",
    "TransformRetriever",
]
