"""Vectors of different lengths, and the order in which a store with L2 distance returns them."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

TEXTS = [f"Passage {n} on subject {n % 7} and matter {n % 11}." for n in range(120)]
QUERIES = [f"Question {n} on subject {n % 7}?" for n in range(50)]


def uneven(texts: Sequence[str]) -> Any:
    """Return an array of shape (texts, 8) with vectors whose lengths are from a third to thirty."""
    rows = []
    for text in texts:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
        random = np.random.default_rng(seed)
        vector = random.normal(size=8)
        rows.append(vector / np.linalg.norm(vector) * random.uniform(0.3, 30))
    return np.array(rows)


def nearest(vectors: Mapping[str, Sequence[float]], query: Sequence[float], k: int) -> list[str]:
    """Return the ids of the vectors with the smallest Euclidean distance to a query."""
    distances = {i: float(np.linalg.norm(np.subtract(v, query))) for i, v in vectors.items()}
    return sorted(distances, key=distances.__getitem__)[:k]
