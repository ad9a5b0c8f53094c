"""Make one ranking of several."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from ...nodegraph import Node
from ...nodegraph.errors import nearest
from ..scored_node import Evidence, ScoredNode

Mode = Literal["rrf", "relative", "distribution", "concat"]
RANK_CONSTANT = 60


def fuse(
    found: Sequence[Sequence[ScoredNode]],
    mode: Mode = "rrf",
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    rank_constant: float = RANK_CONSTANT,
) -> list[ScoredNode]:
    """Make one ranking of several; ties go by the first ranking that has the node, then by place.

    A node that one ranking has twice counts there once, at its best place.

    - ``"rrf"``: a node's score is the sum of ``weight / (rank_constant + place)`` over the
      rankings that have it (Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
      Condorcet and individual rank learning methods", 2009).
    - ``"relative"``: the weighted mean of its scores, each ranking's put between 0, its last
      result, and 1, its first (Lee, "Analyses of multiple evidence combination", 1997); where
      all scores of a ranking are equal they are 1.
    - ``"distribution"``: the same, a ranking's scores being put between 0, three standard
      deviations below their mean, and 1, as many above (Mazzeschi, "Distribution-based score
      fusion", 2023).
    - ``"concat"``: its highest score times the weight (below 0, divided by it).

    Args:
        found: The rankings, best first.
        mode: How scores are made.
        weights: What each ranking counts, 1 by default; 0 leaves it out.
        top_k: How many results at most, None for all.
        rank_constant: For ``"rrf"``.
    """
    weighing = [1.0] * len(found) if weights is None else list(weights)
    rankings = [_distinct(results) for results in found]
    parts: dict[tuple[str, str], list[float]] = {}
    nodes: dict[tuple[str, str], Node] = {}
    evidence: dict[tuple[str, str], list[Evidence]] = {}
    total = sum(weighing) if mode in ("relative", "distribution") else 1.0
    for ranking, weight in zip(rankings, weighing, strict=True):
        if not weight:
            continue
        scores = _SCORES[mode]([result.score for result in ranking.values()], rank_constant)
        for (key, result), score in zip(ranking.items(), scores, strict=True):
            part = score * weight if score >= 0 else score / weight
            nodes.setdefault(key, result.node)
            parts.setdefault(key, []).append(part)
            known = evidence.setdefault(key, [])
            shared = (replace(each, share=part / total) for each in result.evidence)
            known += [each for each in shared if each not in known]
    join = max if mode == "concat" else math.fsum
    fused = [
        ScoredNode(nodes[key], join(all_) / total, tuple(evidence[key]))
        for key, all_ in parts.items()
    ]
    return sorted(fused, key=lambda result: -result.score)[:top_k]


def check_mode(mode: Mode) -> Mode:
    """Return what is a mode.

    Raises:
        ValueError: If it is none.
    """
    if mode not in get_args(Mode):
        raise ValueError(f"no mode {mode!r}; there is {nearest(str(mode), get_args(Mode))}")
    return mode


def _distinct(results: Sequence[ScoredNode]) -> dict[tuple[str, str], ScoredNode]:
    """Return each node's first result, with the evidence of all."""
    # Two graphs may give the same id to documents with different texts.
    first: dict[tuple[str, str], ScoredNode] = {}
    for result in results:
        key = (result.node.id, result.node.text)
        if key in first:
            both = (*first[key].evidence, *result.evidence)
            result = ScoredNode(first[key].node, first[key].score, both)
        first[key] = result
    return first


def _by_place(scores: Sequence[float], rank_constant: float) -> list[float]:
    return [1 / (rank_constant + place) for place in range(1, len(scores) + 1)]


def _relative(scores: Sequence[float], rank_constant: float) -> list[float]:
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high <= low:
        return [1.0] * len(scores)
    # Rounded, so that what is equally far up ties.
    return [round((score - low) / (high - low), 12) for score in scores]


def _distribution(scores: Sequence[float], rank_constant: float) -> list[float]:
    if not scores:
        return []
    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
    if not deviation:
        return [0.5] * len(scores)
    low, width = mean - 3 * deviation, 6 * deviation
    return [round(min(1.0, max(0.0, (score - low) / width)), 12) for score in scores]


def _as_they_are(scores: Sequence[float], rank_constant: float) -> list[float]:
    return list(scores)


_SCORES: Mapping[str, Callable[[Sequence[float], float], list[float]]] = {
    "rrf": _by_place,
    "relative": _relative,
    "distribution": _distribution,
    "concat": _as_they_are,
}
