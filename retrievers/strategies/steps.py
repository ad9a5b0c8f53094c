"""What a search in several steps has done: each question, what was found and what answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...nodegraph.models import Language
from ..plans import fit_passages
from ..ranking import fuse
from ..results import ScoredNode
from ..text_analyzer import TextAnalyzer

Ended = Literal[
    "answered", "repeated", "nothing new", "no question", "steps", "calls", "seconds", "failed"
]

_terms = TextAnalyzer()

_SMALL = re.compile(r"\b(?:the|an?)\b|请问|[的了呢吗嗎]", re.I)

_UNKNOWN = {"zh": "（尚无答案）", "en": "(no answer yet)"}

_NOTHING = {"zh": "（无）", "en": "(none)"}


@dataclass(frozen=True, slots=True)
class Step:
    """Hold one question that was searched for.

    Attributes:
        question: The question.
        results: What was found, best first.
        answer: The short answer that was drawn from it; None where there was none.
        note: What went wrong with the answer, None where nothing did.
    """

    question: str
    results: tuple[ScoredNode, ...] = ()
    answer: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MultiStep:
    """Hold what came of a search in several steps.

    Attributes:
        question: What was asked.
        plain: What the question itself found.
        steps: The further questions, in their order.
        results: All that was found, as one ranking.
        ended: Why no further question was searched for: the question was ``"answered"``; the
            next question was ``"repeated"``; the last one brought ``"nothing new"``, neither a
            passage nor an answer; the model had ``"no question"``; a budget of ``"steps"``,
            ``"calls"`` or ``"seconds"`` was spent; or a model or the search ``"failed"``.
        answer: The last answer that was drawn: where ``ended`` is ``"answered"``, the answer to
            the question.
        calls: How many model calls it took.
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
    """Tell whether two questions say the same: in the same words, in whichever order and form.

    Example:
        >>> same_question("Who wrote the Brand?", "who wrote  BRAND")
        True
        >>> same_question("他的父亲是谁", "他的母亲是谁？")
        False
    """
    return _words(one) == _words(other)


def told_steps(question: str, steps: Iterable[Step], language: Language) -> str:
    """Return the questions that were searched for and their answers, one a line."""
    asked = [step for step in steps if step.question != question]
    lines = [
        f"{at}. {_line(step.question)} -> {_line(step.answer or _UNKNOWN[language])}"
        for at, step in enumerate(asked, 1)
    ]
    return "\n".join(lines) or _NOTHING[language]


def told_passages(
    steps: Sequence[Step], language: Language, max_tokens: int, length: Callable[[str], int]
) -> str:
    """Return what was found as far as there is room: of the last step first, then of the others.

    The passage that is the first too long is cut; those after it are left out.
    """
    told: dict[tuple[str, str], None] = {}
    for step in reversed(steps):
        told |= dict.fromkeys((result.node.id, result.node.text) for result in step.results)
    texts, _ = fit_passages((text for _, text in told), max_tokens, length)
    return texts or _NOTHING[language]


def _words(text: str) -> frozenset[str]:
    terms = frozenset(_terms(_SMALL.sub("", text)))
    return terms or frozenset([text.strip()])


def _line(text: str) -> str:
    return " ".join(text.split())


TRUSTED = 1.5
"""What a step weighs that led to the answer, and whose own answer is in what it found."""

DOUBTFUL = 0.15
"""What all other steps weigh together: they add to what the question found, after its first 12."""

RANK_CONSTANT = 1

_analyzer = TextAnalyzer()

_VERDICT = re.compile("yes|no|true|false|是的?|不是?|否|对|不对|有|没有", re.I)  # in any text


def merged(steps: Sequence[Step], answered: bool, top_k: int | None = None) -> list[ScoredNode]:
    """Return one ranking of all that was found; that of the question as it is where it is alone.

    Reciprocal ranks, in which the first places stand out: what is first for one step matters more
    than what several steps have in the middle. In a step that was answered, the passages that the
    answer is in come first. Where the whole question was answered in the end, such a step weighs
    more than the question itself (1). Steps without an answer, or of a way that led nowhere, are
    added to what the question found and hardly change its order, so that a model that asks for
    the wrong things does little harm unless it also believes that it has found the answer.

    Args:
        steps: The question itself, then the others.
        answered: Whether the whole question was answered in the end.
        top_k: How many results at most, None for all.
    """
    first, *others = (step for step in steps if step is steps[0] or step.results)
    if not others:
        return list(first.results[:top_k])
    holding = [_holding(step) for step in others]
    trusted = [bool(each) and answered for each in holding]
    doubtful = DOUBTFUL / max(1, trusted.count(False))
    rankings = [first.results, *map(_leading, others, holding)]
    weights = [1.0, *(TRUSTED if each else doubtful for each in trusted)]
    return fuse(rankings, "rrf", weights, top_k, RANK_CONSTANT)


def _leading(step: Step, first: Sequence[ScoredNode]) -> Sequence[ScoredNode]:
    """Return a step's results, some of them first."""
    return [*first, *(result for result in step.results if result not in first)]


def _holding(step: Step) -> list[ScoredNode]:
    """Return the results that a step's answer is in."""
    if step.answer is None or _VERDICT.fullmatch(step.answer.strip(" .。!！")):
        return []
    wanted = set(_analyzer.query(step.answer))
    # An answer in a whole sentence says the question again.
    wanted = wanted - set(_analyzer(step.question)) or wanted
    return [result for result in step.results if _has(result.node.text, wanted)] if wanted else []


def _has(text: str, wanted: Iterable[str]) -> bool:
    return not set(wanted) - set(_analyzer(text))
