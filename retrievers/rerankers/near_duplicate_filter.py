"""Collapse results whose texts are nearly the same."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ...nodegraph.models.embedder import as_embedder
from ..ranking import merge
from ..results import Results, ScoredNode
from ..validation import check_number

SHINGLE = 5
"""Characters in a shingle."""


class NearDuplicateFilter:
    """Keep the first of results that are nearly the same, with the evidence of all of them.

    Copies of a page, versions of a contract, boilerplate: without it they fill ``top_k``. Scores
    and order do not change; in a ``RerankRetriever`` more candidates are retrieved until there
    are ``top_k`` different ones. A result is compared with those before it that were kept.

    Texts are compared by their shingles, all runs of five letters, without case, width and white
    space, in any language (Broder, "On the resemblance and containment of documents", 1997). With
    a model they are compared by the cosine of their vectors instead, which also finds the same
    said in other words.

    Args:
        threshold: How like they are that count as the same, from 0 to 1: the share of their
            shingles that both have (two versions of a text with one word in ten changed have 0.6
            to 0.7; below 0.5, pages made from one template collapse), or the cosine; None for
            0.6 of shingles, 0.95 of vectors.
        model: Anything that ``embed`` of a graph may be; None compares shingles.

    Raises:
        TypeError: If the threshold is no number, or the model none.
        ValueError: If the threshold is not above 0 and at most 1.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> texts = ["Green tea is not fermented.", "Green tea is NOT fermented!", "Black tea is."]
        >>> results = [ScoredNode(Node(text), 1.0) for text in texts]
        >>> [result.node.text for result in NearDuplicateFilter().rerank(results, "tea")]
        ['Green tea is not fermented.', 'Black tea is.']
    """

    name = "NearDuplicateFilter"

    def __init__(self, threshold: float | None = None, *, model: object = None) -> None:
        self.embedder = None if model is None else as_embedder(model)
        if threshold is None:
            threshold = 0.6 if self.embedder is None else 0.95
        check_number(threshold, "threshold")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold={threshold!r} has to be above 0, and 1 at most")
        self.threshold = threshold

    @property
    def is_filter(self) -> bool:
        """Whether it costs no calls of a model."""
        return self.embedder is None

    def __repr__(self) -> str:
        return f"NearDuplicateFilter({self.threshold!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the results that are unlike all before them.

        Args:
            results: The results to filter, best first.
            query: Not used.

        Raises:
            EmbeddingError: If the model fails.
        """
        if not results:
            return []
        texts = [result.node.text for result in results]
        firsts = self._by_shingles(texts) if self.embedder is None else self._by_vectors(texts)
        same: dict[int, list[ScoredNode]] = {}
        for result, first in zip(results, firsts, strict=True):
            same.setdefault(first, []).append(result)
        return [merge(alike[0].node, alike, alike[0].score) for alike in same.values()]

    def _by_shingles(self, texts: Sequence[str]) -> Iterator[int]:
        """Return for each text the place of the first that is like it, mostly its own."""
        sizes: dict[int, int] = {}
        having: dict[str, list[int]] = {}  # a shingle to the places of the kept texts that have it
        for place, text in enumerate(texts):
            shingles = _shingles(text)
            shared = Counter(other for shingle in shingles for other in having.get(shingle, ()))
            like = (
                other
                for other, count in shared.items()
                if count >= self.threshold * (sizes[other] + len(shingles) - count)
            )
            first = min(like, default=place)
            if first == place:
                sizes[place] = len(shingles)
                for shingle in shingles:
                    having.setdefault(shingle, []).append(place)
            yield first

    def _by_vectors(self, texts: Sequence[str]) -> Iterator[int]:
        assert self.embedder is not None
        vectors = np.asarray(self.embedder.passages(texts), np.float64).reshape(len(texts), -1)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(lengths > 0, lengths, 1.0)
        kept: list[int] = []
        for place, unit in enumerate(units):
            like = np.flatnonzero(units[kept] @ unit >= self.threshold - 1e-9)
            first = kept[like[0]] if len(like) else place
            if first == place:
                kept.append(place)
            yield first


def _shingles(text: str) -> set[str]:
    letters = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return {letters[at : at + SHINGLE] for at in range(max(1, len(letters) - SHINGLE + 1))}
