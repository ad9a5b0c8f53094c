"""Scores of the default search, from 0 to 1: the part of a question that a result covers."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ...nodegraph.lazy_names import lazy_pattern
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import UNSPACED
from ..indexes.bm25_weights import Floats, TermWeights
from ..ranking import scaled
from ..results import COPY, Evidence, QueryVariant, ScoredNode

Vectors = npt.NDArray[np.float32]

COMPARED = 10
"""The number of first results with adjusted scores, regardless of ``top_k``."""

# The BM25 contribution from which a term of weight 1 is fully covered. A single occurrence in a
# node of average length contributes 1.
_FULL_IMPACT = 1.5

# The share of the highest term weight that is added to the total weight of each question, since one
# matching word is weaker evidence than ten.
_MORE = 0.5

# Chosen so that a score of 0.5 best separates questions with and without an answer.
_EXPONENT = 0.57

# Relevance by vectors is measured in standard deviations above the highest cosine similarity that
# is expected for unrelated texts.
_HALF = 0.45

_STEEPNESS = 1.5

_DOUBT = 8  # the weight of a prior, in texts, since the deviation of a few texts is uncertain

_UNKNOWN = 0.349  # the highest score of a passage if the codes of the question are missing

_UNKNOWN_SHARE = 0.3  # the minimum share of a question's weight that missing codes must have

_FARTHEST = 30.0  # the limit of the exponent, beyond which passages hardly differ

_LEAST_ROWS = 3  # the minimum number of vectors for a deviation

# The minimum deviation of cosine similarities; smaller differences are noise.
_LEAST_DEVIATION = 1e-3

_AGREEMENT = 0.5  # the share of the difference to 1 that a lower score of 1 adds

# The number of documents with copies that are listed per result. All further documents are only
# counted.
_NOTED = 10

_WIDE = lazy_pattern("[\uff00-\uffef]+")

# Punctuation and markup may differ between copies.
_MARKS = (
    r"""!"#'()*,\-./:;<=>?\[\\\]`{|}~"""
    "\u00a1\u00ab\u00b7\u00bb\u00bf\u060c\u061b\u061f\u06d4\u0964"
    "\u2010-\u2015\u2018-\u201f\u2022\u2026\u2039\u203a\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb"
)

# A number, a minus sign before a number, a comparison, the # of a name, a letter or word, a sign.
_SIGNIFICANT = lazy_pattern(
    r"\d+(?:[.,:/-]\d+)*|(?<!\w)-(?=\d)|(?<![=!<>])[=!<>]=(?![=<>])|(?<=\w)#"
    rf"|[{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_])+|[^\w\s{_MARKS}]"
)

_LETTERS = 12  # the number of letters that are compared first

_PART = 48  # the number of characters that usually contain these letters

_BETWEEN = lazy_pattern(r"[\W_]+")

_LOWER = bytes(range(128)).lower() + bytes(range(128, 256))

_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())

_LINKED = 0.5  # the minimum score of a linked passage, as a share of the linking passage's score


def word_scores(query: TermWeights, term_scores: Floats) -> Floats:
    """Return which part of a question is covered by the words of each passage, from 0 to 1.

    The score increases with the covered share of the question's total weight. The weight of a word
    is its inverse document frequency. A word that no passage contains has the same weight as the
    rarest word. A word that is frequent in a short passage is fully covered, while a single
    occurrence in a passage of average length covers four fifths. If a passage matches only parts of
    words, although other passages contain the whole words, its score is 0.

    Args:
        query: The query as returned by ``Bm25.prepare``.
        term_scores: The contribution of each term to the BM25 score of each passage, with shape
            (passages, terms).
    """
    weights = np.array([*query.weights.values()])
    usable = weights > 0
    used = term_scores
    if not usable.all():
        used = term_scores[:, usable]
        weights = weights[usable]
    shares = np.sqrt(np.minimum(used / weights / _FULL_IMPACT, 1.0))
    # A matrix product is not used, because its rounding depends on the number of rows.
    covered = np.multiply(shares, weights, order="C").sum(axis=1)
    total = weights.sum() + query.missing + _MORE * query.highest
    scores: Floats = np.minimum(covered / (total or 1.0), 1.0) ** _EXPONENT
    if query.silent:
        others = np.array([term not in query.silent for term in query.weights], bool)
        scores[~(term_scores[:, others] > 0).any(axis=1)] = 0.0
    return scores


