"""Compare many candidates: successive halving, and how far ahead the best of many has to be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

KEEP = 1 / 3
"""The share of candidates that goes on to more questions."""


RESAMPLES = 1000
"""How often questions are resampled."""

LEVEL = 0.95
"""How rarely equal set-ups reach the limit: once in twenty searches."""


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
        score: Returns what a candidate scores on the first so many questions. More is better.
        sizes: How many questions each rung has.
    """
    remaining = list(candidates)
    for size in sizes:
        scores = [score(candidate, size) for candidate in remaining]
        order = sorted(range(len(remaining)), key=lambda at: -scores[at])
        count = len(order) if size == sizes[-1] else max(2, math.ceil(len(order) * KEEP))
        remaining = [remaining[at] for at in order[:count]]
    return remaining


def climb(
    start: T,
    near: Callable[[T], Iterable[T]],
    score: Callable[[T, int], float],
    sizes: Sequence[int],
) -> Iterator[T]:
    """Yield better and better candidates, from the first one on.

    Those near the best so far are halved. The best of them is the next, until none is better or
    the budget is spent.

    Args:
        start: Where to start.
        near: Returns what to try around a candidate, without what was tried before.
        score: As for ``halve``. Raises ``BudgetSpentError``.
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


def standard_error(parts: Sequence[float]) -> float:
    """Return the standard error of the mean of what single questions add to a difference."""
    values = np.asarray(parts, float)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def chance_limit(differences: Sequence[Sequence[float]]) -> float:
    """Return how many standard errors the best of several set-ups is ahead by chance.

    The best of a hundred is always ahead on the questions that it was the best on. Questions are
    resampled, the same for all, from differences whose means are taken away. The limit is the
    95th percentile of the furthest ahead (White, "A reality check for data snooping", 2000, with
    differences in standard errors, as Romano and Wolf, 2005, have them). Set-ups that answer alike
    count little more than one.

    Args:
        differences: Of each set-up to the default, a number for each question. Those that were
            tried on fewer questions have those of the first ones.

    Example:
        >>> one = [1.0, -1.0] * 20
        >>> round(chance_limit([one]), 1) <= round(chance_limit([one, one[::-1]]), 1)
        True
    """
    rows = [np.asarray(row, float) for row in differences]
    errors = [standard_error(row.tolist()) for row in rows]
    usable = [(row, e) for row, e in zip(rows, errors, strict=True) if 0 < e < np.inf]
    if not usable:
        return np.inf
    count = max(len(row) for row, _ in usable)
    centred = np.zeros((len(usable), count))
    present = np.zeros((len(usable), count))
    for at, (row, error) in enumerate(usable):
        centred[at, : len(row)] = (row - row.mean()) / error
        present[at, : len(row)] = 1
    random = np.random.default_rng(0)
    drawn = random.multinomial(count, np.full(count, 1 / count), RESAMPLES).astype(float)
    means = (drawn @ centred.T) / np.maximum(drawn @ present.T, 1)
    return float(np.quantile(means.max(1), LEVEL))
