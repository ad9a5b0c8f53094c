"""Rewrite a query more clearly before it is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ...nodegraph.models.output.queries import parse_query
from ..plans.plan import Plan
from ..plans.prompting import Prompt
from ..protocols import RetrieverLike
from ..results import OutputOptions
from .model_prompt import QueryTransform, QueryVariants, StrategySettings, model_or
from .transform_retriever import TransformRetriever

if TYPE_CHECKING:
    from typing_extensions import Unpack

PROMPT = Prompt(
    zh="""\
请把原问题改写成更清楚、更适合检索的一句话：改正错字，写全简称，去掉寒暄、语气词和与检索无关的话，保留所有人名、地名、数字和条件。
不要回答问题，不要增加问题里没有的内容；已经清楚的问题原样输出。{domain}{glossary}只输出改写后的问题。

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
question as it is if it is clear already. {domain}{glossary}Write only the rewritten question, in \
the language of the question.

Example
Question: hello, just wondering how hihg is mt everest??
Rewritten question: How high is Mount Everest?

To rewrite
Question: {query}
Rewritten question:""",
    required=("query",),
    optional=("domain", "glossary"),
)

_DOMAIN = Prompt("问题属于以下领域：{domain}。", "The field is: {domain}. ", ("domain",))

_GLOSSARY = Prompt("使用下列术语：\n{terms}\n", "Use these terms:\n{terms}\n", ("terms",))


class QueryRewrite(QueryTransform):
    """Let a model rewrite a query more clearly.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        domain: The field of the questions, in a few words.
        glossary: The terms of the corpus by those that people use: ``{"tea": "Camellia
            sinensis"}``. The model sees the entries whose key is in the query.
        settings: How the model is asked. A prompt has ``{query}``, and may have ``{domain}`` and
            ``{glossary}``.

    Example:
        >>> QueryRewrite(lambda prompt: "Rewritten question: How long is the Nile?")("nile lenght?")
        ['How long is the Nile?']
    """

    name = "rewrite"
    PROMPT = PROMPT
    FORM = '{"query": "..."}'

    def __init__(
        self,
        llm: object,
        *,
        domain: str | None = None,
        glossary: Mapping[str, str] | None = None,
        settings: StrategySettings | None = None,
    ) -> None:
        super().__init__(llm, settings)
        self.domain = domain
        self.glossary = dict(glossary or {})

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the rewritten query as a plan."""
        language = self.prompt_language(query)
        domain = "" if not self.domain else _DOMAIN.fill(language, domain=self.domain)
        terms = [f"{k}: {v}" for k, v in self.glossary.items() if k.casefold() in query.casefold()]
        rewritten = yield from self.ask(
            query,
            partial(parse_query, query=query),
            domain=domain,
            glossary="" if not terms else _GLOSSARY.fill(language, terms="\n".join(terms)),
        )
        return QueryVariants((rewritten,))


class QueryRewriteRetriever(TransformRetriever):
    """Search for the query as a model rewrites it.

    Choose it where questions have typing errors, short forms or chatter.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes, or a ``QueryRewrite``.
        domain: The field of the questions, in a few words.
        glossary: The terms of the corpus by those that people use.
        settings: How the model is asked. See ``StrategySettings``.
        top_k: How many results at most. None for the inner retriever's own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

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

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        domain: str | None = None,
        glossary: Mapping[str, str] | None = None,
        settings: StrategySettings | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        options = {"domain": domain, "glossary": glossary, "settings": settings}
        transform = model_or(llm, QueryTransform, QueryRewrite, options)
        super().__init__(inner, transform, top_k=top_k, **output)
