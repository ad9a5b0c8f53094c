"""Rerankers: cross-encoders, functions, filters; and the retriever around them."""

from ..protocols import RerankerProtocol, RerankError
from .cross_encoder_reranker import CrossEncoderReranker
from .keyword_filter import KeywordFilter
from .near_duplicate_filter import NearDuplicateFilter
from .passage_windows import passage_windows
from .rerank_retriever import RerankRetriever
from .reranker import Reranker, register_reranker
from .token_limit import TokenLimit

__all__ = [
    "CrossEncoderReranker",
    "KeywordFilter",
    "NearDuplicateFilter",
    "RerankError",
    "RerankRetriever",
    "Reranker",
    "RerankerProtocol",
    "TokenLimit",
    "passage_windows",
    "register_reranker",
]