def below_unknown(scores: Floats, query: TermWeights) -> Floats:
    """Limit the scores if a large part of a question consists of codes that no passage contains."""
    if not query.unknown:
        return scores
    share = len(query.unknown) * query.highest / (query.total or 1.0)
    return np.minimum(scores, _UNKNOWN) if share >= _UNKNOWN_SHARE else scores


def without_identifiers(scores: Floats, lacks: npt.NDArray[np.bool_]) -> Floats:
    """Limit the scores of passages that lack the identifiers of a question.

    Args:
        scores: The scores, with shape (passages,).
        lacks: Whether each passage lacks identifiers of the question.
    """
    return np.where(lacks, np.minimum(scores, _UNKNOWN), scores)


def unknown_note(query: TermWeights) -> str | None:
    """Return a note on codes that no passage contains, or None if all codes occur."""
    return f"no passage has {', '.join(query.unknown)}" if query.unknown else None


def vector_scores(
    cosines: Floats, query: Vectors, background: Vectors, usual_deviation: float, size: int
) -> Floats:
    """Return the relevance of passages by vectors, from 0 to 1, corrected for random similarity.

    The cosine similarities of unrelated texts depend on the model and on the question. Their
    standard deviation is estimated from the question, or from the sentences of the graph if the
    result is higher. The more passages a corpus has, the higher is the maximum of these
    similarities. A relevance of 0.5 is reached slightly above the maximum that is expected for
    unrelated texts.

    Args:
        cosines: The cosine similarities of the passages.
        query: The normalized vector of the question, with shape (dimension,).
        background: The normalized vectors of random sentences of the graph, with shape (n,
            dimension).
        usual_deviation: The standard deviation of the cosine similarities in the background.
        size: The number of passages in the corpus.
    """
    unrelated = background @ query if len(background) else np.zeros(1)
    deviation = max(float(unrelated.std()), usual_deviation, _LEAST_DEVIATION)
    above = (cosines - unrelated.mean()) / deviation
    above *= len(background) / (len(background) + _DOUBT)
    exponents = _STEEPNESS * (above - highest_by_chance(size) - _HALF)
    scores: Floats = 1 / (1 + np.exp(-np.clip(exponents, -_FARTHEST, _FARTHEST)))
    return scores


def mean_cosine(result: ScoredNode, key: str) -> float:
    """Return the mean of the cosine similarities of a result and of its best sentence.

    If neither was compared, the mean is 0.
    """
    by_group: dict[str, float] = {}
    for match in result.evidence:
        if match.embed_key == key:
            by_group[match.group] = max(match.score, by_group.get(match.group, match.score))
    return sum(by_group.values()) / len(by_group) if by_group else 0.0


def usual_deviation(background: Vectors) -> float:
    """Return the standard deviation of the cosine similarities between vectors.

    The result is the mean over all vectors.
    """
    count = len(background)
    if count < _LEAST_ROWS:
        return 0.0
    cosines = background @ background.T
    others = cosines[~np.eye(count, dtype=bool)].reshape(count, count - 1)
    return float(others.std(axis=1).mean())


def highest_by_chance(count: int) -> float:
    """Return the expected maximum of a number of standard normal values (Cramér, 1946)."""
    if count < 2:
        return 0.0
    root = math.sqrt(2 * math.log(count))
    return root - (math.log(math.log(count)) + math.log(4 * math.pi)) / (2 * root)


def joined(words: Floats, near: Sequence[Floats]) -> Floats:
    """Combine scores by words and by vectors: the higher score is increased by the lower score.

    The lower score adds up to half of the difference between the higher score and 1.
    """
    if not near:
        return words
    vectors = np.maximum.reduce(near)
    highest = np.maximum(words, vectors)
    return highest + (1.0 - highest) * _AGREEMENT * np.minimum(words, vectors)


def descending(scores: Sequence[float]) -> list[float]:
    """Adjust scores so that they do not increase, for a fixed order of results.

    Each of the first ``COMPARED`` scores is raised to the highest score after it. Every later score
    is lowered to the score before it. As a result, scores do not depend on ``top_k``.
    """
    first = [*accumulate(reversed(scores[:COMPARED]), max)][::-1]
    return [*accumulate([*first, *scores[COMPARED:]], min)]


