"""Query strategies: retrievers that let a model say what to search for."""

from .decompose import QueryDecomposition
from .hyde import HyDE, HyDERetriever
from .multi_query import MultiQueryRetriever, QueryExpansion
from .multi_step import MultiStepRetriever
from .planned_retriever import PlannedRetriever
from .query_transform import Forms, QueryTransform
from .rewrite import QueryRewrite, QueryRewriteRetriever
from .router import QueryRouter, RouterRetriever
from .sub_question import SubQuestionRetriever, SubResults
from .transform_retriever import TransformRetriever

__all__ = [
    "Forms",
    "HyDE",
    "HyDERetriever",
    "MultiQueryRetriever",
    "MultiStepRetriever",
    "PlannedRetriever",
    "QueryDecomposition",
    "QueryExpansion",
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryRouter",
    "QueryTransform",
    "RouterRetriever",
    "SubQuestionRetriever",
    "SubResults",
    "TransformRetriever",
]
