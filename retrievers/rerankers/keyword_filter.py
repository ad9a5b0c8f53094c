"""Filters that select results by keywords or remove near-duplicates."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from ...nodegraph.splitters.chunking import UNSPACED
from ..analysis.text_analyzer import TextAnalyzer
from ..ranking import merge
from ..results import Results, ScoredNode
from ..validation import check_number

Keywords = str | Sequence[str]
"""A keyword, or a list of keywords."""

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")

_ANALYZER = TextAnalyzer()


class KeywordFilter:
    """A filter that keeps only results with all required keywords and without excluded keywords.

    The scores and the order of the results do not change. Keywords in Chinese, Japanese and other
    scripts without spaces match anywhere in the text. All other keywords match only whole words.
    Case and inflectional endings are ignored: ``river`` matches ``Rivers``, but not ``driver``. If
    a keyword consists of several words, they must be adjacent in the text. A keyword in mixed
    scripts (``iPhone手机``) matches if all of its parts match.

    Args:
        required: The keywords that a result must contain.
        excluded: The keywords that a result must not contain.

    Raises:
        TypeError: If a keyword is not a string.
        ValueError: If a keyword is blank.

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
    ) -> None:
        self.required = _listed("required", required)
        self.excluded = _listed("excluded", excluded)

    def __repr__(self) -> str:
        return f"KeywordFilter({self.required!r}, {self.excluded!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the results that pass the filter. The query is not used."""
        return [result for result in results if self._passes(result.node.text)]

    def _passes(self, text: str) -> bool:
        analyze = _ANALYZER.like(text)
        normalized = _normalized(text)
        words = _joined(analyze.words(text))
        contained = []
        for keyword in (*self.required, *self.excluded):
            runs, phrases = _parts(keyword, analyze)
            has_runs = all(run in normalized for run in runs)
            contained.append(has_runs and all(phrase in words for phrase in phrases))
        count = len(self.required)
        return all(contained[:count]) and not any(contained[count:])


@lru_cache(1_024)
def _parts(keyword: str, analyze: TextAnalyzer) -> tuple[list[str], list[str]]:
    """Split a keyword into its parts in scripts without spaces, and the phrases between them."""
    normalized = _normalized(keyword)
    runs = _UNSPACED_RUN.findall(normalized)
    parts = [analyze.words(part) for part in _UNSPACED_RUN.split(normalized)]
    phrases = [_joined(words) for words in parts if words]
    # The keyword contains only symbols, such as an arrow or a currency sign.
    if not runs and not phrases:
        runs = [normalized.strip()]
    return runs, phrases


def _joined(words: Sequence[str]) -> str:
    """Join words so that a sequence of adjacent words can be found as a substring."""
    return "".join([f"\0{word}\0" for word in words])


def _normalized(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _listed(name: str, keywords: Keywords | None) -> list[str]:
    listed = [keywords] if isinstance(keywords, str) else [*(keywords or ())]
    for keyword in listed:
        if not isinstance(keyword, str):
            raise TypeError(f"{name} keywords must be texts, got {keyword!r:.80}")
        if not keyword.strip():
            raise ValueError(f"{name}={keywords!r:.80} has a blank keyword; leave it out")
    return listed


_SHINGLE = 5  # the number of characters of a shingle


class NearDuplicateFilter:
    """A filter that removes near-duplicates and adds their evidence to the result that is kept.

    Copies of a page, versions of a contract and boilerplate text can use up ``top_k``. With this
    filter, a ``RerankRetriever`` fetches more candidates until ``top_k`` different results are
    found. Each result is compared with the results that were kept before it. The scores and the
    order do not change.

    Texts are compared by their shingles, which are all sequences of five characters. Case, width
    and white space are ignored, so the method works in any language (Broder, "On the resemblance
    and containment of documents", 1997).

    Args:
        threshold: The minimum Jaccard similarity between the shingles of two duplicates, from 0 to
            1. For two versions of a text in which one of ten words differs, the similarity is 0.6
            to 0.7. With a value below 0.5, pages with a common template are treated as duplicates.

    Raises:
        TypeError: If the threshold is not a number.
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
    is_filter = True

    def __init__(self, threshold: float = 0.6) -> None:
        check_number(threshold, "threshold")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be above 0 and at most 1, got {threshold!r}")
        self.threshold = threshold

    def __repr__(self) -> str:
        return f"NearDuplicateFilter({self.threshold!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the results without near-duplicates. The query is not used."""
        # Results, by the position of the first of their duplicates.
        same: dict[int, list[ScoredNode]] = {}
        sizes: dict[int, int] = {}
        having: dict[str, list[int]] = {}  # shingle -> positions of kept texts that contain it
        for position, result in enumerate(results):
            shingles = _shingles(result.node.text)
            shared: Counter[int] = Counter()
            for shingle in shingles:
                shared.update(having.get(shingle, ()))
            like = [
                other
                for other, count in shared.items()
                if count >= self.threshold * (sizes[other] + len(shingles) - count)
            ]
            first = min(like, default=position)
            same.setdefault(first, []).append(result)
            if first == position:
                sizes[position] = len(shingles)
                for shingle in shingles:
                    having.setdefault(shingle, []).append(position)
        return [merge(alike[0].node, alike, alike[0].score) for alike in same.values()]


def _shingles(text: str) -> set[str]:
    """Return the shingles of a text, ignoring case, width and white space."""
    letters = "".join(unicodedata.normalize("NFKC", text).casefold().split())
    return {letters[at : at + _SHINGLE] for at in range(max(1, len(letters) - _SHINGLE + 1))}
