"""Search step by step: what was found and answered says what to search for next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...nodegraph import count_tokens
from ...nodegraph.models import Language
from ...nodegraph.models.output import normal, says_yes
from ..filters import Filters
from ..planned_retriever import PlannedRetriever
from ..plans import Budget, BudgetExceededError, Find, Plan, Prompt, PromptMixin, arun, gather, run
from ..protocols import RetrieverProtocol
from ..results import OutputFormat, QueryVariant, Results, ScoredNode
from ..tracing import start_span
from ..validation import check_retriever, check_top_k, seconds, whole
from .query_transform import OnError
from .step_reader import Reading, StepReader
from .step_roles import (
    MAX_TOKENS,
    AnsweredJudge,
    NextQuestion,
    StepAnswer,
    answer_of,
    planned,
    question_of,
)
from .steps import Ended, MultiStep, Step, merged, same_question
from .transform_retriever import with_variant

logger = logging.getLogger(__name__)

DEPTH = 10


class MultiStepRetriever(PromptMixin, PlannedRetriever):
    """Search for the question, then for what a model asks next, until the question is answered.

    Choose it over ``SubQuestionRetriever`` where a later question needs the answer to an earlier
    one: "Where was the author of Brand born?". Before each further question the model reads what
    was found so far; it draws the answer to the last question, judges whether the whole question
    is answered, and asks the next one. ``MultiStep.ended`` tells the reasons to end. The question
    itself is always searched for; all results are one ranking, see ``merged``; where no step was
    made it is exactly that of the inner retriever.

    By default the model does all three in one call (``StepReader``): 1 call before each step and
    1 after the last, ``max_steps + 1`` at most. With ``question``, ``answer`` or ``judge`` given
    each is a call of its own: 2 before the first step, 3 for each further one, 2 after the last.
    A model that is asked again where its answer can't be used makes a further call. A function
    given as a role counts as a call. No call begins beyond ``max_calls`` or ``max_seconds``,
    whatever the model or a passage says; in an event loop the one under way is cancelled, elsewhere
    a model is no longer waited for and a search comes to its end. The search for the
    question itself is not cut short. Calls that the inner retriever makes are its own.

    Args:
        inner: Any retriever, also another strategy.
        llm: The model, in any form that ``LLM`` takes; or a ``StepReader``. None where
            ``question``, ``answer`` and ``judge`` are all given.
        max_steps: Further questions at most.
        max_calls: Model calls at most.
        max_seconds: Seconds at most, the search for the question included; None for no limit.
        question: A ``NextQuestion``, or a function of the question and the steps so far (the
            search for the question is the first) that returns the next question or None.
        answer: A ``StepAnswer``, or a function of a step's question and a list of that step that
            returns its answer or None.
        judge: An ``AnsweredJudge``, or a function of the question and the steps so far that
            returns whether it is answered: True, or what ``says_yes`` takes for a yes.
        depth: How many results each further search looks through at least, where a ``top_k`` is
            set.
        on_error: Where the model, or a search for one of its questions, fails: ``"keep"`` what was
            found until then, or ``"raise"``.
        top_k: How many results at most; None for all that is found.
        prompt: In place of that of the ``StepReader``; ``language``, ``retries``, ``timeout``,
            ``max_tokens`` and ``length`` are those of ``StepRole``.
        output_format: What a call returns: None for scored nodes, ``"content"``, ``"dict"``.
        join: Join contents to one text: True with line breaks, or the separator.

    Raises:
        TypeError: If there is no retriever or model, or a number is none.
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

    def __init__(
        self,
        inner: RetrieverProtocol,
        llm: object = None,
        *,
        max_steps: int = 4,
        max_calls: int = 16,
        max_seconds: float | None = None,
        question: object = None,
        answer: object = None,
        judge: object = None,
        depth: int = DEPTH,
        on_error: OnError = "keep",
        top_k: int | None = None,
        prompt: str | Mapping[Language, str] | Prompt | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        max_tokens: int = MAX_TOKENS,
        length: Callable[[str], int] = count_tokens,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(top_k=top_k, output_format=output_format, join=join)
        self.inner = check_retriever(inner)
        self.max_steps = whole(max_steps, "max_steps", 0)
        self.max_calls = whole(max_calls, "max_calls", 0)
        self.max_seconds = seconds(max_seconds, "max_seconds")
        self.depth = check_top_k(depth)
        if on_error not in ("keep", "raise"):
            raise ValueError(f"on_error is 'keep' or 'raise', not {on_error!r}")
        self.on_error = on_error
        settings: dict[str, Any] = {
            **{"language": language, "retries": retries, "timeout": timeout},
            **{"max_tokens": max_tokens, "length": length},
        }
        given = {"question": question, "answer": answer, "judge": judge}
        self._roles: dict[str, Any]
        if all(role is None for role in given.values()):
            reader = llm if isinstance(llm, StepReader) else None
            self._roles = {"reader": reader or StepReader(llm, prompt=prompt, **settings)}
            return
        if prompt is not None:
            raise ValueError(
                "prompt= is that of the one call that does all; give a role its own: "
                "question=NextQuestion(llm, prompt=...)"
            )
        made = {"question": NextQuestion, "answer": StepAnswer, "judge": AnsweredJudge}
        self._roles = {
            name: made[name](llm, **settings) if role is None else role
            for name, role in given.items()
        }
        for name, role in self._roles.items():
            planned(role, name)

    def __repr__(self) -> str:
        return f"MultiStepRetriever({self.inner!r}, max_steps={self.max_steps})"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names, those of all roles that have some."""
        return {
            name: prompt
            for role in self._roles.values()
            if isinstance(role, PromptMixin)
            for name, prompt in role.prompts.items()
        }

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        self._roles = {
            name: role.with_prompts({own: prompts[own] for own in role.prompts})
            if isinstance(role, PromptMixin)
            else role
            for name, role in self._roles.items()
        }

    def steps(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> MultiStep:
        """Return all that was done for a query: the steps, the results, and why it ended.

        Args:
            query: What to look for.
            top_k: In place of the retriever's own.
            filters: Conditions, given to the inner retriever.

        Raises:
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        return run(self._plan(query, self._limit(top_k, filters), filters))

    async def asteps(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> MultiStep:
        """Return the same without blocking the event loop."""
        return await arun(self._plan(query, self._limit(top_k, filters), filters))

    def plans(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> Plan[list[Results]]:
        """Return the results of each query as a plan."""
        done = yield from gather([self._plan(query, limit, filters) for query in queries])
        return [list(each.results) for each in done]

    def _plan(self, query: str, limit: int | None, filters: Filters | None) -> Plan[MultiStep]:
        if not isinstance(query, str):
            raise TypeError(f"a query is a str, not {type(query).__name__} {query!r:.80}")
        budget = Budget(self.max_calls, self.max_seconds)
        with start_span(self.name, query=query) as done:
            (plain,) = yield from Find(self.inner, [query], limit, filters)
            steps = [Step(query, tuple(plain))]
            note = None
            ended: Ended = "no question"
            if query.strip():
                try:
                    ended = yield from self._go_on(query, steps, budget, limit, filters)
                except BudgetExceededError as spent:
                    ended = spent.resource
                except Exception as error:
                    if self.on_error == "raise":
                        raise
                    ended, note = "failed", f"{type(error).__name__}: {error}"
                    logger.warning("the steps for %r end: %s", query[:80], note)
            note = "; ".join(filter(None, [note, *(step.note for step in steps)])) or None
            result = MultiStep(
                *(query, tuple(plain), tuple(steps[1:])),
                results=tuple(merged(_told(steps, ended, note), ended == "answered", limit)),
                ended=ended,
                answer=next((step.answer for step in reversed(steps) if step.answer), None),
                calls=budget.calls,
                note=note,
            )
            done.attributes.update(ended=ended, steps=len(result.steps), calls=budget.calls)
            done.attributes.update({} if note is None else {"note": note})
            done.attributes["results"] = len(result.results)
        return result

    def _go_on(
        self,
        query: str,
        steps: list[Step],
        budget: Budget,
        limit: int | None,
        filters: Filters | None,
    ) -> Plan[Ended]:
        """Add step after step; return why there are no more."""
        known = {_key(result) for result in steps[0].results}
        while self.max_steps:
            last = len(steps) > self.max_steps
            if len(steps) > 1 and not steps[-1].results:
                return "nothing new"
            reading = yield from budget.enforce(self._read(query, steps, last))
            fresh = {_key(result) for result in steps[-1].results} - known
            told = {normal(step.answer) for step in steps[:-1] if step.answer}
            known |= fresh
            # Before the first step there is only an answer to the whole question.
            own = reading.answer if len(steps) > 1 or reading.answered else None
            steps[-1] = replace(steps[-1], answer=own, note=reading.note)
            if reading.answered:
                return "answered"
            if len(steps) > 1 and not fresh and (own is None or normal(own) in told):
                return "nothing new"
            if last:
                return "steps"
            if reading.question is None:
                return "no question"
            question = reading.question
            if any(same_question(question, step.question) for step in steps):
                return "repeated"
            with start_span("step", question=question) as done:
                deep = None if limit is None else max(limit, self.depth)
                finding = _find(self.inner, question, deep, filters)
                found = yield from budget.enforce(finding)
                steps.append(Step(question, tuple(found)))
                done.attributes["results"] = len(found)
        return "steps"

    def _read(self, query: str, steps: Sequence[Step], last: bool) -> Plan[Reading]:
        """Return what there is to say of what was found, in one call or in one for each role."""
        if "reader" in self._roles:
            reading: Reading = yield from self._roles["reader"].plan(query, steps)
            return reading
        answer, notes = None, []
        step = steps[-1]
        if len(steps) > 1:
            try:
                drawn = yield from planned(self._roles["answer"], "answer")(step.question, [step])
                answer = answer_of(drawn)
            except Exception as error:  # what was found may lead on all the same
                notes.append(self._kept("answer", error))
        told = [*steps[:-1], replace(step, answer=answer)]
        answered = False
        try:
            verdict = yield from planned(self._roles["judge"], "judge")(query, told)
            answered = says_yes(verdict)
        except Exception as error:
            notes.append(self._kept("judge", error))
        question = None
        if not answered and not last:
            asked = yield from planned(self._roles["question"], "question")(query, told)
            if asked is not None and not isinstance(asked, str):
                raise TypeError(f"the next question is a text or None, not {asked!r:.80}")
            question = question_of(asked)
        return Reading(answer, answered, question, "; ".join(notes) or None)

    def _kept(self, role: str, error: Exception) -> str:
        if self.on_error == "raise":
            raise error
        note = f"{role} failed: {type(error).__name__}: {error}"
        logger.warning("a step goes on: %s", note)
        return note


def _find(
    retriever: RetrieverProtocol, question: str, limit: int | None, filters: Filters | None
) -> Plan[Results]:
    (found,) = yield from Find(retriever, [question], limit, filters)
    results: Results = found
    return results


def _told(steps: Sequence[Step], ended: Ended, note: str | None) -> list[Step]:
    """Return the steps, with evidence that tells which they are and how it ended."""
    ending = f"ended: {ended}" + ("" if note is None else f": {note}")
    told = []
    for at, step in enumerate(steps):
        answer = "" if step.answer is None else f", answer {step.answer!r}"
        said = f"step {at}{answer}; {ending}" if at else ending
        form = QueryVariant(steps[0].question, "multi-step", said)
        told.append(replace(step, results=tuple(with_variant(step.results, form))))
    return told


def _key(result: ScoredNode) -> tuple[str, str]:
    return result.node.id, result.node.text
