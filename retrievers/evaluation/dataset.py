"""Questions with what a retrieval should return for them, and a check of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ...nodegraph.document import Document


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """Hold the text of a passage that should be retrieved.

    Attributes:
        text: The passage.
        grade: How relevant it is, above 0. What nDCG weighs it by.
    """

    text: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldDocument:
    """Hold the id of a document of which any part should be retrieved.

    Attributes:
        document_id: The id.
        grade: How relevant it is, above 0. What nDCG weighs it by.
    """

    document_id: str
    grade: float = 1.0


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """Hold a part of a document. A result that overlaps it by a token or more is right.

    Attributes:
        document_id: The id of the document.
        start: Where it starts, in characters of the document's text.
        end: Where it ends, exclusive.
        text: The text of the span. Token recall and precision need it.
        grade: How relevant it is, above 0. What nDCG weighs it by.
    """

    document_id: str
    start: int
    end: int
    text: str = ""
    grade: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(
                f"a gold span begins at 0 or later and ends after that, not {self.start} to "
                f"{self.end} in document {self.document_id!r}; count characters, the end exclusive"
            )


Gold: TypeAlias = GoldPassage | GoldDocument | GoldSpan


@dataclass(frozen=True, slots=True)
class Question:
    """Hold a question and what should be retrieved for it.

    Attributes:
        id: Its id, one of its own in a data set.
        text: What is searched for.
        gold: What should be retrieved. A question without is not judged by what needs it.
        answers: The right answers, any of which will do.
        answerable: Whether the documents answer it. Where not, "unknown" is the right answer.
    """

    id: str
    text: str
    gold: tuple[Gold, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class MissingGold:
    """Name gold that no document has.

    Attributes:
        question_id: Of the question.
        gold: What is missing.
        nearest: The paragraph that resembles a passage most, or the nearest id. Empty if none does.
    """

    question_id: str
    gold: Gold
    nearest: str

    def __str__(self) -> str:
        expected = self.gold.text if isinstance(self.gold, GoldPassage) else self.gold.document_id
        nearest = f"; nearest: {self.nearest!r:.120}" if self.nearest else ""
        return f"{self.question_id}: {expected!r:.120} is in no document{nearest}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Hold questions, and documents where the source of the questions has them.

    Args:
        questions: At least one, each with an id of its own.
        documents: What is searched. Empty where the source has questions only.
        name: What reports call it.

    Raises:
        ValueError: If there is no question, an id is there twice, or a grade is not above 0.

    Example:
        >>> data = Dataset([Question("1", "Which tea is green?", (GoldDocument("tea"),))])
        >>> len(data)
        1
    """

    questions: tuple[Question, ...]
    documents: tuple[Document, ...] = ()
    name: str = "questions"

    def __init__(
        self,
        questions: Iterable[Question],
        documents: Iterable[Document] = (),
        name: str = "questions",
    ) -> None:
        items = tuple(questions)
        if not items:
            raise ValueError(f"{name} has no questions; a data set has one at least")
        counts = Counter(question.id for question in items)
        twice = [identity for identity, count in counts.items() if count > 1]
        if twice:
            count = "a question id" if len(twice) == 1 else f"{len(twice)} question ids"
            raise ValueError(
                f"{name} has {count} more than once: "
                f"{', '.join(map(repr, twice[:5]))}; give each question an id of its own"
            )
        for question in items:
            if any(not gold.grade > 0 for gold in question.gold):
                raise ValueError(
                    f"question {question.id!r} of {name} has gold with a grade that is not above "
                    "0; leave out what is not relevant"
                )
        object.__setattr__(self, "questions", items)
        object.__setattr__(self, "documents", tuple(documents))
        object.__setattr__(self, "name", name)

    def __len__(self) -> int:
        return len(self.questions)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} questions, {len(self.documents)} documents)"
