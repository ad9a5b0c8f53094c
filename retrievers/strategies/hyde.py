"""Search for passages that a model imagines, instead of the query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...nodegraph.graph import NodeGraph
from ...nodegraph.models.embedder import Vectors
from ...nodegraph.models.output.free_text import parse_passage
from ..filters import Filters
from ..plans.effects import Each
from ..plans.plan import Effect, Plan
from ..plans.prompting import Prompt
from ..protocols import RetrieverLike
from ..ranking import Mode
from ..results import OutputOptions, Results, ScoredNode
from ..retriever import Retriever
from ..validation import whole
from .model_prompt import QueryTransform, QueryVariants, StrategySettings, model_or
from .transform_retriever import TransformRetriever, VariantResults, Variants

if TYPE_CHECKING:
    from typing_extensions import Unpack

Pairs = list[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class FindMean(Effect[list[Results]]):
    """Search a retriever that compares embeddings for the mean of each query's texts. An effect.

    Attributes:
        retriever: The retriever.
        queries: The queries.
        texts: What is averaged for each query: the query itself, embedded as a query, and
            passages.
        weight: The weight of the query itself. Each passage has 1.
        top_k: How many results of each query.
        filters: Conditions, checked before ranking.
    """

    retriever: Retriever
    queries: Sequence[str]
    texts: Sequence[Sequence[str]]
    weight: float = 1.0
    top_k: int | None = None
    filters: Filters | None = None

    def run(self) -> list[list[ScoredNode]]:
        """Return the results of each query. For a blank one what meets the filters."""
        pairs = self._pairs()

        def means(graph: NodeGraph, key: str) -> Vectors:
            vectors = graph.embeddings.query_vectors(_queries(pairs), key)
            return self._means(graph, key, pairs, vectors)

        names = [mean_name(*pair) for pair in pairs]
        results = self.retriever.batch_vectors(names, means, top_k=self.top_k, filters=self.filters)
        blank = self.retriever.batch(self._blank(), top_k=self.top_k, filters=self.filters)
        return self._by_query(results, blank)

    async def arun(self) -> list[list[ScoredNode]]:
        """Async version of ``run``."""
        pairs = self._pairs()

        async def means(graph: NodeGraph, key: str) -> Vectors:
            vectors = await graph.embeddings.aquery_vectors(_queries(pairs), key)
            return await asyncio.to_thread(self._means, graph, key, pairs, vectors)

        names = [mean_name(*pair) for pair in pairs]
        results = await self.retriever.abatch_vectors(
            names, means, top_k=self.top_k, filters=self.filters
        )
        blank = await self.retriever.abatch(self._blank(), top_k=self.top_k, filters=self.filters)
        return self._by_query(results, blank)

    def _pairs(self) -> Pairs:
        """Return the queries that are not blank, and their texts."""
        pairs = zip(self.queries, self.texts, strict=True)
        return [(query, texts) for query, texts in pairs if query.strip()]

    def _means(self, graph: NodeGraph, key: str, pairs: Pairs, query_vectors: Vectors) -> Vectors:
        """Return the mean of the unit vectors of each query's texts, (queries, dimension)."""
        import numpy as np

        by_query = dict(zip(_queries(pairs), query_vectors, strict=True))
        texts = dict.fromkeys(text for query, texts in pairs for text in texts if text != query)
        vectors = graph.embeddings.embedder(key).passages(list(texts)) if texts else ()
        by_text = dict(zip(texts, vectors, strict=True))

        def unit(query: str, text: str) -> Any:
            vector = by_query[text] if text == query else by_text[text]
            length = float(np.linalg.norm(vector))
            weight = self.weight if text == query else 1.0
            return weight * (vector / length if length else vector)

        means = [sum(unit(query, text) for text in texts) for query, texts in pairs]
        return np.array(means, np.float32)

    def _blank(self) -> list[str]:
        return [query for query in self.queries if not query.strip()]

    def _by_query(
        self, results: Sequence[list[ScoredNode]], blank: Sequence[list[ScoredNode]]
    ) -> list[list[ScoredNode]]:
        """Return the results in the order of the queries."""
        results_iterator, blank_iterator = iter(results), iter(blank)
        return [
            next(results_iterator if query.strip() else blank_iterator) for query in self.queries
        ]


def mean_name(query: str, texts: Sequence[str]) -> str:
    """Return what evidence calls a mean: the passages, or the query if there are none."""
    return "\n".join(text for text in texts if text != query) or query


