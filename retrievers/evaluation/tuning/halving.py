"""Successive halving: try many on a few questions, the better ones on more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

KEEP = 1 / 3
"""The share of candidates that goes on to more questions."""


class BudgetSpentError(Exception):
    """There is no time to try another set-up."""


def rungs(count: int, least: int = 25) -> list[int]:
    """Return on how many questions candidates are compared, at first and at last.

    Example:
        >>> rungs(240), rungs(60)
        ([26, 80, 240], [60])
    """
    sizes = [count]
    while sizes[0] * KEEP >= least:
        sizes.insert(0, int(sizes[0] * KEEP))
    return sizes


def halve(
    candidates: Sequence[T], score: Callable[[T, int], float], sizes: Sequence[int]
) -> list[T]:
    """Return the candidates that were compared on all questions, best first.

    After each rung the better third goes on, two at least (Jamieson and Talwalkar, "Non-stochastic
    best arm identification and hyperparameter optimization", 2016).

    Args:
        candidates: What is tried.
        score: Returns what a candidate scores on the first so many questions; more is better.
        sizes: How many questions each rung has.
    """
    remaining = list(candidates)
    for rung, size in enumerate(sizes):
        scores = [score(candidate, size) for candidate in remaining]
        order = sorted(range(len(remaining)), key=lambda at: -scores[at])
        last = rung == len(sizes) - 1
        count = len(order) if last else max(2, math.ceil(len(order) * KEEP))
        remaining = [remaining[at] for at in order[:count]]
    return remaining


def climb(
    start: T,
    near: Callable[[T], Iterable[T]],
    score: Callable[[T, int], float],
    sizes: Sequence[int],
) -> Iterator[T]:
    """Yield better and better candidates, from the first one on.

    Those near the best so far are halved; the best of them is the next, until none is better or
    the budget is spent.

    Args:
        start: Where to begin.
        near: Returns what to try around a candidate, without what was tried before.
        score: As for ``halve``; raises ``BudgetSpentError``.
        sizes: As for ``halve``.
    """
    yield start
    best = start
    try:
        score(start, sizes[-1])
        while candidates := list(near(best)):
            winner = halve(candidates, score, sizes)[0]
            if not score(winner, sizes[-1]) > score(best, sizes[-1]):
                return
            best = winner
            yield best
    except BudgetSpentError:
        return
