"""The scores of the default search: how much of a question its results say, from 0 to 1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...nodegraph.node import Node
from ..indexes.bm25_scores import Floats, TermWeights
from ..rerankers.keyword_filter import shingles_of
from ..results import COPY, Evidence, ScoredNode

T = TypeVar("T")

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

_ALIKE = 0.9  # of the shingles of texts that are nearly the same

_CLOSE = 0.1  # how far their lengths and the scores of their words are apart at most

_RUN = 12  # letters in which texts are compared before their shingles are

_NUMBER = re.compile(r"\d+")

_LINKED = 0.5  # of the score of a passage, what one is worth at least that a link leads to


def word_scores(query: TermWeights, term_scores: Floats) -> Floats:
    """Return how much of a question the words of passages cover, from 0 to 1.

    It grows with the share of the question's weight that they cover. A word weighs its inverse
    document frequency, one that no passage has as much as the rarest. It is covered in full where
    it is frequent in a short passage, and by four fifths where it stands once in a passage of
    average length. What has only parts of words that are elsewhere as whole words scores 0.

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
    if query.silent:
        others = np.array([term not in query.silent for term in query.weights], bool)
        scores[~(term_scores[:, others] > 0).any(axis=1)] = 0.0
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


def rescaled(shares: Sequence[tuple[T, float]], score: float) -> list[tuple[T, float]]:
    """Return shares that add up to a score; they are alike where there was nothing to share."""
    total = sum(share for _, share in shares)
    return [(of, score * share / total if total else score / len(shares)) for of, share in shares]


def rescored(result: ScoredNode, score: float) -> ScoredNode:
    """Return a result with another score, to which the shares of its evidence add up again."""
    shares = [(at, e.share) for at, e in enumerate(result.evidence) if e.share is not None]
    evidence = list(result.evidence)
    for at, share in rescaled(shares, score):
        evidence[at] = replace(evidence[at], share=share)
    return ScoredNode(result.node, score, tuple(evidence))


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
    kept = [(result, score) for result, score in zip(results, own, strict=True) if score > 0]
    scores_of_kept = descending(np.array([score for _, score in kept])).tolist()
    return [
        rescored(result, score) for (result, _), score in zip(kept, scores_of_kept, strict=True)
    ]


def without_copies(results: Sequence[ScoredNode], query: str) -> list[ScoredNode]:
    """Leave out results with nearly the text of one before them, which notes where they are.

    Nearly the same are texts of which nine tenths of the shingles are, and all numbers: bills and
    logs differ in nothing else.
    """
    kept: list[tuple[ScoredNode, float]] = []
    copies: dict[int, list[Evidence]] = {}
    for result in results:
        score = _own_score(result)
        first = next(
            (
                at
                for at, (other, of_other) in enumerate(kept)
                if abs(score - of_other) <= _CLOSE * score
                and _is_copy(result.node.text, other.node.text)
            ),
            None,
        )
        if first is None:
            kept.append((result, score))
        else:
            filters = result.evidence[0].filters if result.evidence else None
            also = Evidence(result.node, result.score, COPY, query, filters=filters)
            copies.setdefault(first, []).append(also)
    return [
        replace(result, evidence=(*result.evidence, *copies[at])) if at in copies else result
        for at, (result, _) in enumerate(kept)
    ]


def _own_score(result: ScoredNode) -> float:
    """Return what the words of a result score, which those of a copy score, too, more or less."""
    own = (e.score for e in result.evidence if e.node is result.node and e.embed_key is None)
    return next(own, 0.0)


def _is_copy(text: str, other: str) -> bool:
    if text == other:
        return True
    if not _CLOSE * len(text) >= abs(len(text) - len(other)):
        return False
    text, other = _normalized(text), _normalized(other)
    middle = len(text) // 2
    if text[:_RUN] not in other and text[middle : middle + _RUN] not in other:
        return False  # what is nearly the same has most runs of letters in common
    shingles, others = shingles_of(text), shingles_of(other)
    return len(shingles & others) >= _ALIKE * len(shingles | others) and _NUMBER.findall(
        text
    ) == _NUMBER.findall(other)


def _normalized(text: str) -> str:
    return "".join(text.casefold().split())
