"""Make LlamaIndex responses, and the record of their retrieval."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    get_response_synthesizer,
)
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ...nodegraph.models.templates import language_of
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import ForeignNode, is_answer
from ...retrievers.planned_retriever import PlannedRetriever
from ...retrievers.plans.effects import Compute, Find
from ...retrievers.plans.plan import Plan
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.strategies.multi_step import MultiStepRetriever
from ...retrievers.strategies.outcome import OutcomeObserver, SubResults, answer_texts
from ...retrievers.strategies.sub_question import SubQuestionRetriever
from ...retrievers.tracing import observe
from .instrumentation import report_spans
from .nodes import id_in_llama_index, to_node_with_score, to_scored_node
from .prompt_templates import changed_prompts, default_llm, to_templates

_WITH_PARTS = (SubQuestionRetriever.variant_name, MultiStepRetriever.name)

_ANSWER = "answer: "  # how the note of a partial answer begins


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """Hold the results of a retrieval, and how they were reached.

    Attributes:
        results: Best first.
        parts: The questions that were searched for besides the question itself. None if the
            retriever is no strategy with further questions.
        errors: Pairs of a question and what went wrong with it.
        ended: Why a search in steps has no further step.
    """

    results: list[ScoredNode] = field(default_factory=list)
    parts: tuple[SubResults, ...] | None = None
    errors: tuple[tuple[str, str], ...] = ()
    ended: str | None = None

    def metadata(self) -> dict[str, Any]:
        """Return the fields ``sub_qa``, ``errors`` and ``ended`` of a response's metadata."""
        parts = self.parts or ()
        answers = [(part.question, Response(part.answer, _sources(part))) for part in parts]
        errors = [{"question": question, "error": error} for question, error in self.errors]
        return {
            **({} if self.parts is None else {"sub_qa": answers}),
            **({"errors": errors} if errors else {}),
            **({} if self.ended is None else {"ended": self.ended}),
        }

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Return the source nodes of a response that was made from nodes, each once.

        What a query engine answered from replaces its answer, which is among the evidence. After
        the nodes comes the best passage of each answer to a sub-question: the number of nodes
        holds for the whole question, and these answers are part of the prompt.
        """
        answers = {hit.node.id: hit for hit in self.results if is_answer(hit)}
        best = [part.results[0] for part in self.parts or () if part.answer and part.results]
        sources: dict[str, NodeWithScore] = {}
        for node in [*nodes, *map(to_node_with_score, best)]:
            for source in _answered_from(answers.get(node.node_id)) or [node]:
                sources.setdefault(source.node_id, source)
        return [*sources.values()]

    def answer_nodes(self, query: str) -> list[NodeWithScore]:
        """Return the answers to sub-questions as nodes, the only thing that a synthesizer reads.

        An answer of a query engine is among the results already.
        """
        texts = answer_texts(self.parts or (), language_of(query))
        return [NodeWithScore(node=TextNode(text=text)) for text in texts]


def _sources(part: SubResults) -> list[NodeWithScore]:
    return RetrievalRecord([*part.results]).sources([*map(to_node_with_score, part.results)])


def _answered_from(answer: ScoredNode | None) -> list[NodeWithScore]:
    """Return what an answer was made from, with the answer as evidence; nothing if unknown."""
    if answer is None or not isinstance(answer.node, ForeignNode):
        return []
    return [
        result
        for source in answer.node.sources
        for result in _answered_from(source)
        or [to_node_with_score(replace(source, evidence=(*source.evidence, *answer.evidence[:1])))]
    ]


class RecordingRetriever(PlannedRetriever):
    """Retrieve for one query, and record how.

    Args:
        inner: Any nodekin retriever.

    Attributes:
        record: Of the last retrieval.
    """

    name = "recording"

    def __init__(self, inner: RetrieverProtocol) -> None:
        super().__init__()
        self.inner = inner
        self.record = RetrievalRecord()

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[list[ScoredNode]]]:
        """Return the results of each query as a plan."""
        results = []
        for query in queries:
            self.record = yield from self._plan(query, limit, filters)
            results.append(self.record.results)
        return results

    def _plan(
        self, query: str, limit: int | None, filters: Filters | None
    ) -> Plan[RetrievalRecord]:
        observer = OutcomeObserver()
        with observe(observer):
            (results,) = yield from Find(self.inner, [query], limit, filters)
        outcome = observer.outcome
        if outcome is None:
            return RetrievalRecord(results, errors=_noted_errors(results))
        errors = dict.fromkeys((*outcome.errors, *_noted_errors(results, _WITH_PARTS)))
        return RetrievalRecord(results, outcome.parts, tuple(errors), outcome.ended)


def _noted_errors(
    results: Sequence[ScoredNode], but_of: Collection[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return the errors that the evidence notes, each once; a note can be an answer instead.

    Args:
        results: The results.
        but_of: The strategies whose errors are known otherwise, in other words.
    """
    variants = (v for result in results for match in result.evidence for v in match.variants)
    notes = dict.fromkeys(
        (v.query, v.note)
        for v in variants
        if v.note is not None and not v.strategy.startswith(tuple(but_of))
    )
    return tuple(note for note in notes if not note[1].startswith(_ANSWER))


