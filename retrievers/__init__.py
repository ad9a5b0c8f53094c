"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

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
from .answers.preset_answer import PresetAnswer
from .answers.qa import QaRetriever
from .child_k import looking_at
from .filters import Filters, parse_filters
from .hits import Hits
from .indexes.map_index import Exact
from .indexes.registry import register_index
from .patterns.auto_merge import AutoMergeRetriever
from .patterns.completion import CompletionRetriever
from .patterns.fuse import fuse
from .patterns.fusion import FusionRetriever
from .patterns.link_walk import LinkRetriever
from .patterns.recursive import RecursiveRetriever
from .patterns.window import WindowRetriever
from .prompt import Prompt
from .protocols import Index, Retrieves, Similarity
from .rerankers.keyword_filter import KeywordFilter
from .rerankers.module_reranker import ModuleReranker
from .rerankers.passage_windows import passage_windows
from .rerankers.registry import register_reranker
from .rerankers.rerank_retriever import RerankRetriever
from .rerankers.reranker import Reranker
from .rerankers.reranks import RerankError, Reranks
from .retriever import Retriever
from .scored_node import Evidence, QueryForm, ScoredNode
from .similarities.analysis import Analyzer, TextAnalyzer
from .similarities.bm25 import Bm25
from .similarities.cosine import Cosine
from .similarities.custom_similarity import CustomSimilarity
from .similarities.registry import register_similarity
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
