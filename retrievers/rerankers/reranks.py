"""What a reranker is, and how one fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..scored_node import ScoredNode


class RerankError(RuntimeError):
    """A reranker failed, or gave scores that can't be used; what was found before is unharmed."""


class Reranks(Protocol):
    """Puts results in a new order, or drops some; ``Reranker`` holds one.

    One that can work without blocking the event loop has ``arerank`` besides, with the same
    arguments; for others a thread is used.
    """

    @property
    def name(self) -> str:
        """What evidence calls it."""
        ...

    @property
    def rerank(self) -> Callable[..., Sequence[ScoredNode]]:
        """Take results and a query, return the results that stay, best first.

        One that scores anew puts an ``Evidence`` with its name before those that were there;
        equal scores keep the order in which they came. Settings of a call are keywords.
        """
        ...


def by_score(results: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Return results best first; equal scores keep their order."""
    return sorted(results, key=lambda result: -result.score)
