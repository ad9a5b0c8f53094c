"""How far an answer has come."""

from __future__ import annotations

from dataclasses import dataclass, field

from .answer import Answer
from .counting import Tally
from .task import Task


@dataclass(slots=True)
class Progress:
    """Hold what is known while a question is answered.

    Attributes:
        question: What was asked.
        searched: What was searched for, once that is known.
        notes: What is to be known besides.
        told: The pieces of the answer that were streamed.
        tally: Counts the calls of the model.
        task: What the mode works on, once something was retrieved.
        ended: The answer, once it is complete.
    """

    question: str
    searched: str = ""
    notes: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    task: Task | None = None
    ended: Answer | None = None

    def answer(self) -> Answer:
        """Return the answer, or what there is of it."""
        if self.ended is not None:
            return self.ended
        return self.unfinished("the answer is not complete")

    def untold(self) -> str:
        """Return what is to be told at the end: the answer, where it is not what was streamed."""
        text = self.answer().text
        told = "".join(self.told)
        if told.endswith(text):
            return ""
        return f"\n\n{text}" if told else text

    def unfinished(self, why: str) -> Answer:
        """Return what there is of an answer."""
        task = self.task
        return Answer(
            "".join(self.told).strip(),
            self.question,
            sources=() if task is None else tuple(task.sources),
            found=bool(self.told),
            left_out=() if task is None else tuple(task.left_out),
            notes=(*dict.fromkeys(self.notes), why),
            searched=self.searched,
            calls=self.tally.calls,
        )
