"""Query strategies: retrievers that let a model say what to search for."""

from .decompose import QueryDecomposition
from .hyde import HyDE, HyDERetriever
from .judge import says_yes
from .multi_query import MultiQueryRetriever, QueryExpansion
from .multi_step import MultiStepRetriever
from .planned_retriever import PlannedRetriever
from .query_router import QueryRouter
from .query_transform import Forms, QueryTransform
from .rewrite import QueryRewrite, QueryRewriteRetriever
from .router import RouterRetriever
from .step_reader import StepReader
from .step_roles import AnsweredJudge, NextQuestion, StepAnswer
from .steps import MultiStep, Step
from .sub_question import SubQuestionRetriever, SubResults
from .transform_retriever import TransformRetriever

__all__ = [
    "AnsweredJudge",
    "Forms",
    "HyDE",
    "HyDERetriever",
    "MultiQueryRetriever",
    "MultiStep",
    "MultiStepRetriever",
    "NextQuestion",
    "PlannedRetriever",
    "QueryDecomposition",
    "QueryExpansion",
    "QueryRewrite",
    "QueryRewriteRetriever",
    "QueryRouter",
    "QueryTransform",
    "RouterRetriever",
    "Step",
    "StepAnswer",
    "StepReader",
    "SubQuestionRetriever",
    "SubResults",
    "TransformRetriever",
    "says_yes",
]
