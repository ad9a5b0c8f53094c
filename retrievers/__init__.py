"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from .analysis import Analyzer, TextAnalyzer
from .answers import (
    Answer,
    AnswerError,
    AnswerStream,
    AsyncAnswerStream,
    Conversation,
    LeftOut,
    QueryEngine,
    Source,
)
from .auto_merge import AutoMergeRetriever
from .bm25 import Bm25
from .child_k import looking_at
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
from .prompt import Prompt
from .protocols import Index, Retrieves, Similarity
from .qa import QaRetriever
from .recursive import RecursiveRetriever
from .rerank_retriever import RerankRetriever
from .reranker import Reranker
from .rerankers import register_reranker
from .reranks import RerankError, Reranks
from .retriever import Retriever
from .scored_node import Evidence, QueryForm, ScoredNode
from .similarities import register_similarity
from .strategies import (
    AnsweredJudge,
    Forms,
    HyDE,
    HyDERetriever,
    MultiQueryRetriever,
    MultiStep,
    MultiStepRetriever,
    NextQuestion,
    PlannedRetriever,
    QueryDecomposition,
    QueryExpansion,
    QueryRewrite,
    QueryRewriteRetriever,
    QueryRouter,
    QueryTransform,
    RouterRetriever,
    Step,
    StepAnswer,
    StepReader,
    SubQuestionRetriever,
    SubResults,
    TransformRetriever,
    says_yes,
)
from .trace import Observer, Stage, observing, stage, trace
from .window import WindowRetriever

__all__ = [
    "Analyzer",
    "Answer",
    "AnswerError",
    "AnswerStream",
    "AnsweredJudge",
    "AsyncAnswerStream",
    "AutoMergeRetriever",
    "Bm25",
    "CompletionRetriever",
    "Conversation",
    "Cosine",
    "CustomSimilarity",
    "Evidence",
    "Exact",
    "Filters",
    "Forms",
    "FusionRetriever",
    "Hits",
    "HyDE",
    "HyDERetriever",
    "Index",
    "KeywordFilter",
    "LeftOut",
    "LinkRetriever",
    "ModuleReranker",
    "MultiQueryRetriever",
    "MultiStep",
    "MultiStepRetriever",
    "NextQuestion",
    "Observer",
    "PlannedRetriever",
    "PresetAnswer",
    "Prompt",
    "QaRetriever",
    "QueryDecomposition",
    "QueryEngine",
    "QueryExpansion",
    "QueryForm",
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryRouter",
    "QueryTransform",
    "RecursiveRetriever",
    "RerankError",
    "RerankRetriever",
    "Reranker",
    "Reranks",
    "Retriever",
    "Retrieves",
    "RouterRetriever",
    "ScoredNode",
    "Similarity",
    "Source",
    "Stage",
    "Step",
    "StepAnswer",
    "StepReader",
    "SubQuestionRetriever",
    "SubResults",
    "TextAnalyzer",
    "TransformRetriever",
    "WindowRetriever",
    "fuse",
    "looking_at",
    "observing",
    "parse_filters",
    "passage_windows",
    "register_index",
    "register_reranker",
    "register_similarity",
    "says_yes",
    "stage",
    "trace",
]
