"""The strategies by name, for everything that offers them by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypedDict

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.templates import Language
from ..planned_retriever import PlannedRetriever
from ..plans.prompting import PromptReplacement
from ..protocols import RetrieverLike
from ..validation import with_settings
from .hyde import HyDE, HyDERetriever
from .model_prompt import OnError, QueryTransform
from .multi_step import MultiStepRetriever
from .rewrite import MultiQueryRetriever, QueryExpansion, QueryRewrite, QueryRewriteRetriever
from .router import QueryRouter, RouterRetriever
from .sub_question import QueryDecomposition, SubQuestionRetriever

StrategyName = Literal["rewrite", "multi_query", "hyde", "sub_question", "multi_step"]
"""The strategies that need nothing but a retriever and a model."""

TransformName = Literal["rewrite", "expand", "hyde", "decompose"]
"""The query transforms that need nothing but a model, by their own names."""

_SIMPLE = ("inner", "llm")


class TransformOptions(TypedDict, total=False):
    """The options of query transforms, to type ``**options``. See the class of the transform."""

    domain: str | None
    glossary: Mapping[str, str] | None
    count: int | None
    limit: int | None
    prompt: PromptReplacement | None
    language: Language | None
    retries: int
    timeout: float | None
    on_error: OnError
    include_query: bool | None


class RouteOptions(TransformOptions, total=False):
    """The options of query transforms, those of ``"route"`` among them."""

    routes: Mapping[str, str]
    default: str | None
    multiple: bool
    choose: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Strategy:
    """Describe a strategy.

    Attributes:
        name: What users choose it by.
        description: What it does, in a few words that continue "Before the search ...".
        retriever: Its retriever.
        transform: Its query transform. None if it has none.
        requires: The arguments that its retriever needs.
    """

    name: str
    description: str
    retriever: type[PlannedRetriever]
    transform: type[QueryTransform] | None = None
    requires: tuple[str, ...] = _SIMPLE


_ROWS = (
    ("rewrite", "write the question more clearly", QueryRewriteRetriever, QueryRewrite),
    ("multi_query", "write the question in several ways", MultiQueryRetriever, QueryExpansion),
    ("hyde", "imagine an answer", HyDERetriever, HyDE),
    ("sub_question", "split the question into parts", SubQuestionRetriever, QueryDecomposition),
    ("multi_step", "search step by step, each after the last", MultiStepRetriever, None),
    ("router", "choose where to search", RouterRetriever, QueryRouter, ("routes", "llm")),
)

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({row[0]: Strategy(*row) for row in _ROWS})
"""All strategies. A new one is an entry here, and is then offered wherever its needs are met."""


def simple_strategies() -> dict[str, Strategy]:
    """Return the strategies that need nothing but a retriever and a model, by name."""
    return {name: item for name, item in STRATEGIES.items() if item.requires == _SIMPLE}


def make_strategy(
    name: str, inner: RetrieverLike, llm: object, **options: object
) -> PlannedRetriever:
    """Return the retriever of a strategy around another one.

    Args:
        name: Of one that needs nothing but a retriever and a model.
        inner: The retriever to search with. For ``"sub_question"`` also named tools.
        llm: The model, in any form that ``LLM`` takes.
        **options: Those of the strategy's retriever, and those of ``StrategySettings``.

    Raises:
        TypeError: If there is no such option.
        ValueError: If there is no such strategy.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> retriever = Retriever(NodeGraph(), "ROOT")
        >>> make_strategy("multi_query", retriever, lambda prompt: "Which tea?", count=2).name
        'multi-query'
    """
    choices = simple_strategies()
    if name not in choices:
        raise ValueError(
            f"there is no strategy {name!r}; there is {nearest_names(str(name), choices)}"
        )
    create: Callable[..., PlannedRetriever] = choices[name].retriever
    return create(inner, llm, **with_settings(create, options))


def make_transform(name: str, llm: object, **options: object) -> QueryTransform:
    """Return a query transform by its own name, or by that of its strategy.

    Args:
        name: ``"expand"``, or ``"multi_query"``.
        llm: The model, in any form that ``LLM`` takes.
        **options: Those of the transform (``"route"`` needs ``routes``), and those of
            ``StrategySettings``.

    Raises:
        TypeError: If there is no such option.
        ValueError: If there is no such transform.

    Example:
        >>> make_transform("expand", lambda prompt: "Which tea?", count=2)("tea?")
        ['tea?', 'Which tea?']
    """
    by_strategy = {s.name: s.transform for s in STRATEGIES.values() if s.transform}
    by_name = {transform.name: transform for transform in by_strategy.values()}
    create: Callable[..., QueryTransform] | None = {**by_strategy, **by_name}.get(name)
    if create is None:
        raise ValueError(
            f"there is no query transform {name!r}; there is {nearest_names(str(name), by_name)}"
        )
    return create(llm, **with_settings(create, options))
