"""Search for passages that a model imagines, in place of the query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from ..checks import whole
from ..effects import Each
from ..filters import Filters
from ..output import OutputFormat
from ..patterns.fuse import Mode
from ..plan import Plan
from ..prompt import Prompt
from ..protocols import Retrieves
from ..retriever import Retriever
from .find_mean import FindMean, name_of
from .prose import read_passage
from .query_transform import Forms, QueryTransform
from .transform_retriever import Ranking, TransformRetriever

PROMPT = Prompt(
    zh="""\
请写两三句话来回答下面的问题，写法像百科或文档中包含答案的那一段原文。不确定的内容可以合理推测，
不要说明这是推测，不要提问，不要加标题。只输出这段文字。

问题：{query}

段落（两三句话）：""",
    en="""\
Write a short passage that answers the question below, as it could stand in a reference work or a
document: two or three sentences, with the names that the question has. Where you are not sure,
make a plausible guess and do not say so. Ask nothing back, add no heading, and write only the
passage, in the language of the question.

Question: {query}

Passage (two or three sentences):""",
    required=("query",),
)


class HyDE(QueryTransform):
    """Let a model write passages that could answer a query, to be searched for.

    Each passage is a call of its own, all at once; a model that always answers the same gives one.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        count: How many passages to ask for.
        include_query: Whether the query itself comes first.
        **settings: ``prompt`` (with ``{query}``), ``language``, ``on_error``, ``retries``,
            ``timeout``; see ``QueryTransform``.

    Source:
        Gao, Ma, Lin and Callan, "Precise zero-shot dense retrieval without relevance labels", 2022.

    Example:
        >>> HyDE(lambda prompt: "The Nile is 6,650 km long.")("How long is the Nile?")
        ['How long is the Nile?', 'The Nile is 6,650 km long.']
    """

    name = "hyde"
    PROMPT = PROMPT

    def __init__(
        self, llm: object, *, count: int = 1, include_query: bool = True, **settings: Any
    ) -> None:
        super().__init__(llm, **settings)
        self.count = whole(count, "count", 1)
        self.include_query = include_query

    def _forms(self, query: str) -> Plan[Forms]:
        read = partial(read_passage, query=query)
        made = yield Each([self._asked(query, read) for _ in range(self.count)])
        passages = [each for each in made if isinstance(each, str)]
        failed = [each for each in made if not isinstance(each, str)]
        if failed and (not passages or self.on_error == "raise"):
            raise failed[0]
        note = f"{len(failed)} of {self.count} passages failed: {failed[0]}" if failed else None
        return Forms((query, *passages) if self.include_query else tuple(passages), note)


class HyDERetriever(TransformRetriever):
    """Search for passages that a model imagines, which are closer to passages than questions are.

    Where the inner retriever is a ``Retriever`` that compares embeddings, the mean of the vectors
    of the passages (as passages) and the query is searched for, as published. Any other inner
    retriever is asked the passages and the query, and what they find is fused, which is ours.

    Choose it for questions that are far from the words of the documents, with a model that knows
    something of the field: what it imagines wrongly is searched for as well.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes; or a ``HyDE``.
        mean: Whether the mean of vectors is searched for; None where the inner retriever can.
        mode: How results are fused, where they are.
        query_weight: What the query itself counts beside 1 for each passage, in the fusion or in
            the mean.
        top_k: How many results at most; None for the inner retriever's own.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.
        **settings: Those of ``HyDE``: ``count``, ``include_query``, ``prompt``, ``on_error``.

    Raises:
        ValueError: If the mean is wanted of a retriever that has none.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["At 6,650 km the Nile is the longest river.", "A long, long way."])
        >>> model = lambda prompt: "The Nile river is about 6,800 km long."
        >>> retriever = HyDERetriever(Retriever(graph, "ROOT"), model, include_query=False)
        >>> print(retriever("How far?")[0].explain())  # doctest: +ELLIPSIS
        2...  ROOT  "At 6,650 km the Nile is the longest river."
          2...  ROOT  bm25 for "The Nile river is about 6,800 km long.": itself
            hyde of "How far?"
    """

    name = "hyde search"
    form = "hyde"
    Transform = HyDE

    def __init__(
        self,
        inner: Retrieves,
        llm: object,
        *,
        mean: bool | None = None,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        top_k: int | None = None,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
        **settings: Any,
    ) -> None:
        super().__init__(
            inner,
            llm,
            mode=mode,
            query_weight=query_weight,
            top_k=top_k,
            output_format=output_format,
            join=join,
            **settings,
        )
        able = isinstance(inner, Retriever) and inner.similarity.mode == "embedding"
        if mean and not able:
            raise ValueError(
                "mean=True wants a Retriever that compares embeddings as the inner one, not "
                f"{inner!r:.80}; leave it out, and what the passages find is fused"
            )
        self.mean = able if mean is None else bool(mean)

    def _rankings(
        self,
        queries: Sequence[str],
        forms: Sequence[Forms],
        limit: int | None,
        filters: Filters | None,
    ) -> Plan[list[list[Ranking]]]:
        if not self.mean:
            return (yield from super()._rankings(queries, forms, limit, filters))
        found = yield FindMean(
            cast(Retriever, self.inner),
            queries,
            [made.queries for made in forms],
            self.query_weight,
            limit,
            filters,
        )
        return [
            [Ranking(name_of(query, made.queries), results)]
            for query, made, results in zip(queries, forms, found, strict=True)
        ]
