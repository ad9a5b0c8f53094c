"""What turns a query into other forms of it, and what that does where its model fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar, get_args

from ...nodegraph import LLM, nearest_names
from ...nodegraph.models import Language, as_llm, language_of
from ...nodegraph.models.output import each_once
from ..plans import Plan, Prompt, Prompted, answered, arun, in_json, run
from ..tracing import start_span
from ..validation import seconds, whole

logger = logging.getLogger(__name__)

T = TypeVar("T")

OnError = Literal["keep", "raise"]


@dataclass(frozen=True, slots=True)
class QueryVariants:
    """Hold what to search for in place of a query.

    Attributes:
        queries: At least one.
        note: What went wrong on the way, None where nothing did.
    """

    queries: tuple[str, ...]
    note: str | None = None


class QueryTransform(Prompted):
    """Turn a query into one or more; what every query transform offers.

    A subclass has a ``name``, which traces call it by, a ``PROMPT``, and ``_forms``: a plan that
    returns the queries, or raises where the model gave none that can be used.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, or texts by
            language, ``{"zh": ..., "en": ...}``, or a ``Prompt``.
        language: Of the prompt: ``"zh"`` or ``"en"``; None for that of each query.
        on_error: Where the model fails: ``"keep"`` the query as it is, or ``"raise"``.
        retries: How often the model is asked again where its answer can't be used.
        timeout: Seconds to wait for each of the model's answers; None leaves it to its client.

    Raises:
        TypeError: If the model is none, or a number is not one, or a prompt is no text.
        ValueError: If there is no such choice, or a number is out of range, or a prompt lacks a
            name or has an unknown one.
    """

    name: ClassVar[str] = "transform"
    PROMPT: ClassVar[Prompt]

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
        if on_error not in ("keep", "raise"):
            raise ValueError(f"on_error is 'keep' or 'raise', not {on_error!r}")
        self.on_error = on_error
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    @property
    def prompt(self) -> Prompt:
        """What the model is asked."""
        return self._prompts[self.name]

    def __call__(self, query: str) -> list[str]:
        """Return the forms of a query; see ``transform``."""
        return self.transform(query)

    def transform(self, query: str) -> list[str]:
        """Return the forms of a query: the query itself where the model fails, or it is blank.

        Raises:
            TypeError: If the query is no text.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return list(run(self.plan(query)).queries)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return list((await arun(self.plan(query))).queries)

    def plan(self, query: str) -> Plan[QueryVariants]:
        """Return the forms of a query, and what went wrong on the way, as a plan."""
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        kept = self._kept(query)
        if not query.strip():
            return QueryVariants(kept)
        with start_span(self.name, query=query) as done:
            try:
                made = yield from self._forms(query)
                forms = QueryVariants(tuple(each_once(made.queries)) or kept, made.note)
            except Exception as error:
                if self.on_error == "raise":
                    raise
                forms = QueryVariants(kept, f"{self.name} failed: {type(error).__name__}: {error}")
            if forms.note is not None:
                logger.warning("of the query %r: %s", query[:80], forms.note)
                done.facts["note"] = forms.note
            done.facts["queries"] = list(forms.queries)
        return forms

    def _kept(self, query: str) -> tuple[str, ...]:
        """Return what there is without the model."""
        return (query,)

    def _forms(self, query: str) -> Plan[QueryVariants]:
        raise NotImplementedError

    def _language(self, query: str) -> Language:
        return language_of(query) if self.language is None else self.language

    def _asked(
        self,
        query: str,
        read: Callable[[str], T],
        schema: Mapping[str, Any] | None = None,
        form: str = "",
        **values: object,
    ) -> Plan[T]:
        """Ask the model for forms of a query; return what is read out of its answer.

        Args:
            query: The query.
            read: Reads an answer; raises ValueError where it can't be used.
            schema: What a model that offers it is held to.
            form: The same as an example, for the prompt.
            **values: For the prompt.
        """
        language = self._language(query)
        prompt = self.prompt.fill(language, query=query, **values)
        if schema is not None and self.llm.structured:
            prompt += in_json(form, language)
        read_ = yield from answered(
            self.llm,
            prompt,
            read,
            language,
            schema=schema,
            retries=self.retries,
            timeout=self.timeout,
        )
        return read_


def told(queries: Sequence[str]) -> str:
    """Return in a few words which queries a stage has."""
    return queries[0] if len(queries) == 1 else f"{len(queries)} queries"


def check_language(language: Language | None) -> Language | None:
    """Return what is a language of prompts, or None for the query's.

    Raises:
        ValueError: If it is neither.
    """
    if language is not None and language not in get_args(Language):
        raise ValueError(
            f"no prompts in the language {language!r}; there is "
            f"{nearest_names(str(language), get_args(Language))}, or None for that of each query"
        )
    return language
