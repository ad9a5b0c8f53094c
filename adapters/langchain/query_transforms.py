"""Query strategies as steps of a LangChain chain, to be composed with ``|``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, Field, PrivateAttr, SkipValidation, model_validator

from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.strategies.model_prompt import StrategySettings
from ...retrievers.strategies.query_transform import QueryTransform
from ...retrievers.strategies.strategy_registry import STRATEGIES, make_transform
from ...retrievers.validation import with_settings
from .callbacks import achild_runs, child_runs

Output = TypeVar("Output")

_NOT_OPTIONS = ("name", "llm")

_SHARED = {field.name for field in fields(StrategySettings)} - {"include_query"}


class QueryStep(RunnableSerializable[str, Output], Generic[Output]):
    """Transform a query with a language model; the base class of all query steps.

    A step holds nothing but its configuration: it can be serialised as far as its model can, and
    its fields can be configured.

    Attributes:
        llm: The model: a LangChain one, or in any other form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, a LangChain
            prompt template (``{question}`` is understood as well as ``{query}``, and a system
            message stays one), or either of them by language, ``{"zh": ..., "en": ...}``.
        language: Of the prompt: ``"zh"`` or ``"en"``; None for that of each query.
        on_error: What to do if the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        retries: How often to repeat a call whose answer can't be used.
        timeout: Seconds to wait for each answer of the model; None leaves it to its client.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    llm: Annotated[Any, SkipValidation]
    prompt: Annotated[PromptReplacement | None, SkipValidation] = None
    language: Literal["zh", "en"] | None = None
    on_error: Literal["keep", "raise"] = "keep"
    retries: int = 1
    timeout: float | None = None

    strategy: ClassVar[str]
    """The strategy whose transform the step applies; its options are the step's other fields."""

    fixed_options: ClassVar[Mapping[str, Any]] = {}
    """Options of the transform that are no fields."""

    _transform: QueryTransform = PrivateAttr()

    @model_validator(mode="after")
    def _set_transform(self) -> QueryStep[Output]:
        fields = type(self).model_fields
        options = {name: getattr(self, name) for name in fields if name not in _NOT_OPTIONS}
        self._transform = self._create_transform({**options, **self.fixed_options})
        return self

    def _create_transform(self, options: dict[str, Any]) -> QueryTransform:
        """Return the transform of the step's strategy with these options."""
        create: Any = STRATEGIES[self.strategy].transform
        transform: QueryTransform = create(self.llm, **with_settings(create, options))
        return transform

    @abstractmethod
    def _output(self, queries: list[str]) -> Output:
        """Return the output of the step: one or all of the transform's queries."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """A step is configuration."""
        return True

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Return what the query is transformed to.

        Raises:
            TypeError: If the query is no text, or a keyword is given: a step takes none.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return self._call_with_config(self._run, input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Return the same without blocking the event loop."""
        return await self._acall_with_config(self._arun, input, config, **kwargs)

    def _run(self, query: str, config: RunnableConfig | None = None) -> Output:
        with child_runs(config):
            return self._output(self._transform.transform(query))

    async def _arun(self, query: str, config: RunnableConfig | None = None) -> Output:
        async with achild_runs(config):
            return self._output(await self._transform.atransform(query))


class OneQueryStep(QueryStep[str]):
    """Transform a query to one text."""

    @property
    def OutputType(self) -> type[str]:
        """A query."""
        return str

    def _output(self, queries: list[str]) -> str:
        return queries[0]


class QueriesStep(QueryStep[list[str]]):
    """Transform a query to several texts."""

    @property
    def OutputType(self) -> type[list[str]]:
        """Queries."""
        return list[str]

    def _output(self, queries: list[str]) -> list[str]:
        return queries


class RewriteQuery(OneQueryStep):
    """Rewrite a query more clearly; see ``rewrite_query``."""

    strategy = "rewrite"
    domain: str | None = None
    glossary: dict[str, str] = Field(default_factory=dict)


class ExpandQuery(QueriesStep):
    """Write a query in several phrasings; see ``expand_query``."""

    strategy = "multi_query"
    count: int = 3
    include_query: bool = True


class DecomposeQuery(QueriesStep):
    """Decompose a question; see ``decompose_query``."""

    strategy = "sub_question"
    limit: int = 5
    include_query: bool = False


class Hypothesize(OneQueryStep):
    """Write a passage that could answer a query; see ``hypothesize``."""

    strategy = "hyde"
    fixed_options: ClassVar[Mapping[str, Any]] = {"include_query": False}


class RouteQuery(OneQueryStep):
    """Choose a route for a query; see ``route_query``."""

    strategy = "router"
    routes: dict[str, str]
    default: str | None = None


class TransformQuery(QueriesStep):
    """Apply the query transform of any strategy by its name; see ``transform_query``."""

    transform_name: str
    options: dict[str, Any] = Field(default_factory=dict)

    def _create_transform(self, options: dict[str, Any]) -> QueryTransform:
        shared = {name: options[name] for name in _SHARED}
        return make_transform(self.transform_name, self.llm, **shared, **self.options)


