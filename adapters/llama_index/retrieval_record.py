"""Record the sub-questions and errors of a retrieval, for a response's metadata."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from ...nodegraph.models.language import language_of
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.planned_retriever import PlannedRetriever
from ...retrievers.plans.effects import Find
from ...retrievers.plans.plan import Plan
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.strategies.multi_step import MultiStepRetriever
from ...retrievers.strategies.outcome import OutcomeObserver, SubResults
from ...retrievers.strategies.sub_question import SubQuestionRetriever
from ...retrievers.tracing import observe
from .nodes import to_node_with_score

_WITH_PARTS = (SubQuestionRetriever.variant_name, MultiStepRetriever.name)

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

    def missing_sources(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Return the best passage of each answer to a sub-question that is not among nodes.

        The number of nodes holds for the whole question, and the answers are part of the prompt.
        """
        known = {node.node.node_id for node in nodes}
        best = [_sources(p)[0] for p in self.parts or () if p.answer is not None and p.results]
        return [*{n.node.node_id: n for n in best if n.node.node_id not in known}.values()]

    def answer_nodes(self, query: str) -> list[NodeWithScore]:
        """Return the answers to sub-questions as nodes, the only thing that a synthesizer reads.

        An answer of a query engine is among the results already.
        """
        template = _ANSWERED[language_of(query)]
        return [
            NodeWithScore(
                node=TextNode(text=template.format(question=part.question, answer=part.answer))
            )
            for part in self.parts or ()
            if part.answer is not None and not any(map(is_answer, part.results[:1]))
        ]


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
