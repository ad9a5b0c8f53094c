"""A prompt and the model that answers it: languages, JSON schemas, retries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar, get_args

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.output.lines import unique
from ...nodegraph.models.templates import Language, json_instruction, language_of, schema_of
from ..plans.plan import arun, run
from ..plans.prompting import (
    Prompt,
    PromptMixin,
    PromptReplacement,
    ask_and_parse,
)
from ..tracing import start_span
from ..validation import choice, seconds, whole

logger = logging.getLogger(__name__)

T = TypeVar("T")


OnError = Literal["keep", "raise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySettings:
    """Hold how a strategy asks its model. All strategies have these settings.

    Attributes:
        prompt: Replaces the built-in prompt: a text with the same names in braces, a prompt
            template of LangChain or LlamaIndex, either of them by language, ``{"zh": ...,
            "en": ...}``, or a ``Prompt``.
        language: Of the prompt: ``"zh"`` or ``"en"``. None for that of each query.
        retries: How often to repeat a call whose answer can't be used.
        timeout: Seconds to wait for each answer of the model. None leaves it to its client.
        on_error: If the model fails, or a search for one of its questions: ``"keep"`` the query
            and the results so far, or ``"raise"``.
        include_query: Whether the query itself is searched for besides what the model writes. None
            for what is usual for the strategy.

    Raises:
        TypeError: If a setting has the wrong type.
        ValueError: If a setting is unknown or out of range.

    Example:
        >>> StrategySettings(language="zh", on_error="raise").retries
        1
    """

    prompt: PromptReplacement | None = None
    language: Language | None = None
    retries: int = 1
    timeout: float | None = None
    on_error: OnError = "keep"
    include_query: bool | None = None

    def __post_init__(self) -> None:
        if self.language is not None and self.language not in get_args(Language):
            choices = nearest_names(str(self.language), get_args(Language))
            raise ValueError(
                f"no prompts in the language {self.language!r}; there is {choices}, or None for "
                "that of each query"
            )
        whole(self.retries, "retries", 0)
        seconds(self.timeout, "timeout")
        choice(self.on_error, "on_error", get_args(OnError))
        if not isinstance(self.include_query, bool | None):
            raise TypeError(f"include_query is True, False or None, not {self.include_query!r:.80}")


class ModelPrompt(PromptMixin):
    """Ask a model with one prompt. The base class of query transforms and of ``StepReader``.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        settings: How the model is asked. None for the defaults.

    Raises:
        TypeError: If there is no model, or the settings are no ``StrategySettings``.
        ValueError: If a prompt lacks a name or has an unknown one.
    """

    name: str
    """What traces call it, and ``prompts`` its prompt."""

    PROMPT: ClassVar[Prompt]
    """The built-in prompt."""

    FORM: ClassVar[str | None] = None
    """An example of an answer in JSON, for models that can be held to a schema."""

    subject: ClassVar[str] = "query"
    """The place in the prompt for the text that it is about."""

    settings_type: ClassVar[type] = StrategySettings

    def __init__(self, llm: object, settings: StrategySettings | None = None) -> None:
        if not isinstance(settings, StrategySettings | None):
            raise TypeError(f"settings are StrategySettings(...), not {settings!r:.80}")
        self.llm: LLM = as_llm(llm)
        self.settings = settings or StrategySettings()
        self._prompts = {self.name: self.PROMPT.replaced(self.settings.prompt)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    @property
    def prompt(self) -> Prompt:
        """The prompt of the model."""
        return self._prompts[self.name]

    def prompt_language(self, text: str) -> Language:
        """Return the language of the prompt for a text."""
        return self.settings.language or language_of(text)

    async def ask(
        self,
        text: str,
        parse: Callable[[str], T],
        *,
        prompt: Prompt | None = None,
        form: str | None = None,
        schema: Mapping[str, Any] | None = None,
        **values: object,
    ) -> T:
        """Ask the model with the prompt filled for a text. Return what ``parse`` makes of it.

        Args:
            text: The query, or question, that the prompt is about.
            parse: Parses an answer. Raises ValueError if it can't be used, and the model is asked
                again as often as ``retries`` says, with that message.
            prompt: None for ``prompt``.
            form: None for ``FORM``.
            schema: A JSON schema for the answer. None for that of the form.
            **values: For the other places of the prompt.

        Raises:
            ModelError: If the model fails, or none of its answers can be parsed.
        """
        language = self.prompt_language(text)
        form = form or self.FORM
        filled = (prompt or self.prompt).fill(language, **{self.subject: text}, **values)
        if form is not None and self.llm.structured:
            filled += json_instruction(form, language)
            schema = schema or schema_of(form)
        return await ask_and_parse(
            *(self.llm, filled, parse, language),
            schema=schema,
            retries=self.settings.retries,
            timeout=self.settings.timeout,
        )


def model_or(
    value: Any,
    kinds: type[T] | tuple[type[T], ...],
    create: Callable[..., T],
    options: Mapping[str, Any],
) -> T:
    """Return a value of some kinds as it is, or create one from a model and options.

    Args:
        value: The value, or the model.
        kinds: The kinds.
        create: Creates one from a model and options.
        options: The options. None stands for one that is not set.

    Raises:
        TypeError: If options are set beside a value that has its own.
    """
    options = {name: option for name, option in options.items() if option is not None}
    if not isinstance(value, kinds):
        return create(value, **options)
    if options:
        raise TypeError(
            f"settings {sorted(options)} go with a model; give them to {type(value).__name__}(...) "
            "itself"
        )
    return value


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """Hold what to search for instead of a query.

    Attributes:
        queries: What is searched for.
        note: What went wrong, None where nothing did.
        tools: The name of the tool to search for each of the queries. Empty without tools.
    """

    queries: tuple[str, ...]
    note: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str | None]]:
        """The queries, each with the name of its tool. None without tools."""
        return list(zip(self.queries, self.tools or (None,) * len(self.queries), strict=True))


class QueryTransform(ModelPrompt):
    """Turn a query into one or more queries. The base class of all query transforms.

    A subclass defines ``name``, ``PROMPT`` and ``variants``. It needs nothing else: errors,
    retries, languages, traces and async calls are handled here.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        settings: How the model is asked. See ``StrategySettings``.

    Raises:
        TypeError: If there is no model, or the settings are no ``StrategySettings``.
        ValueError: If a prompt lacks a name or has an unknown one.

    Example:
        >>> from nodekin.retrievers import Prompt
        >>> class StepBack(QueryTransform):
        ...     name = "step back"
        ...     supplements = True
        ...     PROMPT = Prompt(
        ...         zh="写出一个更一般的问题：{query}",
        ...         en="Write a more general question: {query}",
        ...         required=("query",),
        ...     )
        ...     async def variants(self, query):
        ...         general = await self.ask(query, str.strip)
        ...         return QueryVariants((general,))
        >>> StepBack(lambda prompt: "Which rivers are long?")("How long is the Nile?")
        ['How long is the Nile?', 'Which rivers are long?']
    """

    name = "transform"

    supplements: ClassVar[bool] = False
    """Whether the query is searched for as well, unless the settings say otherwise."""

    @property
    def include_query(self) -> bool:
        """Whether the query itself is the first of its variants."""
        chosen = self.settings.include_query
        return self.supplements if chosen is None else chosen

    def __call__(self, query: str) -> list[str]:
        """Return the variants of a query. See ``transform``."""
        return self.transform(query)

    def transform(self, query: str) -> list[str]:
        """Return the variants of a query: the query itself if the model fails, or it is blank.

        Raises:
            TypeError: If the query is no text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return self.describe(run(partial(self.plan, query)))

    async def atransform(self, query: str) -> list[str]:
        """Async version of ``transform``."""
        return self.describe(await arun(partial(self.plan, query)))

    def describe(self, variants: QueryVariants) -> list[str]:
        """Return variants as texts, each with its tool if there are tools."""
        return [text if tool is None else f"{tool}: {text}" for text, tool in variants.pairs]

    async def plan(self, query: str) -> QueryVariants:
        """Return the variants of a query, and what went wrong, as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        fallback = self.fallback(query)
        if not query.strip():
            return fallback
        with start_span(self.name, query=query) as span:
            try:
                variants = self._complete(query, (await self.variants(query)), fallback)
            except Exception as error:
                if self.settings.on_error == "raise":
                    raise
                note = f"{self.name} failed: {type(error).__name__}: {error}"
                variants = replace(fallback, note=note)
            if variants.note is not None:
                logger.warning("of the query %r: %s", query[:80], variants.note)
                span.attributes["note"] = variants.note
            span.attributes["queries"] = self.describe(variants)
        return variants

    def _complete(
        self, query: str, variants: QueryVariants, fallback: QueryVariants
    ) -> QueryVariants:
        """Return variants without duplicates, with the query itself if that is included."""
        if variants.tools:
            pairs = list(dict.fromkeys(variants.pairs))
            tools = tuple(tool for _, tool in pairs if tool is not None)
            return replace(variants, queries=tuple(text for text, _ in pairs), tools=tools)
        queries = (query, *variants.queries) if self.include_query else variants.queries
        return replace(variants, queries=tuple(unique(queries))) if queries else fallback

    async def variants(self, query: str) -> QueryVariants:
        """Return the variants of a query as a plan. Every subclass defines it.

        Call the model with ``await self.ask(...)``, and raise any error where its answer
        can't be used: ``plan`` then does what ``on_error`` says.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define variants(query)")

    def fallback(self, query: str) -> QueryVariants:
        """Return the variants to use if the query is blank or the model fails: the query."""
        return QueryVariants((query,))


def describe_error(error: BaseException | None) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {error}"
