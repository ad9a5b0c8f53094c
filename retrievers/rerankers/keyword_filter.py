"""Filter results by keywords."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ...nodegraph.splitters.tokens import UNSPACED
from ..analysis.text_analyzer import TextAnalyzer
from ..results import Results, ScoredNode

Keywords = str | Sequence[str]
"""One keyword, or a list of them."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")


class KeywordFilter:
    """Keep the results whose text has all required keywords and no excluded one.

    Scores and order do not change. Chinese, Japanese and other scripts without spaces match
    anywhere in the text. Words match as words, in any case and with any ending that the text's
    language has (``river`` matches ``Rivers``, but not ``driver``); several words must be next to
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
            required: For this call, in place of the filter's own; ``[]`` for none.
            excluded: The same for excluded keywords.
        """
        required = self.required if required is None else _listed("required", required)
        excluded = self.excluded if excluded is None else _listed("excluded", excluded)
        analyzer = TextAnalyzer(self.stem)

        @cache
        def keywords(analyze: TextAnalyzer) -> tuple[list[_Keyword], list[_Keyword]]:
            parsed = ([_Keyword.parse(k, analyze) for k in some] for some in (required, excluded))
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
