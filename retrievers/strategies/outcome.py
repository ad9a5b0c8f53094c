"""The results of a strategy's questions and steps, and the ranking of all steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...nodegraph.models.templates import Language
from ...nodegraph.models.usage import UNREPORTED, Usage
from ..analysis.text_analyzer import TextAnalyzer
from ..foreign.outputs import is_answer
from ..ranking import fuse
from ..results import ScoredNode
from ..tracing import Span

SUB_QUESTION = "sub-question"
"""The name of the span of a further question. Its ``outcome`` is a ``SubResults``."""


@dataclass(frozen=True, slots=True)
class SubResults:
    """The results of a sub-question or step.

    Attributes:
        question: The sub-question, or the question itself.
        results: The results, best first.
        answer: The model's answer from the results, or None if no answer was requested or given.
        error: Description of a failure. None means no failure.
        tool: The name of the tool. None without tools.
        is_from_engine: Whether the answer comes from the query engine of the tool.
    """

    question: str
    results: tuple[ScoredNode, ...]
    answer: str | None = None
    error: str | None = None
    tool: str | None = None
    is_from_engine: bool = False


_ANSWER: Mapping[Language, str] = {
    "zh": "问题：{question}\n答案：{answer}",
    "en": "Question: {question}\nAnswer: {answer}",
}


def answer_texts(parts: Iterable[SubResults], language: Language) -> list[str]:
    """Return the answers to a question's parts with their questions, for a prompt.

    Answers of query engines are left out, since they are among the passages.
    """
    return [
        _ANSWER[language].format(question=part.question, answer=part.answer)
        for part in parts
        if part.answer is not None and not any(map(is_answer, part.results[:1]))
    ]


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """The ``outcome`` of a strategy's span if the strategy asks further questions.

    Attributes:
        parts: The further questions with their results.
        errors: Pairs of a question and the description of its failure.
        ended: The reason why a multi-step search ended. None for other strategies.

    Example:
        >>> StrategyOutcome(errors=(("Who wrote it?", "TimeoutError: 5 s"),)).ended is None
        True
    """

    parts: tuple[SubResults, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    ended: str | None = None


def total_usage(spans: Iterable[Span]) -> Usage:
    """Return the number and tokens of model calls among spans. A failed call has no tokens."""
    calls = [span.outcome for span in spans if span.name == "ask"]
    return sum((call if isinstance(call, Usage) else UNREPORTED for call in calls), Usage())


class OutcomeObserver:
    """An observer that collects the outcomes of all strategies in a block, including nested ones.

    Pass it to ``observe``. A custom strategy sets the ``outcome`` of its span to a
    ``StrategyOutcome``.

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
        """Store a span and its parent."""
        self._spans[id(span)] = span, parent

    def end(self, span: Span) -> None:
        """Do nothing: the span contains its outcome."""

    @property
    def outcome(self) -> StrategyOutcome | None:
        """The outcome of the outermost strategies, with the errors of all strategies.

        None means that no strategy ran. For a repeated question, the last results count.
        """
        spans = [span for span, _ in list(self._spans.values())]
        found = {id(s): s.outcome for s in spans if isinstance(s.outcome, StrategyOutcome)}
        if not found:
            return None
        outermost = [found[key] for key in found if found.keys().isdisjoint(self._above(key))]
        parts: dict[tuple[str | None, str], SubResults] = {}
        for outcome in outermost:
            parts |= {(part.tool, part.question): part for part in outcome.parts}
        errors: dict[tuple[str, Any], None] = {}
        for outcome in found.values():
            errors |= dict.fromkeys(outcome.errors)
        ended = [outcome.ended for outcome in outermost if outcome.ended is not None]
        return StrategyOutcome(tuple(parts.values()), tuple(errors), ended[-1] if ended else None)

    @property
    def usage(self) -> Usage:
        """The number of model calls in the block, and their tokens."""
        spans = [span for span, _ in list(self._spans.values())]
        return total_usage(spans)

    def _above(self, key: int) -> Iterator[int]:
        while key in self._spans and (parent := self._spans[key][1]) is not None:
            key = id(parent)
            yield key


Ended = Literal[
    "answered", "repeated", "nothing new", "no question", "steps", "calls", "seconds", "failed"
]

SUPPORTED = 1.5
"""Weight of a step of an answered question whose results contain its answer."""

TRUSTED = 1.0
"""Weight of any other step of an answered question, and of the question itself."""

DOUBTFUL = 0.15
"""Weight of all steps of an unanswered question together."""

RANK_CONSTANT = 1

_analyzer = TextAnalyzer()

_STOP_WORDS = re.compile(r"\b(?:the|an?)\b|请问|[的了呢吗嗎]", re.I)

