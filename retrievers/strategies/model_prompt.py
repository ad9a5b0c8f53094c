"""Base classes for components that send a prompt to a language model and parse the answer."""

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
    """A language model with a prompt, and the base class of all query transforms.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        prompt: A prompt that replaces the built-in one. It is a text with the same placeholders, a
            prompt template of LangChain or LlamaIndex, a ``Prompt``, or a mapping from ``"zh"`` and
            ``"en"`` to any of these.
        language: The language of the prompt, ``"zh"`` or ``"en"``. If None, it is the language of
            each query.
        retries: The number of times a call is repeated if the answer cannot be parsed.
        timeout: The timeout of each model call in seconds. If None, the timeout of the model's
            client applies.
        on_error: The reaction to a failure of the model or of a search. ``"keep"`` continues with
            the original query and the results found so far. ``"raise"`` raises the error.

    Raises:
        TypeError: If the model is missing, or an option has the wrong type.
        ValueError: If an option is invalid, or a placeholder of the prompt is missing or unknown.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
        >>> isinstance(QueryRewrite(lambda prompt: "tea"), ModelPrompt)
        True
    """

    name: str
    """The name of the span in traces and of the prompt in ``prompts``."""

    PROMPT: ClassVar[Prompt]
    """The built-in prompt."""

    FORM: ClassVar[str | None] = None
    """An example of an answer in JSON, for models that support structured output."""

    subject: ClassVar[str] = "query"
    """The name of the placeholder that is replaced by the text."""

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
        """Return the language of the prompt that is used for a text."""
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
        """Send the prompt for a text to the model, and return the parsed answer.

        Args:
            text: The query or question.
            parse: A function that parses an answer. If it raises ValueError, the call is repeated
                up to ``retries`` times, with the error message in the prompt.
            prompt: The prompt. Defaults to the object's own prompt.
            form: An example of an answer in JSON. Defaults to ``FORM``.
            schema: The JSON schema of the answer. If None, the schema is derived from ``form``.
            **values: The values of the other placeholders of the prompt.

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
    """The queries that are searched instead of the original query.

    Attributes:
        queries: The queries to search.
        note: A description of the failure, or None if nothing failed.
        tools: The name of the tool that searches each query. It is empty if no tools are used.

    Example:
        >>> QueryVariants(("Nile length", "Rhine length"), tools=("rivers", "europe")).pairs
        [('Nile length', 'rivers'), ('Rhine length', 'europe')]
    """

    queries: tuple[str, ...]
    note: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str | None]]:
        """Each query with the name of its tool, or with None if no tools are used."""
        return list(zip(self.queries, self.tools or (None,) * len(self.queries), strict=True))


class QueryTransform(ModelPrompt):
    """The base class of query transforms, which turn a query into one or more queries.

    A subclass defines ``name``, ``PROMPT`` and the method ``variants``. This class implements
    retries, error handling, language selection, tracing, and synchronous and asynchronous calls.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        include_query: Whether the original query is also searched. If None, the default of the
            class applies.
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
    """The default value of ``include_query``."""

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
        """Return the variants of a query. If the model fails, the query itself is returned.

        Raises:
            TypeError: If the query is not a string.
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return self.describe(run(self.safe_variants, query))

    async def acall(self, query: str) -> list[str]:
        """Asynchronous version of ``__call__``."""
        return self.describe(await arun(self.safe_variants, query))

    def describe(self, variants: QueryVariants) -> list[str]:
        """Format the variants of a query as strings, prefixed with the names of their tools."""
        return [text if tool is None else f"{tool}: {text}" for text, tool in variants.pairs]

    async def safe_variants(self, query: str) -> QueryVariants:
        """Return the distinct variants of a query.

        If the model fails, the fallback is returned with a note that describes the failure.
        """
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
        """Return the variants of a query. Subclasses implement this method.

        The method awaits ``self.ask(...)``, and raises an error if the answer of the model is not
        usable.
        """
        raise NotImplementedError(f"{type(self).__name__} must define variants(query)")

    def fallback(self, query: str) -> QueryVariants:
        """Return the query itself, for a blank query or a model that failed."""
        return QueryVariants((query,))


def describe_error(error: BaseException | None) -> str:
    """Return the class name and the message of an error as one string."""
    return f"{type(error).__name__}: {error}"
