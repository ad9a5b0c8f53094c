"""Sub-questions that are answered by LlamaIndex's query engines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool

from ...nodegraph.concurrency import context_value
from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.filters import Filters, all_of
from ...retrievers.foreign.outputs import ForeignNode, read_output, read_sources
from ...retrievers.plans.plan import Do, gather
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.restriction import RESTRICTION
from ...retrievers.results import Results
from ...retrievers.strategies.named_tools import Tools
from ...retrievers.strategies.sub_question import SubQuestionRetriever
from ...retrievers.strategies.transform_retriever import Variants
from ...retrievers.strategies.variant_results import VariantResults
from ...retrievers.tracing import start_span
from .postprocessed_retriever import PostprocessedRetriever
from .retriever import NodeGraphRetriever


class EngineRetriever(BaseRetriever):
    """A retriever around a LlamaIndex query engine, which is queried as a whole.

    The answer is the only result, and its source nodes are the sources of the answer. Without a
    text (``response_mode="no_text"``), the source nodes are the results.

    Filters and restrictions are applied if the engine's retriever is a ``NodeGraphRetriever``.

    Args:
        engine: The query engine.
        engine_name: The name of its tool.
        answers: Whether the engine answers. If False, an engine that can retrieve without an
            answer only retrieves.
    """

    name = "query engine"

    def __init__(self, engine: BaseQueryEngine, engine_name: str, *, answers: bool = True) -> None:
        super().__init__()
        self.engine = engine
        self.engine_name = engine_name
        self.answers = answers

    @property
    def takes_filters(self) -> bool:
        """Whether the engine applies the filters of a call."""
        return isinstance(getattr(self.engine, "retriever", None), NodeGraphRetriever)

    @property
    def is_free(self) -> bool:
        """False, since an engine calls a model."""
        return False

    def __repr__(self) -> str:
        return f"EngineRetriever({self.engine_name!r})"

    def without_answers(self) -> EngineRetriever:
        """Return a retriever that skips the answer if the engine can retrieve alone."""
        return EngineRetriever(self.engine, self.engine_name, answers=False)

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query. A blank query has no results.

        Raises:
            ValueError: If the engine cannot apply the given conditions.
        """
        conditions = all_of(RESTRICTION.get(), filters)
        if conditions and not self.takes_filters:
            raise ValueError(
                f"the engine of the tool {self.engine_name!r} must have a NodeGraphRetriever as "
                f"its retriever to apply the conditions {dict(conditions)!r:.120}, got "
                f"{type(self.engine).__name__}; set the conditions where the engine is created"
            )
        with start_span(self.name, queries=queries, engine=self.engine_name) as span:
            with context_value(RESTRICTION, conditions):
                results = await gather([partial(self._results, query) for query in queries])
            span.set_results(results)
        return results

    async def _results(self, query: str) -> Results:
        if not query.strip():
            return []
        if not self.answers and _retrieves_alone(self.engine):
            return await self._retrieved(query)
        response = await Do(partial(self._query, query), partial(self._aquery, query))
        answer = read_output(response, self.engine_name, query)
        if answer:
            return answer
        _, sources = read_sources(response, self.engine_name, query)
        return sources

    def _query(self, query: str) -> RESPONSE_TYPE:
        return _complete(self.engine.query(query))

    async def _aquery(self, query: str) -> RESPONSE_TYPE:
        response = await self.engine.aquery(query)
        if isinstance(response, AsyncStreamingResponse):
            return await response.get_response()
        return _complete(response)

    async def _retrieved(self, query: str) -> Results:
        engine: Any = self.engine
        bundle = QueryBundle(query)
        call: Callable[[], Any] = partial(engine.retrieve, bundle)
        acall: Callable[[], Awaitable[Any]] = partial(engine.aretrieve, bundle)
        nodes = await Do(call, acall)
        _, results = read_sources(nodes, self.engine_name, query)
        return results


def _complete(response: RESPONSE_TYPE) -> RESPONSE_TYPE:
    """Return a response whose stream has been read."""
    if isinstance(response, StreamingResponse):
        complete: Response = response.get_response()
        return complete
    return response


def _retrieves_alone(engine: BaseQueryEngine) -> bool:
    """Return whether the engine's ``retrieve`` returns the sources that ``query`` would use.

    A class that overrides ``query`` may remove sources there, so it must also override
    ``retrieve``.
    """
    if not isinstance(engine, RetrieverQueryEngine):
        return False
    for cls in type(engine).__mro__:
        if "retrieve" in vars(cls):
            return True
        if not {"query", "aquery", "_query", "_aquery"}.isdisjoint(vars(cls)):
            return False
    return False


class EngineSubQuestions(SubQuestionRetriever):
    """Sub-questions whose results are the sources of an engine's answer.

    The text of the engine's answer is the answer to the sub-question. An answer without sources is
    itself a result.
    """

    async def search_groups(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search all variants, with one call per retriever. The results include the errors."""
        rankings = await super().search_groups(variants, limit, filters)
        return [[_with_sources(ranking) for ranking in of_query] for of_query in rankings]

    def _retriever(self, tool: str | None) -> RetrieverProtocol:
        retriever = super()._retriever(tool)
        return retriever if self.answers else _without_answers(retriever)


def _without_answers(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a tool's retriever without answers, if its engine can retrieve alone."""
    if isinstance(retriever, EngineRetriever):
        return retriever.without_answers()
    if isinstance(retriever, PostprocessedRetriever):
        return PostprocessedRetriever(_without_answers(retriever.inner), retriever.processors)
    return retriever


def _with_sources(ranking: VariantResults) -> VariantResults:
    """Return the results of a sub-question. Its answer is replaced by the answer's sources."""
    if ranking.answer is None:
        return ranking
    answer = ranking.results[0].node
    if isinstance(answer, ForeignNode) and answer.sources:
        return replace(ranking, results=answer.sources)
    return ranking


def tools_of_engines(tools: Sequence[QueryEngineTool]) -> Tools:
    """Return the retrievers of query engine tools by name, each with its description."""
    named: dict[str, tuple[str, RetrieverProtocol]] = {}
    for tool in tools:
        name = str(tool.metadata.name)
        if name in named:
            raise ValueError(f"the names of tools must differ, got {name!r} twice")
        named[name] = tool.metadata.description, EngineRetriever(tool.query_engine, name)
    return named
