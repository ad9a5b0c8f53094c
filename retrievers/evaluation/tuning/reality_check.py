"""How far ahead the best of many has to be: farther than chance gives the best of equal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

RESAMPLES = 1000
"""How often questions are drawn anew."""

LEVEL = 0.95
"""How rarely equal set-ups reach the limit: once in twenty searches."""


def standard_error(parts: Sequence[float]) -> float:
    """Return the standard error of the mean of what single questions add to a difference."""
    values = np.asarray(parts, float)
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def chance_limit(differences: Sequence[Sequence[float]]) -> float:
    """Return how many standard errors the best of several set-ups is ahead by chance.

    The best of a hundred is always ahead on the questions that it was the best on. Questions are
    drawn anew, the same for all, from differences whose means are taken away; the limit is the
    95th percentile of the furthest ahead (White, "A reality check for data snooping", 2000, with
    differences in standard errors, as Romano and Wolf, 2005, have them). Set-ups that answer alike
    count little more than one.

    Args:
        differences: Of each set-up to the default, a number for each question; those that were
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
    drawn: npt.NDArray[np.float64] = random.multinomial(
        count, np.full(count, 1 / count), RESAMPLES
    ).astype(float)
    means = (drawn @ centred.T) / np.maximum(drawn @ present.T, 1)
    return float(np.quantile(means.max(1), LEVEL))
