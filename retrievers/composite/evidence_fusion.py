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
from .branch_weights import BranchWeights
from .fusion import FusionRetriever
from .trust import PassageHits, probability, vector_evidence, word_evidence

SENTENCES, WHOLE = 1.0, 3.0
"""The weights of the words of sentences and of their targets."""

_VECTORS = 0.9  # weight of the evidence of a good model; the evidence of words has 1

_COMPLETE = 6.0  # nats; a passage with all words of a question is rarely a match by chance

_CODES = 10.0  # nats; a passage with all codes of a question is even rarer by chance

_RARE = 0.8  # weight of a code, as a share of the highest weight of a term

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


class Fused(NamedTuple):
    """The fused ranking of a query.

    Attributes:
        ranking: The ranking.
        trust: The probabilities that the words of the passages do not match by chance, in the order
            of the ranking.
    """

    ranking: Ranking
    trust: Floats


class EvidenceFusion:
    """The fusion of the branches of the default search.

    Args:
        words: The words of sentences, and of their targets.
        vectors: The vectors of sentences and of targets.
        reliability: How good the vectors of each embedding are, from 0 (ignored) to 1.
        deviations: The standard deviation of the cosines of unrelated texts, by embedding.
        limit: The number of targets per branch.
        weights: The given weights. None: words and vectors count by their evidence.
    """

    def __init__(
        self,
        words: Sequence[Branch],
        vectors: Sequence[Branch],
        reliability: Mapping[str, float],
        deviations: Mapping[str, float],
        limit: int,
        weights: BranchWeights | None = None,
    ) -> None:
        self.weights = weights
        self.reliability = reliability
        self.deviations = deviations
        self.limit = limit
        self.branches = [*words, *(each for each in vectors if reliability[str(each.key)])]
        self.retrievers = [branch.retriever for branch in self.branches]

    def fuse(
        self, number: int, rankings: Sequence[Ranking], sources: Sequence[TakenIndex]
    ) -> Fused:
        """Fuse the rankings of the branches for one query. See ``Rank``."""
        if self.weights is not None and self._keys():
            return self._by_weights(self.weights, rankings)
        if not self._keys():
            ranking = fused(rankings, "relative", [SENTENCES, WHOLE])
            return Fused(ranking, np.ones(len(ranking.scores)))
        keys = [*dict.fromkeys(key for ranking in rankings for key in ranking.scores)]
        query: TermWeights = sources[1].queries[number]
        size = int(sources[1].snapshot.size)
        words = word_evidence(
            PassageHits(rankings[0].scores, rankings[1].scores),
            keys,
            self.limit,
            size,
            query,
        )
        shares = [words.values * words.of_sentences, words.values * (1 - words.of_sentences)]
        total_reliability = sum(self.reliability[key] for key in self._keys())
        by_vectors = 0.0
        for key in self._keys():
            hits = self._hits(key, rankings, sources[0])
            deviation = self.deviations.get(key, 0.0)
            found = vector_evidence(hits, keys, self.limit, size, deviation)
            weight = _VECTORS * self.reliability[key] ** 2 / total_reliability
            by_vectors += weight * found.highest
            for branch in self.branches:
                if branch.key == key:
                    part = found.of_sentences if _is_of_parts(branch) else 1 - found.of_sentences
                    shares.append(weight * found.values * part)
        of_terms = sources[1].snapshot.term_scores(number, [node_id for _, node_id in keys])
        lead = _lead(query, of_terms > 0)
        scores = _with_phrases(np.sum(shares, axis=0) + lead, query, of_terms > 0)
        order = np.argsort(-scores, kind="stable")
        ranked = {keys[at]: float(scores[at]) for at in order}
        parts = [
            Part(part.hits, dict(zip(keys, share.tolist(), strict=True)))
            for ranking, share in zip(rankings, shares, strict=True)
            for part in ranking.parts
        ]
        by_words = float((words.values + lead).max(initial=0.0))
        ranking = Ranking(ranked, parts, describe(by_words, by_vectors))
        return Fused(ranking, probability(words.values + lead)[order])

    def _by_weights(self, weights: BranchWeights, rankings: Sequence[Ranking]) -> Fused:
        """Fuse the rankings with given weights."""
        of_branches = []
        for branch in self.branches:
            if branch.key is None:
                part = SENTENCES if _is_of_parts(branch) else WHOLE
                of_branches.append(weights.words * part / (SENTENCES + WHOLE))
            else:
                count = sum(other.key == branch.key for other in self.branches)
                of_branches.append(weights.vectors[branch.key] / count)
        ranking = fused(rankings, "relative", of_branches)._replace(note=weights.note)
        return Fused(ranking, np.full(len(ranking.scores), float(weights.words > 0)))

    def _keys(self) -> list[str]:
        """Return the embeddings that are searched."""
        return [*dict.fromkeys(branch.key for branch in self.branches if branch.key is not None)]

    def _hits(self, key: str, rankings: Sequence[Ranking], words: TakenIndex) -> PassageHits:
        """Return the hits of an embedding.

        Args:
            key: The embedding.
            rankings: The rankings of the branches.
            words: The words of sentences.
        """
        hits = PassageHits({}, {})
        for branch, ranking in zip(self.branches, rankings, strict=True):
            if branch.key == key and not _is_of_parts(branch):
                hits = hits._replace(passages=ranking.scores)
            elif branch.key == key:
                best = {target: of[0][2][1] for target, of in ranking.parts[0].hits.items()}
                counts = words.snapshot.siblings([*best.values()])
                hits = hits._replace(
                    sentences=ranking.scores, counts=dict(zip(best, counts, strict=True))
                )
        return hits


