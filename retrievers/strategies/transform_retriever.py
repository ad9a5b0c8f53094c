"""Search for other forms of the query, and fuse what they find."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..filters import Filters
from ..planned_retriever import Found, PlannedRetriever, all_of, found_or_failed
from ..plans import Plan, Prompt, Prompted
from ..protocols import RetrieverProtocol
from ..ranking import Mode, check_mode, fuse
from ..results import OutputFormat, QueryVariant, ScoredNode
from ..tracing import start_span
from ..validation import check_retriever
from .query_transform import QueryTransform, QueryVariants, told

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hold what one form of a query found.

    Attributes:
        query: The form that was searched for.
        results: What was found, best first.
        error: Why the search failed, None where it did not.
        answer: What a model answers from the results, where it was asked.
        problem: What went wrong on the way to the answer.
    """

    query: str
    results: Sequence[ScoredNode]
    error: Exception | None = None
    answer: str | None = None
    problem: str | None = None

    @property
    def note(self) -> str | None:
        """What is to be known of it, for the evidence."""
        return self.problem if self.answer is None else f"answer: {self.answer}"


class TransformRetriever(Prompted, PlannedRetriever):
    """Search for what a query transform makes of the query; what these strategies share.

    The results' evidence has the form that was searched for as its ``query``, and the query it
    was made of in ``forms``, with a note where the model failed and the query was searched for as
    it is. Where some forms can't be searched for, those that can are the results, and a note
    says so.

    Args:
        inner: Any retriever, also another strategy.
        transform: Makes the queries: a ``QueryTransform``; or, for a retriever that has a kind of
            its own, a model, in any form that ``LLM`` takes.
        mode: How the results of several queries are fused; see ``fuse``.
        query_weight: What the query itself counts in the fusion, beside 1 for each of its forms.
        top_k: How many results at most, also of each query; None for the inner retriever's own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Those of the retriever's own kind of transform, with a model.

    Raises:
        TypeError: If there is no retriever or model, a number is none, or there is no such setting.
        ValueError: If a number is out of range or a choice unknown.
    """

    name = "transform search"
    form: ClassVar[str] = "form"
    """What evidence calls a query that the transform made."""
    Transform: ClassVar[type[QueryTransform] | None] = None
    """What is made of a model that is given in place of a transform."""

    def __init__(
        self,
        inner: RetrieverProtocol,
        transform: object,
        *,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: Any,
    ) -> None:
        super().__init__(top_k=top_k, output_format=output_format, join=join)
        self.inner = check_retriever(inner)
        self.query_transform = self._made(transform, settings)
        self.mode: Mode = check_mode(mode)
        self.query_weight = check_weight(query_weight, "query_weight")

    def _made(self, transform: object, settings: Mapping[str, Any]) -> QueryTransform:
        """Return a query transform that is given, or made of a model."""
        if not isinstance(transform, QueryTransform):
            if self.Transform is None:
                raise TypeError(f"transform is a QueryTransform, not {transform!r:.80}")
            return self.Transform(transform, **settings)
        if settings:
            raise TypeError(
                f"settings {sorted(settings)} go with a model; give them to "
                f"{type(transform).__name__}(...) itself"
            )
        return transform

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, {self.query_transform.llm.name!r})"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names, those of the transform among them."""
        return {**self.query_transform.prompts, **self._prompts}

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        own = self.query_transform.prompts
        transform = copy.copy(self.query_transform)
        transform._replace_prompts({name: prompts[name] for name in own})
        self.query_transform = transform
        self._prompts = {name: prompt for name, prompt in prompts.items() if name not in own}

    def transform(self, query: str) -> list[str]:
        """Return what is searched for in place of a query."""
        return self.query_transform.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return await self.query_transform.atransform(query)

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Found]]:
        """Return the results of each query as a plan."""
        with start_span(self.name, query=told(queries)) as done:
            forms = yield from all_of([self.query_transform.plan(query) for query in queries])
            found = yield from self._rankings(queries, forms, limit, filters)
            results = [
                self._fused(query, made, rankings, limit)
                for query, made, rankings in zip(queries, forms, found, strict=True)
            ]
            done.facts["results"] = sum(map(len, results))
        return results

    def _rankings(
        self,
        queries: Sequence[str],
        forms: Sequence[QueryVariants],
        limit: int | None,
        filters: Filters | None,
    ) -> Plan[list[list[Ranking]]]:
        """Search for all forms of all queries at once; return what each found, by query."""
        asked = [form for made in forms for form in made.queries]
        found = iter((yield from found_or_failed(self.inner, asked, limit, filters)))
        rankings = [[ranking(form, next(found)) for form in made.queries] for made in forms]
        for query, each in zip(queries, rankings, strict=True):
            self._check(query, each)
        return rankings

    def _check(self, query: str, rankings: Sequence[Ranking]) -> None:
        """Raise where all searches failed, or one did that must not."""
        errors = [each.error for each in rankings if each.error is not None]
        if errors and (len(errors) == len(rankings) or self.query_transform.on_error == "raise"):
            raise errors[0]
        if errors:
            logger.warning("of the query %r: %s", query[:80], failures(rankings))

    def _fused(
        self, query: str, forms: QueryVariants, rankings: Sequence[Ranking], limit: int | None
    ) -> list[ScoredNode]:
        """Return one ranking of a query's, whose evidence tells what was searched for."""
        note = "; ".join(filter(None, [forms.note, failures(rankings)])) or None
        found, weights = [], []
        for each in rankings:
            if each.error is not None:
                continue
            own = each.query == query
            said = "; ".join(filter(None, [note, each.note])) or None
            form = QueryVariant(query, self.form, said)
            # What was searched for as it was asked needs no form, unless there is something to say.
            found.append(list(each.results) if own and not said else formed(each.results, form))
            weights.append(self.query_weight if own else 1.0)
        return fused(found, self.mode, limit, weights)


