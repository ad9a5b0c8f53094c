"""Rank passages by the pairs they make with those that are linked to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..indexes.text_index import TextIndex
from ..similarities.term_weights import TermWeights
from .link_steps import Step, Ways

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Pair(NamedTuple):
    """What a passage is worth in its best pair.

    Attributes:
        value: The pair's score.
        own: What the passage's words are worth by themselves, on the scale of the seeds' scores.
        partner: Id of the other passage.
        step: What joins them.
    """

    value: float
    own: float
    partner: str
    step: Step


def word_parts(index: TextIndex, query: TermWeights, slots: Ints) -> Floats:
    """Return what each of a query's terms adds to the BM25 score of some nodes.

    Args:
        index: The index of the nodes, held and in step with the graph.
        query: From ``Bm25.prepare``, for this index.
        slots: The nodes' numbers in the index.

    Returns:
        An array (nodes, terms); the sums of its rows are the scores.
    """
    parts = np.zeros((len(slots), len(query.weights)))
    for column, (term, weight) in enumerate(query.weights.items()):
        posting = index.posting(term)
        if len(posting.slots):
            at = np.searchsorted(posting.slots, slots).clip(max=len(posting.slots) - 1)
            there = posting.slots[at] == slots
            parts[there, column] = weight * posting.impacts(query.saturation)[at[there]]
    return parts


def best_pairs(
    ways: Ways, scores: Sequence[float], parts: Floats, damping: float, weight: float
) -> dict[str, Pair]:
    """Return the best pair of each passage that is in one, by its id.

    Args:
        ways: From the seeds to passages.
        scores: The seeds' scores, 0 or more.
        parts: What each term adds to each passage, in the order of ``ways.passages``.
        damping: The power of a way's strength.
        weight: What a pair counts beside a passage by itself.
    """
    alone = parts.sum(axis=1)
    seeds = len(scores)
    if not seeds:
        return {}
    heaviest = float(alone[:seeds].max())
    scale = max(scores) / heaviest if heaviest else 0.0
    values = np.zeros_like(ways.strengths)
    for row, score in enumerate(scores):
        gains = np.maximum(parts - parts[row], 0.0).sum(axis=1)
        values[row] = weight * ways.strengths[row] ** damping * (score + scale * gains)
    values[ways.strengths == 0] = -1.0
    own = [*scores, *(scale * alone[seeds:]).tolist()]
    partners = values.argmax(axis=0)
    tops = values.max(axis=0)
    steps = ways.by[partners, np.arange(len(partners))]
    for seed in range(seeds):  # it is the first of pairs as well
        if (top := values[seed].max()) > tops[seed]:
            other = int(values[seed].argmax())
            tops[seed], partners[seed], steps[seed] = top, other, ways.by[seed, other]
    found = zip(tops.tolist(), own, partners.tolist(), steps.tolist(), strict=True)
    return {
        passage: Pair(value, alone_worth, ways.passages[partner], ways.steps[step])
        for passage, (value, alone_worth, partner, step) in zip(ways.passages, found, strict=True)
        if value >= 0
    }
