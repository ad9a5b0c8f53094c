"""Weights for words and vectors that a user specifies for the default search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..validation import number

WORDS = "words"
"""The key of the weight for words."""

VECTORS = "vectors"
"""The key of the weight for the vectors of all embeddings."""


class BranchWeights(NamedTuple):
    """The weights of words and vectors as specified by the user.

    Attributes:
        words: The weight of words.
        vectors: The weights of vectors, by the name of the embedding.
    """

    words: float
    vectors: Mapping[str, float]

    @property
    def note(self) -> str:
        """A description of the weights."""
        parts = [f"words {self.words:g}"]
        parts += [f"vectors of {key!r} {weight:g}" for key, weight in self.vectors.items()]
        return f"given weights: {', '.join(parts)}"


def parse_weights(weights: Mapping[str, float], keys: Sequence[str]) -> BranchWeights:
    """Validate weights, and return the weights of words and of each embedding.

    Args:
        weights: The weights of ``"words"``, of ``"vectors"`` or of individual embeddings. The
            weight of words defaults to 1. Embeddings that are not listed have the weight of
            ``"vectors"``, which defaults to 1, or to 0 if other embeddings are listed.
        keys: The names of the embeddings.

    Raises:
        TypeError: If the weights are not a mapping from names to numbers.
        ValueError: If a name is unknown, a number is negative, or all numbers are 0.
    """
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"weights must be a dictionary, {{'words': 1, 'vectors': 3}}, got {weights!r:.80}; "
            "for weights of retrievers, use FusionRetriever(retrievers, weights=...)"
        )
    allowed = [WORDS, *keys] if VECTORS in keys else [WORDS, VECTORS, *keys]
    for name in weights:
        if name not in allowed:
            raise ValueError(f"weights must have names of {allowed}, got {name!r:.80}")
    checked = {name: number(weight, f"weights[{name!r}]") for name, weight in weights.items()}
    words = checked.get(WORDS, 1.0)
    is_named = any(key in checked for key in keys)
    others = checked.get(VECTORS, 0.0 if is_named else 1.0)
    vectors = {key: checked.get(key, others) for key in keys}
    if not words and not any(vectors.values()):
        raise ValueError(f"weights must have a number above 0, got {dict(weights)!r:.80}")
    return BranchWeights(words, vectors)
