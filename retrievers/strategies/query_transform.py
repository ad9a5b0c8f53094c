"""Turn a query into other queries with a model, and fall back to the query where that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, get_args

from ...nodegraph import LLM, nearest_names
from ...nodegraph.models import Language, as_llm, language_of
from ...nodegraph.models.output import unique
from ..plans import Plan, Prompt, PromptMixin, arun, ask_and_parse, json_instruction, run
from ..tracing import start_span
from ..validation import seconds, whole

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnError = Literal["keep", "raise"]


class TransformOptions(TypedDict, total=False):
    """The options of every query transform, to type ``**options``; see ``QueryTransform``."""

    prompt: str | Mapping[Language, str] | Prompt | None
    language: Language | None
    on_error: OnError
    retries: int
    timeout: float | None


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """Hold what to search for in place of a query.

    Attributes:
        queries: At least one.
        note: What went wrong, None where nothing did.
    """

    queries: tuple[str, ...]
    note: str | None = None


class QueryTransform(PromptMixin):
    """Turn a query into one or more queries; the base class of all query transforms.

    A subclass defines ``name``, ``PROMPT`` and ``variants``. It needs nothing else: errors,
    retries, languages, traces and async calls are handled here.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, or texts by
            language, ``{"zh": ..., "en": ...}``, or a ``Prompt``.
        language: Of the prompt: ``"zh"`` or ``"en"``; None for that of each query.
        on_error: What to do if the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        retries: How often to repeat a call whose answer can't be used.
        timeout: Seconds to wait for each answer of the model; None leaves it to its client.

    Raises:
        TypeError: If the model is none, or a number is not one, or a prompt is no text.
        ValueError: If there is no such choice, or a number is out of range, or a prompt lacks a
            name or has an unknown one.

    Example:
        >>> class StepBack(QueryTransform):
        ...     name = "step back"
        ...     PROMPT = Prompt(
        ...         zh="写出一个更一般的问题：{query}",
        ...         en="Write a more general question: {query}",
        ...         required=("query",),
        ...     )
        ...     def variants(self, query):
        ...         general = yield from self.ask(query, str.strip)
        ...         return QueryVariants((query, general))
        >>> StepBack(lambda prompt: "Which rivers are long?")("How long is the Nile?")
        ['How long is the Nile?', 'Which rivers are long?']
    """

    name: ClassVar[str] = "transform"
    """What traces call it, and ``prompts`` its prompt."""

    PROMPT: ClassVar[Prompt]
    """The built-in prompt, with a place for ``{query}``."""

    supplements: ClassVar[bool] = False
    """Whether the variants stand beside the query (passages, other phrasings), not in its place."""

    def __init__(
        self,
        llm: object,
        *,
        prompt: str | Mapping[Language, str] | Prompt | None = None,
        language: Language | None = None,
        on_error: OnError = "keep",
        retries: int = 1,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self._prompts = {self.name: self.PROMPT.replaced(prompt)}
        self.language = check_language(language)
        self.on_error = check_on_error(on_error)
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    @property
    def prompt(self) -> Prompt:
        """The prompt of the model."""
        return self._prompts[self.name]

    def __call__(self, query: str) -> list[str]:
        """Return the variants of a query; see ``transform``."""
        return self.transform(query)

    def transform(self, query: str) -> list[str]:
        """Return the variants of a query: the query itself if the model fails, or it is blank.

        Raises:
            TypeError: If the query is no text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return list(run(self.plan(query)).queries)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return list((await arun(self.plan(query))).queries)

    def plan(self, query: str) -> Plan[QueryVariants]:
        """Return the variants of a query, and what went wrong, as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        fallback = self.fallback(query)
        if not query.strip():
            return QueryVariants(fallback)
        with start_span(self.name, query=query) as span:
            try:
                result = yield from self.variants(query)
                variants = QueryVariants(tuple(unique(result.queries)) or fallback, result.note)
            except Exception as error:
                if self.on_error == "raise":
                    raise
                note = f"{self.name} failed: {type(error).__name__}: {error}"
                variants = QueryVariants(fallback, note)
            if variants.note is not None:
                logger.warning("of the query %r: %s", query[:80], variants.note)
                span.attributes["note"] = variants.note
            span.attributes["queries"] = list(variants.queries)
        return variants

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the variants of a query as a plan; every subclass defines it.

        Call the model with ``yield from self.ask(...)``, and raise any error where its answer
        can't be used: ``plan`` then does what ``on_error`` says.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define variants(query)")

    def fallback(self, query: str) -> tuple[str, ...]:
        """Return the variants to use if the query is blank or the model fails: the query."""
        return (query,)

    def ask(
        self,
        query: str,
        read: Callable[[str], T],
        *,
        schema: Mapping[str, Any] | None = None,
        example: str = "",
        **values: object,
    ) -> Plan[T]:
        """Ask the model with the prompt filled for a query; return what ``read`` makes of it.

        Args:
            query: The query.
            read: Reads an answer; raises ValueError if it can't be used, and the model is asked
                again as often as ``retries`` says, with that message.
            schema: A JSON schema for models that support one.
            example: JSON that fits the schema, for the prompt.
            **values: For the other places of the prompt.

        Raises:
            ModelError: If the model fails, or none of its answers can be read.
        """
        language = self.prompt_language(query)
        prompt = self.prompt.fill(language, query=query, **values)
        if schema is not None and self.llm.structured:
            prompt += json_instruction(example, language)
        result = yield from ask_and_parse(
            self.llm,
            prompt,
            read,
            language,
            schema=schema,
            retries=self.retries,
            timeout=self.timeout,
        )
        return result

    def prompt_language(self, query: str) -> Language:
        """Return the language of the prompt for a query."""
        return language_of(query) if self.language is None else self.language


def check_language(language: Language | None) -> Language | None:
    """Return a language of prompts, or None for that of the query.

    Raises:
        ValueError: If it is neither.
    """
    if language is not None and language not in get_args(Language):
        raise ValueError(
            f"no prompts in the language {language!r}; there is "
            f"{nearest_names(str(language), get_args(Language))}, or None for that of each query"
        )
    return language


def check_on_error(on_error: OnError) -> OnError:
    """Return what to do on an error.

    Raises:
        ValueError: If there is no such choice.
    """
    if on_error not in get_args(OnError):
        raise ValueError(f"on_error is 'keep' or 'raise', not {on_error!r}")
    return on_error


def join_notes(*notes: str | None) -> str | None:
    """Return notes as one, None where there are none."""
    return "; ".join(filter(None, notes)) or None


def describe_error(error: BaseException | None) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {error}"
