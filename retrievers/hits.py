"""The hits of a search and their rankings, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from .ranking import RANK_CONSTANT, Lift, Mode, fused_scores, lifted_score

if TYPE_CHECKING:
    from .branch import SearchedIndex

Key = tuple[int, str]
"""The number of a graph in a search, and the id of a node."""


class Hit(NamedTuple):
    """A node that was found in one index.

    Attributes:
        score: The score.
        source: The index.
        node: The node.
    """

    score: float
    source: SearchedIndex
    node: Key


Row = tuple[float, "SearchedIndex", Key, Sequence[Key]]
"""The score of a hit, its index, its node and its targets. Most rows are dropped."""


class FoundBy(NamedTuple):
    """The targets that one branch contributes to a ranking.

    Attributes:
        hits: The hits for each target, best first.
        shares: The part of each target's score that the branch contributes; empty without fusion.
    """

    hits: Mapping[Key, Sequence[Hit]]
    shares: Mapping[Key, float]


class Ranking(NamedTuple):
    """A ranking of targets.

    Attributes:
        scores: The scores of the targets, best first.
        found_by: The branches that have found them.
        note: What decided the ranking, in words.
    """

    scores: Mapping[Key, float]
    found_by: Sequence[FoundBy]
    note: str | None = None

    def first(self, count: int | None) -> Ranking:
        """Return the first targets."""
        return self._replace(scores=dict(islice(self.scores.items(), count)))


def fused(
    rankings: Sequence[Ranking],
    mode: Mode,
    weights: Sequence[float],
    rank_constant: float = RANK_CONSTANT,
) -> Ranking:
    """Fuse several rankings; see ``fuse``."""
    scores, shares = fused_scores([r.scores for r in rankings], mode, weights, rank_constant)
    return Ranking(scores, with_shares(rankings, shares))


def with_shares(
    rankings: Sequence[Ranking], shares: Iterable[Mapping[Key, float]]
) -> list[FoundBy]:
    """Return the branches of rankings, with their shares in a fused score."""
    return [
        FoundBy(found.hits, of_ranking)
        for ranking, of_ranking in zip(rankings, shares, strict=True)
        for found in ranking.found_by
    ]


def lifted(rows: Iterable[Row], lift: Lift, limit: int, keeps_all: bool) -> Ranking:
    """Return the targets of hits, best first.

    Args:
        rows: The hits, best first.
        lift: The score of a target.
        limit: The maximum number of targets.
        keeps_all: Whether hits after the last target are evidence.
    """
    hits: dict[Key, list[Hit]] = {}
    most = math.inf if keeps_all or lift != "max" else limit
    for score, source, node, targets in rows:
        hit = Hit(score, source, node)
        for target in targets:
            if target in hits:
                hits[target].append(hit)
            else:
                hits[target] = [hit]
        if len(hits) >= most:
            break
    if lift == "max":
        scores = {key: found[0].score for key, found in islice(hits.items(), limit)}
    else:
        every = {
            key: lifted_score([hit.score for hit in found], lift) for key, found in hits.items()
        }
        scores = best(every, limit)
    return Ranking(scores, [FoundBy({key: hits[key] for key in scores}, {})])


def highest(rankings: Sequence[Ranking], limit: int | None) -> Ranking:
    """Merge rankings of one kind of scores. A target has its highest score and all its hits."""
    hits: dict[Key, list[Hit]] = {}
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for key, found in ranking.found_by[0].hits.items():
            hits.setdefault(key, []).extend(found)
        for key, score in ranking.scores.items():
            scores[key] = max(score, scores.get(key, score))
    for found in hits.values():
        found.sort(key=lambda hit: -hit.score)
    first = best(scores, limit)
    return Ranking(first, [FoundBy({key: hits[key] for key in first}, {})])


def best(scores: Mapping[Key, float], limit: int | None = None) -> dict[Key, float]:
    """Return the best targets. Ties keep their order."""
    return dict(sorted(scores.items(), key=lambda item: item[1], reverse=True)[:limit])