def _is_of_parts(branch: Branch) -> bool:
    """Return whether a branch searches the sentences of targets."""
    return branch.retriever.group != branch.retriever.target


def _lead(query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Return the additional evidence of passages with all words or all codes of a question.

    A code is a rare term with a digit, such as a version, a part number or a date.

    Args:
        query: The question's terms.
        matches: Whether each passage has each term, shape (passages, terms).
    """
    weights = np.array([*query.weights.values()])
    is_complete = matches @ weights >= _ALL_WORDS * query.total
    lead: Floats = _COMPLETE * (is_complete & matches.any(axis=1))
    rare = _RARE * weights.max(initial=0.0)
    is_code = [weight >= rare and _has_digit(term) for term, weight in query.weights.items()]
    if any(is_code):
        has_codes = matches[:, np.array(is_code)].all(axis=1)
        lead = np.maximum(lead, _CODES * has_codes)
    return lead


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)


def _with_phrases(scores: Floats, query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Return the scores with passages that have a phrase of the question first."""
    if not query.phrases:
        return scores
    columns = [at for at, term in enumerate(query.weights) if term in query.phrases]
    counts = matches[:, columns].sum(axis=1)
    with_phrases: Floats = scores + counts * (1 + scores.max(initial=0.0))
    return with_phrases


class HitsForLinks(FusionRetriever):
    """A retriever of the first hits, from which links are followed.

    The words of a question of several hops are spread over several passages, and each passage has
    little evidence. So the branches have fixed weights. Words count less if they match by chance.

    Args:
        words: The words of sentences, and of their targets.
        vectors: The vectors of each embedding.
        weights: The weights of the vectors, beside words with the weights 1 and 3.
        limit: The number of targets per branch.
        trust: The factor of the weights of words, from 0 to 1. None: the probability that the words
            of the question do not match by chance.
    """

    def __init__(
        self,
        words: Sequence[Branch],
        vectors: Sequence[Branch],
        weights: Sequence[float],
        limit: int,
        trust: float | None = None,
    ) -> None:
        retrievers = [branch.retriever for branch in [*words, *vectors]]
        super().__init__(retrievers, "relative", [SENTENCES, WHOLE, *weights], top_k=limit)
        self.trust = trust
        self.has_vectors = any(weights)
        self.limit = limit

    def _rank(
        self, number: int, rankings: Sequence[Ranking], sources: Sequence[TakenIndex]
    ) -> Ranking:
        """Fuse the rankings of the branches for one query. See ``Rank``."""
        weights = [weight for weight in self.weights if weight]
        if self.has_vectors:
            trust = self.trust
            if trust is None:
                trust = self._trust(number, rankings, sources)
            weights[:2] = [SENTENCES * trust, WHOLE * trust]
        return fused(rankings, "relative", weights)

    def _trust(
        self, number: int, rankings: Sequence[Ranking], sources: Sequence[TakenIndex]
    ) -> float:
        """Return the probability that the best words of a query do not match by chance."""
        hits = PassageHits(rankings[0].scores, rankings[1].scores)
        keys = [*{**hits.sentences, **hits.passages}]
        query: TermWeights = sources[1].queries[number]
        size = int(sources[1].snapshot.size)
        words = word_evidence(hits, keys, self.limit, size, query)
        of_terms = sources[1].snapshot.term_scores(number, [node_id for _, node_id in keys])
        evidence = words.values + _lead(query, of_terms > 0)
        return float(probability(evidence).max(initial=0.0))


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
