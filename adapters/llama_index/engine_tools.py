"""Answer sub-questions with LlamaIndex query engines."""

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

from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.call import Call, restrict_calls
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import ForeignNode, read_output, read_sources
from ...retrievers.plans.plan import Do, gather_each
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import Results
from ...retrievers.strategies.named_tools import Tools
from ...retrievers.strategies.sub_question import SubQuestionRetriever
from ...retrievers.strategies.transform_retriever import Variants
from ...retrievers.strategies.variant_results import VariantResults
from ...retrievers.tracing import start_span
from .postprocessed_retriever import PostprocessedRetriever
from .retriever import NodeGraphRetriever


class EngineRetriever(BaseRetriever):
    """A retriever that queries a LlamaIndex query engine and returns its answer as the only result.

    The source nodes of the engine's response become the sources of the answer. If the response has
    no text (``response_mode="no_text"``), the source nodes themselves are returned.

    Filters and restrictions are applied if the retriever of the engine is a ``NodeGraphRetriever``.

    Args:
        engine: The query engine.
        engine_name: The name of the engine's tool.
        answers: Whether the engine writes answers. If False, and if the engine can retrieve without
            answering, only the retrieved nodes are returned.
    """

    name = "query engine"

    def __init__(self, engine: BaseQueryEngine, engine_name: str, *, answers: bool = True) -> None:
        super().__init__()
        self.engine = engine
        self.engine_name = engine_name
        self.answers = answers

    @property
    def takes_filters(self) -> bool:
        """Whether the engine applies the filters that are passed with a call."""
        return isinstance(getattr(self.engine, "retriever", None), NodeGraphRetriever)

    @property
    def is_free(self) -> bool:
        """Always False, because an engine may call a language model."""
        return False

    def __repr__(self) -> str:
        return f"EngineRetriever({self.engine_name!r})"

    def without_answers(self) -> EngineRetriever:
        """Return a copy that skips writing answers, if the engine can retrieve without them."""
        return EngineRetriever(self.engine, self.engine_name, answers=False)

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results for each query. Blank queries have no results.

        Raises:
            ValueError: If filters are given that the engine cannot apply.
        """
        conditions = Call.begin(filters).conditions
        if conditions and not self.takes_filters:
            raise ValueError(
                f"the engine of the tool {self.engine_name!r} must have a NodeGraphRetriever as "
                f"its retriever to apply the conditions {dict(conditions)!r:.120}, got "
                f"{type(self.engine).__name__}; set the conditions where the engine is created"
            )
        with start_span(self.name, queries=queries, engine=self.engine_name) as span:
            with restrict_calls(filters):
                results = await gather_each(self._results, queries)
            span.set_results(results)
        return results

    async def _results(self, query: str) -> Results:
        if not query.strip():
            return []
        if not self.answers and _retrieves_alone(self.engine):
            return await self._retrieved(query)
        response = await Do(self._query, self._aquery, args=(query,))
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
    """Return a complete response. A streaming response is read to its end first."""
    if isinstance(response, StreamingResponse):
        complete: Response = response.get_response()
        return complete
    return response


def _retrieves_alone(engine: BaseQueryEngine) -> bool:
    """Return whether ``retrieve`` returns the same sources that a ``query`` would use.

    A class that overrides ``query`` may remove sources in that method. It can be trusted only if it
    or one of its subclasses also overrides ``retrieve``.
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
    """A sub-question retriever that returns the sources of the answers that query engines write.

    The text of an engine's response is used as the answer to the sub-question. If an answer has no
    sources, the answer itself is returned as a result.
    """

    async def search_groups(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> list[list[VariantResults]]:
        """Search for all sub-questions, with one call for each retriever.

        Errors are included in the results instead of being raised.
        """
        rankings = await super().search_groups(variants, limit, filters)
        return [[_with_sources(ranking) for ranking in of_query] for of_query in rankings]

    def _retriever(self, tool: str | None) -> RetrieverProtocol:
        retriever = super()._retriever(tool)
        return retriever if self.answers else _without_answers(retriever)


def _without_answers(retriever: RetrieverProtocol) -> RetrieverProtocol:
    """Return a retriever whose query engine retrieves nodes without writing an answer.

    An engine that cannot retrieve separately still writes answers. A retriever that does not use a
    query engine is returned unchanged.
    """
    if isinstance(retriever, EngineRetriever):
        return retriever.without_answers()
    if isinstance(retriever, PostprocessedRetriever):
        return PostprocessedRetriever(_without_answers(retriever.inner), retriever.processors)
    return retriever


def _with_sources(ranking: VariantResults) -> VariantResults:
    """Replace the answer to a sub-question with the sources of the answer."""
    if ranking.answer is None:
        return ranking
    answer = ranking.results[0].node
    if isinstance(answer, ForeignNode) and answer.sources:
        return replace(ranking, results=answer.sources)
    return ranking


def tools_of_engines(tools: Sequence[QueryEngineTool]) -> Tools:
    """Convert query engine tools to retrievers.

    The result is a dictionary that contains a description and a retriever for each tool name.

    Raises:
        ValueError: If two tools have the same name.
    """
    named: dict[str, tuple[str, RetrieverProtocol]] = {}
    for tool in tools:
        name = str(tool.metadata.name)
        if name in named:
            raise ValueError(f"the names of tools must differ, got {name!r} twice")
        named[name] = tool.metadata.description, EngineRetriever(tool.query_engine, name)
    return named
