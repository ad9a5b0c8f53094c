"""What a strategy found for each of its questions or steps, and the steps as one ranking."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...nodegraph.models.templates import Language
from ..analysis.text_analyzer import TextAnalyzer
from ..foreign.outputs import is_answer
from ..ranking import fuse
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


Ended = Literal[
    "answered", "repeated", "nothing new", "no question", "steps", "calls", "seconds", "failed"
]

SUPPORTED = 1.5
"""The weight of a step that led to the answer, and whose own answer is in its results."""

TRUSTED = 1.0
"""The weight of any other step that led to the answer: the weight of the question itself."""

DOUBTFUL = 0.15
"""The weight of all steps together that led to no answer: they add to what the question found."""

RANK_CONSTANT = 1

_analyzer = TextAnalyzer()

_STOP_WORDS = re.compile(r"\b(?:the|an?)\b|请问|[的了呢吗嗎]", re.I)

_VERDICT = re.compile("yes|no|true|false|是的?|不是?|否|对|不对|有|没有", re.I)  # in any text


@dataclass(frozen=True, slots=True)
class MultiStep:
    """Hold the outcome of a search in several steps.

    Attributes:
        question: The question.
        plain: The results of the question itself.
        steps: The further questions, in their order.
        results: The results of all questions, as one ranking.
        ended: Why no further question was searched for: the question was ``"answered"``. The
            next question was ``"repeated"``. The last one brought ``"nothing new"``, neither a
            passage nor an answer. The model had ``"no question"``. A limit of ``"steps"``,
            ``"calls"`` or ``"seconds"`` was reached, or a model or the search ``"failed"``.
        answer: The last answer: the answer to the question if ``ended`` is ``"answered"``.
        calls: The number of model calls.
        note: What went wrong, None where nothing did.
    """

    question: str
    plain: tuple[ScoredNode, ...]
    steps: tuple[SubResults, ...]
    results: tuple[ScoredNode, ...]
    ended: Ended
    answer: str | None = None
    calls: int = 0
    note: str | None = None


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
    """Return one ranking of the results of all steps, that of the question if it is the only one.

    Reciprocal ranks, in which the first places stand out: what is first for one step matters more
    than what several steps have in the middle. In a step with an answer, a passage that contains
    the answer comes first, then the step's own first passage. If the whole question was answered
    in the end, a step weighs as much as the question itself, more if its results contain its
    answer, and the first passage of each is among the ``top_k`` wherever there is room for them.
    The steps of a search that was not answered are added to the results of the question and
    hardly change its order, so that a model that asks the wrong questions does little harm unless
    it also believes that it has the answer.

    Args:
        steps: The question itself, then the others.
        answered: Whether the whole question was answered in the end.
        top_k: How many results at most, None for all.
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
    return _best_with(ranking, firsts, len(ranking) if top_k is None else top_k)


def _best_with(
    ranking: Sequence[ScoredNode], required: Collection[tuple[str, str]], top_k: int
) -> list[ScoredNode]:
    """Return the first results, some of which have their place before others, in their order."""
    first = sorted(ranking, key=lambda result: result_key(result) not in required)[:top_k]
    keys = {result_key(result) for result in first}
    return [result for result in ranking if result_key(result) in keys]


def result_key(result: ScoredNode) -> tuple[str, str]:
    """Return what makes two results one: a window of a node has another text."""
    return result.node.id, result.node.text


def _results_after(supporting: Sequence[ScoredNode], step: SubResults) -> Sequence[ScoredNode]:
    """Return a step's results: the best one with its answer, its own first, the others."""
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
    # An answer in a whole sentence repeats the question.
    terms = terms.difference(analyze.words(question)) or terms
    return bool(terms) and terms.issubset(analyze.words(text))
