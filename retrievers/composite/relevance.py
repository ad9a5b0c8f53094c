"""The scores of the default search: the part of a question that a result covers, from 0 to 1."""

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
from ..indexes.bm25_scores import Floats, TermWeights
from ..ranking import scaled
from ..results import COPY, Evidence, QueryVariant, ScoredNode

Vectors = npt.NDArray[np.float32]

COMPARED = 10
"""The number of first results with adjusted scores, independent of ``top_k``."""

# A term of weight 1 counts in full from this BM25 contribution on. One occurrence in a node of
# average length contributes 1.
_FULL_IMPACT = 1.5

# This share of the highest term weight is added to the weight of each question, since one matching
# word is weaker evidence than ten.
_MORE = 0.5

_EXPONENT = 0.57  # a score of 0.5 separates questions with and without an answer best

# Vector relevance is measured in standard deviations above the highest cosine that is expected by
# chance.
_HALF = 0.45

_STEEPNESS = 1.5

_DOUBT = 8  # unrelated texts added as a prior, since the deviation of a few texts is uncertain

_UNKNOWN = 0.349  # the highest score of passages with different codes

_UNKNOWN_SHARE = 0.3  # share of a question's weight

_FARTHEST = 30.0  # exponent; the passages after it are about equally far

_LEAST_ROWS = 3  # vectors; the deviation of fewer is unknown

_LEAST_DEVIATION = 1e-3  # cosines; smaller differences are noise

_AGREEMENT = 0.5  # share of the difference to 1 that a lower score of 1 adds

_NOTED = 10  # documents with copies that are listed per result; further documents are only counted

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

_LETTERS = 12  # letters that are compared first

_PART = 48  # characters that usually contain these letters

_BETWEEN = lazy_pattern(r"[\W_]+")

_LOWER = bytes(range(128)).lower() + bytes(range(128, 256))

_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())

_LINKED = 0.5  # minimum score of a linked passage, as a share of the linking passage


def word_scores(query: TermWeights, term_scores: Floats) -> Floats:
    """Return the parts of a question covered by the words of passages, from 0 to 1.

    The score grows with the covered share of the question's weight. The weight of a word is its
    inverse document frequency. A word that no passage contains has the weight of the rarest word. A
    word that is frequent in a short passage is covered in full, and a single occurrence in a
    passage of average length covers four fifths. A passage that matches only parts of words scores
    0 if other passages contain the whole words.

    Args:
        query: The query from ``Bm25.prepare``.
        term_scores: The contribution of each term to the BM25 score of each passage, shape
            (passages, terms).
    """
    weights = np.array([*query.weights.values()])
    usable = weights > 0
    used = term_scores
    if not usable.all():
        used = term_scores[:, usable]
        weights = weights[usable]
    shares = np.sqrt(np.minimum(used / weights / _FULL_IMPACT, 1.0))
    # The rounding of a matrix product depends on the number of rows, so scores would, too.
    covered = np.multiply(shares, weights, order="C").sum(axis=1)
    total = weights.sum() + query.missing + _MORE * query.highest
    scores: Floats = np.minimum(covered / (total or 1.0), 1.0) ** _EXPONENT
    if query.silent:
        others = np.array([term not in query.silent for term in query.weights], bool)
        scores[~(term_scores[:, others] > 0).any(axis=1)] = 0.0
    return scores


def below_unknown(scores: Floats, query: TermWeights) -> Floats:
    """Limit the scores if a large part of a question consists of codes that no passage has."""
    share = len(query.unknown) * query.highest / (query.total or 1.0)
    return np.minimum(scores, _UNKNOWN) if share >= _UNKNOWN_SHARE else scores


def unknown_note(query: TermWeights) -> str | None:
    """Return the note on codes that no passage has."""
    return f"no passage has {', '.join(query.unknown)}" if query.unknown else None


