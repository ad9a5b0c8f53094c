"""Turn a query into other queries with a model, and fall back to the query where that fails."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from ...nodegraph.models.output.lines import unique
from ..plans.plan import Plan, arun, run
from ..tracing import start_span
from ..validation import choice
from .model_prompt import ModelPrompt, PromptOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]


class TransformOptions(PromptOptions, total=False):
    """The options of every query transform, to type ``**options``; see ``QueryTransform``."""

    on_error: OnError


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """Hold what to search for in place of a query.

    Attributes:
        queries: At least one.
        note: What went wrong, None where nothing did.
    """

    queries: tuple[str, ...]
    note: str | None = None


class QueryTransform(ModelPrompt):
    """Turn a query into one or more queries; the base class of all query transforms.

    A subclass defines ``name``, ``PROMPT`` and ``variants``. It needs nothing else: errors,
    retries, languages, traces and async calls are handled here.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        on_error: What to do if the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        **options: ``prompt``, ``language``, ``retries``, ``timeout``; see ``ModelPrompt``.

    Raises:
        TypeError: If the model is none, or an option is unknown or of the wrong type.
        ValueError: If there is no such choice, or a number is out of range, or a prompt lacks a
            name or has an unknown one.

    Example:
        >>> from nodekin.retrievers import Prompt
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

    supplements: ClassVar[bool] = False
    """Whether the variants stand beside the query (passages, other phrasings), not in its place."""

    def __init__(
        self, llm: object, *, on_error: OnError = "keep", **options: Unpack[PromptOptions]
    ) -> None:
        super().__init__(llm, **options)
        self.on_error = choice(on_error, "on_error", get_args(OnError))

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


class SupplementOptions(TransformOptions, total=False):
    """The options of every ``SupplementingTransform``, to type ``**options``."""

    include_query: bool


class SupplementingTransform(QueryTransform):
    """Write texts to search for beside a query; the base class of transforms that do.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        include_query: Whether the query itself comes first.
        **options: ``prompt``, ``language``, ``on_error``, ``retries``, ``timeout``; see
            ``QueryTransform``.
    """

    supplements = True

    def __init__(
        self, llm: object, *, include_query: bool = True, **options: Unpack[TransformOptions]
    ) -> None:
        super().__init__(llm, **options)
        self.include_query = include_query


def describe_error(error: BaseException | None) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {error}"
