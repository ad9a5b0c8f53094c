"""Put a query into a clearer form before it is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...nodegraph.models.output import read_query
from ..plans import Plan, Prompt
from .query_transform import QueryTransform, QueryVariants
from .transform_retriever import TransformRetriever

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

_FORM = '{"query": "..."}'

_SCHEMA = {
    "title": "rewriting",
    "description": "The question in a clearer form",
    "type": "object",
    "properties": {"query": {"type": "string", "description": "The rewritten question"}},
    "required": ["query"],
    "additionalProperties": False,
}


class QueryRewrite(QueryTransform):
    """Let a model put a query into a clearer form.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        domain: What the questions are about, in a few words.
        glossary: Terms as the corpus writes them, by the forms people use: ``{"tea": "Camellia
            sinensis"}``. Those whose form is in the query are shown to the model.
        **settings: ``prompt`` (with ``{query}``; ``{domain}`` and ``{glossary}`` may stand in
            it), ``language``, ``on_error``, ``retries``, ``timeout``; see ``QueryTransform``.

    Raises:
        TypeError: If the model is none, or a prompt is no text.
        ValueError: If a prompt lacks a name or has an unknown one.

    Example:
        >>> QueryRewrite(lambda prompt: "Rewritten question: How long is the Nile?")("nile lenght?")
        ['How long is the Nile?']
    """

    name = "rewrite"
    PROMPT = PROMPT

    def __init__(
        self,
        llm: object,
        *,
        domain: str | None = None,
        glossary: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(llm, **settings)
        self.domain = domain
        self.glossary = dict(glossary or {})

    def _forms(self, query: str) -> Plan[QueryVariants]:
        language = self._language(query)
        domain = "" if not self.domain else _DOMAIN.fill(language, domain=self.domain)
        told = [f"{k}: {v}" for k, v in self.glossary.items() if k.casefold() in query.casefold()]
        glossary = "" if not told else _GLOSSARY.fill(language, terms="\n".join(told))
        read = partial(read_query, query=query)
        rewritten = yield from self._asked(
            query, read, _SCHEMA, _FORM, domain=domain, glossary=glossary
        )
        return QueryVariants((rewritten,))


class QueryRewriteRetriever(TransformRetriever):
    """Search for a clearer form of the query that a model writes.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes; or a ``QueryRewrite``.
        **settings: ``top_k``, ``output_format``, ``join`` as for ``TransformRetriever``; all others
            are those of ``QueryRewrite``: ``prompt``, ``glossary``, ``on_error``.

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
    form = "rewrite"
    Transform = QueryRewrite
