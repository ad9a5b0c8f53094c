"""Query strategies: retrievers that let a model choose what to search for."""

from typing import TYPE_CHECKING

from ...nodegraph.lazy_names import lazy_names
from .named_tools import NamedTool, Tools, is_tools, named_tools  # a file has a name of these

if TYPE_CHECKING:
    from ..planned_retriever import PlannedRetriever
    from .hyde import HyDE, HyDERetriever
    from .mean_search import FindMean
    from .multi_query import MultiQueryRetriever, QueryExpansion
    from .multi_step import MultiStepRetriever
    from .outcome import SUB_QUESTION, OutcomeObserver, StrategyOutcome, SubResults, without_answers
    from .query_transform import QueryTransform, QueryVariants, TransformOptions
    from .rewrite import QueryRewrite, QueryRewriteRetriever
    from .router import QueryRouter, RouterRetriever
    from .step_reader import StepReader
    from .step_roles import AnsweredJudge, NextQuestion, StepAnswer, StepRoles
    from .steps import MultiStep, Step
    from .strategy_registry import (
        STRATEGIES,
        Strategy,
        StrategyName,
        TransformName,
        make_strategy,
        make_transform,
        simple_strategies,
    )
    from .sub_question import QueryDecomposition, SubQuestionRetriever
    from .tool_decomposition import ToolDecomposition
    from .tool_question import ToolQuestionRetriever
    from .transform_retriever import TransformRetriever, fused
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "..planned_retriever": "PlannedRetriever",
            ".hyde": "HyDE HyDERetriever",
            ".mean_search": "FindMean",
            ".multi_query": "MultiQueryRetriever QueryExpansion",
            ".multi_step": "MultiStepRetriever",
            ".outcome": "SUB_QUESTION OutcomeObserver StrategyOutcome SubResults without_answers",
            ".query_transform": "QueryTransform QueryVariants TransformOptions",
            ".rewrite": "QueryRewrite QueryRewriteRetriever",
            ".router": "QueryRouter RouterRetriever",
            ".step_reader": "StepReader",
            ".step_roles": "AnsweredJudge NextQuestion StepAnswer StepRoles",
            ".steps": "MultiStep Step",
            ".strategy_registry": (
                "STRATEGIES Strategy StrategyName TransformName make_strategy make_transform "
                "simple_strategies"
            ),
            ".sub_question": "QueryDecomposition SubQuestionRetriever",
            ".tool_decomposition": "ToolDecomposition",
            ".tool_question": "ToolQuestionRetriever",
            ".transform_retriever": "TransformRetriever fused",
        },
    )

__all__ = [
    "STRATEGIES",
    "SUB_QUESTION",
    "AnsweredJudge",
    "FindMean",
    "HyDE",
    "HyDERetriever",
    "MultiQueryRetriever",
    "MultiStep",
    "MultiStepRetriever",
    "NamedTool",
    "NextQuestion",
    "OutcomeObserver",
    "PlannedRetriever",
    "QueryDecomposition",
    "QueryExpansion",
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryRouter",
    "QueryTransform",
    "QueryVariants",
    "RouterRetriever",
    "Step",
    "StepAnswer",
    "StepReader",
    "StepRoles",
    "Strategy",
    "StrategyName",
    "StrategyOutcome",
    "SubQuestionRetriever",
    "SubResults",
    "ToolDecomposition",
    "ToolQuestionRetriever",
    "Tools",
    "TransformName",
    "TransformOptions",
    "TransformRetriever",
    "fused",
    "is_tools",
    "make_strategy",
    "make_transform",
    "named_tools",
    "simple_strategies",
    "without_answers",
]
