"""Search for the variants of a query, and fuse the results."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..planned_retriever import PlannedRetriever, join_notes
from ..plans.effects import gather, results_or_errors
from ..plans.plan import Plan
from ..plans.prompting import PromptMixin
from ..protocols import RetrieverLike
from ..ranking import Mode, check_mode, fuse, with_variant
from ..results import OutputFormat, OutputOptions, QueryVariant, Results, ScoredNode
from ..tracing import start_span
from .model_prompt import model_or
from .query_transform import QueryTransform, QueryVariants, describe_error

logger = logging.getLogger(__name__)


Variants = Sequence[tuple[str, QueryVariants]]
"""Queries and their variants."""


class StrategyOptions(OutputOptions, total=False):
    """The options of every strategy's results, to type ``**options``."""

    top_k: int | None


class FusionOptions(StrategyOptions, total=False):
    """The options of every ``TransformRetriever``, to type ``**options``."""

    mode: Mode
    query_weight: float


@dataclass(frozen=True, slots=True)
class VariantResults:
    """Hold the results of one variant of a query.

    Attributes:
        query: The variant that was searched for.
        results: Best first.
        error: Why the search failed, None where it did not.
        answer: What a model answers from the results, if it was asked to.
        problem: What went wrong with the answer.
        tool: The name of the tool that was searched, where there are several.
    """

    query: str
    results: Sequence[ScoredNode]
    error: Exception | None = None
    answer: str | None = None
    problem: str | None = None
    tool: str | None = None

    @property
    def note(self) -> str | None:
        """The note for the evidence."""
        return self.problem if self.answer is None else f"answer: {self.answer}"


