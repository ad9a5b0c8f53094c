"""Search for the variants of a query, and fuse the results."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeGuard

from ...nodegraph.errors import nearest_names
from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..foreign.outputs import is_answer
from ..planned_retriever import PlannedRetriever, join_notes
from ..plans.effects import results_or_errors
from ..plans.plan import Do, gather
from ..plans.prompting import PromptMixin
from ..protocols import RetrieverLike, RetrieverProtocol
from ..ranking import Mode, check_mode, fuse, with_variant
from ..results import OutputOptions, QueryVariant, Results, ScoredNode
from ..tracing import start_span
from .model_prompt import QueryTransform, QueryVariants, StrategySettings, describe_error

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NamedTool:
    """Hold a retriever or query engine that a model chooses by its name and description.

    Attributes:
        name: Its name.
        description: What it is good for. Empty if nobody says.
        retriever: The retriever. For a query engine, the one whose result is the answer.
    """

    name: str
    description: str
    retriever: RetrieverProtocol


Tools: TypeAlias = Mapping[str, RetrieverLike | tuple[str, RetrieverLike] | NamedTool]
"""Retrievers and query engines by name, or pairs of a description and a retriever."""


def is_tools(value: object) -> TypeGuard[Tools]:
    """Return whether a value is a mapping, which no retriever is."""
    return isinstance(value, Mapping)


def named_tools(tools: Tools, noun: str = "tool") -> dict[str, NamedTool]:
    """Return tools by their names.

    Args:
        tools: Retrievers, functions and query engines by name, or pairs of a description and one.
        noun: The word for a tool in errors.

    Raises:
        TypeError: If the tools are not a mapping, or a tool is not a retriever.
        ValueError: If there is no tool, or a name is blank.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> words = Retriever(NodeGraph(), "ROOT")
        >>> named_tools({"words": ("Any question", words)})["words"].description
        'Any question'
    """
    if not is_tools(tools):
        raise TypeError(
            f"{noun}s must be a mapping from names to retrievers, got {tools!r:.80}; write "
            f'{{"name": ("what it is good for", retriever)}}'
        )
    named: dict[str, NamedTool] = {}
    for name, value in tools.items():
        if not isinstance(name, str):
            raise TypeError(f"a {noun}'s name is a text, not {name!r:.80}")
        if not name.strip():
            raise ValueError(f"a {noun} has the blank name {name!r}; give it one to choose it by")
        if isinstance(value, NamedTool):
            named[name] = value
            continue
        description, source = _described(value, noun)
        named[name] = NamedTool(
            name, description, as_retriever(source, f"the {noun} {name!r}", name=name)
        )
    if not named:
        raise ValueError(f"{noun}s={tools!r} leaves nothing to choose from; give one or more")
    return named


def _described(value: Any, noun: str) -> tuple[str, Any]:
    """Return the description of a tool, empty by default, and its retriever."""
    if not isinstance(value, tuple | list):
        return "", value
    if len(value) != 2 or not isinstance(value[0], str):
        raise TypeError(
            f"a {noun} is a retriever or a pair (description, retriever), not {value!r:.80}"
        )
    return value[0], value[1]


Variants = Sequence[tuple[str, QueryVariants]]
"""Queries and their variants."""


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

    Args:
        inner: Any retriever, also another strategy, or tools, of which the transform names one for
            each variant: retrievers, functions and query engines by name, or pairs of a
            description and one.
        transform: Returns the variants.
        mode: How the results of several queries are fused. See ``fuse``.
        query_weight: The weight of the query itself in the fusion. Each variant has 1.
        top_k: How many results at most, also of each query. None for the inner retriever's own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If there is no retriever or transform.
        ValueError: If a number is out of range or a choice unknown.
    """

    name = "transform search"
    prompt_owner = "query_transform"
    settings_type: ClassVar[type] = StrategySettings
    variant_name: ClassVar[str] = "variant"
    """What the evidence calls a query that the transform returned."""

    def __init__(
        self,
        inner: RetrieverLike | Tools,
        transform: QueryTransform,
        *,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        self.tools: Mapping[str, NamedTool] = named_tools(inner) if is_tools(inner) else {}
        self.inner = None if self.tools else as_retriever(inner)
        if not isinstance(transform, QueryTransform):
            raise TypeError(f"transform is a QueryTransform, not {transform!r:.80}")
        self.query_transform = transform
        self.mode: Mode = check_mode(mode)
        self.query_weight = check_weight(query_weight, "query_weight")

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The inner retriever, or the tools by name."""
        if self.inner is not None:
            return [("inner", self.inner)]
        return [(name, tool.retriever) for name, tool in self.tools.items()]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        if self.inner is not None:
            self.inner = retrievers.get("inner", self.inner)
        self.tools = {
            name: replace(tool, retriever=retrievers.get(name, tool.retriever))
            for name, tool in self.tools.items()
        }

    def __repr__(self) -> str:
        searched = list(self.tools) or self.inner
        return f"{type(self).__name__}({searched!r}, {self.query_transform.llm.name!r})"

    def transform(self, query: str) -> list[str]:
        """Return the variants of a query. See ``QueryTransform.transform``."""
        return self.query_transform.transform(query)

    async def atransform(self, query: str) -> list[str]:
        """Async version of ``transform``."""
        return await self.query_transform.atransform(query)

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        with start_span(self.name, queries=queries) as span:
            variants = await gather(
                [partial(self.query_transform.plan, query) for query in queries]
            )
            pairs = list(zip(queries, variants, strict=True))
            rankings = await self.search_variants(pairs, limit, filters)

            def fuse_all() -> list[Results]:
                return [
                    self.fuse_variants(query, group.note, ranking, limit)
                    for (query, group), ranking in zip(pairs, rankings, strict=True)
                ]

            results = await Do(fuse_all, kind="work")
            span.set_results(results)
            span.outcome = await Do(partial(self.outcome, pairs, rankings, limit), kind="work")
        return results

    def outcome(
        self, variants: Variants, rankings: Sequence[Sequence[VariantResults]], limit: int | None
    ) -> object:
        """Return the ``outcome`` of the span: a ``StrategyOutcome`` of sub-questions, or None."""
        return None

    async def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search for all variants of all queries at once. Return their results by query.

        A subclass may search in another way, or add to the results.

        Raises:
            Exception: If all searches for a query failed, or any did with ``on_error="raise"``.
        """
        rankings = await self.search_variant_groups(variants, limit, filters)
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        # If nothing was found for what the model wrote, the query is searched for as it is.
        useless = [
            position
            for position, ((query, group), ranking) in enumerate(
                zip(variants, rankings, strict=True)
            )
            if query not in group.queries and not any(matches.results for matches in ranking)
        ]
        queries = [variants[position][0] for position in useless]
        plain = await self.search_variant_groups(
            [(query, QueryVariants((query,))) for query in queries if self.inner is not None],
            *(limit, filters),
        )
        for position, (matches,) in zip(useless, plain, strict=False):
            noted = replace(matches, problem=f"nothing was found for the {self.variant_name}")
            rankings[position] = [noted]
        return rankings

    async def search_variant_groups(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search for all variants, in each retriever for all of its own at once.

        A search that fails is noted in the results.
        """
        pairs = dict.fromkeys(pair for _, group in variants for pair in group.pairs)
        queries: dict[str | None, list[str]] = {}
        for query, tool in pairs:
            if tool is None or tool in self.tools:
                queries.setdefault(tool, []).append(query)
        outcomes = await gather(
            [
                partial(results_or_errors, self._retriever(tool), of_tool, limit, filters)
                for tool, of_tool in queries.items()
            ]
        )
        matches: dict[tuple[str, str | None], VariantResults] = {}
        for (tool, of_tool), results in zip(queries.items(), outcomes, strict=True):
            for query, ranking in zip(of_tool, results, strict=True):
                matches[query, tool] = _variant_results(query, tool, ranking)
        for query, tool in pairs:
            if (query, tool) not in matches:
                names = nearest_names(str(tool), self.tools)
                unknown = LookupError(f"there is no tool {tool!r}; there is {names}")
                matches[query, tool] = _variant_results(query, tool, unknown)
        return [[matches[pair] for pair in group.pairs] for _, group in variants]

    def _retriever(self, tool: str | None) -> RetrieverProtocol:
        if tool is not None:
            return self.tools[tool].retriever
        if self.inner is None:
            raise ValueError(f"the transform names none of the tools {list(self.tools)}")
        return self.inner

    def check_failures(self, query: str, rankings: Sequence[VariantResults]) -> None:
        """Log which searches for a query failed.

        Raises:
            Exception: If all failed, or any did with ``on_error="raise"``.
        """
        errors = [ranking.error for ranking in rankings if ranking.error is not None]
        if errors and (
            len(errors) == len(rankings) or self.query_transform.settings.on_error == "raise"
        ):
            raise errors[0]
        if errors:
            logger.warning("of the query %r: %s", query[:80], self.describe_failures(rankings))

    def fuse_variants(
        self, query: str, note: str | None, rankings: Sequence[VariantResults], limit: int | None
    ) -> list[ScoredNode]:
        """Return one ranking for a query, whose evidence names what was searched for."""
        note = join_notes(note, self.describe_failures(rankings))
        results: list[Sequence[ScoredNode]] = []
        weights = []
        for ranking in (ranking for ranking in rankings if ranking.error is None):
            is_query = ranking.query == query
            variant = self.evidence_variant(query, ranking, note)
            # The query itself needs no variant, unless there is a note.
            plain = is_query and variant.note is None
            results.append(ranking.results if plain else with_variant(ranking.results, variant))
            weights.append(self.query_weight if is_query else 1.0)
        return fused(results, self.mode, limit, weights)

    def evidence_variant(
        self, query: str, ranking: VariantResults, note: str | None
    ) -> QueryVariant:
        """Return what the evidence of a variant's results says about the query."""
        tool = "" if ranking.tool is None else f" for {ranking.tool!r}"
        return QueryVariant(query, self.variant_name + tool, join_notes(note, ranking.note))

    def describe_failures(self, rankings: Sequence[VariantResults]) -> str:
        """Return which searches failed, and why. An empty text if none did."""
        failed = [ranking for ranking in rankings if ranking.error is not None]
        reasons = "; ".join(f"{item.query[:60]!r}: {describe_error(item.error)}" for item in failed)
        return f"{len(failed)} of {len(rankings)} searches failed: {reasons}" if failed else ""


def _variant_results(query: str, tool: str | None, outcome: Results | Exception) -> VariantResults:
    """Return what was found for a variant. For a query engine also its answer."""
    if isinstance(outcome, Exception):
        return VariantResults(query, [], outcome, tool=tool)
    answered = tool is not None and outcome and is_answer(outcome[0])
    answer = outcome[0].node.text if answered else None
    return VariantResults(query, outcome, answer=answer, tool=tool)


def fused(
    rankings: Sequence[Sequence[ScoredNode]],
    mode: Mode,
    top_k: int | None,
    weights: Sequence[float] | None = None,
) -> list[ScoredNode]:
    """Fuse rankings into one, as long as the longest unless ``top_k`` is set. Keep a single one."""
    if len(rankings) == 1:
        return list(rankings[0][:top_k])
    largest = max(map(len, rankings), default=0)
    return fuse(rankings, mode, weights, largest if top_k is None else top_k)


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
