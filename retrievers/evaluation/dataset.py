"""Questions with gold: the relevant passages, documents and spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...nodegraph.document import Document


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """The text of a passage that a retriever should return.

    Attributes:
        text: The passage.
        grade: The relevance, above 0. nDCG weights the passage by the grade.
    """

    text: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """The id of a document. Each result of the document is relevant.

    Attributes:
        document_id: The id.
        grade: The relevance, above 0. nDCG weights the document by the grade.
    """

    document_id: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """A part of a document. A result is relevant if it overlaps the span by a token or more.

    Attributes:
        document_id: The id of the document.
        start: The first character in the document's text.
        end: The end, exclusive.
        text: The text of the span, to find the span again after edits.
        grade: The relevance, above 0. nDCG weights the span by the grade.
    """

    document_id: str
    start: int
    end: int
    text: str = ""
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"a gold span must have 0 <= start < end, got {self.start} to {self.end} in "
                f"document {self.document_id!r}"
            )


Gold: TypeAlias = GoldPassage | GoldDocument | GoldSpan


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its gold.

    Attributes:
        id: The id, unique in a data set.
        text: The query.
        gold: The relevant passages, documents and spans. Without gold, ranking metrics do not
            judge the question.
        answers: Alternative correct answers.
        answerable: False if the documents do not answer the question. The correct answer is then
            "unknown".
    """

    id: str
    text: str
    gold: tuple[Gold, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Dataset:
    """A set of questions, with documents if their source includes them.

    Args:
        questions: At least one, each with a unique id.
        documents: The documents to search. Empty if the source has questions only.
        name: The name in reports.

    Raises:
        ValueError: If questions are missing, an id is repeated, or a grade is not above 0.

    Example:
        >>> data = Dataset([Question("1", "Which tea is green?", (GoldDocument("tea"),))])
        >>> len(data)
        1
    """

    questions: Sequence[Question]
    documents: Sequence[Document] = ()
    name: str = "questions"

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "documents", tuple(self.documents))
        if not self.questions:
            raise ValueError(f"{self.name} has no questions; a data set needs at least one")
        counts = Counter(question.id for question in self.questions)
        if repeated := [repr(key) for key, count in counts.items() if count > 1]:
            raise ValueError(
                f"question ids of {self.name} must be unique, got {', '.join(repeated[:5])} "
                "repeatedly"
            )
        for question in self.questions:
            if any(not gold.grade > 0 for gold in question.gold):
                raise ValueError(
                    f"grades must be above 0, got another one in question {question.id!r} of "
                    f"{self.name}; leave out what is not relevant"
                )

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} questions, {len(self.documents)} documents)"
