"""Let a model write a question about passages, and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from ...nodegraph.errors import ModelError
from ...nodegraph.models.llm import LLM
from ...nodegraph.models.output.extractions import PARSERS
from ...nodegraph.models.output.free_text import parse_partial_answer
from ...nodegraph.models.output.lines import normalize
from ...nodegraph.models.templates import language_of
from ...nodegraph.node import Node
from ..plans.plan import run
from ..plans.prompting import Prompt, ask_and_parse, json_instruction, passage_title
from ..retriever import Retriever
from ..tracing import trace
from .dataset import Question
from .judging import model_cost
from .model_prompts import (
    PAIR_FORM,
    PAIR_SCHEMA,
    QUESTION_FORM,
    QUESTION_SCHEMA,
    WRITER_PROMPTS,
)
from .question_checks import (
    agree,
    answer_position,
    copied_share,
    gives_away,
    gold_at,
    names_passage,
)

T = TypeVar("T")

QuestionKind = Literal["single", "linked", "unanswerable"]
"""By one passage, by two that are linked, or by none."""


MODEL_FAILED = "the model failed, or what it wrote can't be read"
"""A reason of ``RejectedQuestion``."""


@dataclass(frozen=True, slots=True)
class RejectedQuestion:
    """Hold a question that was not taken.

    Attributes:
        kind: What it was to be.
        question: What the model wrote. Empty where that can't be read.
        reason: Why it was not taken: one of few, to be counted.
        detail: The same of this question.
        node_ids: Of the passages.
    """

    kind: QuestionKind
    question: str
    reason: str
    detail: str
    node_ids: tuple[str, ...]


class WrittenQuestion(NamedTuple):
    """What came of a passage."""

    result: Question | RejectedQuestion
    node_ids: tuple[str, ...]
    calls: int
    tokens: int
    error: ModelError | None


class _RejectedError(Exception):
    """A question is not taken. The message says why."""

    def __init__(self, question: str, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.question = question
        self.reason = reason
        self.detail = detail


class QuestionWriter:
    """Write a question about passages, and check it.

    Args:
        llm: The model.
        retriever: Finds the passages that an unanswerable question must not be answered from.
        max_overlap: How much of a question may be copied.
    """

    def __init__(self, llm: LLM, retriever: Retriever, max_overlap: float) -> None:
        self.llm = llm
        self.retriever = retriever
        self.max_overlap = max_overlap

    def attempt(self, kind: QuestionKind, nodes: Sequence[Node], link: str) -> WrittenQuestion:
        """Return the question about some passages, or why there is none."""
        ids = tuple(node.id for node in nodes)
        result: Question | RejectedQuestion
        failure: ModelError | None = None
        with trace() as span:
            try:
                if kind == "unanswerable":
                    result = self._unanswerable(nodes[0])
                else:
                    result = self._answered(kind, nodes, link)
            except _RejectedError as error:
                result = RejectedQuestion(kind, error.question, error.reason, error.detail, ids)
            except ModelError as error:
                failure = error
                result = RejectedQuestion(kind, "", MODEL_FAILED, str(error), ids)
        return WrittenQuestion(result, ids, *model_cost(span), failure)

    def _answered(self, kind: QuestionKind, nodes: Sequence[Node], link: str) -> Question:
        texts = [_titled(node) for node in nodes]
        values = {"passage": texts[0]} | ({"other": texts[1], "link": link} if link else {})
        question, answer = self._written(kind, values, PAIR_FORM, PAIR_SCHEMA, "qa")
        self._check_words(question, nodes)
        if link and normalize(link) in normalize(question):
            raise _RejectedError(question, "names what links the passages", link)
        if gives_away(question, answer):
            raise _RejectedError(question, "has its answer in it", answer)
        positions = [answer_position(answer, node.text, question) for node in nodes]
        if not any(positions):
            raise _RejectedError(question, "the answer is not in the passage", answer)
        if link:
            for text in texts:
                reply = self._answer(question, [text])
                if reply is not None and agree(reply, answer):
                    raise _RejectedError(question, "one passage is enough", reply)
        reply = self._answer(question, texts)
        if reply is None or not agree(reply, answer):
            detail = f"{answer!r} in the passage, {reply!r} when asked"
            raise _RejectedError(question, "is answered otherwise from the passage", detail)
        holder = next(index for index, position in enumerate(positions) if position is not None)
        gold = [
            gold_at(node, positions[index] if index == holder else None)
            for index, node in enumerate(nodes)
        ]
        return Question("", question, tuple(gold), (answer.strip(),))

    def _unanswerable(self, node: Node) -> Question:
        text = _titled(node)
        (question,) = self._written(
            "unanswerable", {"passage": text}, QUESTION_FORM, QUESTION_SCHEMA, "questions"
        )
        self._check_words(question, [])
        nearest = [_titled(result.node) for result in self.retriever.retrieve(question)]
        reply = self._answer(question, list(dict.fromkeys([text, *nearest])))
        if reply is not None:
            raise _RejectedError(question, "can be answered", reply)
        return Question("", question, answerable=False)

    def _check_words(self, question: str, nodes: Sequence[Node]) -> None:
        if names_passage(question):
            raise _RejectedError(question, "speaks of the passage")
        for node in nodes:
            copied = copied_share(question, node.text)
            if copied > self.max_overlap:
                raise _RejectedError(question, "copies the passage's words", f"{copied:.0%} of it")

    def _written(
        self,
        kind: QuestionKind,
        values: Mapping[str, str],
        shape: str,
        schema: Mapping[str, Any],
        reader: str,
    ) -> Sequence[str]:
        """Return a question, with its answer where that is asked for."""
        language = language_of(values["passage"])
        prompt: Prompt = WRITER_PROMPTS[kind]
        text = prompt.fill(language, **values) + json_instruction(shape, language)
        parse = partial(_first_of, PARSERS[reader])
        written = run(ask_and_parse(self.llm, text, parse, language, schema=schema))
        return [written] if isinstance(written, str) else written

    def _answer(self, question: str, texts: Sequence[str]) -> str | None:
        """Return what the model answers from passages alone, None where they don't say."""
        passages = "\n\n".join(f"[{index}] {text}" for index, text in enumerate(texts, 1))
        language = language_of(question)
        prompt = WRITER_PROMPTS["answer"].fill(language, passages=passages, query=question)
        return run(ask_and_parse(self.llm, prompt, parse_partial_answer, language))


def _first_of(parse: Callable[[str], list[T]], answer: str) -> T:
    values = parse(answer)
    if not values:
        raise ValueError("there is no question in the answer")
    return values[0]


def _titled(node: Node) -> str:
    title = passage_title(node)
    return f"{title}\n{node.text.strip()}" if title else node.text.strip()
