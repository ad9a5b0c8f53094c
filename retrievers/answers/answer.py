"""What a question gets: a text, the sources it rests on, and what is to be known about both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...nodegraph import ModelError
from ..results import ScoredNode
from .qa import PresetAnswer

Reason = Literal["budget", "calls", "contained", "duplicate", "empty"]
"""Why a result was not shown to the model: no room, too many model calls, its text is part of
another result's, it is another result's, it has none."""


@dataclass(frozen=True, slots=True)
class Source:
    """Hold a numbered passage that an answer was made from.

    Attributes:
        number: What an answer cites it by, ``[1]``; counted from 1, the best first.
        result: The result of the retrieval, with its evidence.
        text: What the model was shown: the result's content, or the part of it that there was
            room for, or the joint text of results that overlap.
        cited: Whether the answer cites it.
        title: What stood above it: the document's title and headings, or the file's name.
        merged: Further results of the same document whose text overlaps and is part of this.
        whole: Whether the model was shown all of the text; False where it was cut.
    """

    number: int
    result: ScoredNode
    text: str
    cited: bool = False
    title: str = ""
    merged: tuple[ScoredNode, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tell of a result that the model was not shown.

    Attributes:
        result: The result.
        reason: Why: ``"budget"``, ``"calls"``, ``"contained"``, ``"duplicate"``, ``"empty"``.
        of: The result that has its text, where it is contained or a duplicate.
    """

    result: ScoredNode
    reason: Reason
    of: ScoredNode | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold the answer to a question.

    Attributes:
        text: The answer; where there is none, a sentence that says so.
        question: What was asked.
        sources: The passages the model was shown, by number.
        found: Whether there is an answer: False where nothing was retrieved, or where the model
            says that the passages do not tell.
        preset: The question-answer pair that was answered from without a model.
        left_out: The results that the model was not shown, and why.
        notes: What is to be known besides: models that failed, passages that were cut, numbers
            that are cited and belong to no source.
        searched: What was searched for: the question, or what it was condensed to.
        calls: How often the engine asked its model; what strategies ask stands in the trace.
        confidence: From 0 to 100, what the model says of its answer, with ``"map_rerank"``.
    """

    text: str
    question: str
    sources: tuple[Source, ...] = ()
    found: bool = True
    preset: PresetAnswer | None = None
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    searched: str = ""
    calls: int = 0
    confidence: float | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def cited(self) -> tuple[Source, ...]:
        """The sources that the answer cites."""
        return tuple(source for source in self.sources if source.cited)


class AnswerError(ModelError):
    """No model could answer, or it stopped in the middle of its answer.

    Attributes:
        answer: What there is all the same: the sources, the notes, the text that had come.
    """

    def __init__(self, reason: str, answer: Answer) -> None:
        super().__init__(reason)
        self.answer = answer

    def __reduce__(self) -> tuple[type[AnswerError], tuple[str, Answer]]:
        return type(self), (str(self), self.answer)
