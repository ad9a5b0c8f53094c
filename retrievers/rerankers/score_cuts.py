"""Leave out what scores too low."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..scored_node import ScoredNode


def above(
    results: Sequence[ScoredNode],
    cut_off: float | None = None,
    relative_cut: float | None = None,
) -> list[ScoredNode]:
    """Return the results that score enough, in their order.

    QAnything keeps what its reranker gives 0.28 and more, and stops at half of the top score:
    ``cut_off=0.28, relative_cut=0.5``.

    Args:
        results: Scored nodes.
        cut_off: Keeps scores that are this or more.
        relative_cut: Keeps scores that are at least this share of the top score. Below zero a
            share of a score would be above it, so it is the distance that counts: a score may
            be ``(1 - relative_cut) * abs(top)`` below the top. With 0.5 that is 0.4 for a top
            score of 0.8, -3 for one of -2, and 0 for one of 0, where only its equals stay. It
            says most where scores are probabilities.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> found = [ScoredNode(Node("tea"), score) for score in (0.8, 0.5, 0.3, 0.1)]
        >>> [result.score for result in above(found, relative_cut=0.5)]
        [0.8, 0.5]
        >>> [result.score for result in above(found, cut_off=0.3)]
        [0.8, 0.5, 0.3]
    """
    least = -math.inf if cut_off is None else cut_off
    if relative_cut is not None and results:
        top = max(result.score for result in results)
        share = relative_cut if top >= 0 else 2 - relative_cut
        least = max(least, share * top)
    return [result for result in results if result.score >= least]


def check_cuts(cut_off: float | None, relative_cut: float | None) -> None:
    """Check the limits that scores have to reach.

    Raises:
        TypeError: If one is no number.
        ValueError: If one is out of range.
    """
    for name, number in (("cut_off", cut_off), ("relative_cut", relative_cut)):
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"{name} is a number, not {number!r:.80}")
        if math.isnan(number):
            raise ValueError(f"{name} is a number, not {number!r}")
    if relative_cut is not None and not 0 <= relative_cut <= 1:
        raise ValueError(f"relative_cut is a share of the top score, 0 to 1, not {relative_cut!r}")
