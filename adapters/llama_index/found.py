"""Retrieve, and keep what LlamaIndex's list of results has no place for: sub-questions, errors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...retrievers import Filters, MultiStepRetriever, Retrieves, ScoredNode, SubQuestionRetriever
from ...retrievers.strategies import MultiStep, SubResults
from ...retrievers.strategies.transform_retriever import fused

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

    def __init__(self, retriever: Retrieves, *, answers: bool = True) -> None:
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
    forms = (form for each in results for match in each.evidence for form in match.forms)
    notes = dict.fromkeys((form.query, form.note) for form in forms if form.note is not None)
    # A strategy within may note partial answers as well.
    return Found(results, errors=tuple(each for each in notes if not each[1].startswith(_ANSWER)))