def ranking(query: str, found: Found | Exception) -> Ranking:
    """Return what a query found, or why it failed, as a ranking."""
    return Ranking(query, [], found) if isinstance(found, Exception) else Ranking(query, found)


def failures(rankings: Sequence[Ranking]) -> str:
    """Tell which searches failed; nothing where none did."""
    failed = [each for each in rankings if each.error is not None]
    told = "; ".join(f"{each.query[:60]!r}: {failure(each.error)}" for each in failed)
    return f"{len(failed)} of {len(rankings)} searches failed: {told}" if failed else ""


def failure(error: BaseException | None) -> str:
    """Return an error in words."""
    return f"{type(error).__name__}: {error}"


def fused(
    rankings: Sequence[Sequence[ScoredNode]],
    mode: Mode,
    top_k: int | None,
    weights: Sequence[float] | None = None,
) -> list[ScoredNode]:
    """Return one ranking of several, as long as the longest unless ``top_k`` says; one as it is."""
    if len(rankings) == 1:
        return list(rankings[0][:top_k])
    longest = max((len(each) for each in rankings), default=0)
    return fuse(rankings, mode, weights, longest if top_k is None else top_k)


def formed(results: Sequence[ScoredNode], form: QueryVariant) -> list[ScoredNode]:
    """Return results whose evidence tells that they were found for a form of this query."""
    return [
        replace(
            result,
            evidence=tuple(replace(match, forms=(form, *match.forms)) for match in result.evidence),
        )
        for result in results
    ]


def check_weight(weight: float, name: str) -> float:
    """Return what is a weight.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is not above 0, or not finite.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise TypeError(f"{name} is a number, not {weight!r:.80}")
    if not 0 < weight < math.inf:
        raise ValueError(f"{name} must be above 0, and finite, not {weight!r}")
    return float(weight)