def _queries(pairs: Pairs) -> list[str]:
    """Return the queries that are themselves among their texts."""
    return [query for query, texts in pairs if query in texts]


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

    Each passage is a separate call, all at once. Equal passages count once.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        count: How many passages to ask for.
        settings: How the model is asked. A prompt has ``{query}``. The query itself comes first
            unless ``include_query=False``.

    Source:
        Gao, Ma, Lin and Callan, "Precise zero-shot dense retrieval without relevance labels", 2022.

    Example:
        >>> HyDE(lambda prompt: "The Nile is 6,650 km long.")("How long is the Nile?")
        ['How long is the Nile?', 'The Nile is 6,650 km long.']
    """

    name = "hyde"
    supplements = True
    PROMPT = PROMPT

    def __init__(
        self, llm: object, *, count: int = 1, settings: StrategySettings | None = None
    ) -> None:
        super().__init__(llm, settings)
        self.count = whole(count, "count", 1)

    def variants(self, query: str) -> Plan[QueryVariants]:
        """Return the passages as a plan."""
        read = partial(parse_passage, query=query)
        answers = yield from Each([self.ask(query, read) for _ in range(self.count)])
        passages = [answer for answer in answers if isinstance(answer, str)]
        errors = [answer for answer in answers if not isinstance(answer, str)]
        if errors and (not passages or self.settings.on_error == "raise"):
            raise errors[0]
        note = f"{len(errors)} of {self.count} passages failed: {errors[0]}" if errors else None
        return QueryVariants(tuple(passages), note)


class HyDERetriever(TransformRetriever):
    """Search for passages that a model imagines: they resemble the documents more than a question.

    If the inner retriever is a ``Retriever`` that compares embeddings, the mean of the vectors of
    the passages (as passages) and the query is searched for, as published. Any other inner
    retriever searches for the passages and the query, and their results are fused, an addition to
    the published method.

    Choose it for questions that share few words with the documents, with a model that knows
    something of the field: what it imagines wrongly is searched for as well.

    Args:
        inner: Any retriever.
        llm: The model, in any form that ``LLM`` takes, or a ``HyDE``.
        count: How many passages to ask for. None for 1.
        mean: Whether to search for the mean of vectors. None for True if the inner retriever can.
        mode: How results are fused otherwise. See ``fuse``.
        query_weight: The weight of the query itself, in the mean or in the fusion. Each passage
            has 1.
        settings: How the model is asked. See ``StrategySettings``.
        top_k: How many results at most, also of each query. None for the inner retriever's own.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        ValueError: If ``mean`` is True for a retriever that compares no embeddings.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["At 6,650 km the Nile is the longest river.", "A long, long way."])
        >>> model = lambda prompt: "The Nile river is about 6,800 km long."
        >>> passage_alone = StrategySettings(include_query=False)
        >>> retriever = HyDERetriever(Retriever(graph, "ROOT"), model, settings=passage_alone)
        >>> print(retriever("How far?")[0].explain())  # doctest: +ELLIPSIS
        2...  ROOT  "At 6,650 km the Nile is the longest river."
          2...  ROOT  bm25 for "The Nile river is about 6,800 km long.": itself
            hyde of "How far?"
    """

    name = "hyde search"
    variant_name = "hyde"

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        count: int | None = None,
        mean: bool | None = None,
        mode: Mode = "rrf",
        query_weight: float = 1.0,
        settings: StrategySettings | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        options = {"count": count, "settings": settings}
        super().__init__(
            inner,
            model_or(llm, QueryTransform, HyDE, options),
            mode=mode,
            query_weight=query_weight,
            top_k=top_k,
            **output,
        )
        retriever = self.inner
        able = isinstance(retriever, Retriever) and retriever.similarity.mode == "embedding"
        if mean and not able:
            raise ValueError(
                "mean=True wants a Retriever that compares embeddings as the inner one, not "
                f"{inner!r:.80}; leave it out, and what the passages find is fused"
            )
        self.mean = able if mean is None else bool(mean)

    def search_variants(
        self, variants: Variants, limit: int | None, filters: Filters | None
    ) -> Plan[list[list[VariantResults]]]:
        """Search for the mean of each query's variants, or for all of them."""
        if not self.mean:
            return (yield from super().search_variants(variants, limit, filters))
        queries, texts = [q for q, _ in variants], [group.queries for _, group in variants]
        inner = cast("Retriever", self.inner)
        rankings = yield from FindMean(inner, queries, texts, self.query_weight, limit, filters)
        return [
            [VariantResults(mean_name(query, group), ranking)]
            for query, group, ranking in zip(queries, texts, rankings, strict=True)
        ]
