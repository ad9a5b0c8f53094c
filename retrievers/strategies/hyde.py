"""Search for passages that a model imagines, in place of the query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from ...nodegraph import NodeGraph
from ...nodegraph.models import Vectors
from ...nodegraph.models.output import read_passage
from ..filters import Filters
from ..plans import Each, Plan, Prompt
from ..protocols import RetrieverProtocol
from ..ranking import Mode
from ..results import OutputFormat, ScoredNode
from ..retriever import Retriever
from ..validation import whole
from .query_transform import QueryTransform, QueryVariants
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

    def _forms(self, query: str) -> Plan[QueryVariants]:
        read = partial(read_passage, query=query)
        made = yield Each([self._asked(query, read) for _ in range(self.count)])
        passages = [each for each in made if isinstance(each, str)]
        failed = [each for each in made if not isinstance(each, str)]
        if failed and (not passages or self.on_error == "raise"):
            raise failed[0]
        note = f"{len(failed)} of {self.count} passages failed: {failed[0]}" if failed else None
        return QueryVariants((query, *passages) if self.include_query else tuple(passages), note)


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
        inner: RetrieverProtocol,
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
        forms: Sequence[QueryVariants],
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


@dataclass(frozen=True, slots=True)
class FindMean:
    """Ask a retriever that compares embeddings for the mean of each query's forms.

    Attributes:
        retriever: The retriever.
        queries: The queries.
        forms: What each is searched for with: itself, embedded as a query, and passages.
        weight: What the query itself counts, beside 1 for each passage.
        top_k: How many results of each query.
        filters: Conditions, checked before ranking.
    """

    retriever: Retriever
    queries: Sequence[str]
    forms: Sequence[Sequence[str]]
    weight: float = 1.0
    top_k: int | None = None
    filters: Filters | None = None

    def do(self) -> list[list[ScoredNode]]:
        """Return the results of each query, in their order; none of a blank one."""
        asked = self._asked()
        found = self.retriever.batch_vectors(
            self._names(asked),
            lambda graph, key: self._means(
                graph, key, asked, graph.embeddings.query_vectors(self._own(asked), key)
            ),
            top_k=self.top_k,
            filters=self.filters,
        )
        return self._spread(asked, found)

    async def ado(self) -> list[list[ScoredNode]]:
        """Return the same without blocking the event loop."""
        asked = self._asked()

        async def means(graph: NodeGraph, key: str) -> Vectors:
            known = await graph.embeddings.aquery_vectors(self._own(asked), key)
            return await asyncio.to_thread(self._means, graph, key, asked, known)

        found = await self.retriever.abatch_vectors(
            self._names(asked), means, top_k=self.top_k, filters=self.filters
        )
        return self._spread(asked, found)

    def _asked(self) -> list[int]:
        return [at for at, query in enumerate(self.queries) if query.strip()]

    def _names(self, asked: Sequence[int]) -> list[str]:
        """Return what evidence calls each search: its passages."""
        return [name_of(self.queries[at], self.forms[at]) for at in asked]

    def _own(self, asked: Sequence[int]) -> list[str]:
        """Return the queries that count themselves."""
        return [self.queries[at] for at in asked if self.queries[at] in self.forms[at]]

    def _means(self, graph: NodeGraph, key: str, asked: Sequence[int], own: Vectors) -> Vectors:
        """Return the mean of the unit vectors of each query, (queries, dimension)."""
        import numpy as np

        known = dict(zip(self._own(asked), own, strict=True))
        passages = [f for at in asked for f in self.forms[at] if f != self.queries[at]]
        texts = list(dict.fromkeys(passages))
        vectors: dict[str, Any] = {}
        if texts:
            made = graph.embeddings.embedder(key).passages(texts)
            vectors.update(zip(texts, made, strict=True))
        means = []
        for at in asked:
            query = self.queries[at]
            parts = [
                self.weight * _unit(known[query]) if form == query else _unit(vectors[form])
                for form in self.forms[at]
            ]
            means.append(np.sum(parts, axis=0))
        return np.array(means, np.float32)

    def _spread(
        self, asked: Sequence[int], found: Sequence[list[ScoredNode]]
    ) -> list[list[ScoredNode]]:
        results: list[list[ScoredNode]] = [[] for _ in self.queries]
        for at, each in zip(asked, found, strict=True):
            results[at] = each
        return results


def name_of(query: str, forms: Sequence[str]) -> str:
    """Return what evidence calls a mean: the passages, or the query where there are none."""
    return "\n".join(each for each in forms if each != query) or query


def _unit(vector: Any) -> Any:
    import numpy as np

    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
