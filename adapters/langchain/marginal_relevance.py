"""Choose what is near to a query and not near to what was chosen before."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def most_marginal(
    query: npt.ArrayLike, vectors: npt.ArrayLike, k: int, lambda_mult: float
) -> list[int]:
    """Return the places of ``k`` vectors, the one that is chosen first in front.

    Maximal marginal relevance (Carbonell and Goldstein, "The use of MMR, diversity-based
    reranking for reordering documents and producing summaries", 1998) by cosine: each time the
    vector with the most of ``lambda_mult`` times its likeness to the query, less the rest times
    its likeness to the likest that was chosen. Ties go to the vector in front.

    Args:
        query: The query's vector (dimension,).
        vectors: Those to choose from (n, dimension).
        k: How many; fewer where there are fewer.
        lambda_mult: 1 for likeness to the query alone, 0 for variety alone.

    Raises:
        ValueError: If ``k`` is below 1, or ``lambda_mult`` not between 0 and 1.

    Example:
        >>> most_marginal([1, 1], [[1, 1], [1, 0.9], [1, 0]], 2, 0.3)
        [0, 2]
    """
    if k < 1:
        raise ValueError(f"k={k} has to be 1 or more")
    if not 0 <= lambda_mult <= 1:
        raise ValueError(f"lambda_mult={lambda_mult} has to be between 0 (variety) and 1")
    units = _units(np.atleast_2d(np.asarray(vectors, np.float64)))
    if not units.size:
        return []
    wanted = units @ _units(np.asarray(query, np.float64)[np.newaxis])[0]
    chosen: list[int] = []
    nearest = np.full(len(units), -np.inf)  # to any of those that were chosen
    while len(chosen) < min(k, len(units)):
        worth = wanted if not chosen else lambda_mult * wanted - (1 - lambda_mult) * nearest
        worth = worth.copy()
        worth[chosen] = -np.inf
        best = int(np.argmax(worth))
        chosen.append(best)
        nearest = np.maximum(nearest, units @ units[best])
    return chosen


def _units(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: npt.NDArray[np.float64] = vectors / np.where(lengths > 0, lengths, 1.0)
    return made
