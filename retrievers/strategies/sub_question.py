"""Split a question into sub-questions, search them in parallel, and optionally answer each."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from ...nodegraph.models.output.free_text import parse_partial_answer
from ...nodegraph.models.templates import Language
from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..plans.plan import MAX_PARALLEL, Part, gather, run
from ..plans.prompting import PromptReplacement, ask_and_parse
from ..prompts.question_prompts import PARTIAL_ANSWER
from ..protocols import RetrieverLike
from ..results import ScoredNode
from ..tracing import start_span
from .model_prompt import OnError, QueryVariants, describe_error
from .named_tools import Tools, named_tools
from .outcome import SUB_QUESTION, StrategyOutcome, SubResults
from .passages import fit_passages
from .query_decomposition import QueryDecomposition
from .transform_retriever import StrategyMode, TransformRetriever, Variants
from .variant_results import VariantResults

logger = logging.getLogger(__name__)


PARTIAL_NAME = "partial answer"

MAX_CONTEXT_LENGTH = 6000
"""The maximum number of characters of the passages in the prompt for a partial answer."""


class SubQuestionRetriever(TransformRetriever):
    """A retriever that splits a question into sub-questions, searches them, and fuses the results.

    Use it for questions that ask about several things or compare them. The sub-questions are
    searched in parallel. If a sub-question depends on earlier results, use ``MultiStepRetriever``
    instead.

    The original question is searched as well and weighs as much as all sub-questions together, so
    that a poor decomposition does little harm. If the search for a sub-question fails, the evidence
    of the other results contains a note. If all searches fail, an error is raised.

    If tools are given instead of a retriever, the model also chooses a tool for each sub-question.
    A tool can be the retriever of a corpus or the query engine of a document. The answer of a query
    engine becomes a single passage, with the sub-question as its title and the evidence of its
    sources. If a tool fails or is unknown, ``grouped`` reports it in ``error``. If the model fails,
    every tool receives the original question.

    Args:
        inner: Any retriever, or a mapping of tools. Tools are retrievers, functions and query
            engines by name, or pairs of a description and one of these.
        llm: The language model, in any form that ``LLM`` accepts, or a ``QueryDecomposition``
            object.
        max_queries: The maximum number of sub-questions. Defaults to 5.
        answers: Whether the model answers each sub-question from its results. The answers are
            returned by ``grouped``, and they are included in the notes of the evidence.
        answer_prompt: A prompt that replaces the built-in prompt for these answers. It is a text
            with the placeholders ``{query}`` and ``{context}``, or a mapping of such texts by
            language.
        mode: See ``TransformRetriever``. If None, ``"share"`` is used, or ``"relative"`` for tools.
        top_k: See ``TransformRetriever``. If None, all results of all sub-questions are returned.
        include_query: See ``QueryTransform``.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the retriever or model is missing, or an option is unknown.
        ValueError: If the tools are empty, ``max_queries`` is below 1, or an option is invalid.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import QueryEngine, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile has 6,650 km.", "The Amazon has 6,400 km.", "Tea."])
        >>> model = lambda prompt: "How long is the Nile?\\nHow long is the Amazon?"
        >>> retriever = SubQuestionRetriever(Retriever(graph, "ROOT"), model, top_k=2)
        >>> for part in retriever.grouped("Which river is longer?"):
        ...     print(part.question, [result.node.text for result in part.results])
        Which river is longer? []
        How long is the Nile? ['The Nile has 6,650 km.']
        How long is the Amazon? ['The Amazon has 6,400 km.']
        >>> passages = Retriever(graph, "ROOT", top_k=1)
        >>> nile = QueryEngine(passages, lambda prompt: "6,650 km.")
        >>> tools = {"nile": ("The Nile", nile), "others": ("All else", passages)}
        >>> model = lambda prompt: "nile: How long is the Nile?\\nothers: How long is the Amazon?"
        >>> for part in SubQuestionRetriever(tools, model).grouped("Which river is longer?"):
        ...     print(part.tool, "|", part.question, "|", part.results[0].node.text)
        nile | How long is the Nile? | 6,650 km.
        others | How long is the Amazon? | The Amazon has 6,400 km.
    """

    name = "sub-questions"
    variant_name = "sub-question"
    default_mode = "share"
    # So that a node with low ranks for all sub-questions cannot become the best.
    mode_without_question = "relative"
    transform_type = QueryDecomposition

    def __init__(
        self,
        inner: RetrieverLike | Tools,
        llm: object,
        *,
        max_queries: int | None = None,
        answers: bool = False,
        answer_prompt: PromptReplacement | None = None,
        mode: StrategyMode | None = None,
        top_k: int | None = None,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        descriptions: dict[str, str] | None = None
        if isinstance(inner, Mapping):
            inner = named_tools(inner)
            descriptions = {name: text for name, (text, _) in inner.items()}
            if isinstance(llm, QueryDecomposition):
                llm = llm.with_tools(descriptions)
                descriptions = None
        transform = self.transform_of(
            llm,
            max_queries=max_queries,
            tools=descriptions,
            include_query=include_query,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        super().__init__(
            inner,
            transform,
            mode=mode,
            top_k=top_k,
        )
        self.answers = answers
        self._prompts = {PARTIAL_NAME: PARTIAL_ANSWER.replaced(answer_prompt)}

    def grouped(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[SubResults]:
        """Return the results of the original question and of each sub-question separately.

        Args:
            query: The question.
            top_k: The number of results per sub-question. Defaults to the ``top_k`` of the
                retriever.
            filters: Filter conditions, which are passed to the inner retriever.

        Raises:
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return run(self._groups, query, top_k, filters)

    async def _groups(
        self, query: str, top_k: int | None, filters: Filters | None
    ) -> list[SubResults]:
        limit = self.check_limit(top_k, filters)
        with start_span(self.name, queries=[query]) as span:
            variants = await self.query_transform.safe_variants(query)
            (rankings,) = await self.search_variants([(query, variants)], limit, filters)
            groups = [self._group(query, variants.note, ranking, limit) for ranking in rankings]
            found: list[ScoredNode] = []
            for group in groups:
                found += group.results
            span.set_results([found])
            span.outcome = self.outcome([(query, variants)], [rankings], limit)
        return groups

    def _group(
        self, query: str, note: str | None, ranking: VariantResults, limit: int | None
    ) -> SubResults:
        error: str | None = None
        results: list[ScoredNode] = []
        if ranking.error is None:
            results = self.fuse_variants(query, note, [ranking], limit)
        else:
            error = describe_error(ranking.error)
        problem = error or ranking.problem or note
        return SubResults(
            ranking.query,
            tuple(results),
            ranking.answer,
            problem,
            ranking.tool,
            ranking.is_from_engine,
        )

    async def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Return the results of all sub-questions of each question.

        If answers are enabled, the results contain the answers.
        """
        rankings = await super().search_variants(variants, limit, filters)
        parts: list[Part[VariantResults]] = []
        for (query, group), of_query in zip(variants, rankings, strict=True):
            parts += [partial(self._part, query, group, ranking, limit) for ranking in of_query]
        completed = iter(await gather(parts, MAX_PARALLEL if self.answers else 1))
        return [list(islice(completed, len(of_query))) for of_query in rankings]

    def fuse_variants(
        self, query: str, note: str | None, rankings: Sequence[VariantResults], limit: int | None
    ) -> list[ScoredNode]:
        """Fuse the results of the sub-questions of a query.

        By default, all results are returned.
        """
        limit = limit or sum(len(ranking.results) for ranking in rankings) or None
        return super().fuse_variants(query, note, rankings, limit)

    def outcome(
        self, variants: Variants, rankings: Sequence[Sequence[VariantResults]], limit: int | None
    ) -> StrategyOutcome:
        """Return the sub-questions with their results and errors."""
        parts: list[tuple[str, SubResults]] = []
        for (query, group), ranking in zip(variants, rankings, strict=True):
            parts += [(query, self._group(query, group.note, part, limit)) for part in ranking]
        return StrategyOutcome(  # the original query is not a sub-question
            tuple(p for query, p in parts if p.question != query or p.tool is not None),
            tuple((p.question, p.error) for _, p in parts if p.error is not None),
        )

    async def _part(
        self, query: str, group: QueryVariants, ranking: VariantResults, limit: int | None
    ) -> VariantResults:
        """Return the results of a sub-question, with an answer if answers are enabled.

        The search is recorded in a trace span.
        """
        if ranking.query == query and ranking.tool is None:
            return ranking
        with start_span(SUB_QUESTION, question=ranking.query) as span:
            if self.answers and ranking.results and ranking.answer is None:
                ranking = await self._answer(ranking)
            part = self._group(query, group.note, ranking, limit)
            facts = {"tool": part.tool, "answer": part.answer, "error": part.error}
            span.attributes.update(results=len(part.results))
            span.attributes.update({k: v for k, v in facts.items() if v is not None})
            span.outcome = part
        return ranking

    async def _answer(self, ranking: VariantResults) -> VariantResults:
        """Let the model answer a sub-question, and return the results with the answer."""
        transform = self.query_transform
        language = transform.prompt_language(ranking.query)
        with start_span(PARTIAL_NAME, query=ranking.query) as span:
            texts = [str(result.node.content) for result in ranking.results]
            context, count = fit_passages(texts, MAX_CONTEXT_LENGTH)
            template = self._prompts[PARTIAL_NAME]
            prompt = template.fill(language, query=ranking.query, context=context)
            span.attributes.update(passages=count, left_out=len(texts) - count)
            try:
                answer = await ask_and_parse(
                    transform.llm,
                    prompt,
                    parse_partial_answer,
                    language,
                    retries=transform.retries,
                    timeout=transform.timeout,
                )
            except Exception as error:
                if transform.on_error == "raise":
                    raise
                problem = f"{PARTIAL_NAME} failed: {describe_error(error)}"
                logger.warning("question %r: %s", ranking.query[:80], problem)
                span.attributes["note"] = problem
                return replace(ranking, problem=problem)
            span.attributes["answer"] = answer
        return replace(ranking, answer=answer)


def without_answers(retriever: object) -> Any:
    """Return a copy of a retriever in which no strategy generates answers to sub-questions."""
    if not isinstance(retriever, BaseRetriever):
        return retriever
    inner = {name: (item, without_answers(item)) for name, item in retriever.inner_retrievers}
    changed = {name: new for name, (item, new) in inner.items() if new is not item}
    other = retriever.with_inner_retrievers(changed) if changed else retriever
    if isinstance(other, SubQuestionRetriever):
        other = copy.copy(other)
        other.answers = False
    return other
