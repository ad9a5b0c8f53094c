"""Keep the results that have certain keywords and lack others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from ...nodegraph.splitters import UNSPACED
from ..results import ScoredNode
from ..text_analyzer import TextAnalyzer

Keywords = str | Sequence[str]
"""One keyword, or a list of them."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")


class KeywordFilter:
    """Keep the results whose text has all required keywords and no excluded one.

    Scores and order stay as they are. Chinese, Japanese and other scripts without spaces match
    as parts of the text; words match whole, whatever their case and ending (``river`` finds
    ``Rivers``, and not ``driver``), several words next to each other. A keyword of both kinds
    (``iPhone手机``) matches where all its parts do.

    Args:
        required: A result has all of these.
        excluded: A result has none of these.
        stem: Whether the endings of English words don't count.

    Raises:
        TypeError: If a keyword is no text.
        ValueError: If one is blank.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> found = [ScoredNode(Node("Rivers of China"), 2.0), ScoredNode(Node("黄河与长江"), 1.0)]
        >>> [r.node.text for r in KeywordFilter(required="长江").rerank(found, "rivers?")]
        ['黄河与长江']
        >>> [r.node.text for r in KeywordFilter(excluded=["river"]).rerank(found, "rivers?")]
        ['黄河与长江']
    """

    name = "KeywordFilter"

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
    ) -> list[ScoredNode]:
        """Return the results that pass, as they are.

        Args:
            results: What was found.
            query: Not looked at.
            required: For this call, in place of the filter's own; ``[]`` for none.
            excluded: Likewise.
        """
        needs = self.required if required is None else _listed("required", required)
        bars = self.excluded if excluded is None else _listed("excluded", excluded)
        analyze = TextAnalyzer(self.stem)
        needed = [_Keyword.of(each, analyze) for each in needs]
        barred = [_Keyword.of(each, analyze) for each in bars]
        kept = []
        for result in results:
            text = _plain(result.node.text)
            terms = analyze(result.node.text)
            if all(each.is_in(text, terms) for each in needed) and not any(
                each.is_in(text, terms) for each in barred
            ):
                kept.append(result)
        return kept


@dataclass(frozen=True, slots=True)
class _Keyword:
    """The parts of a keyword, all of which have to be there."""

    runs: list[str]
    phrases: list[list[str]]

    @classmethod
    def of(cls, keyword: str, analyze: TextAnalyzer) -> _Keyword:
        plain = _plain(keyword)
        runs = _UNSPACED_RUN.findall(plain)
        phrases = [analyze(part) for part in _UNSPACED_RUN.split(plain)]
        phrases = [phrase for phrase in phrases if phrase]
        # Nothing but marks, such as an arrow or a currency sign, is looked for as it stands.
        return cls(runs if runs or phrases else [plain.strip()], phrases)

    def is_in(self, text: str, terms: list[str]) -> bool:
        return all(run in text for run in self.runs) and all(
            _has(terms, phrase) for phrase in self.phrases
        )


def _has(terms: list[str], phrase: list[str]) -> bool:
    """Tell whether terms have a phrase, word next to word."""
    size = len(phrase)
    return any(
        terms[at : at + size] == phrase
        for at, term in enumerate(terms[: len(terms) - size + 1])
        if term == phrase[0]
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _listed(name: str, keywords: Keywords | None) -> list[str]:
    listed = [keywords] if isinstance(keywords, str) else list(keywords or ())
    for keyword in listed:
        if not isinstance(keyword, str):
            raise TypeError(f"{name} keywords are texts, not {keyword!r:.80}")
        if not keyword.strip():
            raise ValueError(f"{name}={keywords!r:.80} has a blank keyword; leave it out")
    return listed
