"""Decide which results are gold: by document, span, or the text of a passage."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from rapidfuzz.distance import Levenshtein

from ...nodegraph.models.output.answer_text import normalize
from ...nodegraph.splitters.chunking import UNSPACED, count_tokens
from ..results import ScoredNode
from ..validation import choice
from .dataset import Gold, GoldDocument, GoldPassage, GoldSpan, Question

PassageMatch = Literal["edit", "contains", "place"]
"""How a result is compared with a gold passage."""


class NotJudgedError(ValueError):
    """A metric can't judge a question. The message has the reason."""


@dataclass(frozen=True, slots=True)
class RetrievedItem:
    """A result, as plain values for a file.

    Attributes:
        id: The id of the node.
        text: The text of the result.
        score: The score. Higher is better.
        document_id: The id of the document.
        start: The first character in the document. None: unknown.
        end: The end, exclusive.
        explanation: How the result was retrieved, see ``ScoredNode.explain``.
    """

    id: str
    text: str
    score: float
    document_id: str = ""
    start: int | None = None
    end: int | None = None
    explanation: str = ""

    @property
    def tokens(self) -> int:
        """The number of tokens of the text, see ``count_tokens``."""
        return _tokens(self.text)

    @classmethod
    def of(cls, result: ScoredNode, document_key: str | None = None) -> RetrievedItem:
        """Convert a result.

        Args:
            result: The result.
            document_key: The metadata field with the id of the document.
        """
        node = result.node
        text = node.content if isinstance(node.content, str) else node.text
        start, end = node.start, node.end
        if start is None and isinstance(index := node.metadata.get("start_index"), int):
            start, end = index, index + len(node.text)  # written by LangChain's splitters
        document_id = node.document_id or node.id
        if document_key is not None:
            document_id = str(node.metadata.get(document_key, ""))
        score = float(result.score)
        return cls(node.id, text, score, document_id, start, end, result.explain())


@dataclass(frozen=True, slots=True)
class Matching:
    """The rule that decides whether a result is gold.

    Each result of a gold document matches the document. Each result that overlaps a gold span by
    a token or more matches the span. A result matches a gold passage if

    - ``"edit"``: the similarity is above the threshold: 1 - edit distance / length of the longer
      text, in characters. Ragas and LazyLLM compute context recall without a model like this. It
      requires results of about the size of the gold.
    - ``"contains"``: one text contains the other, apart from white space.
    - ``"place"``: the result overlaps the passage in its document by a token or more. This works
      for all splitters, and requires the documents.

    Args:
        passages: The comparison with gold passages.
        threshold: The threshold of ``"edit"``, from 0 to below 1.
        document_key: The metadata field with the id of a result's document, like ``"source"``.
            None: the node's ``document_id``.

    Raises:
        ValueError: If the comparison is unknown or the threshold out of range.
    """

    passages: PassageMatch = "edit"
    threshold: float = 0.5
    document_key: str | None = None

    def __post_init__(self) -> None:
        choice(self.passages, "passages", get_args(PassageMatch))
        if isinstance(self.threshold, bool) or not 0 <= self.threshold < 1:
            raise ValueError(f"threshold must be from 0 to below 1, got {self.threshold!r}")

    def matches(self, gold: Gold, item: RetrievedItem) -> bool:
        """Return whether a result is this gold.

        Raises:
            NotJudgedError: If the result has no document id or position, and the gold needs them.
        """
        if isinstance(gold, GoldPassage):
            if self.passages == "edit":
                return is_similar(item.text, gold.text, self.threshold)
            text, passage = " ".join(item.text.split()), " ".join(gold.text.split())
            return bool(text) and (text in passage or passage in text)
        if not item.document_id:
            raise NotJudgedError(f"result {item.id!r} has no document id; set document_key")
        if item.document_id != gold.document_id:
            return False
        return isinstance(gold, GoldDocument) or _overlaps(gold, item)


