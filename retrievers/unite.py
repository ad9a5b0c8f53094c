"""Make one list of what several searches found for a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..nodegraph import Node
from .scored_node import Evidence, ScoredNode


def unite(
    found: Sequence[Sequence[ScoredNode]], place: Callable[[Node], tuple[int, int]]
) -> list[ScoredNode]:
    """Return each node once, with its highest score and all its evidence, best first.

    Args:
        found: The results of each search; their scores can be compared.
        place: Tells a node's graph and its order in that, for ties.
    """
    # Two graphs may give the same id to documents with different texts.
    nodes: dict[tuple[str, str], Node] = {}
    scores: dict[tuple[str, str], float] = {}
    evidence: dict[tuple[str, str], list[Evidence]] = {}
    for result in (result for results in found for result in results):
        key = (result.node.id, result.node.text)
        nodes.setdefault(key, result.node)
        scores[key] = max(result.score, scores.get(key, result.score))
        evidence.setdefault(key, []).extend(result.evidence)
    united = [
        ScoredNode(node, scores[key], tuple(sorted(evidence[key], key=lambda e: -e.score)))
        for key, node in nodes.items()
    ]
    return sorted(united, key=lambda result: (-result.score, place(result.node)))
