"""Make one ranking of what the steps found, in which each step has its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..patterns.fuse import fuse
from ..scored_node import ScoredNode
from ..similarities.analysis import TextAnalyzer
from .steps import Step

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
