"""Turn a query into other queries with a model, and fall back to the query where that fails."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import ClassVar

from ...nodegraph.models.output.lines import unique
from ..plans.plan import Plan, arun, run
from ..tracing import start_span
from .model_prompt import ModelPrompt

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """Hold what to search for in place of a query.

    Attributes:
        queries: What is searched for.
        note: What went wrong, None where nothing did.
        tools: The name of the tool to search for each of the queries; empty without tools.
    """

    queries: tuple[str, ...]
    note: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str | None]]:
        """The queries, each with the name of its tool; None without tools."""
        return list(zip(self.queries, self.tools or (None,) * len(self.queries), strict=True))


class QueryTransform(ModelPrompt):
    """Turn a query into one or more queries; the base class of all query transforms.

    A subclass defines ``name``, ``PROMPT`` and ``variants``. It needs nothing else: errors,
    retries, languages, traces and async calls are handled here.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        settings: How the model is asked; see ``StrategySettings``.

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
        ...     def variants(self, query):
        ...         general = yield from self.ask(query, str.strip)
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
        """Return the variants of a query; see ``transform``."""
        return self.transform(query)

    def transform(self, query: str) -> list[str]:
        """Return the variants of a query: the query itself if the model fails, or it is blank.

        Raises:
            TypeError: If the query is no text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return self.describe(run(self.plan(query)))

    async def atransform(self, query: str) -> list[str]:
        """Async version of `transform`."""
        return self.describe(await arun(self.plan(query)))

    def describe(self, variants: QueryVariants) -> list[str]:
        """Return variants as texts, each with its tool if there are tools."""
        return [text if tool is None else f"{tool}: {text}" for text, tool in variants.pairs]

    def plan(self, query: str) -> Plan[QueryVariants]:
        """Return the variants of a query, and what went wrong, as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        fallback = self.fallback(query)
        if not query.strip():
            return fallback
        with start_span(self.name, query=query) as span:
            try:
                variants = self._complete(query, (yield from self.variants(query)), fallback)
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

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the variants of a query as a plan; every subclass defines it.

        Call the model with ``yield from self.ask(...)``, and raise any error where its answer
        can't be used: ``plan`` then does what ``on_error`` says.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define variants(query)")

    def fallback(self, query: str) -> QueryVariants:
        """Return the variants to use if the query is blank or the model fails: the query."""
        return QueryVariants((query,))


def describe_error(error: BaseException | None) -> str:
    """Return an error's class and message."""
    return f"{type(error).__name__}: {error}"
