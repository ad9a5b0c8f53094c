"""Make the engine that answers, of the strategy and the mode that were named."""

from __future__ import annotations

from typing import Any

STRATEGIES = {
    "none": "",
    "rewrite": "QueryRewriteRetriever",
    "multi_query": "MultiQueryRetriever",
    "hyde": "HyDERetriever",
    "sub_question": "SubQuestionRetriever",
    "multi_step": "MultiStepRetriever",
}
MODES = ("stuff", "refine", "map_reduce", "map_rerank")


def make_engine(retriever: Any, llm: Any, strategy: str, mode: str) -> Any:
    """Return a query engine whose retriever first lets the model say what to search for."""
    from ...retrievers import answers, strategies

    name = STRATEGIES[strategy]
    asked = getattr(strategies, name)(retriever, llm) if name else retriever
    engine: Any = getattr(answers, "QueryEngine")  # noqa: B009
    return engine(asked, llm, mode=mode)
