"""Which results are the gold of a question: by edit distance, containment, document or span."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from ...nodegraph.models.output.lines import normalize
from ...nodegraph.splitters.chunking import UNSPACED, count_tokens
from ..results import ScoredNode
from ..validation import choice
from .dataset import Gold, GoldDocument, GoldPassage, GoldSpan, Question

PassageMatch = Literal["edit", "contains", "place"]
"""How a result is compared with the text of a gold passage."""


class NotJudgedError(ValueError):
    """A metric can't say anything about a question. The message says why."""


@dataclass(frozen=True, slots=True)
class RetrievedItem:
    """Hold what is judged of a result, as plain values that a file can have.

    Attributes:
        id: Of the node.
        text: What it was returned as.
        score: Higher is better.
        document_id: Of its document.
        start: Where its text starts in the document, in characters. None where that is not known.
        end: Where it ends, exclusive.
        explanation: How it was retrieved, in words (``ScoredNode.explain``).
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
        """How many tokens its text has, by ``count_tokens``."""
        return _tokens(self.text)

    @classmethod
    def of(cls, result: ScoredNode, document_key: str | None = None) -> RetrievedItem:
        """Return what is judged of a result.

        Args:
            result: The result.
            document_key: The metadata field that has the id of the document.
        """
        node = result.node
        text = node.content if isinstance(node.content, str) else node.text
        start, stop = node.start, node.end
        if start is None and isinstance(index := node.metadata.get("start_index"), int):
            start, stop = index, index + len(node.text)  # as LangChain's splitters have it
        document_id = node.document_id or node.id
        if document_key is not None:
            document_id = str(node.metadata.get(document_key, ""))
        score = float(result.score)
        return cls(node.id, text, score, document_id, start, stop, result.explain())


@dataclass(frozen=True, slots=True)
class Matching:
    """Say when a result is gold.

    A gold document is matched by any result of it, a gold span by any result of its document that
    overlaps it by a token or more. A gold passage is matched by a result whose

    - ``"edit"``: similarity, one minus the edit distance divided by the length of the longer text
      (in characters), is above the threshold. This is how Ragas and LazyLLM compute context recall
      without a model. It is for results of about the size of the gold, and says no to a document
      that contains a passage, and to a sentence of it.
    - ``"contains"``: text has the passage in it, or is in it, white space apart.
    - ``"place"``: overlaps the passage where it stands in its document, by a token or more. It
      needs the documents, and is for any way to split them.

    Args:
        passages: How a gold passage is compared.
        threshold: For ``"edit"``, from 0 to below 1.
        document_key: The metadata field that has the id of a result's document, like ``"source"``.
            None for the node's ``document_id``.

    Raises:
        ValueError: If the way is unknown or the threshold out of range.
    """

    passages: PassageMatch = "edit"
    threshold: float = 0.5
    document_key: str | None = None

    def __post_init__(self) -> None:
        choice(self.passages, "passages", get_args(PassageMatch))
        check_threshold(self.threshold)

    def matches(self, gold: Gold, item: RetrievedItem) -> bool:
        """Return whether a result is this gold.

        Raises:
            NotJudgedError: If the result lacks what it takes to tell.
        """
        if isinstance(gold, GoldPassage):
            if self.passages == "edit":
                return is_similar(item.text, gold.text, self.threshold)
            entry, other = " ".join(item.text.split()), " ".join(gold.text.split())
            return bool(entry) and (entry in other or other in entry)
        if not item.document_id:
            raise NotJudgedError(f"result {item.id!r} has no document id; set document_key")
        if item.document_id != gold.document_id:
            return False
        return isinstance(gold, GoldDocument) or overlap(gold, item) is not None


def check_threshold(threshold: float) -> float:
    """Return a threshold of similarity that is in range.

    Raises:
        ValueError: If it is not.
    """
    if isinstance(threshold, bool) or not 0 <= threshold < 1:
        raise ValueError(f"threshold is a number from 0 to below 1, not {threshold!r}")
    return threshold


def overlap(gold: GoldSpan, item: RetrievedItem) -> tuple[int, int] | None:
    """Return where a result overlaps a span of its document, None where by less than a token.

    Raises:
        NotJudgedError: If the result does not say where it is in the document.
    """
    if item.start is None or item.end is None:
        raise NotJudgedError(
            f"result {item.id!r} does not say where it is in document {item.document_id!r}"
        )
    start, stop = max(gold.start, item.start), min(gold.end, item.end)
    if start >= stop:
        return None
    text = gold.text[start - gold.start : stop - gold.start]
    return (start, stop) if not gold.text or count_tokens(text) else None


@dataclass(frozen=True)
class RetrievalCase:
    """Hold a question and what was retrieved for it: what a metric judges.

    Attributes:
        question: The question.
        items: The results, best first.
        matching: When a result is gold.
        answer: The answer of a query engine, None of a retriever.
        model_calls: How many calls of language models it took.
        model_tokens: How many tokens their prompts and answers have.
        answer_only: Whether the set-up returned an answer here and sources for no question, as a
            chain does that returns a text, so that what it retrieved is not known.
    """

    question: Question
    items: tuple[RetrievedItem, ...]
    matching: Matching = Matching()
    answer: str | None = None
    model_calls: int = 0
    model_tokens: int = 0
    answer_only: bool = False

    def check_sources(self) -> None:
        """Check that it is known what was retrieved.

        Raises:
            NotJudgedError: If it is not.
        """
        if self.answer_only:
            raise NotJudgedError(
                "the set-up returned an answer without its sources; let it return both, as "
                "{'answer': ..., 'context': documents}"
            )

    @cached_property
    def matched(self) -> list[frozenset[int]]:
        """The places in ``question.gold`` of the gold that each result is.

        Raises:
            NotJudgedError: If the question has no gold, or a result can't be compared.
        """
        gold = self.question.gold
        if not gold:
            raise NotJudgedError("the question has no gold")
        self.check_sources()
        matches = self.matching.matches
        positions = [*enumerate(gold)]
        return [
            frozenset([at for at, entry in positions if matches(entry, item)])
            for item in self.items
        ]

    @cached_property
    def _ranks(self) -> tuple[int | None, ...]:
        ranks: list[int | None] = [None] * len(self.question.gold)
        for rank, positions in enumerate(self.matched, 1):
            for position in positions:
                if ranks[position] is None:
                    ranks[position] = rank
        return tuple(ranks)

    @cached_property
    def first_answer(self) -> tuple[int | None, str]:
        """The rank of the first result that has an answer, and the answer. None where none has.

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

    def first_ranks(self, k: int | None = None) -> tuple[int | None, ...]:
        """Return the rank, from 1, at which each gold is first among the first ``k`` results."""
        if k is None or len(self.items) <= k:
            return self._ranks
        return tuple([None if rank is None or rank > k else rank for rank in self._ranks])


