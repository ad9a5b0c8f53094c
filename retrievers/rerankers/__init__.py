"""Rerankers: cross-encoders, functions, keyword filters; and the retriever around them."""

from .cross_encoder_reranker import CrossEncoderReranker
from .keyword_filter import KeywordFilter
from .passage_windows import passage_windows
from .rerank_retriever import RerankRetriever
from .reranker import Reranker, register_reranker

__all__ = [
    "CrossEncoderReranker",
    "KeywordFilter",
    "RerankRetriever",
    "Reranker",
    "passage_windows",
    "register_reranker",
]
