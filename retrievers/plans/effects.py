"""The basic calls of strategies: sending a prompt to a model, and querying a retriever."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...nodegraph.concurrency import run_in_tasks, run_in_threads
from ...nodegraph.errors import ModelTimeoutError
from ...nodegraph.models.usage import usage_of
from ..base_retriever import check_takes_filters
from ..call import Call
from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import Results
from ..tracing import start_span
from .plan import MAX_PARALLEL, Do
from .timeouts import TimeLimitError

if TYPE_CHECKING:
    from ...nodegraph.models.llm import LLM


T = TypeVar("T")

GROWTH = 4
"""The factor by which the number of candidates grows with each further search."""


async def ask(
    llm: LLM,
    prompt: str,
    schema: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    *,
    streamed: bool = False,
) -> str:
    """Send a prompt to a language model and return its answer.

    Args:
        llm: The language model.
        prompt: The prompt.
        schema: The JSON schema of the answer, for models that support structured output. The answer
            is then a text in JSON format. If None, the answer can be any text.
        timeout: The time limit for the answer in seconds. If None, the timeout of the model's
            client applies.
        streamed: Whether the answer can be streamed to the caller. An answer with a schema is never
            streamed.

    Raises:
        ModelTimeoutError: If the answer takes longer than the time limit.
        ModelError: If the model fails.

    Example:
        >>> from nodekin.nodegraph import LLM, NodeGraph
        >>> from nodekin.retrievers import BaseRetriever, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Rivers run."])
        >>> words, model = Retriever(graph, "ROOT"), LLM(lambda prompt: "tea")
        >>> class Translated(BaseRetriever):
        ...     async def search_all(self, queries, limit, filters):
        ...         english = [await ask(model, f"Translate to English: {q}") for q in queries]
        ...         return await find_all(words, english, limit, filters)
        >>> [result.text for result in Translated().retrieve("茶")]
        ['Green tea.']
    """
    is_streamed = streamed and schema is None
    with start_span("ask", model=llm.name, prompt=prompt) as span:
        try:
            answer = await Do(
                llm.complete,
                llm.acomplete,
                args=(prompt,) if schema is None else (prompt, schema),
                kind="model",
                timeout=timeout,
                stream=llm.stream if is_streamed else None,
                astream=llm.astream if is_streamed else None,
            )
        except TimeLimitError:
            raise ModelTimeoutError(
                f"the language model {llm.name!r} did not answer within {timeout:g} s"
            ) from None
        usage = usage_of(answer)
        span.attributes["answer"] = answer
        span.outcome = usage
        if usage.prompt_tokens is not None and usage.completion_tokens is not None:
            span.attributes["prompt_tokens"] = usage.prompt_tokens
            span.attributes["completion_tokens"] = usage.completion_tokens
    return answer


async def find_all(
    retriever: RetrieverProtocol,
    queries: Sequence[str],
    top_k: int | None = None,
    filters: Filters | None = None,
) -> list[Results]:
    """Return the results of a retriever for each query.

    If the retriever has a method ``batch``, all queries are passed in one call, so that they can be
    embedded together. Otherwise, the retriever is called once per query, in parallel.

    Args:
        retriever: The retriever.
        queries: The queries.
        top_k: The maximum number of results per query. If None, the ``top_k`` of the retriever is
            used.
        filters: Conditions on metadata. If None, the results are not filtered.

    Returns:
        A list with the results of each query, in the order of the queries.

    Raises:
        ValueError: If a restriction is active but the retriever does not accept filters.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import BaseRetriever, Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Rivers run."])
        >>> words = Retriever(graph, "ROOT")
        >>> class Spelled(BaseRetriever):
        ...     async def search_all(self, queries, limit, filters):
        ...         corrected = [query.replace("rivver", "river") for query in queries]
        ...         return await find_all(words, corrected, limit, filters)
        >>> [result.text for result in Spelled().retrieve("rivvers")]
        ['Rivers run.']
    """
    if Call.begin().restriction is not None:
        check_takes_filters(retriever, "a restriction")
    search = _Search(retriever, top_k, filters)
    return await Do(search.find, search.afind, args=(queries,))


@dataclass(frozen=True, slots=True)
class _Search:
    """A search with fixed arguments that can be performed for one or more queries."""

    retriever: RetrieverProtocol
    top_k: int | None
    filters: Filters | None

    def find(self, queries: Sequence[str]) -> list[Results]:
        """Return the results of each query."""
        batch = getattr(self.retriever, "batch", None)
        if batch is None or len(queries) < 2:
            return run_in_threads(self._find_one, queries, MAX_PARALLEL)
        return list(batch(list(queries), top_k=self.top_k, filters=self.filters))

    async def afind(self, queries: Sequence[str]) -> list[Results]:
        """Asynchronous version of ``find``."""
        if len(queries) == 1:  # a single search needs no task
            return [await self._afind_one(queries[0])]
        abatch = getattr(self.retriever, "abatch", None)
        if abatch is None or not queries:
            return await run_in_tasks(self._afind_one, queries, MAX_PARALLEL)
        return list(await abatch(list(queries), top_k=self.top_k, filters=self.filters))

    def _find_one(self, query: str) -> Results:
        return self.retriever.retrieve(query, top_k=self.top_k, filters=self.filters)

    async def _afind_one(self, query: str) -> Results:
        return await self.retriever.aretrieve(query, top_k=self.top_k, filters=self.filters)


async def find_one(
    retriever: RetrieverProtocol, query: str, top_k: int | None, filters: Filters | None
) -> Results:
    """Return the results of a retriever for a single query."""
    (results,) = await find_all(retriever, [query], top_k, filters)
    return results


Select = Callable[
    [Sequence[str], Sequence[Results]], Coroutine[Any, Any, Sequence[tuple[Results, bool]]]
]
"""A function that selects results from candidates.

It returns the selected results, and whether more candidates should be fetched.
"""


async def fetch_until_full(
    retriever: RetrieverProtocol,
    queries: Sequence[str],
    select: Select,
    *,
    fetch_k: int,
    max_fetch_k: int,
    filters: Filters | None,
) -> list[Results]:
    """Select results from candidates, and fetch more candidates while results are missing.

    The results of a query are selected from the candidates of its last search. A query is not
    searched again if the retriever returned fewer candidates than requested, since it has no more.

    Args:
        retriever: The retriever that returns the candidates.
        queries: The queries. Queries with enough results are not searched again.
        select: The function that selects the results of each query.
        fetch_k: The number of candidates in the first search.
        max_fetch_k: The maximum number of candidates.
        filters: Filter conditions for the candidates.
    """
    selected: list[Results] = [[] for _ in queries]
    short = list(range(len(queries)))
    while short:
        short_queries = [queries[at] for at in short]
        candidates = await find_all(retriever, short_queries, fetch_k, filters)
        outcomes = await select(short_queries, candidates)
        still_short = []
        for at, of_query, outcome in zip(short, candidates, outcomes, strict=True):
            selected[at], wants_more = outcome
            if wants_more and fetch_k < max_fetch_k and len(of_query) >= fetch_k:
                still_short.append(at)
        short = still_short
        fetch_k = min(GROWTH * fetch_k, max_fetch_k)
    return selected
