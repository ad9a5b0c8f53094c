"""Questions that a model wrote, and those that were rejected, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .dataset import Dataset

QuestionKind = Literal["single", "linked", "unanswerable"]
"""By one passage, by two that are linked, or by none."""


class NoQuestionsError(ValueError):
    """No question passed the checks; the message counts the reasons."""


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """Hold a question that was not taken.

    Attributes:
        kind: What it was to be.
        question: What the model wrote; empty where that can't be read.
        reason: Why it was not taken: one of few, to be counted.
        detail: The same of this question.
        node_ids: Of the passages.
    """

    kind: QuestionKind
    question: str
    reason: str
    detail: str
    node_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GeneratedQuestions:
    """Hold the questions that a model wrote.

    Attributes:
        dataset: The questions that passed all checks; the kind is in their ids.
        rejected: Those that did not.
        requested: How many of each kind were requested.
        model_calls: How many answers of the model it took, kept ones too.
        tokens: Of their prompts and answers, by ``count_tokens``.
    """

    dataset: Dataset
    rejected: tuple[RejectedQuestion, ...]
    requested: Mapping[QuestionKind, int]
    model_calls: int
    tokens: int

    @property
    def counts(self) -> dict[QuestionKind, int]:
        """How many questions there are of each kind."""
        kinds = Counter(question.id.partition("-")[0] for question in self.dataset.questions)
        return {kind: kinds[kind] for kind in self.requested}

    @property
    def reasons(self) -> dict[str, int]:
        """How many questions were rejected, by the reason, most first."""
        return dict(Counter(one.reason for one in self.rejected).most_common())

    def __str__(self) -> str:
        counts = self.counts
        kinds = ", ".join(
            f"{counts[kind]} of {n} {kind}" for kind, n in self.requested.items() if n
        )
        reasons = "; ".join(f"{n} {reason}" for reason, n in self.reasons.items())
        number = len(self.dataset)
        return (
            f"{number} question{'s' * (number != 1)}: {kinds}; {len(self.rejected)} rejected"
            + (f": {reasons}" if reasons else "")
            + f"; {self.model_calls} model calls, {self.tokens} tokens"
        )
