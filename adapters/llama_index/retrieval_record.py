"""Record the sub-questions and errors of a retrieval, and report them in LlamaIndex's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.query_engine.sub_question_query_engine import SubQuestionAnswerPair
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.schema import NodeWithScore, TextNode

from ...nodegraph.models import language_of
from ...retrievers import (
    Filters,
    MultiStepRetriever,
    RetrieverProtocol,
    ScoredNode,
    SubQuestionRetriever,
)
from ...retrievers.plans import Compute, Find, Plan
from ...retrievers.strategies import PlannedRetriever, SubResults
from .nodes import to_node_with_score

TOOL_NAME = "nodekin"
"""The tool of all sub-questions, for callback handlers that show it."""

_ANSWER = "answer: "  # how the note of a partial answer begins

_ANSWERED = {
    "zh": "问题：{question}\n答案：{answer}",
    "en": "Question: {question}\nAnswer: {answer}",
}


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """Hold the results of a retrieval, and how they were reached.

    Attributes:
        results: Best first.
        parts: The questions that were searched for besides the question itself; None if the
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

    def answer_nodes(self, query: str) -> list[NodeWithScore]:
        """Return the answers to sub-questions as nodes, the only thing that a synthesizer reads."""
        template = _ANSWERED[language_of(query)]
        return [
            NodeWithScore(
                node=TextNode(text=template.format(question=part.question, answer=part.answer))
            )
            for part in self.parts or ()
            if part.answer is not None
        ]

    def report(self, callback_manager: CallbackManager) -> None:
        """Report each sub-question to callback handlers, as LlamaIndex's own engine does."""
        for part in self.parts or ():
            sub_q = SubQuestion(sub_question=part.question, tool_name=TOOL_NAME)
            start: dict[str, Any] = {EventPayload.SUB_QUESTION: SubQuestionAnswerPair(sub_q=sub_q)}
            with callback_manager.event(CBEventType.SUB_QUESTION, payload=start) as event:
                sources = _sources(part)
                pair = SubQuestionAnswerPair(sub_q=sub_q, answer=part.answer, sources=sources)
                event.on_end(payload={EventPayload.SUB_QUESTION: pair})


def _sources(part: SubResults) -> list[NodeWithScore]:
    return [to_node_with_score(result) for result in part.results]


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
        inner = self.inner
        options: dict[str, Any] = {"top_k": limit, "filters": filters}
        if isinstance(inner, SubQuestionRetriever):
            groups = yield from Compute.of(inner.grouped, inner.agrouped, query, **options)
            return RetrievalRecord(
                inner.fuse_groups(query, groups, top_k=limit),
                tuple(group for group in groups if group.question != query),
                tuple((group.question, group.error) for group in groups if group.error is not None),
            )
        if isinstance(inner, MultiStepRetriever):
            outcome = yield from Compute.of(inner.steps, inner.asteps, query, **options)
            return RetrievalRecord(
                list(outcome.results),
                tuple(SubResults(s.question, s.results, s.answer) for s in outcome.steps),
                () if outcome.note is None else ((query, outcome.note),),
                outcome.ended,
            )
        (results,) = yield from Find(inner, [query], limit, filters)
        return RetrievalRecord(results, errors=_errors_of(results))


def _errors_of(results: Sequence[ScoredNode]) -> tuple[tuple[str, str], ...]:
    """Return the errors that the evidence notes, each once; a note can be an answer instead."""
    variants = (v for result in results for match in result.evidence for v in match.variants)
    notes = dict.fromkeys((v.query, v.note) for v in variants if v.note is not None)
    return tuple(note for note in notes if not note[1].startswith(_ANSWER))
