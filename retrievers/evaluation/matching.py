"""Decide which results are gold: by document, span, or the text of a passage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from rapidfuzz.distance import Levenshtein

from ...nodegraph.splitters.chunking import count_tokens
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

    def first_ranks(self, k: int | None = None) -> list[int | None]:
        """Return the first rank of each gold among the first ``k`` results. None: not found."""
        matched = [*enumerate(self.matched[:k], 1)]
        return [
            next((rank for rank, found in matched if n in found), None)
            for n in range(len(self.question.gold))
        ]
