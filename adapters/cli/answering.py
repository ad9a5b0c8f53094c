"""Make the engine that answers, of the strategy and the mode that were named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...retrievers.answers import QueryEngine

STRATEGIES = {
    "none": "",
    "rewrite": "QueryRewriteRetriever",
    "multi_query": "MultiQueryRetriever",
    "hyde": "HyDERetriever",
    "sub_question": "SubQuestionRetriever",
    "multi_step": "MultiStepRetriever",
}
MODES = ("stuff", "refine", "map_reduce", "map_rerank")


def make_engine(retriever: Any, llm: Any, strategy: str, mode: Any) -> QueryEngine:
    """Return a query engine whose retriever first lets the model say what to search for."""
    from ...retrievers import strategies
    from ...retrievers.answers import QueryEngine

    name = STRATEGIES[strategy]
    asked = getattr(strategies, name)(retriever, llm) if name else retriever
    return QueryEngine(asked, llm, mode=mode)
