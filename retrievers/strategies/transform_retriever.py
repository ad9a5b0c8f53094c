"""A retriever that searches for several variants of a query and fuses the results."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.templates import Language
from ..base_retriever import BaseRetriever, join_notes
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever
from ..foreign.outputs import is_answer
from ..plans.plan import Do, gather_each
from ..plans.prompting import PromptMixin, PromptReplacement
from ..protocols import RetrieverLike, RetrieverProtocol
from ..ranking import Mode, fuse, with_variant
from ..results import QueryVariant, Results, ScoredNode
from ..tracing import start_span
from ..validation import choice
from .model_prompt import OnError, QueryTransform, QueryVariants, describe_error
from .named_tools import Tools, named_tools
from .question_share import fuse_with_question
from .variant_results import VariantResults, for_tool, results_or_errors

logger = logging.getLogger(__name__)

StrategyMode: TypeAlias = Mode | Literal["share"]
"""The method that fuses the results of several queries: a mode of ``fuse``, or ``"share"``.

With ``"share"``, the original question weighs as much as all its variants together. See
``fuse_with_question``.
"""

_MODES = ("share", *get_args(Mode))


Variants: TypeAlias = Sequence[tuple[str, QueryVariants]]
"""Queries with their variants."""


class TransformRetriever(PromptMixin, BaseRetriever):
    """A retriever that searches for the variants of a query and fuses their results.

    A query transform generates the variants. In the evidence of a result, ``query`` is the variant
    that was searched, and ``variants`` contains the original query. If the model failed and the
    query was searched unchanged, or if some of the searches failed, a note describes the failure.
    The results of the other searches are still returned.

    Args:
        inner: Any retriever, including other strategies. If the transform names a tool for each
            variant, a mapping of tools is required. Tools are retrievers, functions and query
            engines by name, or pairs of a description and one of these.
        llm: The query transform. Subclasses also accept a model.
        mode: The method that fuses the results of several queries: a mode of ``fuse``, or
            ``"share"``. With ``"share"``, the original question weighs as much as all its variants
            together, and a variant that finds nothing new does not change the order. If None, the
            default of the class applies.
        top_k: The number of results, overall and per variant. Defaults to the ``top_k`` of the
            inner retriever.
        include_query: See ``QueryTransform``. This option and all following options require a model
            as ``llm``. If an option is None, the default of the transform applies.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the retriever or transform is missing, or an option is unknown.
        ValueError: If an argument is invalid.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryExpansion, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The stream is 6,650 km long.", "Tea is a drink."])
        >>> expansion = QueryExpansion(lambda prompt: "Length of the stream")
        >>> retriever = TransformRetriever(Retriever(graph, "ROOT"), expansion)
        >>> [result.text for result in retriever("How far does the river go?")]
        ['The stream is 6,650 km long.']
    """

    name = "transform search"
    prompt_owner = "query_transform"
    transform_type: ClassVar[type[QueryTransform]] = QueryTransform
    """The class of the query transform that is created if a model is given."""

    default_mode: ClassVar[StrategyMode] = "rrf"

    mode_without_question: ClassVar[Mode] = "rrf"
    """The mode that replaces ``"share"`` if the question is not searched or has no results."""

    variant_name: ClassVar[str] = "variant"
    """The word for a variant in the evidence."""

    def __init__(
        self,
        inner: RetrieverLike | Tools,
        llm: object,
        *,
        mode: StrategyMode | None = None,
        top_k: int | None = None,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        super().__init__(top_k=top_k)
        self.tools = named_tools(inner) if isinstance(inner, Mapping) else {}
        self.inner = None if self.tools else as_retriever(inner)
        self.query_transform = self.transform_of(
            llm,
            include_query=include_query,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        mode = self.default_mode if mode is None else mode
        self.mode: StrategyMode = choice(mode, "mode", _MODES)

    @classmethod
    def transform_of(cls, llm: object, **options: Any) -> QueryTransform:
        """Return the given query transform, or create a query transform for a model.

        Args:
            llm: A model or a query transform.
            **options: Keyword arguments for the query transform. An option that is None is not
                passed.

        Raises:
            TypeError: If options are given together with a query transform, or if a model is given
                and the class requires a query transform.
        """
        given = {name: value for name, value in options.items() if value is not None}
        if not isinstance(llm, QueryTransform):
            if cls.transform_type is QueryTransform:
                raise TypeError(f"llm must be a QueryTransform, got {llm!r:.80}")
            return cls.transform_type(llm, **given)
        if given:
            raise TypeError(
                f"the options {sorted(given)} need a model as llm; with a transform, write "
                f"{type(llm).__name__}(llm, ...)"
            )
        return llm

    @property
    def inner_retrievers(self) -> Sequence[tuple[str, RetrieverProtocol]]:
        """The inner retriever, or the retrievers of the tools, by name."""
        if self.inner is not None:
            return [("inner", self.inner)]
        return [(name, retriever) for name, (_, retriever) in self.tools.items()]

    def _replace_inner_retrievers(self, retrievers: Mapping[str, RetrieverProtocol]) -> None:
        if self.inner is not None:
            self.inner = retrievers.get("inner", self.inner)
        self.tools = {
            name: (description, retrievers.get(name, retriever))
            for name, (description, retriever) in self.tools.items()
        }

    def __repr__(self) -> str:
        searched = list(self.tools) or self.inner
        return f"{type(self).__name__}({searched!r}, {self.query_transform.llm.name!r})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        transform = self.query_transform.safe_variants
        with start_span(self.name, queries=queries) as span:
            groups = await gather_each(transform, queries)
            variants = list(zip(queries, groups, strict=True))
            rankings = await self.search_variants(variants, limit, filters)

            def fuse_all() -> tuple[list[Results], object]:
                results = [
                    self.fuse_variants(query, group.note, ranking, limit)
                    for (query, group), ranking in zip(variants, rankings, strict=True)
                ]
                return results, self.outcome(variants, rankings, limit)

            results, span.outcome = await Do(fuse_all, kind="work")
            span.set_results(results)
        return results

    def outcome(
        self, variants: Variants, rankings: Sequence[Sequence[VariantResults]], limit: int | None
    ) -> object:
        """Return the outcome for the trace span, or None if there are no sub-questions."""
        return None

    async def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Return the results of all variants of each query.

        If the variants of a query find nothing, the original query is searched.

        Raises:
            Exception: If all searches for a query fail, or if any search fails and
                ``on_error="raise"``.
        """
        rankings = await self.search_groups(variants, limit, filters)
        for (query, _), ranking in zip(variants, rankings, strict=True):
            self.check_failures(query, ranking)
        if self.inner is None:
            return rankings
        useless: dict[int, str] = {}
        for at, ((query, group), ranking) in enumerate(zip(variants, rankings, strict=True)):
            has_results = any(matches.results for matches in ranking)
            if query not in group.queries and not has_results:
                useless[at] = query
        plain = [(query, QueryVariants((query,))) for query in useless.values()]
        found = await self.search_groups(plain, limit, filters)
        problem = f"nothing was found for the {self.variant_name}"
        for (at, query), matches in zip(useless.items(), found, strict=True):
            self.check_failures(query, matches)
            rankings[at] = [replace(match, problem=problem) for match in matches]
        return rankings

    async def search_groups(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search for all variants, with one call per retriever.

        A variant that several queries have in common is searched only once. Errors are not raised
        but stored in the results.
        """
        pairs: dict[tuple[str, str | None], None] = {}
        for _, group in variants:
            pairs |= dict.fromkeys(group.pairs)
        matches = await self._search_pairs(pairs, limit, filters)
        of_queries: list[list[VariantResults]] = []
        for _, group in variants:
            of_queries.append([matches[pair] for pair in group.pairs])
        return of_queries

    async def _search_pairs(
        self, pairs: Iterable[tuple[str, str | None]], limit: int | None, filters: Filters | None
    ) -> dict[tuple[str, str | None], VariantResults]:
        """Return the results for each pair of a query and the name of a tool, or None.

        For an unknown tool, the results contain the error.
        """
        matches: dict[tuple[str, str | None], VariantResults] = {}
        queries_by_tool: dict[str | None, list[str]] = {}
        for query, tool in pairs:
            if tool is None or tool in self.tools:
                queries_by_tool.setdefault(tool, []).append(query)
            else:
                names = nearest_names(str(tool), self.tools)
                unknown = LookupError(f"unknown tool {tool!r}; known: {names}")
                matches[query, tool] = _of_variant(query, tool, unknown)
        outcomes = await gather_each(
            self._search_tool, queries_by_tool, queries_by_tool, limit, filters
        )
        for (tool, queries), results in zip(queries_by_tool.items(), outcomes, strict=True):
            for query, outcome in zip(queries, results, strict=True):
                matches[query, tool] = _of_variant(query, tool, outcome)
        return matches

    async def _search_tool(
        self,
        tool: str | None,
        queries: Mapping[str | None, Sequence[str]],
        limit: int | None,
        filters: Filters | None,
    ) -> list[Results | Exception]:
        """Search for the queries that belong to one tool.

        If there are no tools, ``tool`` is None.
        """
        return await results_or_errors(self._retriever(tool), queries[tool], limit, filters)

    def _retriever(self, tool: str | None) -> RetrieverProtocol:
        if tool is not None:
            return self.tools[tool][1]
        if self.inner is None:
            raise ValueError(f"the transform chose no tool; it must name one of {list(self.tools)}")
        return self.inner

    def check_failures(self, query: str, rankings: Sequence[VariantResults]) -> None:
        """Log the failed searches for a query as a warning.

        Raises:
            Exception: If all searches failed, or if any search failed and ``on_error="raise"``.
        """
        errors = [ranking.error for ranking in rankings if ranking.error is not None]
        raises = self.query_transform.on_error == "raise" or len(errors) == len(rankings)
        if errors and raises:
            raise errors[0]
        if errors:
            logger.warning("query %r: %s", query[:80], self.describe_failures(rankings))

    def fuse_variants(
        self, query: str, note: str | None, rankings: Sequence[VariantResults], limit: int | None
    ) -> list[ScoredNode]:
        """Fuse the results of the variants of a query. The evidence names the variants."""
        note = join_notes(note, self.describe_failures(rankings))
        results: list[Sequence[ScoredNode]] = []
        of_question: Sequence[ScoredNode] = ()
        of_parts: list[Sequence[ScoredNode]] = []
        for ranking in rankings:
            if ranking.error is not None:
                continue
            strategy = self.variant_name + for_tool(ranking)
            variant = QueryVariant(query, strategy, join_notes(note, ranking.note))
            # Results of the original query get a variant in their evidence only if there is a note
            # or a tool to record.
            plain = ranking.query == query and variant.note is None and ranking.tool is None
            found = ranking.results
            if not plain:
                found = with_variant(found, variant)
            results.append(found)
            if ranking.query == query and ranking.tool is None:
                of_question = found
            else:
                of_parts.append(found)
        if len(results) == 1:
            return list(results[0][:limit])
        longest = max((len(found) for found in results), default=0)
        top_k = longest if limit is None else limit
        if self.mode != "share":
            return fuse(results, self.mode, None, top_k)
        if of_question:
            return fuse_with_question(of_question, of_parts, top_k)
        return fuse(results, self.mode_without_question, None, top_k)

    def describe_failures(self, rankings: Sequence[VariantResults]) -> str:
        """Describe the failed searches and their errors. The result is empty without failures."""
        failed = [ranking for ranking in rankings if ranking.error is not None]
        if not failed:
            return ""
        reasons = [
            f"{item.query[:60]!r}{for_tool(item)}: {describe_error(item.error)}" for item in failed
        ]
        return f"{len(failed)} of {len(rankings)} searches failed: {'; '.join(reasons)}"


def _of_variant(
    query: str, tool: str | None, outcome: Sequence[ScoredNode] | Exception
) -> VariantResults:
    """Return the results of a variant, or an object with the error of its search.

    If the tool is a query engine, its result is the answer.
    """
    if isinstance(outcome, Exception):
        return VariantResults(query, [], outcome, tool=tool)
    is_answered = tool is not None and bool(outcome) and is_answer(outcome[0])
    return VariantResults(
        query,
        outcome,
        answer=outcome[0].node.text if is_answered else None,
        tool=tool,
        is_from_engine=is_answered,
    )
