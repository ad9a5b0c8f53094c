"""Fuse the word rankings and the vector rankings of the default search into one ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.lazy_names import lazy_pattern
from ..branch import Branch
from ..hits import Key, Ranking, fused, with_shares
from ..indexes.bm25_weights import Floats, TermWeights
from ..results import Evidence, QueryVariant, Results, ScoredNode
from ..search import View
from .branch_weights import BranchWeights
from .trust import PassageEvidence, PassageHits, probability, vector_evidence, word_evidence

DEPTH = 32
"""The number of targets from each ranking that are fused."""

SENTENCES, WHOLE = 1.0, 3.0
"""The weights of the words of sentences and of their targets."""

_VECTORS = 0.9  # the weight of the evidence of a good model; the evidence of words has the weight 1

_COMPLETE = 6.0  # in nats; a passage with all words of a question is rarely a random match

_CODES = 10.0  # in nats; a passage with all codes of a question is even more rarely a random match

# An identifier names one thing, and vectors hardly distinguish it from similar identifiers. It is a
# number with another kind of character, such as 5.10.2, W161 or 30mm, or a number that is longer
# than a year. Ordinals and decades (20th, 1960s) have many meanings. An underscore joins two words.
_IDENTIFIER = lazy_pattern(r"(?!\d+(?:st|nd|rd|th|s)$)(?=\D*\d\D*\d)(?!\d{2,4}$)[^_]+")

_RARE = 0.8  # the minimum weight of a code, as a share of the highest term weight

# The share of the total weight of a question from which its words count as complete.
_ALL_WORDS = 0.99


class Branches(NamedTuple):
    """The rankings that the default search fuses, all of which rank the same targets.

    Attributes:
        sentences: The search for words in sentences.
        words: The search for words in targets.
        vectors: The searches by vectors of sentences and of targets.
    """

    sentences: Branch
    words: Branch
    vectors: Sequence[Branch]

    @property
    def all(self) -> list[Branch]:
        """All searches, beginning with those by words."""
        return [self.sentences, self.words, *self.vectors]

    @property
    def keys(self) -> list[str]:
        """The names of the embeddings that are searched."""
        return [*dict.fromkeys([key_of(branch) for branch in self.vectors])]

    def of_key(self, key: str) -> list[Branch]:
        """Return the searches that use a given embedding."""
        return [branch for branch in self.vectors if key_of(branch) == key]


def key_of(branch: Branch) -> str:
    """Return the name of the embedding that a search by vectors uses."""
    return str(branch.scorings[0].key)


class Fused(NamedTuple):
    """The fused ranking of a query.

    Attributes:
        ranking: The ranking.
        trust: For each passage in the order of the ranking, the probability that the match of its
            words is not random.
        term_scores: The score of each term of the query in each passage, with shape (passages,
            terms). It is None if the fusion did not need these scores.
    """

    ranking: Ranking
    trust: Floats
    term_scores: Floats | None = None


class EvidenceFusion:
    """The fusion of the rankings of the default search.

    Args:
        branches: The searches whose rankings are fused, without ignored embeddings.
        reliability: The quality of each embedding's vectors, from 0 to 1.
        deviations: The standard deviation of the cosine similarities of unrelated texts, by
            embedding.
        weights: The weights specified by the user. If None, words and vectors are weighted by their
            evidence.
    """

    def __init__(
        self,
        branches: Branches,
        reliability: Mapping[str, float],
        deviations: Mapping[str, float],
        weights: BranchWeights | None = None,
    ) -> None:
        self.branches = branches
        self.reliability = reliability
        self.deviations = deviations
        self.weights = weights

    def fuse(self, view: View, depth: int) -> Fused:
        """Fuse the rankings for one query.

        Args:
            view: The rankings of the query in one snapshot of the graph.
            depth: The number of targets from each ranking.
        """
        rankings = [view.ranking(branch, depth) for branch in self.branches.all]
        if not self.branches.vectors:
            ranking = fused(rankings, "relative", [SENTENCES, WHOLE])
            return Fused(ranking, np.ones(len(ranking.scores)))
        if self.weights is not None:
            return self._by_weights(self.weights, rankings)
        return self._by_evidence(view, rankings, depth)

    def _by_weights(self, weights: BranchWeights, rankings: Sequence[Ranking]) -> Fused:
        """Fuse rankings with the weights that the user has specified."""
        part = weights.words / (SENTENCES + WHOLE)
        of_branches = [part * SENTENCES, part * WHOLE]
        for branch in self.branches.vectors:
            key = key_of(branch)
            of_branches.append(weights.vectors[key] / len(self.branches.of_key(key)))
        ranking = fused(rankings, "relative", of_branches)._replace(note=weights.note)
        return Fused(ranking, np.full(len(ranking.scores), float(weights.words > 0)))

    def _by_evidence(self, view: View, rankings: Sequence[Ranking], depth: int) -> Fused:
        """Fuse rankings by the evidence of words and vectors in this question."""
        branches = self.branches
        keys = [*dict.fromkeys(key for ranking in rankings for key in ranking.scores)]
        query: TermWeights = view.prepared(branches.words)
        words = evidence_of_words(view, branches, keys, depth)
        shares = [words.values * words.of_sentences, words.values * (1 - words.of_sentences)]
        total_reliability = sum(self.reliability[key] for key in branches.keys)
        by_vectors = 0.0
        for key in branches.keys:
            found = self._evidence_of_vectors(view, key, keys, depth)
            weight = _VECTORS * self.reliability[key] ** 2 / total_reliability
            by_vectors += weight * found.highest
            for branch in branches.of_key(key):
                part = found.of_sentences if branch.is_lifted else 1 - found.of_sentences
                shares.append(weight * found.values * part)
        term_scores = view.term_scores(branches.words, keys)
        matches = term_scores > 0
        lead = _lead(query, matches)
        scores = _with_identifiers(np.sum(shares, axis=0) + lead, query, matches)
        scores = _with_phrases(scores, query, matches)
        order = np.argsort(-scores, kind="stable")
        ranked = {keys[at]: float(scores[at]) for at in order}
        by_words = float((words.values + lead).max(initial=0.0))
        shares_by_key = [dict(zip(keys, share.tolist(), strict=True)) for share in shares]
        found_by = with_shares(rankings, shares_by_key)
        ranking = Ranking(ranked, found_by, describe(by_words, by_vectors))
        trust = probability(words.values + lead)
        return Fused(ranking, trust[order], term_scores[order])

    def _evidence_of_vectors(
        self, view: View, key: str, keys: Sequence[Key], depth: int
    ) -> PassageEvidence:
        """Return the evidence from one embedding that passages are relevant."""
        sentences: Mapping[Key, float] = {}
        passages: Mapping[Key, float] = {}
        counts: Mapping[Key, int] = {}
        for branch in self.branches.of_key(key):
            ranking = view.ranking(branch, depth)
            if branch.is_lifted:
                sentences = ranking.scores
                counts = self._sentence_counts(view, ranking)
            else:
                passages = ranking.scores
        size = int(view.source(self.branches.words).snapshot.size)
        deviation = self.deviations.get(key, 0.0)
        hits = PassageHits(sentences, passages, counts)
        return vector_evidence(hits, keys, DEPTH, size, deviation)

    def _sentence_counts(self, view: View, ranking: Ranking) -> dict[Key, int]:
        """Return the number of sentences in each target that was found through a sentence."""
        (found,) = ranking.found_by
        best: dict[Key, str] = {}
        for target, rows in found.rows.items():
            _, _, node, _ = rows[0]
            best[target] = node[1]
        counts = view.source(self.branches.sentences).snapshot.siblings([*best.values()])
        return dict(zip(best, counts, strict=True))


def evidence_of_words(
    view: View, branches: Branches, keys: Sequence[Key], depth: int
) -> PassageEvidence:
    """Return the evidence from matching words that passages are relevant."""
    hits = PassageHits(
        view.ranking(branches.sentences, depth).scores,
        view.ranking(branches.words, depth).scores,
    )
    size = int(view.source(branches.words).snapshot.size)
    return word_evidence(hits, keys, DEPTH, size, view.prepared(branches.words))


def _lead(query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Return the additional evidence for passages with all words or all codes of a question.

    A code is a rare term that contains a digit, such as a version, a part number or a date. Since a
    single digit has many meanings, another term of the question must occur in the same passage.

    Args:
        query: The terms of the question.
        matches: A boolean array of shape (passages, terms) that is True if a passage contains a
            term.
    """
    weights = np.array([*query.weights.values()])
    is_complete = matches @ weights >= _ALL_WORDS * query.total
    lead: Floats = _COMPLETE * (is_complete & matches.any(axis=1))
    codes = _codes(query)
    if codes:
        lead = np.maximum(lead, _CODES * _have_codes(codes, query, matches))
    return lead