Retrieve = Callable[[QueryBundle], Plan[tuple[list[NodeWithScore], RetrievalRecord]]]
"""Retrieves through LlamaIndex, with its events and postprocessors."""

ResponsePlan = Plan[tuple[Any, RetrievalRecord]]
"""Returns a response and the record of its retrieval."""

SYNTHESIS_OPTIONS = frozenset(inspect.signature(get_response_synthesizer).parameters) - {
    "llm",
    "callback_manager",
    "streaming",
    "verbose",
}
"""Arguments of LlamaIndex's response synthesizers, as query engines take them."""

_WITHOUT_MODEL = {ResponseMode.NO_TEXT: NoText, ResponseMode.CONTEXT_ONLY: ContextOnly}
"""LlamaIndex's own factory reads ``Settings.llm`` for these and fails without it."""


class Synthesizer(PromptMixin):
    """Make the response to a query, with its source nodes and its metadata so far."""

    @abstractmethod
    def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> ResponsePlan:
        """Return the response, and the record of its retrieval, as a plan.

        Args:
            query_bundle: The query.
            retrieve: Retrieves nodes for a bundle.
            filters: The conditions of the retrieval, for what is answered without it.
        """

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class LlamaIndexSynthesizer(Synthesizer):
    """Answer by LlamaIndex's response synthesizer, whose prompts can be read without a model.

    Args:
        synthesizer: The synthesizer. None to create the default one when it is needed.
        llm: The model to create it with. None for ``Settings.llm`` at the time of each query.
        streaming: Whether it streams.
        callback_manager: Its callback manager.
        options: More arguments of ``get_response_synthesizer``, by ``SYNTHESIS_OPTIONS``.

    Raises:
        ValueError: If there is no such ``response_mode``.
    """

    def __init__(
        self,
        synthesizer: BaseSynthesizer | None,
        llm: LLM | None,
        *,
        streaming: bool,
        callback_manager: CallbackManager,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._synthesizer = synthesizer
        self._llm = llm
        passed: Any = dict(options or {})
        if "response_mode" in passed:
            passed["response_mode"] = _response_mode(passed["response_mode"])
        self._options = {**passed, "streaming": streaming, "callback_manager": callback_manager}
        without_model = _WITHOUT_MODEL.get(passed.get("response_mode"))
        if synthesizer is None and without_model is not None:
            self._synthesizer = without_model(
                MockLLM(), callback_manager=callback_manager, streaming=streaming
            )
        self._prompt_holder = self._synthesizer or get_response_synthesizer(
            llm=MockLLM(), callback_manager=CallbackManager([]), **passed
        )

    def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> ResponsePlan:
        """Retrieve and answer, also from the answers to sub-questions.

        Raises:
            ImportError: If there is neither a model nor one in LlamaIndex's settings.
        """
        nodes, record = yield from retrieve(query_bundle)
        synthesizer = self._with_model()
        texts = [*record.answer_nodes(query_bundle.query_str), *nodes]
        response: Any = yield from Compute.of(
            synthesizer.synthesize, synthesizer.asynthesize, query_bundle, texts
        )
        response.source_nodes = record.sources(nodes)
        response.metadata = {}
        return response, record

    def _with_model(self) -> BaseSynthesizer:
        if self._synthesizer is not None:
            return self._synthesizer
        llm = self._llm
        if llm is None:
            llm = (
                MockLLM() if self._options.get("response_mode") in _WITHOUT_MODEL else default_llm()
            )
        synthesizer = get_response_synthesizer(llm=llm, **self._options)
        synthesizer.update_prompts(self._prompt_holder.get_prompts())
        return synthesizer

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompt_holder.get_prompts()

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        self._prompt_holder.update_prompts(prompts_dict)


def _response_mode(value: object) -> ResponseMode:
    try:
        return ResponseMode(value)
    except ValueError:
        modes = [mode.value for mode in ResponseMode]
        raise ValueError(f"response_mode is one of {modes}, not {value!r:.80}") from None


class QueryEngineSynthesizer(Synthesizer):
    """Answer by nodekin's query engine, from passages that LlamaIndex retrieves.

    Args:
        engine: The query engine; its own retriever is not used.
        streaming: Whether answers are streamed.
        callback_manager: Gets an event for each span.
    """

    def __init__(
        self, engine: QueryEngine, *, streaming: bool, callback_manager: CallbackManager
    ) -> None:
        self._engine = engine
        self._streaming = streaming
        self._report_spans = partial(report_spans, callback_manager)

    def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> ResponsePlan:
        """Answer, and retrieve where the engine needs passages."""
        passages = PassageRetriever(query_bundle, retrieve)
        engine = copy.copy(self._engine)
        engine.retriever = passages
        question = query_bundle.query_str
        with self._report_spans():
            if self._streaming:  # the rest of a stream runs in the context of its first text
                response = yield from Compute.of(
                    _stream, _astream, engine, question, passages, filters
                )
            else:
                answer: Answer = yield from Compute.of(
                    engine.query, engine.aquery, question, filters=filters
                )
                response = Response(answer.text, passages.sources(answer), _metadata(answer))
        return response, passages.record

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return to_templates(self._engine.prompts)

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        changed = changed_prompts(self._engine.prompts, prompts_dict)
        if changed:
            self._engine = self._engine.with_prompts(changed)


class PassageRetriever(PlannedRetriever):
    """Retrieve the passages of one answer through LlamaIndex, as a retriever of nodekin.

    The retriever of LlamaIndex adds the filters, which are those of the call.

    Args:
        query_bundle: The query.
        retrieve: Retrieves nodes for a bundle.

    Attributes:
        record: Of the last retrieval.
    """

    name = "passages"

    def __init__(self, query_bundle: QueryBundle, retrieve: Retrieve) -> None:
        super().__init__()
        self._bundle = query_bundle
        self._retrieve = retrieve
        self._nodes: dict[str, NodeWithScore] = {}  # by the node's id in nodekin
        self.record = RetrievalRecord()

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[list[ScoredNode]]]:
        """Return the results of each query as a plan."""
        results = []
        for query in queries:
            bundle = self._bundle if query == self._bundle.query_str else QueryBundle(query)
            nodes, self.record = yield from self._retrieve(bundle)
            results.append(self._results(nodes))
        return results

    def _results(self, nodes: Sequence[NodeWithScore]) -> list[ScoredNode]:
        """Return nodekin's results of LlamaIndex nodes, those of the record where they are."""
        by_id = {id_in_llama_index(hit.node): hit for hit in self.record.results}
        results = []
        for node in nodes:
            hit = by_id.get(node.node.node_id)
            score = 0.0 if node.score is None else float(node.score)
            result = to_scored_node(node) if hit is None else replace(hit, score=score)
            self._nodes[result.node.id] = node
            results.append(result)
        return results

    def sources(self, answer: Answer) -> list[NodeWithScore]:
        """Return an answer's sources as LlamaIndex nodes: ``[1]`` cites the first of them."""
        results = [source.result for source in answer.sources]
        results += [result for source in answer.sources for result in source.merged]
        return [self._nodes.get(r.node.id) or to_node_with_score(r) for r in results]


