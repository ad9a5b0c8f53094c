"""A registry of strategies and query transforms by name, for commands and framework adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ...nodegraph.errors import nearest_names
from ..base_retriever import BaseRetriever
from ..protocols import RetrieverLike
from .hyde import HyDE, HyDERetriever
from .model_prompt import QueryTransform
from .multi_step import MultiStepRetriever
from .query_decomposition import QueryDecomposition
from .rewrite import MultiQueryRetriever, QueryExpansion, QueryRewrite, QueryRewriteRetriever
from .router import QueryRouter
from .self_query import SelfQueryRetriever
from .sub_question import SubQuestionRetriever

StrategyName = Literal["rewrite", "multi_query", "hyde", "sub_question", "multi_step", "self_query"]
"""The names of the strategies that require only a retriever and a model."""

TransformName = Literal["rewrite", "expand", "hyde", "decompose"]
"""The names of the query transforms that require only a model."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy that requires only a retriever and a model.

    Attributes:
        description: A short description that completes the sentence "Before the search, ...".
        retriever: The class of the retriever.
        transform: The class of the query transform, or None if the strategy has no transform.
    """

    description: str
    retriever: type[BaseRetriever]
    transform: type[QueryTransform] | None = None


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "rewrite": Strategy("write the question more clearly", QueryRewriteRetriever, QueryRewrite),
        "multi_query": Strategy(
            "write the question in several ways", MultiQueryRetriever, QueryExpansion
        ),
        "hyde": Strategy("imagine an answer", HyDERetriever, HyDE),
        "sub_question": Strategy(
            "split the question into parts", SubQuestionRetriever, QueryDecomposition
        ),
        "multi_step": Strategy("search step by step, each after the last", MultiStepRetriever),
        "self_query": Strategy("read conditions on metadata in the question", SelfQueryRetriever),
    }
)
"""The strategies by name. Commands and framework adapters offer every strategy in this table."""


def make_strategy(name: str, inner: RetrieverLike, llm: object, **options: object) -> BaseRetriever:
    """Create the retriever of a strategy.

    Args:
        name: A name in ``STRATEGIES``.
        inner: The inner retriever. For ``"sub_question"``, it can also be a mapping of named tools.
        llm: The language model, in any form that ``LLM`` accepts.
        **options: Keyword arguments for the retriever of the strategy.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If the strategy is unknown.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> retriever = Retriever(NodeGraph(), "ROOT")
        >>> make_strategy("multi_query", retriever, lambda prompt: "Tea?", max_queries=2).name
        'multi-query'
    """
    if name not in STRATEGIES:
        names = nearest_names(str(name), STRATEGIES)
        raise ValueError(f"unknown strategy {name!r}; known: {names}")
    create: Callable[..., BaseRetriever] = STRATEGIES[name].retriever
    return create(inner, llm, **options)


def make_transform(name: str, llm: object, **options: object) -> QueryTransform:
    """Create a query transform by its own name or by the name of its strategy.

    Args:
        name: A name such as ``"expand"`` or ``"multi_query"``.
        llm: The language model, in any form that ``LLM`` accepts.
        **options: Keyword arguments for the query transform. ``"route"`` requires ``routes``.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If the transform is unknown.

    Example:
        >>> make_transform("expand", lambda prompt: "Which tea?", max_queries=2)("tea?")
        ['tea?', 'Which tea?']
    """
    by_strategy = {key: item.transform for key, item in STRATEGIES.items() if item.transform}
    by_strategy["router"] = QueryRouter
    by_name = {transform.name: transform for transform in by_strategy.values()}
    known: dict[str, Callable[..., QueryTransform]] = {**by_strategy, **by_name}
    create = known.get(name) if isinstance(name, str) else None
    if create is None:
        names = nearest_names(str(name), by_name)
        raise ValueError(f"unknown query transform {name!r:.80}; known: {names}")
    return create(llm, **options)