@functools.lru_cache(maxsize=20_000)  # set-ups retrieve the same passages
def _tokens(text: str) -> int:
    return count_tokens(text)


def edit_similarity(entry: str, other: str) -> float:
    """Return one minus the edit distance (Levenshtein, 1966), divided by the longer length.

    Example:
        >>> round(edit_similarity("kitten", "sitting"), 4)
        0.5714
    """
    if entry == other:
        return 1.0
    return 1 - _distance(entry, other) / max(len(entry), len(other))


@functools.lru_cache(maxsize=100_000)  # set-ups retrieve the same passages
def is_similar(entry: str, other: str, threshold: float) -> bool:
    """Return whether the edit similarity of two texts is above a threshold.

    The distance is at least the difference in length, and the number of characters that the longer
    text has and the shorter lacks. Where these suffice it is not computed.
    """
    if entry == other:
        return True
    maximum = max(len(entry), len(other))
    if 1 - abs(len(entry) - len(other)) / maximum <= threshold:
        return False
    common = (_letters(entry) & _letters(other)).total()
    return common / maximum > threshold and edit_similarity(entry, other) > threshold


@functools.lru_cache(maxsize=20_000)
def _letters(text: str) -> Counter[str]:
    return Counter(text)


def similar_part(text: str, content: str) -> tuple[float, int, int]:
    """Return the part of a content that is most like a text: its similarity, start and end.

    The similarity is one minus the edit distance divided by the length of the text.

    Example:
        >>> similar_part("black tea", "We drink a blak tea.")
        (0.8888888888888888, 11, 19)
    """
    distances = list(_distances(text, content, anywhere=True))
    end = min(range(len(content) + 1), key=lambda at: distances[at])
    back = list(_distances(text[::-1], content[:end][::-1], anywhere=True))
    length = min(range(len(back)), key=lambda at: back[at])
    return 1 - distances[end] / len(text), end - length, end


def _distance(entry: str, other: str) -> int:
    """Return the edit distance of two texts."""
    distance = len(entry)
    for distance in _distances(entry, other):  # noqa: B007 - the last one counts
        pass
    return distance


def _distances(entry: str, other: str, *, anywhere: bool = False) -> Iterator[int]:
    """Yield the edit distance of a text to nothing, and to each beginning of another one.

    By bit vectors (Myers, 1999, in the form of Hyyrö, 2003).

    Args:
        entry: The text.
        other: The other one.
        anywhere: Whether it is compared with what ends there and starts anywhere.
    """
    positions: dict[str, int] = {}
    for position, letter in enumerate(entry):
        positions[letter] = positions.get(letter, 0) | 1 << position
    every, last = (1 << len(entry)) - 1, 1 << len(entry) >> 1
    up, down, distance = every, 0, len(entry)  # where a column of the table rises and falls
    first = not anywhere or not entry
    yield distance
    for letter in other:
        equal = positions.get(letter, 0)
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        rises, falls = (down | ~(horizontal | up)) & every, up & horizontal
        distance += bool(rises & last) - bool(falls & last) if entry else 1
        rises, falls = rises << 1 | first, falls << 1
        up, down = (falls | ~(vertical | rises)) & every, rises & vertical & every
        yield distance


def covered_tokens(gold: GoldSpan, items: Sequence[RetrievedItem]) -> int:
    """Return how many tokens of a span the results cover, each counted once."""
    if not gold.text:
        raise NotJudgedError(f"a gold span of document {gold.document_id!r} has no text")
    parts = sorted(
        part
        for item in items
        if item.document_id == gold.document_id and (part := overlap(gold, item))
    )
    total, reached = 0, gold.start
    for start, stop in parts:
        total += count_tokens(gold.text[max(start, reached) - gold.start : stop - gold.start])
        reached = max(reached, stop)
    return total


_normalized = functools.lru_cache(maxsize=20_000)(normalize)


SPACED = rf"[^\W{UNSPACED}]"
"""A pattern for a character of a word that has spaces around it."""

_SPACED = re.compile(SPACED)


def has_words(text: str, answer: str) -> bool:
    """Return whether an answer is in a text, as whole words where its script has spaces."""
    at = text.find(answer)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(answer) : at + len(answer) + 1]
        if not (_SPACED.match(answer) and _SPACED.match(before)) and not (
            _SPACED.match(answer[-1]) and _SPACED.match(after)
        ):
            return True
        at = text.find(answer, at + 1)
    return False
