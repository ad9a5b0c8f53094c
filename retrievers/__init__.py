"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from .analysis import Analyzer, TextAnalyzer
from .auto_merge import AutoMergeRetriever
from .bm25 import Bm25
from .completion import CompletionRetriever
from .cosine import Cosine
from .custom_similarity import CustomSimilarity
from .filters import Filters, parse_filters
from .fusion import FusionRetriever, fuse
from .hits import Hits
from .indexes import register_index
from .keyword_filter import KeywordFilter
from .link_walk import LinkRetriever
from .map_index import Exact
from .module_reranker import ModuleReranker
from .passage_windows import passage_windows
from .preset_answer import PresetAnswer
from .protocols import Index, Retrieves, Similarity
from .qa import QaRetriever
from .recursive import RecursiveRetriever
from .rerank_retriever import RerankRetriever
from .reranker import Reranker
from .rerankers import register_reranker
from .reranks import RerankError, Reranks
from .retriever import Retriever
from .scored_node import Evidence, ScoredNode
from .similarities import register_similarity
from .trace import Observer, Stage, observing, stage, trace
from .window import WindowRetriever

__all__ = [
    "Analyzer",
    "AutoMergeRetriever",
    "Bm25",
    "CompletionRetriever",
    "Cosine",
    "CustomSimilarity",
    "Evidence",
    "Exact",
    "Filters",
    "FusionRetriever",
    "Hits",
    "Index",
    "KeywordFilter",
    "LinkRetriever",
    "ModuleReranker",
    "Observer",
    "PresetAnswer",
    "QaRetriever",
    "RecursiveRetriever",
    "RerankError",
    "RerankRetriever",
    "Reranker",
    "Reranks",
    "Retriever",
    "Retrieves",
    "ScoredNode",
    "Similarity",
    "Stage",
    "TextAnalyzer",
    "WindowRetriever",
    "fuse",
    "observing",
    "parse_filters",
    "passage_windows",
    "register_index",
    "register_reranker",
    "register_similarity",
    "stage",
    "trace",
]
