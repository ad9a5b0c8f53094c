"""A multi-step search, in which a model reads the results and writes the next question."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...nodegraph.models.output.answer_text import (
    normalize,
)
from ...nodegraph.models.templates import Language
from ...nodegraph.splitters.chunking import count_tokens
from ..base_retriever import BaseRetriever
from ..filters import Filters
from ..foreign.foreign_retriever import as_retriever
from ..plans.effects import find_one
from ..plans.limits import CallLimits
from ..plans.plan import Do, gather_each, run
from ..plans.prompting import PromptMixin, PromptReplacement
from ..protocols import RetrieverLike
from ..ranking import with_variant
from ..results import QueryVariant, Results
from ..tracing import start_span
from ..validation import check_top_k, seconds, whole
from .model_prompt import OnError, describe_error
from .outcome import (
    SUB_QUESTION,
    Ended,
    MultiStep,
    StrategyOutcome,
    SubResults,
    merge_steps,
    result_key,
    same_question,
)
from .step_reader import MAX_TOKENS, StepReader
from .step_roles import RoleReader

logger = logging.getLogger(__name__)


FETCH_K = 10
"""The default number of results that each further search fetches."""


class MultiStepRetriever(PromptMixin, BaseRetriever):
    """A retriever that searches for follow-up questions until the original question is answered.

    Use it instead of ``SubQuestionRetriever`` if a later question depends on the answer to an
    earlier one, as in "Where was the author of Brand born?".

    After each search, the model reads the results so far. In a single call, it answers the latest
    question, decides whether the original question is answered, and writes the next question. The
    results of all steps are merged into one ranking. If no further question is asked, the results
    of the inner retriever are returned. The trace records why the search ended.

    The model is called at most ``max_steps + 1`` times, not counting retries. After ``max_calls``
    or ``total_timeout`` is reached, no further call starts, and a call that runs past
    ``total_timeout`` is abandoned. The search for the original question always completes. Model
    calls of the inner retriever are not counted.

    Args:
        inner: Any retriever, including other strategies.
        llm: The language model, in any form that ``LLM`` accepts.
        max_steps: The maximum number of follow-up questions.
        max_calls: The maximum number of model calls.
        total_timeout: The time limit in seconds, including the first search. If None, the time is
            not limited.
        fetch_k: The minimum number of results that each further search fetches if ``top_k`` is set.
        max_tokens: The maximum number of tokens of the passages in a prompt.
        length: The function that counts the tokens of a passage. Defaults to ``count_tokens``.
        top_k: The number of results. If None, all results are returned.
        prompt: A prompt that replaces the built-in one. It has the placeholders ``{question}`` and
            ``{passages}``, and optionally ``{steps}``.
        prompts: Separate prompts by role, which replace the single prompt. The roles are
            ``"answer"`` (with the placeholders ``{question}`` and ``{passages}``), ``"judge"``
            (with ``{question}`` and ``{answer}``) and ``"rewrite"`` (with ``{question}`` and
            optionally ``{steps}``, ``{answer}`` and ``{passages}``). Roles that are not given use
            their built-in prompts. Each role is a separate model call, so a step makes up to three
            calls.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the retriever or model is missing, or an argument has the wrong type.
        ValueError: If an argument is invalid.

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
        The follow-up questions are based on self-ask (Press et al., "Measuring and narrowing the
        compositionality gap in language models", 2023). Searching between the questions is based on
        Trivedi et al., "Interleaving retrieval with chain-of-thought reasoning", 2023.
    """

    name = "multi-step"
    prompt_owner = "reader"

    def __init__(
        self,
        inner: RetrieverLike,
        llm: object,
        *,
        max_steps: int = 4,
        max_calls: int = 16,
        total_timeout: float | None = None,
        fetch_k: int = FETCH_K,
        max_tokens: int = MAX_TOKENS,
        length: Callable[[str], int] = count_tokens,
        top_k: int | None = None,
        prompt: PromptReplacement | None = None,
        prompts: Mapping[str, PromptReplacement] | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(top_k=top_k)
        if prompt is not None and prompts is not None:
            raise ValueError("prompt and prompts exclude each other; give the prompts by role")
        self.inner = as_retriever(inner)
        self.max_steps = whole(max_steps, "max_steps", 0)
        self.max_calls = whole(max_calls, "max_calls", 0)
        self.total_timeout = seconds(total_timeout, "total_timeout")
        self.fetch_k = check_top_k(fetch_k)
        self.reader: StepReader | RoleReader
        if prompts is None:
            self.reader = StepReader(
                llm,
                max_tokens=max_tokens,
                length=length,
                prompt=prompt,
                language=language,
                retries=retries,
                timeout=timeout,
                on_error=on_error,
            )
        else:
            self.reader = RoleReader(
                llm,
                prompts,
                max_tokens=max_tokens,
                length=length,
                language=language,
                retries=retries,
                timeout=timeout,
                on_error=on_error,
            )

    def __repr__(self) -> str:
        return f"MultiStepRetriever({self.inner!r}, max_steps={self.max_steps})"

    def steps(
        self, query: str, *, top_k: int | None = None, filters: Filters | None = None
    ) -> MultiStep:
        """Return the steps of a search, with their results and the reason why it ended.

        Args:
            query: The question.
            top_k: The number of results. Overrides the ``top_k`` of the retriever.
            filters: Filter conditions, which are passed to the inner retriever.

        Raises:
            ModelError: If the model fails and ``on_error="raise"``.
        """
        return run(self._search, query, self.check_limit(top_k, filters), filters)

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query."""
        outcomes = await gather_each(self._search, queries, limit, filters)
        return [list(outcome.results) for outcome in outcomes]

    async def _search(self, query: str, limit: int | None, filters: Filters | None) -> MultiStep:
        limits = CallLimits(self.max_calls, self.total_timeout)
        with start_span(self.name, queries=[query]) as span:
            plain = await find_one(self.inner, query, limit, filters)
            steps = [SubResults(query, tuple(plain))]
            note = None
            ended: Ended = "no question"
            if query.strip():
                try:
                    ended = await self._add_steps(steps, limits, limit, filters)
                except Exception as error:
                    if limits.exceeded:
                        ended = limits.exceeded
                    elif self.reader.on_error == "raise":
                        raise
                    else:
                        ended, note = "failed", describe_error(error)
                        logger.warning("the steps for %r end: %s", query[:80], note)
            _report(steps[1:])

            def merge() -> Results:
                return merge_steps(_with_notes(steps, ended, note), ended == "answered", limit)

            ranking = await Do(merge, kind="work")
            outcome = MultiStep(
                query,
                tuple(plain),
                tuple(steps[1:]),
                tuple(ranking),
                ended=ended,
                answer=next((step.answer for step in reversed(steps) if step.answer), None),
                calls=limits.calls,
                note=note,
                usage=limits.usage,
            )
            span.attributes.update(ended=ended, calls=limits.calls, steps=len(outcome.steps))
            span.set_results([outcome.results])
            span.attributes.update({} if note is None else {"note": note})
            errors = () if note is None else ((query, note),)
            span.outcome = StrategyOutcome(outcome.steps, errors, ended)
        return outcome

    async def _add_steps(
        self,
        steps: list[SubResults],
        limits: CallLimits,
        limit: int | None,
        filters: Filters | None,
    ) -> Ended:
        """Add one step after another to ``steps``, and return the reason why the search ended.

        If an error is raised, the steps that were already added are kept.
        """
        seen = {result_key(result) for result in steps[0].results}
        while self.max_steps:
            if len(steps) > 1 and not steps[-1].results:
                return "nothing new"
            reading = await limits.enforce(self.reader.read, steps[0].question, steps)
            new = {result_key(result) for result in steps[-1].results} - seen
            seen |= new
            answers = {normalize(step.answer) for step in steps[:-1] if step.answer}
            # Before the first follow-up question, an answer is only valid for the original
            # question.
            answer = reading.answer if len(steps) > 1 or reading.answered else None
            steps[-1] = replace(steps[-1], answer=answer)
            if reading.answered:
                return "answered"
            has_new_answer = answer is not None and normalize(answer) not in answers
            if len(steps) > 1 and not new and not has_new_answer:
                return "nothing new"
            if len(steps) > self.max_steps:
                return "steps"
            question = reading.question
            if question is None:
                return "no question"
            if any(same_question(question, step.question) for step in steps):
                return "repeated"
            with start_span("step", question=question) as span:
                fetch_k = None if limit is None else max(limit, self.fetch_k)
                results = await limits.enforce(find_one, self.inner, question, fetch_k, filters)
                steps.append(SubResults(question, tuple(results)))
                span.attributes["results"] = len(results)
        return "steps"


def _report(steps: Sequence[SubResults]) -> None:
    """Record a trace span for each follow-up question."""
    for step in steps:
        with start_span(SUB_QUESTION, question=step.question, results=len(step.results)) as span:
            if step.answer is not None:
                span.attributes["answer"] = step.answer
            span.outcome = step


def _with_notes(steps: Sequence[SubResults], ended: Ended, note: str | None) -> list[SubResults]:
    """Return the steps with notes in the evidence of their results.

    A note contains the number of the step, its answer, and the reason why the search ended.
    """
    ending = f"ended: {ended}"
    if note is not None:
        ending += f": {note}"
    noted = []
    for number, step in enumerate(steps):
        text = ending
        if number:
            answer = "" if step.answer is None else f", answer {step.answer!r}"
            text = f"step {number}{answer}; {ending}"
        variant = QueryVariant(steps[0].question, "multi-step", text)
        noted.append(replace(step, results=tuple(with_variant(step.results, variant))))
    return noted