def rescored(result: ScoredNode, score: float) -> ScoredNode:
    """Return a result with a different score, and scale the shares of its evidence accordingly."""
    shares = scaled([match.share for match in result.evidence], score)
    evidence = (
        match if share is None else replace(match, share=share)
        for match, share in zip(result.evidence, shares, strict=True)
    )
    return ScoredNode(result.node, score, tuple(evidence))


def linked_from(result: ScoredNode) -> Node | None:
    """Return the passage from which a result was reached by a link, or None if it was not."""
    for first in result.evidence[:1]:
        if first.similarity.startswith("link "):
            return first.node
    return None


def with_scores(results: Sequence[ScoredNode], scores: Mapping[str, float]) -> list[ScoredNode]:
    """Assign descending scores to results. Results with a score of 0 are dropped.

    The score of a linked passage is at least half the score of the passage that links to it.

    Args:
        results: The results, in their final order.
        scores: The scores of the results and of the passages that link to them, by node id.
    """
    own = []
    for result in results:
        score = scores[result.node.id]
        partner = linked_from(result)
        if partner is not None:
            score = max(score, _LINKED * scores[partner.id])
        own.append(score)
    kept = [(result, score) for result, score in zip(results, own, strict=True) if score > 0]
    lowered = descending([score for _, score in kept])
    return [rescored(result, score) for (result, _), score in zip(kept, lowered, strict=True)]


def same_texts(texts: Sequence[str]) -> list[list[int]]:
    """Group the positions of equal texts. The groups are ordered by their first positions.

    Texts are equal if they contain the same words, numbers and symbols. They can differ in case,
    punctuation, white space, width and markup.
    """
    if len({_first_letters(text) for text in texts}) == len(texts):  # no copies
        return [[at] for at in range(len(texts))]
    groups = [[*range(len(texts))]]
    # Most texts already differ in their first letters.
    for key_of in (_first_letters, _letters, _words):
        by_key: dict[tuple[int, str], list[int]] = {}
        for number, group in enumerate(groups):
            for at in group:
                key = key_of(texts[at]) if len(group) > 1 else ""
                by_key.setdefault((number, key), []).append(at)
        groups = [*by_key.values()]
        if len(groups) == len(texts):
            break
    return sorted(groups)


def with_copies(result: ScoredNode, copies: Sequence[tuple[Node, float]], query: str) -> ScoredNode:
    """Add evidence to a result for up to ten other documents that contain an equal text.

    Args:
        result: The result.
        copies: Nodes with an equal text and their scores, best first. From each other document,
            only the best node is listed. Nodes from the document of the result are ignored.
        query: The query.
    """
    seen = {_document_of(result.node)}
    others: list[tuple[Node, float]] = []
    for node, score in copies:
        document = _document_of(node)
        if document not in seen:
            seen.add(document)
            others.append((node, score))
    if not others:
        return result
    filters = result.evidence[0].filters if result.evidence else None
    also = [Evidence(node, n, COPY, query, filters=filters) for node, n in others[:_NOTED]]
    more = len(others) - _NOTED
    if more > 0:
        variant = QueryVariant(query, COPY, f"and {more} more")
        also[-1] = replace(also[-1], variants=(variant,))
    return replace(result, evidence=(*result.evidence, *also))


def _document_of(node: Node) -> str:
    return node.document_id or node.id


@lru_cache(1024)  # a small corpus has the same candidates for many questions
def _first_letters(text: str) -> str:
    letters = _letters(text[:_PART])
    # Near the end of the part, letters may differ from the full text.
    if len(letters) < 2 * _LETTERS:
        letters = _letters(text)
    return letters[:_LETTERS]


def _letters(text: str) -> str:
    """Return the letters and digits of a text."""
    if text.isascii():
        return text.encode().translate(_LOWER, _SEPARATORS).decode()
    return _BETWEEN.sub("", _plain(text))


def _words(text: str) -> str:
    """Return the words, numbers and symbols of a text, or the text itself if it contains none."""
    return "\n".join(_SIGNIFICANT.findall(_plain(text))) or text


def _plain(text: str) -> str:
    """Return a text in lower case and in composed form, without full-width characters."""
    if text.isascii():
        return text.lower()
    text = _WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)
    return unicodedata.normalize("NFC", text.casefold())