class TransformRetriever(PromptMixin, PlannedRetriever):
    """Search for the variants that a query transform returns, and fuse their results.

    The results' evidence has the variant that was searched for as its ``query``, and the original
    query in ``variants``, with a note if the model failed and the query was searched for as it is.
    If some variants can't be searched for, the results of the others are returned, and a note
    names the failures.

    A subclass for one transform sets ``transform_type``, and ``variant_name``; it then takes a
    model and the options of the transform in place of a transform.

    Args:
        inner: Any retriever, also another strategy.
        transform: A ``QueryTransform``; or, for a subclass with a ``transform_type``, a model, in
            any form that ``LLM`` takes.
        mode: How the results of several queries are fused; see ``fuse``.
        query_weight: The weight of the query itself in the fusion; each variant has 1.
        top_k: How many results at most, also of each query; None for the inner retriever's own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **options: Those of the transform, with a model.

    Raises:
        TypeError: If there is no retriever or model, a number is none, or there is no such option.
        ValueError: If a number is out of range or a choice unknown.
    """

    name = "transform search"
    prompt_owner = "query_transform"
    variant_name: ClassVar[str] = "variant"
    """What the evidence calls a query that the transform returned."""

    transform_type: ClassVar[Callable[..., QueryTransform] | None] = None
    """Creates the transform from a model and its options."""

    def __init__(
        self,
        inner: RetrieverLike,
        transform: object,
        *,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **options: object,
    ) -> None:
        super().__init__(top_k=top_k, output_format=output_format, join=join)
        self.inner = as_retriever(inner)
        create = type(self).transform_type
        if create is None and not isinstance(transform, QueryTransform):
            raise TypeError(f"transform is a QueryTransform, not {transform!r:.80}")
        create = create or QueryTransform
        self.query_transform = model_or(transform, QueryTransform, create, options)
        self.mode: Mode = check_mode(mode)
        self.query_weight = check_weight(query_weight, "query_weight")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r}, {self.query_transform.llm.name!r})"

    def transform(self, query: str) -> list[str]:
        """Return the queries to search for in place of a query."""
        return self.query_transform.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Return the same without blocking the event loop."""
        return await self.query_transform.atransform(query)

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        with start_span(self.name, queries=queries) as span:
            variants = yield from gather([self.query_transform.plan(query) for query in queries])
            pairs = list(zip(queries, variants, strict=True))
            rankings = yield from self.search_variants(pairs, limit, filters)
            results = [
                self.fuse_variants(query, group.note, ranking, limit)
                for (query, group), ranking in zip(pairs, rankings, strict=True)
            ]
            span.set_results(results)
            span.outcome = self.outcome(pairs, rankings, limit)
        return results

    def outcome(
        self, variants: Variants, rankings: Sequence[Sequence[VariantResults]], limit: int | None
    ) -> object:
        """Return the ``outcome`` of the span: a ``StrategyOutcome`` of sub-questions, or None."""
        return None

    def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> Plan[list[list[VariantResults]]]:
        """Search for all variants of all queries at once; return their results by query.

        A subclass may search in another way, or add to the results.

        Raises:
            Exception: If all searches for a query failed, or any did with ``on_error="raise"``.
        """
        flat = [variant for _, group in variants for variant in group.queries]
        results = yield from results_or_errors(self.inner, flat, limit, filters)
        rest = iter(
            VariantResults(text, [], ranking)
            if isinstance(ranking, Exception)
            else VariantResults(text, ranking)
            for text, ranking in zip(flat, results, strict=True)
        )
        rankings = [list(islice(rest, len(group.queries))) for _, group in variants]
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        return rankings

    def check_failures(self, query: str, rankings: Sequence[VariantResults]) -> None:
        """Log which searches for a query failed.

        Raises:
            Exception: If all failed, or any did with ``on_error="raise"``.
        """
        errors = [ranking.error for ranking in rankings if ranking.error is not None]
        if errors and (len(errors) == len(rankings) or self.query_transform.on_error == "raise"):
            raise errors[0]
        if errors:
            logger.warning("of the query %r: %s", query[:80], describe_failures(rankings))

    def fuse_variants(
        self, query: str, note: str | None, rankings: Sequence[VariantResults], limit: int | None
    ) -> list[ScoredNode]:
        """Return one ranking for a query, whose evidence names what was searched for."""
        note = join_notes(note, describe_failures(rankings))
        results: list[Sequence[ScoredNode]] = []
        weights = []
        for ranking in (ranking for ranking in rankings if ranking.error is None):
            is_query = ranking.query == query
            tool = "" if ranking.tool is None else f" for {ranking.tool!r}"
            name = self.variant_name + tool
            variant = QueryVariant(query, name, join_notes(note, ranking.note))
            # The query itself needs no variant, unless there is a note.
            plain = is_query and variant.note is None
            results.append(ranking.results if plain else with_variant(ranking.results, variant))
            weights.append(self.query_weight if is_query else 1.0)
        return fused(results, self.mode, limit, weights)


def describe_failures(rankings: Sequence[VariantResults]) -> str:
    """Return which searches failed, and why; an empty text where none did."""
    failed = [ranking for ranking in rankings if ranking.error is not None]
    reasons = "; ".join(f"{item.query[:60]!r}: {describe_error(item.error)}" for item in failed)
    return f"{len(failed)} of {len(rankings)} searches failed: {reasons}" if failed else ""


def fused(
    rankings: Sequence[Sequence[ScoredNode]],
    mode: Mode,
    top_k: int | None,
    weights: Sequence[float] | None = None,
) -> list[ScoredNode]:
    """Fuse rankings into one, as long as the longest unless ``top_k`` is set; keep a single one."""
    if len(rankings) == 1:
        return list(rankings[0][:top_k])
    longest = max(map(len, rankings), default=0)
    return fuse(rankings, mode, weights, longest if top_k is None else top_k)


def check_weight(weight: float, name: str) -> float:
    """Return a weight.

    Raises:
        TypeError: If it is no number.
        ValueError: If it is not above 0, or not finite.
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise TypeError(f"{name} is a number, not {weight!r:.80}")
    if not 0 < weight < math.inf:
        raise ValueError(f"{name} must be above 0, and finite, not {weight!r}")
    return float(weight)
