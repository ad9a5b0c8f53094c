"""Rewrite a query before the search, more clearly or in several phrasings."""

from __future__ import annotations

from functools import partial

from ...nodegraph.models.output.queries import parse_phrasings, parse_query
from ...nodegraph.models.templates import Language
from ..plans.prompting import Prompt, PromptReplacement
from ..protocols import RetrieverLike
from ..results import OutputFormat
from ..validation import whole
from .model_prompt import OnError, QueryTransform, QueryVariants
from .transform_retriever import StrategyMode, TransformRetriever

REWRITE_PROMPT = Prompt(
    zh="""\
请把原问题改写成更清楚、更适合检索的一句话：改正错字，写全简称，去掉寒暄、语气词和与检索无关的话，保留所有人名、地名、数字和条件。
不要回答问题，不要增加问题里没有的内容；已经清楚的问题原样输出。只输出改写后的问题。

例
原问题：你好，想问下珠穆朗马峰到底有多高啊？
改写后的问题：珠穆朗玛峰有多高？

要改写的
原问题：{query}
改写后的问题：""",
    en="""\
Rewrite the question as one clear sentence that suits a search engine: mend typing errors, write
short forms out, leave out greetings and whatever does not matter to the search, and keep all
names, numbers and conditions. Do not answer it, and add nothing that it does not say. Repeat a
question as it is if it is clear already. Write only the rewritten question, in \
the language of the question.

Example
Question: hello, just wondering how hihg is mt everest??
Rewritten question: How high is Mount Everest?

To rewrite
Question: {query}
Rewritten question:""",
    required=("query",),
)


class QueryRewrite(QueryTransform):
    """A query transform to a clearer query.

    The prompt has the placeholder ``{query}``. See ``QueryTransform`` for the arguments.

    Example:
        >>> QueryRewrite(lambda prompt: "Rewritten question: How long is the Nile?")("nile lenght?")
        ['How long is the Nile?']
    """

    name = "rewrite"
    PROMPT = REWRITE_PROMPT
    FORM = '{"query": "..."}'

    async def variants(self, query: str) -> QueryVariants:
        """Return the rewritten query."""
        return QueryVariants((await self.ask(query, partial(parse_query, query=query)),))


class QueryRewriteRetriever(TransformRetriever):
    """A retriever that searches the rewritten query.

    Choose it for questions with typing errors, abbreviations or small talk. If the model fails or
    nothing is found, the query itself is searched, with a note in the evidence. See
    ``TransformRetriever`` for the arguments; ``llm`` is a model or a ``QueryRewrite``.

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


EXPANSION_PROMPT = Prompt(
    zh="""\
请把原问题换成 {count} 种不同的问法，用来检索：换用同义词、全称或简称，改变句式，或换个角度提问，
但问的必须是同一件事。保留所有人名、地名、数字和条件。只写问法，不写答案：每行一种，各不相同，不要编号，不要解释。

例
原问题：珠穆朗玛峰有多高？
其他问法：
珠峰的海拔是多少米？
世界最高峰珠穆朗玛峰的高度是多少？
珠穆朗玛峰海拔有几米？

要改写的
原问题：{query}
其他问法：
""",
    en="""\
Write {count} other phrasings of the question to search with: use synonyms, full or short names,
another sentence form, or ask from another side, but always for the same thing. Keep all names,
numbers and conditions, and do not answer. Write one phrasing a line, each different, without
numbers or remarks, in the language of the question.

Example
Question: How high is Mount Everest?
Other phrasings:
What is the height of Mount Everest in meters?
Elevation of Mt. Everest, the highest mountain of the world
How tall is Everest?

To rephrase
Question: {query}
Other phrasings:
""",
    required=("query",),
    optional=("count",),
)


class QueryExpansion(QueryTransform):
    """A query transform to several phrasings of the query.

    The prompt has the placeholder ``{query}``, and optionally ``{count}``. The query itself comes
    first unless ``include_query=False``.

    Args:
        llm: The model, in any form that ``LLM`` takes.
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
    PROMPT = EXPANSION_PROMPT
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
        """Return the phrasings."""
        parse = partial(parse_phrasings, query=query, limit=self.max_queries)
        phrasings = await self.ask(query, parse, count=self.max_queries)
        return QueryVariants(tuple(phrasings))


class MultiQueryRetriever(TransformRetriever):
    """A retriever that searches several phrasings of a query, and fuses the results.

    Choose it for questions with other words than the documents. ``HyDERetriever`` deviates
    further from the question; ``SubQuestionRetriever`` is for compound questions.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes, or a ``QueryExpansion``.
        max_queries: The number of phrasings. None: 3.
        mode: See ``TransformRetriever``. If None, ``"share"``.
        top_k: See ``TransformRetriever``.
        output_format: See ``BaseRetriever``.
        join: See ``BaseRetriever``.
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
        output_format: OutputFormat | None = None,
        join: bool | str = False,
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
            output_format=output_format,
            join=join,
        )