def _codes(query: TermWeights) -> list[str]:
    """Return the rare terms of a question that contain a digit.

    Quoted phrases are not terms here, because they have a much higher weight than any word.
    """
    weights = {term: n for term, n in query.weights.items() if term not in query.phrases}
    rare = _RARE * max(weights.values(), default=0.0)
    return [term for term, weight in weights.items() if weight >= rare and _has_digit(term)]


def _identifiers(query: TermWeights) -> list[str]:
    """Return the codes of a question if all of them are identifiers, otherwise an empty list."""
    codes = _codes(query)
    return codes if all([_IDENTIFIER.fullmatch(code) for code in codes]) else []


def _columns(
    terms: Collection[str], query: TermWeights, matches: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which passages contain each of some terms, with shape (passages, terms)."""
    return matches[:, [term in terms for term in query.weights]]


def _have_codes(
    codes: Sequence[str], query: TermWeights, matches: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which passages contain all codes, with shape (passages,)."""
    have_codes: npt.NDArray[np.bool_] = np.all(_columns(codes, query, matches), axis=1)
    if max(map(len, codes)) == 1:
        have_codes &= np.count_nonzero(matches, axis=1) > len(codes)
    return have_codes


def lack_identifiers(query: TermWeights, matches: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which passages contain neither the identifiers of a question nor a quoted phrase.

    If a question names several things, each passage may contain some of the identifiers. In this
    case, no passage counts as lacking them.

    Args:
        query: The terms of the question.
        matches: A boolean array of shape (passages, terms) that is True if a passage contains a
            term.

    Returns:
        A boolean array of shape (passages,).
    """
    identifiers = _identifiers(query)
    if not identifiers:
        return np.zeros(len(matches), np.bool_)
    have_all = _have_codes(identifiers, query, matches)
    have_some = _columns(identifiers, query, matches).any()
    if have_some and not have_all.any():
        return np.zeros(len(matches), np.bool_)
    have_phrase = _columns(query.phrases, query, matches).any(axis=1)
    lacks: npt.NDArray[np.bool_] = ~(have_all | have_phrase)
    return lacks


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)


def _with_identifiers(scores: Floats, query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Rank passages with all identifiers of a question first."""
    identifiers = _identifiers(query)
    if not identifiers:
        return scores
    have_identifiers = _have_codes(identifiers, query, matches)
    with_identifiers: Floats = scores + have_identifiers * (1 + scores.max(initial=0.0))
    return with_identifiers


def _with_phrases(scores: Floats, query: TermWeights, matches: npt.NDArray[np.bool_]) -> Floats:
    """Increase the scores of passages that contain quoted phrases, so that they rank first."""
    if not query.phrases:
        return scores
    counts = _columns(query.phrases, query, matches).sum(axis=1)
    with_phrases: Floats = scores + counts * (1 + scores.max(initial=0.0))
    return with_phrases


def trust_in_words(view: View, branches: Branches, depth: int) -> float:
    """Return the probability that the best match of a query by words is not random."""
    sentences = view.ranking(branches.sentences, depth).scores
    passages = view.ranking(branches.words, depth).scores
    keys = [*{**sentences, **passages}]
    words = evidence_of_words(view, branches, keys, depth)
    matches = view.term_scores(branches.words, keys) > 0
    evidence = words.values + _lead(view.prepared(branches.words), matches)
    return float(probability(evidence).max(initial=0.0))


_FEW, _MANY = 0.25, 0.75  # the shares of evidence at which the description changes


def describe(words: float, vectors: float) -> str:
    """Return a sentence about the influence of words and of vectors on a ranking."""
    total = words + vectors
    share = words / total if total > 0 else 0.5
    who = "words and vectors decide together"
    if share < _FEW:
        who = "few words of the question occur in one passage; vectors decide"
    elif share > _MANY:
        who = "many words of the question occur in one passage; words decide"
    return f"{who} (words {share:.0%}, vectors {1 - share:.0%})"


def with_note(results: Results, query: str, note: str | None) -> Results:
    """Add the note of a ranking to the first evidence of each result.

    The evidence is created when it is first accessed.
    """
    if note is None:
        return results
    variant = QueryVariant(query, DEFAULT_NAME, note)

    def evidence(result: ScoredNode, score: float) -> tuple[Evidence, ...]:
        first, *others = result.evidence
        return (replace(first, variants=(variant, *first.variants)), *others)

    return [
        ScoredNode.with_pending_evidence(result.node, result.score, evidence, result)
        for result in results
    ]


DEFAULT_NAME = "default"
"""The name of the default search in evidence."""