def vector_scores(
    cosines: Floats, query: Vectors, background: Vectors, usual_deviation: float, size: int
) -> Floats:
    """Return the relevance of passages by vectors, from 0 to 1, corrected for chance.

    The cosines of unrelated texts depend on the model and the question. The deviation of these
    cosines is that of the question, or of the graph's sentences if this is higher. The more
    passages there are, the higher is the highest of these cosines. Relevance is 0.5 slightly above
    the highest cosine that is expected by chance.

    Args:
        cosines: The cosines of the passages.
        query: The question's vector of length 1, shape (dimension,).
        background: Vectors of random sentences of the graph, of length 1, shape (n, dimension).
        usual_deviation: The deviation of the cosines of the background.
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
    """Return the mean of the cosines of a result and its best sentence, or 0 without either."""
    by_group: dict[str, float] = {}
    for match in result.evidence:
        if match.embed_key == key:
            by_group[match.group] = max(match.score, by_group.get(match.group, match.score))
    return sum(by_group.values()) / len(by_group) if by_group else 0.0


def usual_deviation(background: Vectors) -> float:
    """Return the average standard deviation of a vector's cosines with other vectors."""
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
    """Return the higher of the word and vector scores, raised by the lower score.

    If both scores agree, the lower score adds up to half of the difference to 1.
    """
    if not near:
        return words
    vectors = np.maximum.reduce(near)
    highest = np.maximum(words, vectors)
    return highest + (1.0 - highest) * _AGREEMENT * np.minimum(words, vectors)


def descending(scores: Sequence[float]) -> list[float]:
    """Return descending scores for a fixed order of results.

    Among the first ``COMPARED`` results, a score is raised to the highest later score. After them,
    a score is lowered to the previous score. Therefore, scores do not depend on ``top_k``.
    """
    first = [*accumulate(reversed(scores[:COMPARED]), max)][::-1]
    return [*accumulate([*first, *scores[COMPARED:]], min)]


def rescored(result: ScoredNode, score: float) -> ScoredNode:
    """Return a result with a different score, to which the shares of its evidence are scaled."""
    shares = scaled([match.share for match in result.evidence], score)
    evidence = (
        match if share is None else replace(match, share=share)
        for match, share in zip(result.evidence, shares, strict=True)
    )
    return ScoredNode(result.node, score, tuple(evidence))


def linked_from(result: ScoredNode) -> Node | None:
    """Return the linking passage of a result, or None if the result is a hit."""
    for first in result.evidence[:1]:
        if first.similarity.startswith("link "):
            return first.node
    return None


def with_scores(results: Sequence[ScoredNode], scores: Mapping[str, float]) -> list[ScoredNode]:
    """Return the results with descending scores. Results with a score of 0 are left out.

    A linked passage has at least half the score of its linking passage.

    Args:
        results: The results, in their final order.
        scores: The scores of the results and of their linking passages, by node id.
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
    """Return the positions of each distinct text. Texts are ordered by their first position.

    Texts are equal if they have the same words, numbers and signs. Case, punctuation, white
    space, width and markup may differ.
    """
    groups = [[*range(len(texts))]]
    for key_of in (_first_letters, _letters, _words):  # most texts differ in the first letters
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
    """Return a result with evidence for up to ten other documents that contain an equal text.

    Args:
        result: The result.
        copies: Nodes with an equal text and their scores, best first. The best node of each other
            document is listed. Nodes of the result's own document are left out.
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
    if len(letters) < 2 * _LETTERS:  # near the cut, letters may differ from the full text
        letters = _letters(text)
    return letters[:_LETTERS]


def _letters(text: str) -> str:
    """Return the letters and digits of a text."""
    if text.isascii():
        return text.encode().translate(_LOWER, _SEPARATORS).decode()
    return _BETWEEN.sub("", _plain(text))


def _words(text: str) -> str:
    """Return the words, numbers and signs of a text, or the text itself if it has none."""
    return "\n".join(_SIGNIFICANT.findall(_plain(text))) or text


def _plain(text: str) -> str:
    """Return a text in lower case and composed form, with narrow letters and signs."""
    if text.isascii():
        return text.lower()
    text = _WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)
    return unicodedata.normalize("NFC", text.casefold())