def _stream(
    engine: QueryEngine, question: str, passages: PassageRetriever, filters: Filters | None
) -> StreamingResponse:
    """Return the answer as the model writes it; its metadata is complete at the end."""
    stream = engine.stream(question, filters=filters)
    first = next(stream, "")  # the sources are known from now on
    metadata: dict[str, Any] = {}

    def texts() -> Generator[str, None, None]:
        with stream:
            yield first
            yield from stream
            metadata.update(_metadata(stream.answer))

    return StreamingResponse(texts(), passages.sources(stream.answer), metadata)


async def _astream(
    engine: QueryEngine, question: str, passages: PassageRetriever, filters: Filters | None
) -> AsyncStreamingResponse:
    """Async version of ``texts``."""
    stream = engine.astream(question, filters=filters)
    first = await anext(stream, "")
    metadata: dict[str, Any] = {}

    async def texts() -> AsyncGenerator[str, None]:
        async with stream:
            yield first
            async for text in stream:
                yield text
            metadata.update(_metadata(stream.answer))

    return AsyncStreamingResponse(texts(), passages.sources(stream.answer), metadata)


def _metadata(answer: Answer) -> dict[str, Any]:
    """Return an answer's fields of a response's metadata."""
    omitted = [{"node_id": o.result.node.id, "reason": o.reason} for o in answer.omitted]
    notes = {"preset": answer.preset is not None, "notes": list(answer.notes), "left_out": omitted}
    return {
        "found": answer.answered,
        "cited": [source.number for source in answer.cited],
        "calls": answer.calls,
        **{name: value for name, value in notes.items() if value},
    }
