"""Replace hits by their kin in the target group, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from ..nodegraph import Node
from .scored_node import Evidence, ScoredNode

Lift = Literal["max", "sum", "mean"]


def lift(
    hits: Iterable[Evidence], kin: Callable[[Node], Sequence[Node]], top_k: int
) -> list[ScoredNode]:
    """Take hits best first until ``top_k`` targets are found; each keeps its best hit's score.

    A target's evidence holds the hits that were read until then and led to it, best first.

    Args:
        hits: Best first.
        kin: Gives a hit's targets, in document order.
        top_k: How many targets at most.
    """
    # Two graphs may give the same id to documents with different texts.
    found: dict[tuple[str, str], tuple[Node, list[Evidence]]] = {}
    for hit in hits:
        for target in kin(hit.node):
            key = (target.id, target.text)
            if key in found:
                found[key][1].append(hit)
            elif len(found) < top_k:
                found[key] = (target, [hit])
        if len(found) == top_k:
            break
    return [ScoredNode(node, all_[0].score, tuple(all_)) for node, all_ in found.values()]


def lift_all(
    hits: Iterable[Evidence],
    kin: Callable[[Node], Sequence[Node]],
    top_k: int,
    how: Literal["sum", "mean"],
    place: Callable[[Node], tuple[int, int]],
) -> list[ScoredNode]:
    """Score each target by the sum or the mean of all its hits, ties in document order.

    Args:
        hits: Best first.
        kin: Gives a hit's targets.
        top_k: How many targets at most.
        how: What a target scores.
        place: Tells a target's graph and its order in that.
    """
    # Two graphs may give the same id to documents with different texts.
    found: dict[tuple[str, str], tuple[Node, list[Evidence]]] = {}
    for hit in hits:
        for target in kin(hit.node):
            found.setdefault((target.id, target.text), (target, []))[1].append(hit)

    def score(evidence: list[Evidence]) -> float:
        total = sum(hit.score for hit in evidence)
        return total if how == "sum" else total / len(evidence)

    scored = [ScoredNode(node, score(all_), tuple(all_)) for node, all_ in found.values()]
    return sorted(scored, key=lambda s: (-s.score, place(s.node)))[:top_k]
