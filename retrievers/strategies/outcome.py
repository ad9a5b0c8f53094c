"""What a strategy found for each of its questions, known to who observes it, at any depth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...nodegraph.models.templates import Language
from ..foreign.outputs import is_answer
from ..results import ScoredNode
from ..tracing import Span

SUB_QUESTION = "sub-question"
"""Name of the span of one further question. Its ``outcome`` is a ``SubResults``."""


@dataclass(frozen=True, slots=True)
class SubResults:
    """Hold the results of one part of a question.

    Attributes:
        question: The sub-question, or the question itself.
        results: Best first.
        answer: The model's answer from the results. None if it was not asked, or the results
            have none.
        error: What went wrong, None where nothing did.
        tool: The tool that was asked, where there are several.
    """

    question: str
    results: tuple[ScoredNode, ...]
    answer: str | None = None
    error: str | None = None
    tool: str | None = None


_ANSWER: Mapping[Language, str] = {
    "zh": "问题：{question}\n答案：{answer}",
    "en": "Question: {question}\nAnswer: {answer}",
}


def answer_texts(parts: Iterable[SubResults], language: Language) -> list[str]:
    """Return the answers to parts of a question, with their questions, for a prompt.

    The answer of a query engine is left out: it is a passage among the results.
    """
    return [
        _ANSWER[language].format(question=part.question, answer=part.answer)
        for part in parts
        if part.answer is not None and not any(map(is_answer, part.results[:1]))
    ]


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """Hold what a strategy with further questions did: the ``outcome`` of its span.

    Attributes:
        parts: The further questions and their results, in their order.
        errors: Pairs of a question and what went wrong with it.
        ended: Why a search in steps has no further step. None for other strategies.
    """

    parts: tuple[SubResults, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    ended: str | None = None


class OutcomeObserver:
    """Collect the outcomes of all strategies in a block, however deep they are nested.

    Give it to ``observe``. A strategy of your own takes part by setting the ``outcome`` of its
    span to a ``StrategyOutcome``.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever, SubQuestionRetriever, WindowRetriever
        >>> from nodekin.retrievers.tracing import observe
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile has 6,650 km.", "The Amazon has 6,400 km."])
        >>> model = lambda prompt: "How long is the Nile?\\nHow long is the Amazon?"
        >>> parts = SubQuestionRetriever(Retriever(graph, "ROOT"), model)
        >>> observer = OutcomeObserver()
        >>> with observe(observer):
        ...     results = WindowRetriever(parts)("Which river is longer?")
        >>> [part.question for part in observer.outcome.parts]
        ['How long is the Nile?', 'How long is the Amazon?']
    """

    def __init__(self) -> None:
        self._spans: dict[int, tuple[Span, Span | None]] = {}  # with their parents

    def begin(self, span: Span, parent: Span | None) -> None:
        """Note a span and its parent."""
        self._spans[id(span)] = span, parent

    def end(self, span: Span) -> None:
        """Do nothing: the span has its outcome."""

    @property
    def outcome(self) -> StrategyOutcome | None:
        """What the outermost strategies did, with the errors of all. None if there was none.

        Of a question that was searched for again the last results count.
        """
        spans = [span for span, _ in list(self._spans.values())]
        matches = [s.outcome for s in spans if isinstance(s.outcome, StrategyOutcome)]
        if not matches:
            return None
        outermost = [
            span.outcome
            for span in spans
            if isinstance(span.outcome, StrategyOutcome)
            and not any(isinstance(s.outcome, StrategyOutcome) for s in self._above(span))
        ]
        parts = {
            (part.tool, part.question): part for outcome in outermost for part in outcome.parts
        }
        errors = dict.fromkeys(error for outcome in matches for error in outcome.errors)
        ended = [outcome.ended for outcome in outermost if outcome.ended is not None]
        return StrategyOutcome(tuple(parts.values()), tuple(errors), ended[-1] if ended else None)

    def _above(self, span: Span) -> Iterator[Span]:
        _, parent = self._spans.get(id(span), (span, None))
        while parent is not None:
            yield parent
            _, parent = self._spans.get(id(parent), (parent, None))


_answering: ContextVar[bool] = ContextVar("answering", default=True)


@contextmanager
def without_answers() -> Iterator[None]:
    """Let no strategy in the block have its sub-questions answered, at any depth: search only."""
    token = _answering.set(False)
    try:
        yield
    finally:
        _answering.reset(token)


def are_answered(answers: bool) -> bool:
    """Return whether sub-questions are to be answered: the strategy says so, and the block."""
    return answers and _answering.get()
