"""Query rewriting: clarify a query, or phrase it in several ways, before the search."""

from __future__ import annotations

from functools import partial

from ...nodegraph.models.output.queries import parse_phrasings, parse_rewrite
from ...nodegraph.models.templates import Language
from ..plans.prompting import PromptReplacement
from ..prompts.query_prompts import EXPANSION, REWRITE
from ..protocols import RetrieverLike
from ..validation import whole
from .model_prompt import OnError, QueryTransform, QueryVariants
from .transform_retriever import StrategyMode, TransformRetriever


class QueryRewrite(QueryTransform):
    """A query transform that rewrites the query more clearly.

    The prompt has the placeholder ``{query}``. The arguments are described in ``QueryTransform``.

    Example:
        >>> QueryRewrite(lambda prompt: "Rewritten question: How long is the Nile?")("nile lenght?")
        ['How long is the Nile?']
    """

    name = "rewrite"
    PROMPT = REWRITE
    FORM = '{"query": "..."}'

    async def variants(self, query: str) -> QueryVariants:
        """Return the rewritten query."""
        return QueryVariants((await self.ask(query, partial(parse_rewrite, query=query)),))


class QueryRewriteRetriever(TransformRetriever):
    """A retriever that rewrites the query with a language model before the search.

    Use it for questions with typing errors, abbreviations or small talk. If the model fails or
    nothing is found, the original query is searched, and the evidence contains a note. The
    arguments are described in ``TransformRetriever``; ``llm`` is a model or a ``QueryRewrite``
    object.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> model = lambda prompt: "How long is the Nile?"
        >>> retriever = QueryRewriteRetriever(Retriever(graph, "ROOT"), model)
        >>> print(retriever("how logn is that river in egypt")[0].explain())  # doctest: +ELLIPSIS
        1...  ROOT  "The Nile is 6,650 km long."
          1...  ROOT  bm25 for "How long is the Nile?": itself
            rewrite of "how logn is that river in egypt"
    """

    name = "rewrite search"
    variant_name = "rewrite"
    transform_type = QueryRewrite


class QueryExpansion(QueryTransform):
    """A query transform that phrases the query in several ways.

    The prompt has the placeholder ``{query}``, and optionally ``{count}``. The original query comes
    first unless ``include_query=False``.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        max_queries: The number of phrasings.
        include_query: See ``QueryTransform``.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the model is missing, or an option has the wrong type.
        ValueError: If ``max_queries`` is below 1, or an option is invalid.

    Example:
        >>> model = lambda prompt: "1. Nile length\\n2. How many km is the Nile?"
        >>> QueryExpansion(model)("How long is the Nile?")
        ['How long is the Nile?', 'Nile length', 'How many km is the Nile?']
    """

    name = "expand"
    supplements = True
    PROMPT = EXPANSION
    FORM = '{"queries": ["...", "..."]}'

    def __init__(
        self,
        llm: object,
        *,
        max_queries: int = 3,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm,
            include_query=include_query,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        self.max_queries = whole(max_queries, "max_queries", 1)

    async def variants(self, query: str) -> QueryVariants:
        """Return the alternative phrasings of a query."""
        parse = partial(parse_phrasings, query=query, limit=self.max_queries)
        phrasings = await self.ask(query, parse, count=self.max_queries)
        return QueryVariants(tuple(phrasings))


class MultiQueryRetriever(TransformRetriever):
    """A retriever that searches for several phrasings of a query and fuses the results.

    Use it if questions and documents use different words. ``HyDERetriever`` departs further from
    the wording of the question, and ``SubQuestionRetriever`` is intended for compound questions.

    Args:
        inner: Any retriever.
        llm: The language model, in any form that ``LLM`` accepts, or a ``QueryExpansion`` object.
        max_queries: The number of phrasings. Defaults to 3.
        mode: See ``TransformRetriever``. If None, ``"share"`` is used.
        top_k: See ``TransformRetriever``.
        include_query: See ``QueryTransform``.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the retriever or model is missing, or an option is unknown.
        ValueError: If ``max_queries`` is below 1, or an option is invalid.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The stream is 6,650 km long.", "Tea is a drink."])
        >>> model = lambda prompt: "Length of the stream\\nKilometers of the river"
        >>> retriever = MultiQueryRetriever(Retriever(graph, "ROOT"), model)
        >>> print(retriever("How far does the river go?")[0].explain())  # doctest: +ELLIPSIS
        0...  ROOT  "The stream is 6,650 km long."
          0...  ROOT  bm25 for "Length of the stream": itself, which gave ...
            phrasing of "How far does the river go?"
    """

    name = "multi-query"
    variant_name = "phrasing"
    default_mode = "share"
    transform_type = QueryExpansion

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        max_queries: int | None = None,
        mode: StrategyMode | None = None,
        top_k: int | None = None,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        transform = self.transform_of(
            llm,
            max_queries=max_queries,
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
