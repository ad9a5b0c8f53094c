"""Give the answers of nodekin's query engine as LlamaIndex responses."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.query_engine.sub_question_query_engine import SubQuestionAnswerPair
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.settings import Settings

from ...nodegraph.models import language_of
from ...retrievers import Answer, Filters, QueryEngine, RetrieverProtocol, ScoredNode
from .nodes import origin_of, to_node_with_score
from .prompts import prompts_given, templates_of
from .reranker import scored
from .retriever import Found

Told = Callable[[], Any]
"""Makes a context manager in which LlamaIndex is told of the stages."""


class Passages:
    """Be the retriever of one question, whose results LlamaIndex knows as nodes.

    A query engine retrieves through LlamaIndex, so that its events and postprocessors take part,
    and answers from nodekin's nodes.

    Args:
        find: Returns LlamaIndex's nodes for a query, and nodekin's results where it has them.
        afind: The same without blocking the event loop.
    """

    def __init__(self, find: Callable[..., Any], afind: Callable[..., Any]) -> None:
        self._find, self._afind = find, afind
        self._nodes: dict[str, NodeWithScore] = {}  # by the node's id in nodekin

    def retrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the best nodes, best first."""
        return self._known(*self._find(query))

    async def aretrieve(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        return self._known(*await self._afind(query))

    def node_of(self, result: ScoredNode) -> NodeWithScore:
        """Return the LlamaIndex node of a result."""
        known = self._nodes.get(result.node.id)
        return to_node_with_score(result) if known is None else known

    def _known(
        self, nodes: Sequence[NodeWithScore], results: Sequence[ScoredNode]
    ) -> list[ScoredNode]:
        by_id = {origin_of(each.node) or each.node.id: each for each in results}
        made = []
        for node in nodes:
            found = by_id.get(node.node.node_id)
            score = 0.0 if node.score is None else float(node.score)
            result = scored(node) if found is None else replace(found, score=score)
            self._nodes[result.node.id] = node
            made.append(result)
        return made


class EngineAnswers(PromptMixin):
    """Answer by nodekin's query engine from passages that LlamaIndex retrieved.

    Args:
        engine: The query engine; its retriever is not asked.
    """

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine

    def respond(self, question: str, passages: Passages) -> Response:
        """Return the answer to a question."""
        return _response(self._with(passages).query(question), passages)

    async def arespond(self, question: str, passages: Passages) -> Response:
        """Return the same without blocking the event loop."""
        return _response(await self._with(passages).aquery(question), passages)

    def stream(self, question: str, passages: Passages, telling: Told) -> StreamingResponse:
        """Return the answer as the model writes it; its metadata is complete at the end."""
        stream = self._with(passages).stream(question)
        with telling():  # what follows goes on in the context of the first piece
            first = next(stream, "")
        known = _response(stream.answer, passages)
        metadata: dict[str, Any] = {}

        def pieces() -> Generator[str, None, None]:
            with stream:
                yield first
                yield from stream
                metadata.update(_facts(stream.answer))

        return StreamingResponse(pieces(), source_nodes=known.source_nodes, metadata=metadata)

    async def astream(
        self, question: str, passages: Passages, telling: Told
    ) -> AsyncStreamingResponse:
        """Return the same without blocking the event loop."""
        stream = self._with(passages).astream(question)
        with telling():
            first = await anext(stream, "")
        known = _response(stream.answer, passages)
        metadata: dict[str, Any] = {}

        async def pieces() -> AsyncGenerator[str, None]:
            async with stream:
                yield first
                async for piece in stream:
                    yield piece
                metadata.update(_facts(stream.answer))

        return AsyncStreamingResponse(pieces(), source_nodes=known.source_nodes, metadata=metadata)

    def _with(self, retriever: RetrieverProtocol) -> QueryEngine:
        made = copy.copy(self._engine)
        made.settings = replace(made.settings, retriever=retriever)
        return made

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return templates_of(self._engine.prompts)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        changed = prompts_given(self._engine.prompts, prompts_dict)
        if changed:
            made = copy.copy(self._engine)  # the one that was given stays as it is
            prompts: Mapping[str, Any] = MappingProxyType({**made.prompts, **changed})
            made.settings = replace(made.settings, prompts=prompts)
            self._engine = made


def _response(answer: Answer, passages: Passages) -> Response:
    """Return an answer as LlamaIndex has it: ``[1]`` cites the first of its source nodes."""
    nodes = [passages.node_of(source.result) for source in answer.sources]
    nodes += [passages.node_of(each) for source in answer.sources for each in source.merged]
    return Response(answer.text, source_nodes=nodes, metadata=_facts(answer))


def _facts(answer: Answer) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "found": answer.found,
        "cited": [source.number for source in answer.cited],
        "calls": answer.calls,
    }
    if answer.preset is not None:
        facts["preset"] = True
    if answer.notes:
        facts["notes"] = list(answer.notes)
    if answer.left_out:
        facts["left_out"] = [
            {"node_id": each.result.node.id, "reason": each.reason} for each in answer.left_out
        ]
    return facts


