"""Filter results by keywords."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...nodegraph.errors import check_integer
from ...nodegraph.models.embedder import as_embedder
from ...nodegraph.splitters.chunking import UNSPACED, count_tokens
from ..analysis.text_analyzer import TextAnalyzer
from ..ranking import merge
from ..results import Results, ScoredNode
from ..validation import check_number

Keywords = str | Sequence[str]
"""One keyword, or a list of them."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")


class KeywordFilter:
    """Keep the results whose text has all required keywords and no excluded one.

    Scores and order do not change. Chinese, Japanese and other scripts without spaces match
    anywhere in the text. Words match as words, in any case and with any ending that the text's
    language has (``river`` matches ``Rivers``, but not ``driver``). Several words must be next to
    each other. A keyword of both
    kinds (``iPhone手机``) matches if all its parts do.

    Args:
        required: A result has all of these.
        excluded: A result has none of these.
        stem: Whether the endings of words are ignored.

    Raises:
        TypeError: If a keyword is no text.
        ValueError: If one is blank.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> rivers, names = Node("Rivers of China"), Node("黄河与长江")
        >>> results = [ScoredNode(rivers, 2.0), ScoredNode(names, 1.0)]
        >>> [r.node.text for r in KeywordFilter(required="长江").rerank(results, "rivers?")]
        ['黄河与长江']
        >>> [r.node.text for r in KeywordFilter(excluded=["river"]).rerank(results, "rivers?")]
        ['黄河与长江']
    """

    name = "KeywordFilter"
    is_filter = True

    def __init__(
        self,
        required: Keywords | None = None,
        excluded: Keywords | None = None,
        *,
        stem: bool = True,
    ) -> None:
        self.stem = stem
        self.required = _listed("required", required)
        self.excluded = _listed("excluded", excluded)

    def __repr__(self) -> str:
        return f"KeywordFilter({self.required!r}, {self.excluded!r})"

    def rerank(
        self,
        results: Sequence[ScoredNode],
        query: str,
        *,
        required: Keywords | None = None,
        excluded: Keywords | None = None,
    ) -> Results:
        """Return the results that pass, as they are.

        Args:
            results: The results to filter.
            query: Not used.
            required: For this call, instead of the filter's own. ``[]`` for none.
            excluded: The same for excluded keywords.
        """
        required = self.required if required is None else _listed("required", required)
        excluded = self.excluded if excluded is None else _listed("excluded", excluded)
        analyzer = TextAnalyzer(self.stem)

        @cache
        def keywords(analyze: TextAnalyzer) -> tuple[list[_Keyword], list[_Keyword]]:
            parsed = (
                [_Keyword.parse(k, analyze) for k in subset] for subset in (required, excluded)
            )
            return next(parsed), next(parsed)

        def passes(text: str) -> bool:
            analyze = analyzer.like(text)
            normalized, terms = _normalized(text), analyze.words(text)
            required_keywords, excluded_keywords = keywords(analyze)
            return all(keyword.is_in(normalized, terms) for keyword in required_keywords) and not (
                any(keyword.is_in(normalized, terms) for keyword in excluded_keywords)
            )

        return [result for result in results if passes(result.node.text)]


@dataclass(frozen=True, slots=True)
class _Keyword:
    """The parts of a keyword, all of which a text must have."""

    runs: list[str]
    phrases: list[list[str]]

    @classmethod
    def parse(cls, keyword: str, analyze: TextAnalyzer) -> _Keyword:
        normalized = _normalized(keyword)
        runs = _UNSPACED_RUN.findall(normalized)
        phrases = [analyze.words(part) for part in _UNSPACED_RUN.split(normalized)]
        phrases = [phrase for phrase in phrases if phrase]
        # A keyword of symbols only, such as an arrow or a currency sign, is matched as it is.
        return cls(runs if runs or phrases else [normalized.strip()], phrases)

    def is_in(self, text: str, terms: list[str]) -> bool:
        return all(run in text for run in self.runs) and all(
            _has_phrase(terms, phrase) for phrase in self.phrases
        )


