"""Apply LlamaIndex node postprocessors to the results of a retriever inside a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import ForeignNode, is_answer, read_sources
from ...retrievers.plans.effects import find_all
from ...retrievers.plans.plan import Do, gather
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import Results, ScoredNode
from ...retrievers.strategies.outcome import result_key
from ...retrievers.strategies.self_query import SelfQueryRetriever
from ...retrievers.strategies.sub_question import SubQuestionRetriever
from ...retrievers.strategies.transform_retriever import TransformRetriever
from ...retrievers.tracing import Span, start_span
from .nodes import NodeWithEvidence, to_results

Processors = Sequence[BaseNodePostprocessor]


class PostprocessedRetriever(BaseRetriever):
    """A retriever that applies LlamaIndex node postprocessors to the results of another retriever.

    Nodes that the postprocessors do not change remain nodes of their graph. If a result is an
    answer, the postprocessors are applied to its sources, and an answer without remaining sources
    is removed. If the postprocessors do not sort the results by score, the scores are replaced by
    reciprocal ranks.

    Args:
        inner: The retriever.
        processors: The postprocessors, in the order in which they are applied.
    """

    name = "node postprocessors"

    def __init__(self, inner: RetrieverProtocol, processors: Processors) -> None:
        super().__init__()
        self.inner = inner
        self.processors = processors
        self.has_windows = getattr(inner, "has_windows", False)

    @property
    def is_free(self) -> bool:
        """Always False, because a postprocessor may call a model."""
        return False

    def __repr__(self) -> str:
        return f"PostprocessedRetriever({self.inner!r})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the postprocessed results for each query."""
        rankings = await find_all(self.inner, queries, limit, filters)
        calls = [
            partial(self._processed, query, ranking)
            for query, ranking in zip(queries, rankings, strict=True)
        ]
        with start_span(self.name, queries=queries) as span:
            results = await gather(calls)
            span.set_results(results)
        return results

    async def _processed(self, query: str, results: Results) -> Results:
        answers: Results = []
        passages: Results = []
        for result in results:
            sources = _sources(result)
            if not sources:
                passages.append(result)
            elif kept := await self._kept(query, sources):
                answers.append(_with_sources(result, kept))
        return [*answers, *await self._kept(query, passages)]

    async def _kept(self, query: str, results: Sequence[ScoredNode]) -> Results:
        """Return the results that remain after all postprocessors."""
        if not results:
            return []
        given: list[NodeWithScore] = [*await Do(partial(to_results, results), kind="work")]
        before = [each.node.model_copy(deep=True) for each in given]
        bundle = QueryBundle(query)
        call = partial(self._postprocess, given, bundle)
        acall = partial(self._apostprocess, given, bundle)
        processed = await Do(call, acall)
        return _to_scored(processed, results, before, query)

    def _postprocess(self, nodes: list[NodeWithScore], bundle: QueryBundle) -> list[NodeWithScore]:
        for processor in self.processors:
            nodes = processor.postprocess_nodes(nodes, query_bundle=bundle)
        return nodes

    async def _apostprocess(
        self, nodes: list[NodeWithScore], bundle: QueryBundle
    ) -> list[NodeWithScore]:
        for processor in self.processors:
            nodes = await processor.apostprocess_nodes(nodes, query_bundle=bundle)
        return nodes


def _sources(result: ScoredNode) -> tuple[ScoredNode, ...]:
    """Return the sources of an answer. For other results, return an empty tuple."""
    if isinstance(result.node, ForeignNode) and is_answer(result):
        return result.node.sources
    return ()


def _with_sources(answer: ScoredNode, sources: Sequence[ScoredNode]) -> ScoredNode:
    """Return a copy of an answer in which the sources and the evidence are replaced."""
    node = replace(answer.node, sources=tuple(sources))  # type: ignore[call-arg]
    match = replace(answer.evidence[0], node=node)
    evidence = chain.from_iterable(source.evidence for source in sources)
    return replace(answer, node=node, evidence=(match, *evidence))


def _to_scored(
    processed: Sequence[NodeWithScore],
    results: Sequence[ScoredNode],
    before: Sequence[BaseNode],
    query: str,
) -> Results:
    """Convert postprocessed LlamaIndex nodes back to nodekin results.

    Args:
        processed: The nodes after postprocessing.
        results: The results before postprocessing.
        before: For each result, a copy of its LlamaIndex node before postprocessing.
        query: The query.
    """
    scores = [each.score for each in processed]
    has_scores = not any(score is None for score in scores)
    if not has_scores or any(a < b for a, b in pairwise(map(_number, scores))):
        scores = [1 / rank for rank in range(1, len(processed) + 1)]
    converted: Results = []
    for each, score in zip(processed, scores, strict=True):
        result = _result_of(each, results, before, query)
        converted.append(replace(result, score=_number(score)))
    return converted


def _result_of(
    processed: NodeWithScore,
    results: Sequence[ScoredNode],
    before: Sequence[BaseNode],
    query: str,
) -> ScoredNode:
    """Return the original result of a node that did not change, or a new result if it changed."""
    origin: ScoredNode | None = None
    for result, node in zip(results, before, strict=True):
        if node.node_id != processed.node_id:
            continue
        origin = result
        if node == processed.node:
            return result
    _, (changed,) = read_sources([processed], PostprocessedRetriever.name, query)
    if origin is None:
        return changed
    changed = replace(changed, node=replace(changed.node, document_id=origin.node.document_id))
    if isinstance(processed, NodeWithEvidence) and processed.evidence:
        return replace(changed, evidence=origin.evidence)
    return changed


def _number(score: float | None) -> float:
    return 0.0 if score is None else float(score)


def with_postprocessors(retriever: Any, processors: Processors) -> Any:
    """Return a copy of a retriever that applies postprocessors before a model reads passages.

    Only strategies that answer sub-questions or search in steps let a model read passages. For all
    other strategies, it is sufficient that the query engine applies the postprocessors.
    """
    if not processors or not isinstance(retriever, BaseRetriever):
        return retriever
    writes_queries = isinstance(retriever, TransformRetriever | SelfQueryRetriever)
    reads_passages = retriever.calls_model and (
        isinstance(retriever, SubQuestionRetriever) or not writes_queries
    )
    changed: dict[str, RetrieverProtocol] = {}
    for name, inner in retriever.inner_retrievers:
        new = with_postprocessors(inner, processors)
        if reads_passages:
            new = PostprocessedRetriever(new, processors)
        if new is not inner:
            changed[name] = new
    return retriever.with_inner_retrievers(changed) if changed else retriever


class PassedResults:
    """An observer that collects all results that remain after postprocessing.

    Pass it to ``observe`` to collect the results inside a ``with`` block.
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def begin(self, span: Span, parent: Span | None) -> None:
        """Remember the span if it belongs to a ``PostprocessedRetriever``."""
        if span.name == PostprocessedRetriever.name:
            self._spans.append(span)

    def end(self, span: Span) -> None:
        """Do nothing, because the span already contains its results."""

    @property
    def keys(self) -> set[tuple[str, str]]:
        """The keys of all results and of the sources of answers, as returned by ``result_key``."""
        keys: set[tuple[str, str]] = set()
        for span in self._spans:
            for result in chain.from_iterable(span.results or ()):
                keys.add(result_key(result))
                keys.update(result_key(source) for source in _sources(result))
        return keys
