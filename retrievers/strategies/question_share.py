"""Fuse the results of a question and its sub-questions, giving the question half of the weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ranking import fuse
from ..results import Evidence, ScoredNode
from .outcome import result_key

QUESTION_WEIGHT = 0.5
"""The weight of the original question. The other queries share the rest equally."""

_RANK_CONSTANT = 0  # so that the first results count most


def fuse_with_question(
    question: Sequence[ScoredNode],
    parts: Sequence[Sequence[ScoredNode]],
    top_k: int | None = None,
) -> list[ScoredNode]:
    """Fuse rankings so that the original question weighs as much as all sub-questions together.

    The score of a result is the sum of ``weight / rank`` over the rankings. A sub-question whose
    results were all found for the original question does not change the order; only its evidence is
    added. If no sub-question finds anything new, the ranking of the original question is returned
    with unchanged scores.

    Args:
        question: The results of the original question, best first.
        parts: The results of each sub-question or phrasing, best first.
        top_k: The number of results. If None, all results are returned.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> names = ("tea", "rice", "soup")
        >>> tea, rice, soup = [ScoredNode(Node(name, id=name), 9.0) for name in names]
        >>> [result.text for result in fuse_with_question([tea, rice], [[tea], [soup]])]
        ['tea', 'rice', 'soup']
    """
    known = {result_key(result) for result in question}
    weight = (1 - QUESTION_WEIGHT) / max(1, len(parts))
    rankings = [question]
    repeated: list[ScoredNode] = []
    for part in parts:
        if any(result_key(result) not in known for result in part):
            rankings.append(part)
        else:
            repeated += part
    if len(rankings) == 1:
        ranking = list(question[:top_k])
    else:
        weights = [QUESTION_WEIGHT, *[weight] * (len(rankings) - 1)]
        ranking = fuse(rankings, "rrf", weights, top_k, _RANK_CONSTANT)
    return _with_evidence_of(ranking, repeated)


def _with_evidence_of(
    ranking: Sequence[ScoredNode], repeated: Sequence[ScoredNode]
) -> list[ScoredNode]:
    """Add evidence from other results to a ranking, without changing the order or the scores.

    The added evidence has a share of 0.
    """
    further: dict[tuple[str, str], dict[Evidence, None]] = {}
    for result in repeated:
        matches = further.setdefault(result_key(result), {})
        for match in result.evidence:
            matches[replace(match, share=0.0)] = None
    return [
        replace(result, evidence=(*result.evidence, *further.get(result_key(result), ())))
        for result in ranking
    ]
