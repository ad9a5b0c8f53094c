"""What nodes stand for, and where the results of that are put."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...nodegraph import Node, NodeGraph
from ...nodegraph.navigation import path_to
from ..filters import Filters
from ..protocols import RetrieverProtocol
from ..results import Evidence, ScoredNode
from ..retriever import Retriever
from ..search import Search

Reference = RetrieverProtocol | NodeGraph

References = Mapping[str, Reference] | Callable[[Node], Reference | None]

Placed = tuple[tuple[int, ...], ScoredNode]
"""A result, and its place among those of equal score."""

FIELD = "retriever"
"""The metadata field that names what a node stands for."""


def put_in_place(scores: Sequence[float], place: float) -> list[float]:
    """Scale scores so that the best is ``place``, the others less in the same proportion.

    Where proportions mean nothing, because a score is not positive, differences are kept.

    Example:
        >>> put_in_place([10.0, 5.0], 3.0), put_in_place([0.5, -0.5], 3.0)
        ([3.0, 1.5], [3.0, 2.0])
    """
    best = max(scores, default=0.0)
    if place > 0 and best > 0 and min(scores) >= 0:
        return [place * (score / best) for score in scores]
    return [place - (best - score) for score in scores]


def put(query: str, entries: Sequence[Placed], found: Sequence[ScoredNode]) -> list[Placed]:
    """Put what a retriever found in the place of the nodes that stand for it, the best first."""
    place, first = max(entries, key=lambda row: row[1].score)  # of equal ones the first
    through: list[Evidence] = []
    for _, each in sorted(entries, key=lambda row: -row[1].score):
        through += [Evidence(each.node, each.score, "reference", query), *each.evidence]
    scores = put_in_place([each.score for each in found], first.score)
    return [
        ((*place, at), ScoredNode(each.node, score, (*each.evidence, *through)))
        for at, (each, score) in enumerate(zip(found, scores, strict=True))
    ]


def once(rows: Sequence[Placed]) -> list[ScoredNode]:
    """Return each node once, best first, with its highest score and the evidence of all."""
    rows = sorted(rows, key=lambda row: (-row[1].score, row[0]))
    # Two graphs may give the same id to documents with different texts.
    found: dict[tuple[str, str], ScoredNode] = {}
    for _, each in rows:
        key = (each.node.id, each.node.text)
        first = found.setdefault(key, each)
        more = tuple(match for match in each.evidence if match not in first.evidence)
        if more:
            found[key] = replace(first, evidence=(*first.evidence, *more))
    return list(found.values())


def check_references(references: References | None) -> References | None:
    """Check what references are given.

    Raises:
        TypeError: If they are no mapping to retrievers and graphs, and no callable.
    """
    if isinstance(references, Mapping):
        return {name: check_reference(each, name) for name, each in references.items()}
    if references is not None and not callable(references):
        raise TypeError(
            "references is a mapping from names to retrievers and graphs, or a callable from a "
            f"node to one, not {references!r:.80}"
        )
    return references


def check_reference(reference: Any, whose: object) -> Any:
    """Return what is a retriever, a graph, or for a node None."""
    methods = (getattr(reference, name, None) for name in ("retrieve", "aretrieve"))
    if isinstance(reference, NodeGraph) or all(map(callable, methods)):
        return reference
    if reference is None and isinstance(whose, Node):
        return None
    raise TypeError(
        f"what {whose!r:.120} stands for is an object with retrieve() and aretrieve(), or a "
        f"NodeGraph, not {reference!r:.80}"
    )


class GroupPool(Retriever):
    """Search several groups as one."""

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        groups: Sequence[str],
        stays: Callable[[Node], bool] | None,
        *,
        pooled: bool,
        target: str | None,
        **settings: Any,
    ) -> None:
        super().__init__(graph, groups[0], target=target, **settings)
        self.groups = groups
        self.stays = stays
        self.pooled = pooled
        paths = [path_to(each, group) for each in self.graphs for group in groups]
        if target is None:  # every path begins with ROOT
            shared = (names[0] for names in zip(*paths, strict=False) if len(set(names)) == 1)
            self.target = list(shared)[-1]
            for each in self.graphs:
                each.ancestry(self.target)

    def _search(self, queries: Sequence[str], top_k: int | None, filters: Filters | None) -> Search:
        search = super()._search(queries, top_k, filters)
        return replace(search, groups=self.groups, stays=self.stays, pooled=self.pooled)


def check_groups(groups: Sequence[str]) -> list[str]:
    """Check the groups to search.

    Raises:
        TypeError: If they are no list of names.
        ValueError: If there is none.
    """
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise TypeError(f"groups is a list of names, like ['sentence'], not {groups!r:.80}")
    if not groups:
        raise ValueError("groups=[] leaves nothing to search; give one name or more")
    return list(dict.fromkeys(groups))
