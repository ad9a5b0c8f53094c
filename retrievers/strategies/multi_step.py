"""Search step by step: the results and answer of one question lead to the next."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ...nodegraph.models.output.lines import normalize
from ..filters import Filters
from ..foreign.coercion import as_retriever
from ..planned_retriever import PlannedRetriever, join_notes
from ..plans.effects import Find, Work, gather
from ..plans.limits import Budget, BudgetExceededError
from ..plans.plan import Plan, arun, run
from ..plans.prompting import PromptMixin
from ..protocols import RetrieverLike
from ..ranking import with_variant
from ..results import OutputOptions, QueryVariant, Results, ScoredNode
from ..tracing import start_span
from ..validation import check_top_k, seconds, whole
from .model_prompt import StrategySettings, describe_error, model_or
from .outcome import (
    SUB_QUESTION,
    Ended,
    MultiStep,
    Step,
    StrategyOutcome,
    SubResults,
    merge_steps,
    same_question,
)
from .step_reader import StepReader

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

DEPTH = 10


class MultiStepRetriever(PromptMixin, PlannedRetriever):
    """Search for the question, then for what a model asks next, until the question is answered.

    Choose it over ``SubQuestionRetriever`` where a later question needs the answer to an earlier
    one: "Where was the author of Brand born?". Before each further question the model reads the
    results so far. It answers the last question, judges whether the whole question is answered,
    and asks the next one. ``MultiStep.ended`` lists the reasons to end. The question itself is
    always searched for. All results are one ranking, see ``merge_steps``. If there was no step it
    is exactly that of the inner retriever.

    The model does all three in one call (``StepReader``): 1 call before each step and 1 after the
    last, ``max_steps + 1`` at most. A function can do each of the three instead. A repeated call,
    and a call of a function, count as calls. No call starts beyond ``max_calls`` or
    ``max_seconds``, whatever the model or a passage says. In an event loop the call under way is
    cancelled. Elsewhere a model is no longer waited for, and a search runs to its end. The search
    for the question itself is not cut short. Calls of the inner retriever are not counted.

    Args:
        inner: Any retriever, also another strategy.
        llm: The model, in any form that ``LLM`` takes, or a ``StepReader``.
        max_steps: Further questions at most.
        max_calls: Model calls at most.
        max_seconds: Seconds at most, the search for the question included. None for no limit.
        depth: How many results of each further search are read at least, if there is a ``top_k``.
        settings: How the model is asked. See ``StrategySettings``.
        top_k: How many results at most. None for all.
        **output: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        TypeError: If there is no retriever or model, or a number has the wrong type.
        ValueError: If a number is out of range or a choice unknown.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Brand is a play by Henrik Ibsen.", "Henrik Ibsen lived in Skien."])
        >>> replies = iter([
        ...     "Answer: unknown\\nAnswered: no\\nNext question: Where did Henrik Ibsen live?",
        ...     "Answer: Skien\\nAnswered: yes\\nNext question: NONE",
        ... ])
        >>> retriever = MultiStepRetriever(Retriever(graph, "ROOT"), lambda prompt: next(replies))
        >>> done = retriever.steps("Who wrote Brand, and in which town?")
        >>> done.ended, done.answer, [step.question for step in done.steps]
        ('answered', 'Skien', ['Where did Henrik Ibsen live?'])

    Source:
        Asks as Press et al., "Measuring and narrowing the compositionality gap in language
        models" (self-ask), 2023, and searches between the questions as Trivedi et al.,
        "Interleaving retrieval with chain-of-thought reasoning", 2023.
    """

    name = "multi-step"
    prompt_owner = "reader"
    settings_type: ClassVar[type] = StrategySettings

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        max_steps: int = 4,
        max_calls: int = 16,
        max_seconds: float | None = None,
        depth: int = DEPTH,
        settings: StrategySettings | None = None,
        top_k: int | None = None,
        **output: Unpack[OutputOptions],
    ) -> None:
        super().__init__(top_k=top_k, **output)
        self.inner = as_retriever(inner)
        self.max_steps = whole(max_steps, "max_steps", 0)
        self.max_calls = whole(max_calls, "max_calls", 0)
        self.max_seconds = seconds(max_seconds, "max_seconds")
        self.depth = check_top_k(depth)
        self.reader = model_or(llm, StepReader, StepReader, {"settings": settings})

    def __repr__(self) -> str:
        return f"MultiStepRetriever({self.inner!r}, max_steps={self.max_steps})"

    def steps(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> MultiStep:
        """Return the steps for a query, their results, and why there were no more.

        Args:
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the inner retriever.

        Raises:
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run(self._plan(query, self.check_limit(top_k, filters), filters))

    async def asteps(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> MultiStep:
        """Async version of ``steps``."""
        return await arun(self._plan(query, self.check_limit(top_k, filters), filters))

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        outcomes = yield from gather([self._plan(query, limit, filters) for query in queries])
        return [list(outcome.results) for outcome in outcomes]

    def _plan(self, query: str, limit: int | None, filters: Filters | None) -> Plan[MultiStep]:
        budget = Budget(self.max_calls, self.max_seconds)
        with start_span(self.name, queries=[query]) as span:
            (plain,) = yield from Find(self.inner, [query], limit, filters)
            search = _Search(query, limit, filters, budget, [Step(query, tuple(plain))])
            note = None
            ended: Ended = "no question"
            if query.strip():
                try:
                    ended = yield from self._add_steps(search)
                except BudgetExceededError as error:
                    ended = error.resource
                except Exception as error:
                    if self.reader.settings.on_error == "raise":
                        raise
                    ended, note = "failed", describe_error(error)
                    logger.warning("the steps for %r end: %s", query[:80], note)
            search.report_steps()
            steps = search.steps
            note = join_notes(note, *(step.note for step in steps))
            noted = partial(_with_notes, steps, ended, note)
            answered = ended == "answered"
            ranking = yield from Work(lambda: merge_steps(noted(), answered, limit))
            outcome = MultiStep(
                *(query, tuple(plain), tuple(steps[1:]), tuple(ranking)),
                ended=ended,
                answer=next((step.answer for step in reversed(steps) if step.answer), None),
                calls=budget.calls,
                note=note,
            )
            span.attributes.update(ended=ended, calls=budget.calls, steps=len(outcome.steps))
            span.set_results([outcome.results])
            span.attributes.update({} if note is None else {"note": note})
            parts = tuple(SubResults(s.question, s.results, s.answer) for s in outcome.steps)
            errors = () if note is None else ((query, note),)
            span.outcome = StrategyOutcome(parts, errors, ended)
        return outcome

    def _add_steps(self, search: _Search) -> Plan[Ended]:
        """Add step after step. Return why there are no more."""
        steps = search.steps
        seen = {_key(result) for result in steps[0].results}
        while self.max_steps:
            last = len(steps) > self.max_steps
            if len(steps) > 1 and not steps[-1].results:
                return "nothing new"
            reading = yield from search.budget.enforce(
                self.reader.read_step(search.query, steps, last=last)
            )
            new = {_key(result) for result in steps[-1].results} - seen
            seen |= new
            answers = {normalize(step.answer) for step in steps[:-1] if step.answer}
            # Before the first step there is only an answer to the whole question.
            answer = reading.answer if len(steps) > 1 or reading.answered else None
            steps[-1] = replace(steps[-1], answer=answer, note=reading.note)
            search.report_steps()
            if reading.answered:
                return "answered"
            if len(steps) > 1 and not new and (answer is None or normalize(answer) in answers):
                return "nothing new"
            if last:
                return "steps"
            question = reading.question
            if question is None:
                return "no question"
            if any(same_question(question, step.question) for step in steps):
                return "repeated"
            with start_span("step", question=question) as span:
                depth = None if search.limit is None else max(search.limit, self.depth)
                effect = Find(self.inner, [question], depth, search.filters)
                (results,) = yield from search.budget.enforce(iter(effect))
                steps.append(Step(question, tuple(results)))
                span.attributes["results"] = len(results)
        return "steps"


@dataclass(slots=True)
class _Search:
    """Hold one query's search. Its steps are added as they are made, and survive an error."""

    query: str
    limit: int | None
    filters: Filters | None
    budget: Budget
    steps: list[Step] = field(default_factory=list)
    reported: int = 0

    def report_steps(self) -> None:
        """Make a span of each step that has come to its end since the last call."""
        for step in self.steps[1 + self.reported :]:
            facts = {} if step.answer is None else {"answer": step.answer}
            results = len(step.results)
            with start_span(SUB_QUESTION, question=step.question, results=results, **facts) as span:
                span.outcome = SubResults(step.question, step.results, step.answer, step.note)
        self.reported = len(self.steps) - 1


def _with_notes(steps: Sequence[Step], ended: Ended, note: str | None) -> list[Step]:
    """Return the steps with evidence that has their numbers, answers, and why the search ended."""
    ending = f"ended: {ended}" + ("" if note is None else f": {note}")
    noted = []
    for number, step in enumerate(steps):
        answer = "" if step.answer is None else f", answer {step.answer!r}"
        text = f"step {number}{answer}; {ending}" if number else ending
        variant = QueryVariant(steps[0].question, "multi-step", text)
        noted.append(replace(step, results=tuple(with_variant(step.results, variant))))
    return noted


def _key(result: ScoredNode) -> tuple[str, str]:
    return result.node.id, result.node.text
