"""What an index finds: node ids and scores, best first; and what several find together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hits:
    """Hold node ids and their scores, best first, ties in document order."""

    ids: list[str]
    scores: list[float]


def merge(
    found: Sequence[Hits], wanted: int | None, cut_off: float
) -> tuple[list[tuple[float, int, str]], bool]:
    """Join the hits of several indexes, best first, ties by index, as far as they are certain.

    An index that gave all the hits it was asked for may have more; what comes behind its last
    one is left out.

    Args:
        found: The hits of each index.
        wanted: How many hits each was asked for; None for all.
        cut_off: Keeps scores from here.

    Returns:
        Score, number of the index and node id of each hit; and whether there may be more.
    """
    rows = [
        (score, at, node_id)
        for at, hits in enumerate(found)
        for node_id, score in zip(hits.ids, hits.scores, strict=True)
        if score >= cut_off
    ]
    if len(found) > 1:
        rows.sort(key=lambda row: (-row[0], row[1]))
    ends = {
        (hits.scores[-1], at, hits.ids[-1])
        for at, hits in enumerate(found)
        if len(hits.ids) == wanted and hits.scores[-1] >= cut_off
    }
    if not ends:
        return rows, False
    certain = next(place for place, row in enumerate(rows, 1) if row in ends)
    return rows[:certain], True
