"""A language model with one prompt, its languages, JSON schema, retries and errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, get_args

from ...nodegraph.errors import explain_names
from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.output.answer_text import unique
from ...nodegraph.models.templates import Language, json_instruction, language_of, schema_of
from ..base_retriever import check_texts
from ..plans.plan import arun, run
from ..plans.prompting import Prompt, PromptMixin, PromptReplacement, ask_and_parse
from ..tracing import start_span
from ..validation import choice, seconds, whole

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnError = Literal["keep", "raise"]


class ModelPrompt(PromptMixin):
    """A language model with one prompt. The base class of all query transforms.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        prompt: Replaces the built-in prompt: a text with the same placeholders, a prompt template
            of LangChain or LlamaIndex, a mapping from ``"zh"`` and ``"en"`` to these, or a
            ``Prompt``.
        language: Language of the prompt, ``"zh"`` or ``"en"``. None means the language of each
            query.
        retries: Number of repeated calls if an answer cannot be parsed.
        timeout: Seconds per model call. If None, the model's client decides.
        on_error: The reaction to a failed model or search: ``"keep"`` to go on with the query and
            the results so far, or ``"raise"``.

    Raises:
        TypeError: If the model is missing, or an option has the wrong type.
        ValueError: If an option is invalid, or a placeholder of the prompt is missing or unknown.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
        >>> isinstance(QueryRewrite(lambda prompt: "tea"), ModelPrompt)
        True
    """

    name: str
    """Name of the span in traces, and of the prompt in ``prompts``."""

    PROMPT: ClassVar[Prompt]
    """The built-in prompt."""

    FORM: ClassVar[str | None] = None
    """Example of a JSON answer, for models with schemas."""

    subject: ClassVar[str] = "query"
    """The placeholder of the text in the prompt."""

    @explain_names
    def __init__(
        self,
        llm: object,
        *,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self.language: Language | None = choice(language, "language", (None, *get_args(Language)))
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")
        self.on_error: OnError = choice(on_error, "on_error", get_args(OnError))
        self._prompts = {self.name: self.PROMPT.replaced(prompt)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    def prompt_language(self, text: str) -> Language:
        """Return the language of the prompt for a text."""
        return self.language or language_of(text)

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
        """Ask the model about a text, and return the parsed answer.

        Args:
            text: The query or question.
            parse: Parses an answer. A ValueError repeats the call, up to ``retries`` times, with
                the message of the error in the prompt.
            prompt: Defaults to the object's own prompt.
            form: Defaults to ``FORM``.
            schema: JSON schema of the answer. None means the schema of the form.
            **values: The other placeholders of the prompt.

        Raises:
            ModelError: If the model fails, or none of its answers can be parsed.
        """
        language = self.prompt_language(text)
        form = form or self.FORM
        prompt = prompt or self._prompts[self.name]
        filled = prompt.fill(language, **{self.subject: text}, **values)
        if form is not None and self.llm.structured:
            filled += json_instruction(form, language)
            schema = schema or schema_of(form)
        return await ask_and_parse(
            self.llm,
            filled,
            parse,
            language,
            schema=schema,
            retries=self.retries,
            timeout=self.timeout,
        )


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """The queries to search instead of a query.

    Attributes:
        queries: The queries.
        note: Description of a failure. None means no failure.
        tools: The name of the tool for each query. Empty without tools.

    Example:
        >>> QueryVariants(("Nile length", "Rhine length"), tools=("rivers", "europe")).pairs
        [('Nile length', 'rivers'), ('Rhine length', 'europe')]
    """

    queries: tuple[str, ...]
    note: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str | None]]:
        """The queries with the names of their tools. Without tools the names are None."""
        return list(zip(self.queries, self.tools or (None,) * len(self.queries), strict=True))


class QueryTransform(ModelPrompt):
    """The base class of query transforms, which turn a query into one or more queries.

    A subclass defines ``name``, ``PROMPT`` and ``variants``. This class handles errors, retries,
    languages, traces, and sync and async calls.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        include_query: Whether the query itself is also searched. None means the default of the
            class.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the model is missing, or an option has the wrong type.
        ValueError: If an option is invalid, or a placeholder of the prompt is missing or unknown.

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
    """Default of ``include_query``."""

    @explain_names
    def __init__(
        self,
        llm: object,
        *,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        if not isinstance(include_query, bool | None):
            raise TypeError(f"include_query must be True, False or None, got {include_query!r:.80}")
        self.include_query = self.supplements if include_query is None else include_query

    def __call__(self, query: str) -> list[str]:
        """Return the variants of a query, or the query itself if the model fails.

        Raises:
            TypeError: If the query is not a string.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return self.describe(run(self.safe_variants, query))

    async def acall(self, query: str) -> list[str]:
        """Async version of ``__call__``."""
        return self.describe(await arun(self.safe_variants, query))

    def describe(self, variants: QueryVariants) -> list[str]:
        """Return variants as strings, with the names of their tools."""
        return [text if tool is None else f"{tool}: {text}" for text, tool in variants.pairs]

    async def safe_variants(self, query: str) -> QueryVariants:
        """Return unique variants of a query, or the fallback with a note if the model fails."""
        check_texts([query])
        fallback = self.fallback(query)
        if not query.strip():
            return fallback
        with start_span(self.name, query=query) as span:
            try:
                variants = self._unique(query, await self.variants(query)) or fallback
            except Exception as error:
                if self.on_error == "raise":
                    raise
                note = f"{self.name} failed: {describe_error(error)}"
                variants = replace(fallback, note=note)
            if variants.note is not None:
                logger.warning("query %r: %s", query[:80], variants.note)
                span.attributes["note"] = variants.note
            span.attributes["queries"] = self.describe(variants)
        return variants

    def _unique(self, query: str, variants: QueryVariants) -> QueryVariants | None:
        if variants.tools:
            pairs = dict.fromkeys(zip(variants.queries, variants.tools, strict=True))
            queries, tools = zip(*pairs, strict=True)
            return replace(variants, queries=queries, tools=tools)
        queries = (query, *variants.queries) if self.include_query else variants.queries
        return replace(variants, queries=tuple(unique(queries))) if queries else None

    async def variants(self, query: str) -> QueryVariants:
        """Return the variants of a query. Subclasses define this method.

        The method awaits ``self.ask(...)``, and raises any error if the answer is useless.
        """
        raise NotImplementedError(f"{type(self).__name__} must define variants(query)")

    def fallback(self, query: str) -> QueryVariants:
        """Return the variants for a blank query or a failed model: the query itself."""
        return QueryVariants((query,))


def describe_error(error: BaseException | None) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {error}"