TOOL = "nodekin"
"""The name of the tool that sub-questions are asked of, for handlers that show it."""

_SAID = {"zh": "问题：{question}\n答案：{answer}", "en": "Question: {question}\nAnswer: {answer}"}


def told_nodes(query: str, found: Found) -> list[NodeWithScore]:
    """Return the short answers as texts for a synthesizer, which reads nothing but nodes."""
    said = _SAID[language_of(query)]
    return [
        NodeWithScore(node=TextNode(text=said.format(question=each.question, answer=each.answer)))
        for each in found.sub_answers or ()
        if each.answer is not None
    ]


def facts_of(found: Found) -> dict[str, Any]:
    """Return what a response's metadata tells of how its sources were found."""
    facts: dict[str, Any] = {}
    if found.sub_answers is not None:
        facts["sub_qa"] = [
            (each.question, Response(each.answer, [to_node_with_score(r) for r in each.results]))
            for each in found.sub_answers
        ]
    if found.errors:
        facts["errors"] = [
            {"question": question, "error": error} for question, error in found.errors
        ]
    if found.ended is not None:
        facts["ended"] = found.ended
    return facts


def tell_sub_questions(callback_manager: CallbackManager, found: Found) -> None:
    """Tell callback handlers of each sub-question, as LlamaIndex's own engine does."""
    for each in found.sub_answers or ():
        asked = SubQuestion(sub_question=each.question, tool_name=TOOL)
        begun: dict[str, Any] = {EventPayload.SUB_QUESTION: SubQuestionAnswerPair(sub_q=asked)}
        with callback_manager.event(CBEventType.SUB_QUESTION, payload=begun) as event:
            pair = SubQuestionAnswerPair(
                sub_q=asked,
                answer=each.answer,
                sources=[to_node_with_score(result) for result in each.results],
            )
            event.on_end(payload={EventPayload.SUB_QUESTION: pair})


class LazySynthesizer(PromptMixin):
    """Hold a synthesizer, or what it takes to make one; its prompts can be read without a model.

    Args:
        given: A synthesizer; None to make one.
        llm: The model it is made with; None for ``Settings.llm`` at the time of each question.
        streaming: Whether it streams.
        callback_manager: Is told of what it does.
    """

    def __init__(
        self,
        given: BaseSynthesizer | None,
        llm: LLM | None,
        *,
        streaming: bool,
        callback_manager: CallbackManager,
    ) -> None:
        self._given = given
        self._llm = llm
        self._settings: dict[str, Any] = {
            "streaming": streaming,
            "callback_manager": callback_manager,
        }
        self._prompted: BaseSynthesizer | None = given
        self._made: tuple[LLM, BaseSynthesizer] | None = None

    def get(self) -> BaseSynthesizer:
        """Return the synthesizer.

        Raises:
            ImportError: If there is neither a model nor one in LlamaIndex's settings.
        """
        if self._given is not None:
            return self._given
        llm = Settings.llm if self._llm is None else self._llm
        if self._made is not None and self._made[0] is llm:
            return self._made[1]
        made = get_response_synthesizer(llm=llm, **self._settings)
        if self._prompted is not None:
            made.update_prompts(self._prompted.get_prompts())
        self._made = (llm, made)
        return made

    def _prompts(self) -> BaseSynthesizer:
        if self._prompted is None:  # the prompts are the same with any model
            self._prompted = get_response_synthesizer(
                llm=MockLLM(), callback_manager=CallbackManager([])
            )
        return self._prompted

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompts().get_prompts()

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        self._prompts().update_prompts(prompts_dict)
        if self._made is not None:
            self._made[1].update_prompts(prompts_dict)
