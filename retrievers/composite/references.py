"""Nodes that refer to retrievers or graphs, and the results that replace them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..foreign.coercion import as_retriever
from ..protocols import RetrieverLike
from ..ranking import by_node, merge
from ..results import Evidence, Results, ScoredNode

Reference = RetrieverLike | NodeGraph

References = Mapping[str, Reference] | Callable[[Node], Reference | None]

FIELD = "retriever"
"""The metadata field that names what a node refers to."""


class RankedResult(NamedTuple):
    """A result, and its place among results of equal score."""

    place: tuple[int, ...]
    result: ScoredNode


def rescale(scores: Sequence[float], best: float) -> list[float]:
    """Scale scores so that the highest becomes ``best``, and the others keep their proportions.

    If a score is not positive, proportions mean nothing, and the differences are kept instead.

    Example:
        >>> rescale([10.0, 5.0], 3.0), rescale([0.5, -0.5], 3.0)
        ([3.0, 1.5], [3.0, 2.0])
    """
    highest = max(scores, default=0.0)
    if best > 0 and highest > 0 and min(scores) >= 0:
        return [best * (score / highest) for score in scores]
    return [best - (highest - score) for score in scores]


def replace_entries(
    query: str, entries: Sequence[RankedResult], results: Results
) -> list[RankedResult]:
    """Return the results of a retriever in the place of the nodes that refer to it."""
    position, best = max(entries, key=lambda entry: entry.result.score)  # of equal ones the first
    path: list[Evidence] = []
    for _, entry in sorted(entries, key=lambda entry: -entry.result.score):
        path += [Evidence(entry.node, entry.score, "reference", query), *entry.evidence]
    scores = rescale([result.score for result in results], best.score)
    return [
        RankedResult((*position, rank), ScoredNode(result.node, score, (*result.evidence, *path)))
        for rank, (result, score) in enumerate(zip(results, scores, strict=True))
    ]


def merge_duplicates(ranking: Sequence[RankedResult]) -> Results:
    """Return each node once, best first, with its highest score and the evidence of all."""
    ranking = sorted(ranking, key=lambda ranked: (-ranked.result.score, ranked.place))
    return [
        merge(same[0].node, same, same[0].score)
        for same in by_node(result for _, result in ranking)
    ]


def check_references(references: References | None) -> References | None:
    """Return references as they are.

    Raises:
        TypeError: If they are no mapping to retrievers and graphs, and no callable.
    """
    if isinstance(references, Mapping):
        return {name: check_reference(value, name) for name, value in references.items()}
    if references is not None and not callable(references):
        raise TypeError(
            "references is a mapping from names to retrievers and graphs, or a callable from a "
            f"node to one, not {references!r:.80}"
        )
    return references


def check_reference(reference: Any, source: str | Node) -> Any:
    """Return what a name or a node refers to, as it is: a retriever, a query engine or a graph.

    For a node also None.

    Raises:
        TypeError: If it is none of them.
    """
    if isinstance(reference, NodeGraph) or (reference is None and isinstance(source, Node)):
        return reference
    as_retriever(reference, f"what {source!r:.120} refers to, besides a NodeGraph,")
    return reference  # as it is: the same object is queried once
