"""What looks again at results: models, functions, keywords; and the retriever that lets them."""

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
