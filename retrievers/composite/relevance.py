"""The scores of the default search: how much of a question its results say, from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...nodegraph.node import Node
from ..indexes.bm25_scores import Floats, TermWeights
from ..results import ScoredNode

Vectors = npt.NDArray[np.float32]

COMPARED = 10
"""How many of the first results a score is compared with, however many are wanted."""

# What a term adds to BM25, for a weight of 1, from which it counts in full: once in a node of
# average length is 1.
_FULL_IMPACT = 1.5

# What is added to the weight of each question, as a share of the highest weight of a term: one
# word that is there says less than ten that are.
_MORE = 0.5

_EXPONENT = 0.55  # so that 0.5 parts questions of a corpus from questions of elsewhere best

_DEVIATIONS = 3.0  # from which a cosine is above those of unrelated texts

_HIGHEST_GROUND = 0.95

_FAR = 0.02  # of a cosine that is not above them, so that what vectors find stays, in its order

_VECTORS = 0.5  # of what is missing to 1, what equal vectors add

_LINKED = 0.5  # of the score of a passage, what one is worth at least that a link leads to


def word_scores(query: TermWeights, term_scores: Floats) -> Floats:
    """Return how much of a question the words of passages cover, from 0 to 1.

    It grows with the share of the question's weight that they cover. A word weighs its inverse
    document frequency, one that no passage has as much as the rarest. It is covered in full where
    it is frequent in a short passage, and by four fifths where it stands once in a passage of
    average length.

    Args:
        query: From ``Bm25.prepare``.
        term_scores: What each term adds to the BM25 score of each passage, (passages, terms).
    """
    weights = np.array([*query.weights.values()])
    usable = weights > 0
    impacts = term_scores[:, usable] / weights[usable]
    covered = np.sqrt(np.minimum(impacts / _FULL_IMPACT, 1.0)) @ weights[usable]
    total = weights[usable].sum() + query.missing + _MORE * query.highest
    scores: Floats = np.minimum(covered / (total or 1.0), 1.0) ** _EXPONENT
    return scores


def vector_scores(cosines: Floats, query: Vectors, background: Vectors) -> Floats:
    """Return how near passages are to a question, from 0 to 1, as far as chance does not explain.

    It is 0 where a cosine is not above those of unrelated texts by three times their deviation.
    Every model has other cosines for what has nothing in common, and so have questions.

    Args:
        cosines: Those of the passages.
        query: The question's vector (dimension,) of length 1.
        background: The vectors of sentences from all over the graph (n, dimension), of length 1.
    """
    unrelated = background @ query if len(background) else np.zeros(1)
    ground = min(unrelated.mean() + _DEVIATIONS * unrelated.std(), _HIGHEST_GROUND)
    above = (cosines - ground) / (1.0 - ground)
    scores: Floats = np.clip(np.maximum(above, _FAR * cosines), 0.0, 1.0)
    return scores


def joined(words: Floats, vectors: Floats) -> Floats:
    """Return the scores of words, raised by those of vectors: by half of what is missing to 1."""
    return words + (1.0 - words) * _VECTORS * vectors


def descending(scores: Floats) -> Floats:
    """Return scores that fit an order of results: none is above one before it.

    Among the first ``COMPARED`` a result gets the score of a later one that is higher; after them
    none gets more than the one before it. So a score does not depend on how many are wanted.
    """
    first = np.maximum.accumulate(scores[:COMPARED][::-1])[::-1]
    return np.minimum.accumulate(np.concatenate([first, scores[COMPARED:]]))


def rescored(result: ScoredNode, score: float) -> ScoredNode:
    """Return a result with another score, to which the shares of its evidence add up again."""
    shares = [match.share for match in result.evidence if match.share is not None]
    if not shares:
        return ScoredNode(result.node, score, result.evidence)
    total = sum(shares)
    evidence = tuple(
        match
        if match.share is None
        else replace(match, share=score * match.share / total if total else score / len(shares))
        for match in result.evidence
    )
    return ScoredNode(result.node, score, evidence)


def linked_from(result: ScoredNode) -> Node | None:
    """Return the passage from which a link led to a result; None for a hit."""
    first = result.evidence[0] if result.evidence else None
    return first.node if first is not None and first.similarity.startswith("link ") else None


def with_scores(results: Sequence[ScoredNode], scores: Mapping[str, float]) -> list[ScoredNode]:
    """Return results, best first, with descending scores; those of 0 are left out.

    What a link led to has at least half the score of the passage where the link begins.

    Args:
        results: The results.
        scores: Those of their words and of the passages from which links led to them, by id.
    """
    own = [
        scores[result.node.id]
        if (partner := linked_from(result)) is None
        else max(scores[result.node.id], _LINKED * scores[partner.id])
        for result in results
    ]
    return [
        rescored(result, score)
        for result, score in zip(results, descending(np.array(own)).tolist(), strict=True)
        if score > 0
    ]
