"""The scores of the default search: how much of a question its results say, from 0 to 1."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

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
"""How many of the first results a score is compared with, however many are wanted."""

# What a term adds to BM25, for a weight of 1, from which it counts in full: once in a node of
# average length is 1.
_FULL_IMPACT = 1.5

# What is added to the weight of each question, as a share of the highest weight of a term: one
# word that is there says less than ten that are.
_MORE = 0.5

_EXPONENT = 0.57  # so that 0.5 parts questions of a corpus from questions of elsewhere best

_DEVIATIONS = 5.0  # from which a cosine is above those of unrelated texts

_HIGHEST_GROUND = 0.95

_FAR = 0.02  # of a cosine that is not above them, so that what vectors find stays, in its order

_VECTORS = 0.5  # of what is missing to 1, what equal vectors add

_NOTED = 10  # copies of a result, the others are counted

_WIDE = lazy_pattern("[\uff00-\uffef]+")

# Punctuation and mark-up, which may differ between copies.
_MARKS = (
    r"""!"#'()*,\-./:;<=>?\[\\\]`{|}~"""
    "\u00a1\u00ab\u00b7\u00bb\u00bf\u060c\u061b\u061f\u06d4\u0964"
    "\u2010-\u2015\u2018-\u201f\u2022\u2026\u2039\u203a\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb"
)

# A number, a minus before one, a comparison, the # of a name, a letter or a word, another sign.
_SIGNIFICANT = lazy_pattern(
    r"\d+(?:[.,:/-]\d+)*|(?<!\w)-(?=\d)|(?<![=!<>])[=!<>]=(?![=<>])|(?<=\w)#"
    rf"|[{UNSPACED}]|(?:(?![{UNSPACED}])[^\W_])+|[^\w\s{_MARKS}]"
)

# How many letters at both ends of a text are compared first, and where they are looked for.
_LETTERS, _PART = 12, 48

_ENDS = (
    (slice(_PART), slice(_LETTERS)),
    (slice(-_PART, None), slice(-_LETTERS, None)),
)

_BETWEEN = lazy_pattern(r"[\W_]+")

_LOWER = bytes(range(128)).lower() + bytes(range(128, 256))

_SEPARATORS = bytes(code for code in range(128) if not chr(code).isalnum())

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
    shares = np.sqrt(np.minimum(impacts / _FULL_IMPACT, 1.0))
    # A product of a matrix rounds a row by how many there are, and a score would depend on that.
    covered = np.multiply(shares, weights[usable], order="C").sum(axis=1)
    total = weights[usable].sum() + query.missing + _MORE * query.highest
    scores: Floats = np.minimum(covered / (total or 1.0), 1.0) ** _EXPONENT
    if query.silent:
        others = np.array([term not in query.silent for term in query.weights], bool)
        scores[~(term_scores[:, others] > 0).any(axis=1)] = 0.0
    return scores


def vector_scores(cosines: Floats, query: Vectors, background: Vectors) -> Floats:
    """Return how near passages are to a question, from 0 to 1, as far as chance does not explain.

    It is 0 where a cosine is not above those of unrelated texts by five times their deviation.
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
    """Return a result with another score, to which the shares of its evidence are scaled."""
    shares = scaled([match.share for match in result.evidence], score)
    evidence = (
        match if share is None else replace(match, share=share)
        for match, share in zip(result.evidence, shares, strict=True)
    )
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


def same_texts(texts: Sequence[str]) -> list[list[int]]:
    """Return the positions of each distinct text, in the order of their first positions.

    Texts are equal if they have the same words, numbers and signs. Case, punctuation, white
    space, width and mark-up may differ.
    """
    ends = [""] * len(texts)
    with_ends = Counter(ends)
    for part, letters in _ENDS:
        ends = [
            end if with_ends[end] == 1 else end + _letters(text, part, letters)
            for end, text in zip(ends, texts, strict=True)
        ]
        with_ends = Counter(ends)
        if len(with_ends) == len(ends):
            return [[at] for at in range(len(texts))]
    positions: dict[str, list[int]] = {}
    words: dict[str, str] = {}  # by text, since many texts are equal to the letter
    for at, (text, end) in enumerate(zip(texts, ends, strict=True)):
        if with_ends[end] == 1:
            positions[end] = [at]
            continue
        if text not in words:
            words[text] = "\n".join(_without_marks(text))
        positions.setdefault(f"{end}\n{words[text]}", []).append(at)
    return [*positions.values()]


def with_copies(result: ScoredNode, copies: Sequence[tuple[Node, float]], query: str) -> ScoredNode:
    """Return a result whose evidence has the other nodes with its text, up to ten.

    Args:
        result: The result.
        copies: The other nodes with their scores.
        query: The query.
    """
    if not copies:
        return result
    filters = result.evidence[0].filters if result.evidence else None
    variants: tuple[QueryVariant, ...] = ()
    also = []
    for at, (node, score) in enumerate(copies[:_NOTED], 1):
        if at == _NOTED < len(copies):
            variants = (QueryVariant(query, COPY, f"and {len(copies) - _NOTED} more"),)
        also.append(Evidence(node, score, COPY, query, variants=variants, filters=filters))
    return replace(result, evidence=(*result.evidence, *also))


def _without_marks(text: str) -> list[str]:
    """Return the words, numbers and signs of a text, the text itself if it has none."""
    return _SIGNIFICANT.findall(_plain(text)) or [text]


def _letters(text: str, part: slice, letters: slice) -> str:
    """Return letters at one end of a text, which tell most texts from others."""
    of_part = _alphanumeric(text[part])
    if len(of_part) < 2 * _LETTERS:  # what is cut off may change the others
        of_part = _alphanumeric(text)
    return of_part[letters]


def _alphanumeric(text: str) -> str:
    if text.isascii():
        return text.encode().translate(_LOWER, _SEPARATORS).decode()
    return _BETWEEN.sub("", _plain(text))


def _plain(text: str) -> str:
    """Return a text in lower case and composed form, with narrow letters and signs."""
    if text.isascii():
        return text.lower()
    text = _WIDE.sub(lambda wide: unicodedata.normalize("NFKC", wide[0]), text)
    return unicodedata.normalize("NFC", text.casefold())
