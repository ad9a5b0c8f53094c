"""Let any nodekin retriever be a LlamaIndex retriever."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from ...retrievers import (
    Filters,
    MultiStepRetriever,
    Prompt,
    Retriever,
    RetrieverProtocol,
    ScoredNode,
    SubQuestionRetriever,
)
from ...retrievers.plans import PromptMixin
from ...retrievers.strategies import FindMean, MultiStep, SubResults, fused
from .filters import as_filters
from .instrumentation import telling
from .nodes import to_node_with_score
from .prompts import prompts_given, templates_of

dispatcher = get_dispatcher(__name__)


class NodeGraphRetriever(BaseRetriever):
    """Give any nodekin retriever to LlamaIndex: query engines, fusion, routers, tools.

    Results are fresh ``NodeWithEvidence`` around fresh ``TextNode``s, each node once, the best
    first. A search by words reads the query's ``query_str``; a ``Retriever`` that compares
    embeddings reads its ``embedding_strs`` (the mean of several, as after HyDE). The bundle is
    never changed, and what another model put into its ``embedding`` is not used.

    The prompts of a strategy are read and replaced as anywhere in LlamaIndex: ``get_prompts()``,
    ``update_prompts({"rewrite_en": PromptTemplate("... {query}")})``.

    What the retriever does inside is told to LlamaIndex stage by stage: a span and events for
    each search, fusion, reranking and model call, as children of this retrieval (``StageObserver``
    says how); events for the ``callback_manager`` likewise.

    Args:
        retriever: Any nodekin retriever: an object with ``retrieve`` and ``aretrieve``.
        similarity_top_k: How many nodes to return at most, counted as they are returned, after
            lifting to the target group; None for the retriever's own ``top_k``.
        filters: Conditions on metadata, checked before ranking, beside the retriever's own:
            nodekin's ``{"year": {"gte": 2000}}``, or ``MetadataFilters`` that translate exactly.
        callback_manager: As everywhere in LlamaIndex.
        object_map: As everywhere in LlamaIndex.
        objects: As everywhere in LlamaIndex.
        verbose: As everywhere in LlamaIndex.

    Raises:
        TypeError: If the retriever is none, or an argument of the wrong type.
        ValueError: If ``similarity_top_k`` is below 1, or a filter has no exact counterpart.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.query_engine import RetrieverQueryEngine
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> retriever = NodeGraphRetriever(search, similarity_top_k=2)
        >>> (result,) = retriever.retrieve("Which tea is black?")
        >>> result.text, result.evidence[0]["text"]
        ('Green tea is unfermented. Black tea is not.', 'Black tea is not.')
        >>> engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        >>> len(engine.query("Which tea is black?").source_nodes)
        1
    """

    def __init__(
        self,
        retriever: RetrieverProtocol,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        if isinstance(retriever, BaseRetriever) or not all(
            callable(getattr(retriever, name, None)) for name in ("retrieve", "aretrieve")
        ):
            raise TypeError(
                f"retriever is a nodekin retriever, an object with retrieve() and aretrieve() "
                f"such as nodekin.retrievers.Retriever(graph, 'group'), not {retriever!r:.80}"
            )
        super().__init__(callback_manager, object_map, objects, verbose)
        self.retriever = retriever
        self.similarity_top_k = similarity_top_k
        self.filters = as_filters(filters)
        self._recorder: Recorder | None = None

    @property
    def similarity_top_k(self) -> int | None:
        """How many nodes to return at most; None for the retriever's own ``top_k``."""
        return self._similarity_top_k

    @similarity_top_k.setter
    def similarity_top_k(self, value: int | None) -> None:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"similarity_top_k is a whole number or None, not {value!r:.80}")
        if value is not None and value < 1:
            raise ValueError(f"similarity_top_k must be 1 or more, not {value!r}")
        self._similarity_top_k = value

    @dispatcher.span
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        with telling(self.callback_manager, self):
            mean = self._mean(query_bundle)
            if mean is not None:
                (results,) = mean.run()
                self._keep(results)
            else:
                results = self._searched.retrieve(
                    query_bundle.query_str, top_k=self.similarity_top_k, filters=self.filters
                )
        return converted(results)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if not query_bundle.query_str.strip():
            return []
        with telling(self.callback_manager, self):
            mean = self._mean(query_bundle)
            if mean is not None:
                (results,) = await mean.arun()
                self._keep(results)
            else:
                results = await self._searched.aretrieve(
                    query_bundle.query_str, top_k=self.similarity_top_k, filters=self.filters
                )
        return await asyncio.to_thread(converted, results)

    def recorded(self, *, answers: bool) -> tuple[NodeGraphRetriever, Recorder]:
        """Return a copy for one query, and what will know all that it found.

        Args:
            answers: Whether sub-questions are answered on the way, where the retriever does that.
        """
        made = copy.copy(self)
        made._recorder = Recorder(self.retriever, answers=answers)
        return made, made._recorder

    def _keep(self, results: list[ScoredNode]) -> None:
        if self._recorder is not None:
            self._recorder.found = Found(results)

    @property
    def _searched(self) -> RetrieverProtocol:
        return self.retriever if self._recorder is None else self._recorder

    def _mean(self, query_bundle: QueryBundle) -> FindMean | None:
        """Return the search for what another text stands for the query, None where none does."""
        query, texts = query_bundle.query_str, query_bundle.custom_embedding_strs or []
        forms = list(dict.fromkeys(text for text in texts if text.strip()))
        inner = self.retriever
        if not forms or forms == [query]:
            return None
        if not isinstance(inner, Retriever) or inner.similarity.mode != "embedding":
            return None
        return FindMean(inner, [query], [forms], 1.0, self.similarity_top_k, self.filters)

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return templates_of(_prompts_of(self.retriever))

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        changed = prompts_given(_prompts_of(self.retriever), prompts_dict)
        if changed and isinstance(self.retriever, PromptMixin):
            self.retriever = self.retriever.with_prompts(changed)