def rewrite_query(
    llm: object,
    *,
    domain: str | None = None,
    glossary: Mapping[str, str] | None = None,
    **options: Any,
) -> RewriteQuery:
    """Return a step that rewrites a query more clearly: a text in, a text out.

    Like all query steps it has a child run for each call of the model, reads plain text where the
    model has no structured output, and returns the query itself where the model fails.

    Args:
        llm: The model: a LangChain one, or in any other form that ``LLM`` takes.
        domain: What the questions are about, in a few words.
        glossary: Terms as the corpus writes them, by the words that people use.
        **options: ``prompt``, ``language``, ``on_error``, ``retries``, ``timeout``, as for
            ``QueryRewrite``.

    Raises:
        TypeError: If the model is none.
        ValueError: If an option is unknown or out of range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Rewritten question: How long is the Nile?"])
        >>> chain = rewrite_query(model) | str.upper
        >>> chain.invoke("nile lenght?")
        'HOW LONG IS THE NILE?'
    """
    return RewriteQuery(llm=llm, domain=domain, glossary=dict(glossary or {}), **options)


def expand_query(
    llm: object, *, count: int = 3, include_query: bool = True, **options: Any
) -> ExpandQuery:
    """Return a step that writes a query in several phrasings: a text in, texts out.

    Args:
        llm: The model; see ``rewrite_query``.
        count: How many phrasings to request, and to use at most.
        include_query: Whether the query itself comes first.
        **options: As for ``QueryExpansion``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["1. Nile length\\n2. How many km is the Nile?"])
        >>> expand_query(model).invoke("How long is the Nile?")
        ['How long is the Nile?', 'Nile length', 'How many km is the Nile?']
    """
    return ExpandQuery(llm=llm, count=count, include_query=include_query, **options)


def decompose_query(
    llm: object, *, limit: int = 5, include_query: bool = False, **options: Any
) -> DecomposeQuery:
    """Return a step that decomposes a question into simpler ones: a text in, texts out.

    Args:
        llm: The model; see ``rewrite_query``.
        limit: How many simpler questions to use at most.
        include_query: Whether the question itself comes first; it is the only one where it is
            simple already.
        **options: As for ``QueryDecomposition``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Length of the Nile?\\nLength of the Amazon?"])
        >>> decompose_query(model).invoke("Is the Nile longer than the Amazon?")
        ['Length of the Nile?', 'Length of the Amazon?']
    """
    return DecomposeQuery(llm=llm, limit=limit, include_query=include_query, **options)


def hypothesize(llm: object, **options: Any) -> Hypothesize:
    """Return a step that writes a passage which could answer a query: a text in, a text out.

    What is searched for then is the passage (HyDE). ``HyDERetriever`` does it with several
    passages and with means of vectors.

    Args:
        llm: The model; see ``rewrite_query``.
        **options: As for ``HyDE``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["The Nile is 6,650 km long."])
        >>> hypothesize(model).invoke("How long is the Nile?")
        'The Nile is 6,650 km long.'
    """
    return Hypothesize(llm=llm, **options)


def route_query(
    llm: object,
    routes: Mapping[str, str],
    *,
    default: str | None = None,
    **options: Any,
) -> RouteQuery:
    """Return a step that chooses among routes by their descriptions: a text in, a name out.

    It is what LangChain's ``RouterRunnable`` takes as ``key``.

    Args:
        llm: The model; see ``rewrite_query``.
        routes: What each route is good for, by its name.
        default: The route where the model's answer can't be used; None for the first.
        **options: As for ``QueryRouter``.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.runnables import RouterRunnable, RunnablePassthrough
        >>> model = FakeListChatModel(responses=["I would take: **drinks**"])
        >>> route = route_query(model, {"rivers": "All about rivers", "drinks": "Tea, coffee"})
        >>> searches = RouterRunnable({"rivers": str.upper, "drinks": str.lower})
        >>> chain = {"key": route, "input": RunnablePassthrough()} | searches
        >>> chain.invoke("Is tea fermented?")
        'is tea fermented?'
    """
    return RouteQuery(llm=llm, routes=dict(routes), default=default, **options)


def transform_query(llm: object, transform: str, **options: Any) -> TransformQuery:
    """Return a step that applies a query transform by name: a text in, texts out.

    Every strategy with a transform has this step; those above have fields for their options.

    Args:
        llm: The model; see ``rewrite_query``.
        transform: Its name, ``"expand"``, or that of its strategy, ``"multi_query"``.
        **options: Those of the transform.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["1. Nile length\\n2. Kilometres of the Nile"])
        >>> transform_query(model, "expand", count=1).invoke("How long is the Nile?")
        ['How long is the Nile?', 'Nile length']
    """
    shared = {name: options.pop(name) for name in _SHARED & options.keys()}
    return TransformQuery(llm=llm, transform_name=transform, options=options, **shared)
