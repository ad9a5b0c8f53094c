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
from .answers.qa import PresetAnswer, QaRetriever
from .base_retriever import child_k_override
from .composite.auto_merge import AutoMergeRetriever
from .composite.document_completion import CompletionRetriever
from .composite.fusion import FusionRetriever
from .composite.link_retriever import LinkRetriever
from .composite.recursive import RecursiveRetriever
from .composite.window import WindowRetriever
from .filters import Filters, parse_filters
from .indexes.exact_index import Exact
from .plans.prompting import Prompt
from .protocols import Index, RerankerProtocol, RerankError, RetrieverProtocol, Similarity
from .ranking import fuse
from .rerankers.cross_encoder_reranker import CrossEncoderReranker
from .rerankers.keyword_filter import KeywordFilter
from .rerankers.passage_windows import passage_windows
from .rerankers.rerank_retriever import RerankRetriever
from .rerankers.reranker import Reranker, register_reranker
from .results import Evidence, Hits, QueryVariant, ScoredNode
from .retriever import Retriever
from .similarities.bm25 import Bm25
from .similarities.cosine import Cosine
from .similarities.custom import CustomSimilarity
from .similarities.registry import register_index, register_similarity
from .similarities.text_analyzer import Analyzer, TextAnalyzer
from .strategies import (
    AnsweredJudge,
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
    QueryVariants,
    RouterRetriever,
    Step,
    StepAnswer,
    StepReader,
    SubQuestionRetriever,
    SubResults,
    TransformRetriever,
    says_yes,
)
from .tracing import Observer, Span, observe, start_span, trace

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
    "CrossEncoderReranker",
    "CustomSimilarity",
    "Evidence",
    "Exact",
    "Filters",
    "FusionRetriever",
    "Hits",
    "HyDE",
    "HyDERetriever",
    "Index",
    "KeywordFilter",
    "LeftOut",
    "LinkRetriever",
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
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryRouter",
    "QueryTransform",
    "QueryVariant",
    "QueryVariants",
    "RecursiveRetriever",
    "RerankError",
    "RerankRetriever",
    "Reranker",
    "RerankerProtocol",
    "Retriever",
    "RetrieverProtocol",
    "RouterRetriever",
    "ScoredNode",
    "Similarity",
    "Source",
    "Span",
    "Step",
    "StepAnswer",
    "StepReader",
    "SubQuestionRetriever",
    "SubResults",
    "TextAnalyzer",
    "TransformRetriever",
    "WindowRetriever",
    "child_k_override",
    "fuse",
    "observe",
    "parse_filters",
    "passage_windows",
    "register_index",
    "register_reranker",
    "register_similarity",
    "says_yes",
    "start_span",
    "trace",
]
