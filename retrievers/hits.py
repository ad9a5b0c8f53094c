"""What an index finds: node ids and scores, best first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hits:
    """Hold node ids and their scores, best first, ties in document order."""

    ids: list[str]
    scores: list[float]