# These answers are too common in texts to support a passage.
_VERDICT = re.compile("yes|no|true|false|是的?|不是?|否|对|不对|有|没有", re.I)


@dataclass(frozen=True, slots=True)
class StepReading:
    """A model's reading of the results of a step.

    Attributes:
        answer: The short answer to the whole question if ``answered``, otherwise to the question
            of the last step. None means unknown.
        answered: Whether the whole question is answered.
        question: The next question. None means no next question.
    """

    answer: str | None = None
    answered: bool = False
    question: str | None = None


@dataclass(frozen=True, slots=True)
class MultiStep:
    """The outcome of a multi-step search.

    Attributes:
        question: The question.
        plain: The results of the question itself.
        steps: The further questions with their results.
        results: The results of all questions as one ranking.
        ended: The reason why the search ended: ``"answered"``, ``"repeated"`` (an earlier
            question), ``"nothing new"`` (neither a new passage nor an answer), ``"no question"``, a
            limit (``"steps"``, ``"calls"`` or ``"seconds"``), or ``"failed"`` (the model or a
            search).
        answer: The last answer: the answer to the question if ``ended`` is ``"answered"``.
        calls: The number of model calls.
        usage: The calls and tokens of the model.
        note: Description of a failure. None means no failure.
    """

    question: str
    plain: tuple[ScoredNode, ...]
    steps: tuple[SubResults, ...]
    results: tuple[ScoredNode, ...]
    ended: Ended
    answer: str | None = None
    calls: int = 0
    note: str | None = None
    usage: Usage = field(default_factory=Usage)


def same_question(first: str, other: str) -> bool:
    """Return whether two questions have the same words, in any order and inflection.

    Example:
        >>> same_question("Who wrote the Brand?", "who wrote  BRAND")
        True
        >>> same_question("他的父亲是谁", "他的母亲是谁？")
        False
    """
    return _words(first) == _words(other)


def _words(text: str) -> frozenset[str]:
    terms = frozenset(_analyzer(_STOP_WORDS.sub("", text)))
    return terms or frozenset([text.strip()])


def merge_steps(
    steps: Sequence[SubResults], answered: bool, top_k: int | None = None
) -> list[ScoredNode]:
    """Return one ranking of the results of all steps.

    The rankings are fused by reciprocal ranks with a small constant, so that first places count
    most. In a step with an answer, the best passage with the answer precedes the step's own first
    passage. If the whole question was answered, a step weighs as much as the question, or more if
    its results contain its answer. The first passage of each step is then among the ``top_k`` if
    they fit. If the question was not answered, the steps hardly change the order of the question's
    results, so that wrong questions do little harm.

    Args:
        steps: The question itself, then the further questions.
        answered: Whether the whole question was answered.
        top_k: The number of results. None means all results.
    """
    first, *others = (step for step in steps if step is steps[0] or step.results)
    if not others:
        return list(first.results[:top_k])
    supporting = [_supporting(step) for step in others]
    rankings = [first.results, *map(_results_after, supporting, others)]
    if not answered:
        doubtful = [DOUBTFUL / len(others)] * len(others)
        return fuse(rankings, "rrf", [1.0, *doubtful], top_k, RANK_CONSTANT)
    weights = [1.0, *(SUPPORTED if results else TRUSTED for results in supporting)]
    ranking = fuse(rankings, "rrf", weights, None, RANK_CONSTANT)
    firsts = {result_key(step.results[0]) for step in (first, *others) if step.results}
    kept = sorted(ranking, key=lambda result: result_key(result) not in firsts)[:top_k]
    keys = {*map(result_key, kept)}
    return [result for result in ranking if result_key(result) in keys]


def result_key(result: ScoredNode) -> tuple[str, str]:
    """Return a key that is equal for equal results. Windows of a node differ in their texts."""
    return result.node.id, result.node.text


def _results_after(supporting: Sequence[ScoredNode], step: SubResults) -> Sequence[ScoredNode]:
    """Return a step's results: the best result with the answer, the first result, then the rest."""
    native = step.results[0]
    first = [native] if native in supporting[:1] else [*supporting[:1], native]
    first += [result for result in supporting if result not in first]
    return [*first, *(result for result in step.results if result not in first)]


def _supporting(step: SubResults) -> list[ScoredNode]:
    """Return the results that contain a step's answer."""
    if step.answer is None or _VERDICT.fullmatch(step.answer.strip(" .。!！")):
        return []
    return [r for r in step.results if _has(r.node.text, step.answer, step.question)]


def _has(text: str, answer: str, question: str) -> bool:
    analyze = _analyzer.like(text)
    terms = set(analyze.query(answer)).intersection(analyze.words(answer))
    # An answer that is a whole sentence repeats the question.
    terms = terms.difference(analyze.words(question)) or terms
    return bool(terms) and terms.issubset(analyze.words(text))
