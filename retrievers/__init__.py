"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from .analysis import Analyzer, TextAnalyzer
from .bm25 import Bm25
from .cosine import Cosine
from .custom_similarity import CustomSimilarity
from .filters import Filters, parse_filters
from .fusion import FusionRetriever, fuse
from .hits import Hits
from .indexes import register_index
from .map_index import Exact
from .protocols import Index, Retrieves, Similarity
from .retriever import Retriever
from .scored_node import Evidence, ScoredNode
from .similarities import register_similarity
from .trace import Observer, Stage, observing, stage, trace

__all__ = [
    "Analyzer",
    "Bm25",
    "Cosine",
    "CustomSimilarity",
    "Evidence",
    "Exact",
    "Filters",
    "FusionRetriever",
    "Hits",
    "Index",
    "Observer",
    "Retriever",
    "Retrieves",
    "ScoredNode",
    "Similarity",
    "Stage",
    "TextAnalyzer",
    "fuse",
    "observing",
    "parse_filters",
    "register_index",
    "register_similarity",
    "stage",
    "trace",
]
