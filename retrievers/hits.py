"""Matching nodes of a search and the rankings of their targets, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from ..nodegraph.node import Node
from .filters import Filters
from .ranking import RANK_CONSTANT, Lift, Mode, fused_scores, lifted_score, scaled
from .results import Evidence

Key = tuple[int, str]
"""The number of a graph in a search, and the id of a node."""


class HitKind(NamedTuple):
    """The fields of ``Evidence`` that have the same values for all matching nodes of an index."""

    similarity: str
    embed_key: str | None
    by_search_text: bool
    filters: Filters | None


Row = tuple[float, HitKind, Key, Sequence[Key]]
"""A matching node: its score, the kind of its evidence, its key and the keys of its targets."""


class FoundBy(NamedTuple):
    """The targets that one search contributes to a ranking.

    Attributes:
        rows: The matching nodes for each target, best first.
        shares: The part of each target's score that comes from this search. It is empty if rankings
            were not fused.
    """

    rows: Mapping[Key, Sequence[Row]]
    shares: Mapping[Key, float]

    def only(self, targets: Sequence[Key]) -> FoundBy:
        """Return the matching nodes and shares of some targets."""
        if not self.shares and self.rows.keys() <= {*targets}:
            return self
        rows = self.rows
        shares = self.shares
        return FoundBy(
            {target: rows[target] for target in targets if target in rows},
            {target: shares[target] for target in targets if target in shares},
        )

    def matching_nodes(self) -> list[Key]:
        """Return the keys of the matching nodes."""
        nodes: list[Key] = []
        for rows in self.rows.values():
            nodes += [node for _, _, node, _ in rows]
        return nodes


class Ranking(NamedTuple):
    """A ranking of targets.

    Attributes:
        scores: The scores of the targets, best first.
        found_by: The searches that found the targets.
        note: A description of how the ranking was determined, or None.
    """

    scores: Mapping[Key, float]
    found_by: Sequence[FoundBy]
    note: str | None = None

    def first(self, count: int | None) -> Ranking:
        """Return a ranking with only the first targets."""
        return self._replace(scores=dict(islice(self.scores.items(), count)))


class Matches(NamedTuple):
    """The matching nodes that the results of a query are based on.

    They are immutable, so the evidence of a result does not depend on later changes of the graph.

    Attributes:
        query: The query.
        found_by: The searches that found the results.
        nodes: The matching nodes by key.
        are_scaled: Whether the shares are scaled to the scores of the results.
    """

    query: str
    found_by: Sequence[FoundBy]
    nodes: Mapping[Key, Node]
    are_scaled: bool

    def evidence(self, target: Key, score: float) -> tuple[Evidence, ...]:
        """Return the evidence of a result, given its key and its score."""
        shares = [of_branch.get(target) for _, of_branch in self.found_by]
        if self.are_scaled:
            shares = scaled(shares, score)
        evidence: list[Evidence] = []
        for share, (rows, _) in zip(shares, self.found_by, strict=True):
            for of_hit, kind, key, _ in rows.get(target, ()):
                evidence.append(
                    Evidence(
                        self.nodes[key],
                        of_hit,
                        kind.similarity,
                        self.query,
                        kind.embed_key,
                        share,
                        by_search_text=kind.by_search_text,
                        filters=kind.filters,
                    )
                )
        return tuple(evidence)


def fused(
    rankings: Sequence[Ranking],
    mode: Mode,
    weights: Sequence[float],
    rank_constant: float = RANK_CONSTANT,
) -> Ranking:
    """Fuse several rankings. See ``fuse`` for the arguments."""
    scores, shares = fused_scores([r.scores for r in rankings], mode, weights, rank_constant)
    return Ranking(scores, with_shares(rankings, shares))


def with_shares(
    rankings: Sequence[Ranking], shares: Iterable[Mapping[Key, float]]
) -> list[FoundBy]:
    """Return the searches of fused rankings, with their shares of the fused scores."""
    return [
        FoundBy(found.rows, of_ranking)
        for ranking, of_ranking in zip(rankings, shares, strict=True)
        for found in ranking.found_by
    ]


def lifted(rows: Iterable[Row], lift: Lift, limit: int, keeps_all: bool) -> Ranking:
    """Rank the targets of matching nodes.

    Args:
        rows: The matching nodes, best first.
        lift: The method that computes the score of a target.
        limit: The maximum number of targets.
        keeps_all: Whether matching nodes after the last target are included in the evidence.
    """
    of_targets: dict[Key, list[Row]] = {}
    highest: dict[Key, float] = {}  # the score of the best matching node of each target
    most = math.inf if keeps_all or lift != "max" else limit
    for row in rows:
        score, _, _, targets = row
        for target in targets:
            if target in of_targets:
                of_targets[target].append(row)
            else:
                of_targets[target] = [row]
                highest[target] = score
        if len(of_targets) >= most:
            break
    if lift == "max":
        if len(of_targets) > limit:
            of_targets = dict(islice(of_targets.items(), limit))
            highest = dict(islice(highest.items(), limit))
        return Ranking(highest, [FoundBy(of_targets, {})])
    every = {
        target: lifted_score([_score(row) for row in found], lift)
        for target, found in of_targets.items()
    }
    scores = best(every, limit)
    return Ranking(scores, [FoundBy({target: of_targets[target] for target in scores}, {})])


def highest(rankings: Sequence[Ranking], limit: int | None) -> Ranking:
    """Merge rankings with the same kind of score.

    A target keeps its highest score and all of its matching nodes.
    """
    rows: dict[Key, list[Row]] = {}
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for key, found in ranking.found_by[0].rows.items():
            rows.setdefault(key, []).extend(found)
        for key, score in ranking.scores.items():
            scores[key] = max(score, scores.get(key, score))
    for found in rows.values():
        found.sort(key=_score, reverse=True)
    first = best(scores, limit)
    return Ranking(first, [FoundBy({key: rows[key] for key in first}, {})])


_score = itemgetter(0)  # returns the score of a row


def best(scores: Mapping[Key, float], limit: int | None = None) -> dict[Key, float]:
    """Return the best targets. Targets with equal scores keep their order."""
    return dict(sorted(scores.items(), key=lambda item: item[1], reverse=True)[:limit])
