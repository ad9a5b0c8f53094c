"""The steps of a search, what came of them, and their results as one ranking."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..ranking import fuse
from ..results import ScoredNode
from ..text_analyzer import TextAnalyzer

Ended = Literal[
    "answered", "repeated", "nothing new", "no question", "steps", "calls", "seconds", "failed"
]

TRUSTED = 1.5
"""The weight of a step that led to the answer, and whose own answer is in its results."""

DOUBTFUL = 0.15
"""The weight of all other steps together: they add to those of the question, after the first 12."""

RANK_CONSTANT = 1

_analyzer = TextAnalyzer()

_STOP_WORDS = re.compile(r"\b(?:the|an?)\b|请问|[的了呢吗嗎]", re.I)

_VERDICT = re.compile("yes|no|true|false|是的?|不是?|否|对|不对|有|没有", re.I)  # in any text


@dataclass(frozen=True, slots=True)
class Step:
    """Hold one question of a search and its results.

    Attributes:
        question: The question.
        results: Best first.
        answer: The short answer that the results have; None if they have none.
        note: What went wrong with the answer, None where nothing did.
    """

    question: str
    results: tuple[ScoredNode, ...] = ()
    answer: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MultiStep:
    """Hold the outcome of a search in several steps.

    Attributes:
        question: The question.
        plain: The results of the question itself.
        steps: The further questions, in their order.
        results: The results of all questions, as one ranking.
        ended: Why no further question was searched for: the question was ``"answered"``; the
            next question was ``"repeated"``; the last one brought ``"nothing new"``, neither a
            passage nor an answer; the model had ``"no question"``; a limit of ``"steps"``,
            ``"calls"`` or ``"seconds"`` was reached; or a model or the search ``"failed"``.
        answer: The last answer: the answer to the question if ``ended`` is ``"answered"``.
        calls: The number of model calls.
        note: What went wrong, None where nothing did.
    """

    question: str
    plain: tuple[ScoredNode, ...]
    steps: tuple[Step, ...]
    results: tuple[ScoredNode, ...]
    ended: Ended
    answer: str | None = None
    calls: int = 0
    note: str | None = None


def same_question(one: str, other: str) -> bool:
    """Return whether two questions have the same words, in any order and inflection.

    Example:
        >>> same_question("Who wrote the Brand?", "who wrote  BRAND")
        True
        >>> same_question("他的父亲是谁", "他的母亲是谁？")
        False
    """
    return _words(one) == _words(other)


def _words(text: str) -> frozenset[str]:
    terms = frozenset(_analyzer(_STOP_WORDS.sub("", text)))
    return terms or frozenset([text.strip()])


def merge_steps(
    steps: Sequence[Step], answered: bool, top_k: int | None = None
) -> list[ScoredNode]:
    """Return one ranking of the results of all steps; that of the question if it is the only one.

    Reciprocal ranks, in which the first places stand out: what is first for one step matters more
    than what several steps have in the middle. In a step with an answer, the passages that contain
    the answer come first. If the whole question was answered in the end, such a step weighs more
    than the question itself (1). Steps without an answer, or of a search that was not answered,
    are added to the results of the question and hardly change its order, so that a model that asks
    the wrong questions does little harm unless it also believes that it has the answer.

    Args:
        steps: The question itself, then the others.
        answered: Whether the whole question was answered in the end.
        top_k: How many results at most, None for all.
    """
    first, *others = (step for step in steps if step is steps[0] or step.results)
    if not others:
        return list(first.results[:top_k])
    supporting = [_supporting(step) for step in others]
    trusted = [bool(results) and answered for results in supporting]
    doubtful = DOUBTFUL / max(1, trusted.count(False))
    rankings = [first.results, *map(_results_after, supporting, others)]
    weights = [1.0, *(TRUSTED if is_trusted else doubtful for is_trusted in trusted)]
    return fuse(rankings, "rrf", weights, top_k, RANK_CONSTANT)


def _results_after(first: Sequence[ScoredNode], step: Step) -> Sequence[ScoredNode]:
    """Return a step's results, some of them first."""
    return [*first, *(result for result in step.results if result not in first)]


def _supporting(step: Step) -> list[ScoredNode]:
    """Return the results that contain a step's answer."""
    if step.answer is None or _VERDICT.fullmatch(step.answer.strip(" .。!！")):
        return []
    terms = set(_analyzer.query(step.answer))
    # An answer in a whole sentence repeats the question.
    terms = terms - set(_analyzer(step.question)) or terms
    return [r for r in step.results if terms and terms <= set(_analyzer(r.node.text))]
