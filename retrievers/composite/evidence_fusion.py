"""Fuse the words and vectors of the default search into one ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..indexes.bm25_scores import Floats, TermWeights
from ..results import QueryVariant, Results
from ..retriever import Retriever
from ..search import Part, Ranking, Reader, TakenIndex, fused
from .trust import PassageHits, vector_evidence, word_evidence

SENTENCES, WHOLE = 1.0, 3.0
"""The weights of the words of sentences and of their targets."""

_VECTORS = 0.7  # weight of the evidence of a good model; the evidence of words has 1

_COMPLETE = 6.0  # nats; a passage with all words of a question is rarely a match by chance

_ALL_WORDS = 0.99  # share of the weight of a question


class Branch(NamedTuple):
    """A part of the default search.

    Attributes:
        name: The name in traces.
        retriever: The search of the targets or of their sentences.
        key: The embedding; None for words.
    """

    name: str
    retriever: Retriever
    key: str | None = None


class EvidenceFusion:
    """The fusion of the branches of the default search.

    Args:
        words: The words of sentences, and of their targets.
        vectors: The vectors of sentences and of targets.
        reliability: How good the vectors of each embedding are, from 0 (ignored) to 1.
        limit: The number of targets per branch.
    """

    def __init__(
        self,
        words: Sequence[Branch],
        vectors: Sequence[Branch],
        reliability: Mapping[str, float],
        limit: int,
    ) -> None:
        self.reliability = reliability
        self.limit = limit
        self.branches = [*words, *(each for each in vectors if reliability[str(each.key)])]
        self.retrievers = [branch.retriever for branch in self.branches]

    def rank(
        self, number: int, rankings: Sequence[Ranking], sources: Sequence[TakenIndex]
    ) -> Ranking:
        """Fuse the rankings of the branches for one query. See ``Rank``."""
        if not self._keys():
            return fused(rankings, "relative", [SENTENCES, WHOLE])
        keys = [*dict.fromkeys(key for ranking in rankings for key in ranking.scores)]
        query: TermWeights = sources[1].queries[number]
        size = int(sources[1].snapshot.size)
        limit = self.limit
        words = word_evidence(
            PassageHits(rankings[0].scores, rankings[1].scores), keys, limit, size, query.total
        )
        shares = [words.values * words.of_sentences, words.values * (1 - words.of_sentences)]
        total_reliability = sum(self.reliability[key] for key in self._keys())
        by_vectors = 0.0
        for key in self._keys():
            hits = self._hits(key, rankings)
            found = vector_evidence(hits, keys, limit, size)
            weight = _VECTORS * self.reliability[key] ** 2 / total_reliability
            by_vectors += weight * found.highest
            for branch in self.branches:
                if branch.key == key:
                    is_part = branch.retriever.group != branch.retriever.target
                    part = found.of_sentences if is_part else 1 - found.of_sentences
                    shares.append(weight * found.values * part)
        of_terms = sources[1].snapshot.term_scores(number, [node_id for _, node_id in keys])
        scores = np.sum(shares, axis=0)
        scores = _with_lead(scores, query, of_terms > 0)
        order = np.argsort(-scores, kind="stable")
        ranked = {keys[at]: float(scores[at]) for at in order}
        parts = [
            Part(part.hits, dict(zip(keys, share.tolist(), strict=True)))
            for ranking, share in zip(rankings, shares, strict=True)
            for part in ranking.parts
        ]
        return Ranking(ranked, parts, describe(words.highest, by_vectors))

    def _keys(self) -> list[str]:
        """Return the embeddings that are searched."""
        return [*dict.fromkeys(branch.key for branch in self.branches if branch.key is not None)]

    def _hits(self, key: str, rankings: Sequence[Ranking]) -> PassageHits:
        """Return the hits of an embedding."""
        hits = PassageHits({}, {})
        for branch, ranking in zip(self.branches, rankings, strict=True):
            if branch.key == key and branch.retriever.group == branch.retriever.target:
                hits = hits._replace(passages=ranking.scores)
            elif branch.key == key:
                hits = hits._replace(sentences=ranking.scores)
        return hits


def _with_lead(scores: Floats, query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Return the evidence with that of complete matches. Passages with a phrase are first.

    Args:
        scores: The evidence of passages.
        query: The question's terms.
        matches: Whether each passage has each term, shape (passages, terms).
    """
    weights = np.array([*query.weights.values()])
    is_complete = matches @ weights >= _ALL_WORDS * query.total
    with_lead: Floats = scores + _COMPLETE * (is_complete & matches.any(axis=1))
    if query.phrases:
        columns = [at for at, term in enumerate(query.weights) if term in query.phrases]
        with_lead += matches[:, columns].sum(axis=1) * (1 + with_lead.max(initial=0.0))
    return with_lead


_FEW, _MANY = 0.25, 0.75  # shares of evidence


def describe(words: float, vectors: float) -> str:
    """Return in words how much words and vectors decide."""
    total = words + vectors
    share = words / total if total > 0 else 0.5
    who = "words and vectors decide together"
    if share < _FEW:
        who = "few words of the question occur in one passage; vectors decide"
    elif share > _MANY:
        who = "many words of the question occur in one passage; words decide"
    return f"{who} (words {share:.0%}, vectors {1 - share:.0%})"


def with_note(results: Results, reader: Reader) -> Results:
    """Return the results with the note of their ranking, on the first match of each result."""
    note = reader.ranking.note
    if note is None:
        return results
    variant = QueryVariant(reader.query, DEFAULT_NAME, note)
    noted: Results = []
    for result in results:
        first, *others = result.evidence
        first = replace(first, variants=(variant, *first.variants))
        noted.append(replace(result, evidence=(first, *others)))
    return noted


DEFAULT_NAME = "default"
"""The name of the default search in evidence."""