def _prompts_of(retriever: RetrieverProtocol) -> Mapping[str, Prompt]:
    return retriever.prompts if isinstance(retriever, PromptMixin) else {}


def converted(results: Sequence[ScoredNode]) -> list[NodeWithScore]:
    """Make LlamaIndex results, the best first, of a node that came several times its best one."""
    best: dict[str, ScoredNode] = {}
    for result in sorted(results, key=lambda result: -result.score):
        best.setdefault(result.node.id, result)
    return [to_node_with_score(result) for result in best.values()]


_ANSWER = "answer: "


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """Hold a question that was searched for on the way to the answer.

    Attributes:
        question: The question.
        answer: What the model answers from what was found; None where it does not know, or was
            not asked.
        results: What was found.
    """

    question: str
    answer: str | None
    results: Sequence[ScoredNode]


@dataclass(frozen=True, slots=True)
class Found:
    """Hold what a retrieval found.

    Attributes:
        results: The nodes, best first.
        sub_answers: The questions that were searched for besides the question itself; None where
            the retriever does not ask any.
        errors: What went wrong on the way, as (question, error).
        ended: Why a search in steps went no further.
    """

    results: list[ScoredNode] = field(default_factory=list)
    sub_answers: tuple[SubAnswer, ...] | None = None
    errors: tuple[tuple[str, str], ...] = ()
    ended: str | None = None


class Recorder:
    """Be a retriever, for one query, that keeps what it found.

    Args:
        retriever: Any nodekin retriever.
        answers: Whether sub-questions may be answered on the way, where it does that.
    """

    def __init__(self, retriever: RetrieverProtocol, *, answers: bool = True) -> None:
        if isinstance(retriever, SubQuestionRetriever) and retriever.answers and not answers:
            retriever = copy.copy(retriever)
            retriever.answers = False
        self._retriever = retriever
        self.found = Found()

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        inner = self._retriever
        if isinstance(inner, SubQuestionRetriever):
            parts = inner.grouped(query, top_k=top_k, filters=filters)
            self.found = _of_parts(inner, query, parts, top_k)
        elif isinstance(inner, MultiStepRetriever):
            self.found = _of_steps(inner.steps(query, top_k=top_k, filters=filters))
        else:
            self.found = _plain(query, inner.retrieve(query, top_k=top_k, filters=filters))
        return self.found.results

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        inner = self._retriever
        if isinstance(inner, SubQuestionRetriever):
            parts = await inner.agrouped(query, top_k=top_k, filters=filters)
            self.found = _of_parts(inner, query, parts, top_k)
        elif isinstance(inner, MultiStepRetriever):
            self.found = _of_steps(await inner.asteps(query, top_k=top_k, filters=filters))
        else:
            found = await inner.aretrieve(query, top_k=top_k, filters=filters)
            self.found = _plain(query, found)
        return self.found.results


def _of_parts(
    retriever: SubQuestionRetriever, query: str, parts: Sequence[SubResults], top_k: int | None
) -> Found:
    limit = retriever.top_k if top_k is None else top_k
    found = [part for part in parts if part.results or part.error is None]
    weights = [retriever.query_weight if part.question == query else 1.0 for part in found]
    return Found(
        fused([part.results for part in found], retriever.mode, limit, weights),
        tuple(SubAnswer(p.question, p.answer, p.results) for p in parts if p.question != query),
        tuple((part.question, part.error) for part in parts if part.error is not None),
    )


def _of_steps(done: MultiStep) -> Found:
    return Found(
        list(done.results),
        tuple(SubAnswer(step.question, step.answer, step.results) for step in done.steps),
        () if done.note is None else ((done.question, done.note),),
        done.ended,
    )


def _plain(query: str, results: list[ScoredNode]) -> Found:
    """Return what any other retriever found; what failed within stands in the evidence."""
    forms = (form for each in results for match in each.evidence for form in match.variants)
    notes = dict.fromkeys((form.query, form.note) for form in forms if form.note is not None)
    # A strategy within may note partial answers as well.
    return Found(results, errors=tuple(each for each in notes if not each[1].startswith(_ANSWER)))
