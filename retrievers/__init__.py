"""How the graph is searched: similarities, their indexes, and the retriever that combines them."""

from typing import TYPE_CHECKING

from ..nodegraph.lazy_names import lazy_names

if TYPE_CHECKING:
    from ..nodegraph import limit_concurrency
    from .analysis import TextAnalyzer
    from .answers import Answer, Conversation, QaRetriever, QueryEngine
    from .base_retriever import BaseRetriever, child_k_override
    from .composite import (
        AutoMergeRetriever,
        DefaultRetriever,
        DocumentCompletionRetriever,
        FusionRetriever,
        LinkOptions,
        LinkRetriever,
        RecursiveRetriever,
        WindowRetriever,
        with_weights,
    )
    from .corpus_tools import CorpusTools, ToolError, ToolOutput, ToolSession
    from .filters import Filter, Filters, all_of, metadata_key, parse_filters
    from .foreign import as_retriever
    from .plans import Prompt
    from .protocols import RetrieverLike, RetrieverProtocol
    from .ranking import lifted_score
    from .rerankers import (
        KeywordFilter,
        NearDuplicateFilter,
        Reranker,
        RerankRetriever,
        TokenLimit,
        register_reranker,
    )
    from .restricted_retriever import RestrictedRetriever, restrict
    from .results import Evidence, ScoredNode
    from .retriever import Retriever
    from .similarities import Bm25, Cosine, get_similarity, register_index, register_similarity
    from .strategies import (
        HyDERetriever,
        MultiQueryRetriever,
        MultiStepRetriever,
        QueryRewriteRetriever,
        RouterRetriever,
        SubQuestionRetriever,
        ToolQuestionRetriever,
    )
    from .tracing import Span, observe, trace
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "..nodegraph": "limit_concurrency",
            ".analysis": "TextAnalyzer",
            ".answers": "Answer Conversation QaRetriever QueryEngine",
            ".base_retriever": "BaseRetriever child_k_override",
            ".composite": (
                "AutoMergeRetriever DefaultRetriever DocumentCompletionRetriever "
                "FusionRetriever LinkOptions LinkRetriever RecursiveRetriever WindowRetriever "
                "with_weights"
            ),
            ".corpus_tools": "CorpusTools ToolError ToolOutput ToolSession",
            ".filters": "Filter Filters all_of metadata_key parse_filters",
            ".foreign": "as_retriever",
            ".plans": "Prompt",
            ".protocols": "RetrieverLike RetrieverProtocol",
            ".ranking": "lifted_score",
            ".rerankers": (
                "KeywordFilter NearDuplicateFilter Reranker RerankRetriever TokenLimit "
                "register_reranker"
            ),
            ".restricted_retriever": "RestrictedRetriever restrict",
            ".results": "Evidence ScoredNode",
            ".retriever": "Retriever",
            ".similarities": "Bm25 Cosine get_similarity register_index register_similarity",
            ".strategies": (
                "HyDERetriever MultiQueryRetriever MultiStepRetriever QueryRewriteRetriever "
                "RouterRetriever SubQuestionRetriever ToolQuestionRetriever"
            ),
            ".tracing": "Span observe trace",
        },
    )

__all__ = [
    "Answer",
    "AutoMergeRetriever",
    "BaseRetriever",
    "Bm25",
    "Conversation",
    "CorpusTools",
    "Cosine",
    "DefaultRetriever",
    "DocumentCompletionRetriever",
    "Evidence",
    "Filter",
    "Filters",
    "FusionRetriever",
    "HyDERetriever",
    "KeywordFilter",
    "LinkOptions",
    "LinkRetriever",
    "MultiQueryRetriever",
    "MultiStepRetriever",
    "NearDuplicateFilter",
    "Prompt",
    "QaRetriever",
    "QueryEngine",
    "QueryRewriteRetriever",
    "RecursiveRetriever",
    "RerankRetriever",
    "Reranker",
    "RestrictedRetriever",
    "Retriever",
    "RetrieverLike",
    "RetrieverProtocol",
    "RouterRetriever",
    "ScoredNode",
    "Span",
    "SubQuestionRetriever",
    "TextAnalyzer",
    "TokenLimit",
    "ToolError",
    "ToolOutput",
    "ToolQuestionRetriever",
    "ToolSession",
    "WindowRetriever",
    "all_of",
    "as_retriever",
    "child_k_override",
    "get_similarity",
    "lifted_score",
    "limit_concurrency",
    "metadata_key",
    "observe",
    "parse_filters",
    "register_index",
    "register_reranker",
    "register_similarity",
    "restrict",
    "trace",
    "with_weights",
]