def _has_phrase(terms: list[str], phrase: list[str]) -> bool:
    """Return whether terms contain a phrase, its words next to each other."""
    size = len(phrase)
    return any(
        terms[at : at + size] == phrase
        for at, term in enumerate(terms[: len(terms) - size + 1])
        if term == phrase[0]
    )


def _normalized(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _listed(name: str, keywords: Keywords | None) -> list[str]:
    listed = [keywords] if isinstance(keywords, str) else list(keywords or ())
    for keyword in listed:
        if not isinstance(keyword, str):
            raise TypeError(f"{name} keywords are texts, not {keyword!r:.80}")
        if not keyword.strip():
            raise ValueError(f"{name}={keywords!r:.80} has a blank keyword; leave it out")
    return listed


SHINGLE = 5
"""Characters in a shingle."""


class NearDuplicateFilter:
    """Keep the first of results that are nearly the same, with the evidence of all of them.

    Copies of a page, versions of a contract, boilerplate: without it they fill ``top_k``. Scores
    and order do not change. In a ``RerankRetriever`` more candidates are retrieved until there
    are ``top_k`` different ones. A result is compared with those before it that were kept.

    Texts are compared by their shingles, all runs of five letters, without case, width and white
    space, in any language (Broder, "On the resemblance and containment of documents", 1997). With
    a model they are compared by the cosine of their vectors instead, which also finds the same
    said in other words.

    Args:
        threshold: How like they are that count as the same, from 0 to 1: the share of their
            shingles that both have (two versions of a text with one word in ten changed have 0.6
            to 0.7. Below 0.5, pages made from one template collapse), or the cosine. None for
            0.6 of shingles, 0.95 of vectors.
        model: Anything that ``embed`` of a graph may be. None compares shingles.

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
        for position, text in enumerate(texts):
            shingles = shingles_of(text)
            shared = Counter(other for shingle in shingles for other in having.get(shingle, ()))
            like = (
                other
                for other, count in shared.items()
                if count >= self.threshold * (sizes[other] + len(shingles) - count)
            )
            first = min(like, default=position)
            if first == position:
                sizes[position] = len(shingles)
                for shingle in shingles:
                    having.setdefault(shingle, []).append(position)
            yield first

    def _by_vectors(self, texts: Sequence[str]) -> Iterator[int]:
        assert self.embedder is not None
        vectors = np.asarray(self.embedder.passages(texts), np.float64).reshape(len(texts), -1)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.where(lengths, lengths, 1)  # zeros: no usable vector, like no other
        saved: list[int] = []
        for position, unit in enumerate(units):
            like = np.flatnonzero(units[saved] @ unit >= self.threshold - 1e-9)
            first = saved[like[0]] if len(like) else position
            if first == position:
                saved.append(position)
            yield first


def shingles_of(text: str) -> set[str]:
    """Return the shingles of a text, without case, width and white space."""
    letters = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return {letters[at : at + SHINGLE] for at in range(max(1, len(letters) - SHINGLE + 1))}


class TokenLimit:
    """Keep the first results whose texts together have no more than so many tokens.

    Choose it where results go into a prompt: short ones then come in greater number than long
    ones, and set-ups with passages of different sizes can be compared at one cost. The first
    result is kept even if it is longer by itself. From the first that does not fit, none is.

    Args:
        max_tokens: How many tokens at most.
        length: Counts a text's tokens.

    Raises:
        TypeError: If the number is no whole number, or ``length`` no function.
        ValueError: If the number is below 1.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> results = [ScoredNode(Node(text), 1.0) for text in ("green tea", "black tea", "tea")]
        >>> [result.node.text for result in TokenLimit(4).rerank(results, "tea")]
        ['green tea', 'black tea']
    """

    name = "TokenLimit"

    def __init__(self, max_tokens: int, *, length: Callable[[str], int] = count_tokens) -> None:
        self.max_tokens = check_integer(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length is a function from a text to a number, not {length!r:.80}")
        self.length = length

    def __repr__(self) -> str:
        return f"TokenLimit({self.max_tokens})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the first results that fit, in their order.

        Args:
            results: Best first.
            query: Not used.
        """
        selected: Results = []
        total = 0
        for result in results:
            total += self.length(result.node.text)
            if selected and total > self.max_tokens:
                break
            selected.append(result)
        return selected