@functools.lru_cache(maxsize=100_000)  # systems retrieve the same passages
def is_similar(entry: str, other: str, threshold: float) -> bool:
    """Return whether the edit similarity of two texts is above a threshold.

    The edit similarity is 1 - edit distance (Levenshtein, 1966) / length of the longer text.

    Example:
        >>> is_similar("kitten", "sitting", 0.5), is_similar("kitten", "sitting", 0.6)
        (True, False)
    """
    return Levenshtein.normalized_similarity(entry, other, score_cutoff=threshold) > threshold


def _overlaps(gold: GoldSpan, item: RetrievedItem) -> bool:
    """Return whether a result overlaps a span of its document by a token or more."""
    if item.start is None or item.end is None:
        raise NotJudgedError(f"result {item.id!r} has no position in document {item.document_id!r}")
    start, end = max(gold.start, item.start), min(gold.end, item.end)
    if start >= end:
        return False
    return not gold.text or count_tokens(gold.text[start - gold.start : end - gold.start]) > 0


@dataclass(frozen=True)
class RetrievalCase:
    """A question and its results: the input of a metric.

    Attributes:
        question: The question.
        items: The results, best first.
        matching: Decides whether a result is gold.
        answer: The answer of a query engine. None: a retriever.
        answer_only: True if the system returned answers and never sources, for example a chain
            that returns a text. Its results are unknown.
    """

    question: Question
    items: tuple[RetrievedItem, ...]
    matching: Matching = Matching()
    answer: str | None = None
    answer_only: bool = False

    def check_sources(self) -> None:
        """Raise a NotJudgedError if the results are unknown."""
        if self.answer_only:
            raise NotJudgedError(
                "the system returned an answer without sources; return both: "
                "{'answer': ..., 'context': documents}"
            )

    @cached_property
    def matched(self) -> list[frozenset[int]]:
        """The positions in ``question.gold`` of the gold that each result matches.

        Raises:
            NotJudgedError: If the question has no gold, or a result can't be compared.
        """
        if not self.question.gold:
            raise NotJudgedError("the question has no gold")
        self.check_sources()
        gold = [*enumerate(self.question.gold)]
        matches = self.matching.matches
        return [frozenset([n for n, entry in gold if matches(entry, i)]) for i in self.items]

    @cached_property
    def _ranks(self) -> list[int | None]:
        ranks: list[int | None] = [None] * len(self.question.gold)
        for rank, positions in reversed([*enumerate(self.matched, 1)]):
            for position in positions:
                ranks[position] = rank
        return ranks

    @cached_property
    def first_answer(self) -> tuple[int | None, str]:
        """The rank of the first result that contains an answer, and the answer.

        Raises:
            NotJudgedError: If the question has no answers.
        """
        answers = [(_normalized(entry), entry) for entry in self.question.answers if entry.strip()]
        if not answers:
            raise NotJudgedError("the question has no answers")
        self.check_sources()
        for rank, item in enumerate(self.items, 1):
            text = _normalized(item.text)
            for normalized, answer in answers:
                if has_words(text, normalized):
                    return rank, answer
        return None, ""

    def first_ranks(self, k: int | None = None) -> list[int | None]:
        """Return the first rank of each gold among the first ``k`` results. None: not found."""
        return [None if rank is None or (k and rank > k) else rank for rank in self._ranks]


# Systems retrieve the same passages, so the caches are hit often.
_tokens = functools.lru_cache(maxsize=20_000)(count_tokens)
_normalized = functools.lru_cache(maxsize=20_000)(normalize)

_SPACED = re.compile(rf"[^\W{UNSPACED}]")  # a letter of a script with spaces between words


def has_words(text: str, answer: str) -> bool:
    """Return whether a text contains an answer. Words separated by spaces must match whole."""
    at = text.find(answer)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(answer) : at + len(answer) + 1]
        starts_inside = _SPACED.match(answer) and _SPACED.match(before)
        ends_inside = _SPACED.match(answer[-1]) and _SPACED.match(after)
        if not starts_inside and not ends_inside:
            return True
        at = text.find(answer, at + 1)
    return False
