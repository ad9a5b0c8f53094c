"""The steps of a query engine: rewrite the question, retrieve passages, answer, check citations."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ...nodegraph.errors import EmbeddingError, ModelError
from ...nodegraph.models.output.free_text import FinalAnswer
from ...nodegraph.models.templates import language_of
from ..call import limit_tokens
from ..plans.effects import find_all
from ..plans.limits import CallLimits, LimitExceededError
from ..plans.plan import Do, work
from ..prompts.answer_prompts import PASSAGE_PROMPTS
from ..protocols import RetrieverProtocol
from ..ranking import cut_scores
from ..results import Results, ScoredNode
from ..strategies.outcome import OutcomeObserver
from ..token_budget import TokenBudget
from ..tracing import observe, start_span
from .answer import Answer, AnswerError, Source
from .chat_history import Pair, condense
from .citations import UNCITED, flag_cited
from .context import AnswerContext
from .modes import MODES
from .quotes import check_quotes
from .sources import merge_results, passage_title

logger = logging.getLogger(__name__)

ANSWER_TOKENS = 1_600
"""The default number of tokens of the passages from the default search."""


async def answer_question(context: AnswerContext, pairs: Sequence[Pair]) -> Answer:
    """Answer a question by running all steps of the query engine.

    Args:
        context: The state of the question. While the steps add to it, a stream can already read it.
        pairs: The earlier conversation.

    Raises:
        AnswerError: If the model fails, or the search takes longer than ``total_timeout``.
    """
    with start_span("answer", question=context.question, mode=context.engine.mode) as span:
        context.limits = CallLimits(total_timeout=context.engine.total_timeout)
        try:
            answer = context.answer = await context.limits.enforce(_steps, context, pairs)
        except LimitExceededError as error:  # the time was over before any passage was found
            raise AnswerError(str(error), context.partial_answer(str(error))) from error
        span.attributes.update(
            answer=answer.text,
            answered=answer.answered,
            preset=answer.preset is not None,
            sources=len(answer.sources),
            omitted=len(answer.omitted),
            calls=answer.calls,
        )
        if answer.notes:
            span.attributes["notes"] = list(answer.notes)
    return answer


async def _steps(context: AnswerContext, pairs: Sequence[Pair]) -> Answer:
    question = context.searched = context.question
    results: Sequence[ScoredNode] = []
    if question.strip():
        preset = await preset_answer(context)
        if preset is None and pairs:
            context.searched = await condense(context, pairs)
            if context.searched != question:
                preset = await preset_answer(context)
        if preset is not None:
            return preset
        results = await answer_results(context, context.engine.retriever)
    if results and context.engine.language is None:
        # If the question contains no words, the language of the corpus is used.
        context.language = language_of(question, language_of(results[0].node.text))
    context.notes += _variant_notes(results)
    names = PASSAGE_PROMPTS[context.engine.mode]

    def has_space(source: Source) -> bool:
        return all(context.has_space(name, [source], answer="") for name in names)

    context.candidates, context.omitted = await work(merge_results, results, has_space)
    if not context.candidates:
        return _cited_answer(context, FinalAnswer("", False))
    try:
        answer = await MODES[context.engine.mode](context)
        return await work(_cited_answer, context, answer)
    except ModelError as error:
        partial_answer = context.partial_answer(f"the model failed: {error}")
        raise AnswerError(str(error), partial_answer) from error


async def answer_results(
    context: AnswerContext, retriever: RetrieverProtocol
) -> Sequence[ScoredNode]:
    """Search for the passages from which the question will be answered."""
    with start_span("retrieve", queries=[context.searched]) as span:
        observer = OutcomeObserver()
        with observe(observer):
            found = await _retrieved(context, retriever)
        context.strategy_usage += observer.usage
        if observer.outcome is not None:
            context.use_sub_answers(observer.outcome.parts)
        results = cut_scores(found, context.min_score)
        if found and not results:
            best = max(result.score for result in found)
            note = f"no result reaches min_score={context.min_score}; the best score is {best:.3f}"
            logger.info("the question %r: %s", context.searched[:80], note)
            context.notes.append(note)
        span.set_results([results])
    return results


async def _retrieved(context: AnswerContext, retriever: RetrieverProtocol) -> Results:
    """Return the search results that fit into the token budget."""
    budget = TokenBudget(context.engine.max_tokens, top_k=context.top_k)
    if not budget and budget.top_k is None and getattr(retriever, "has_windows", False):
        budget = TokenBudget(min(ANSWER_TOKENS, await work(_space, context)))
    elif budget.max_tokens is not None:
        limit = await work(_space, context)
        if budget.max_tokens > limit:
            context.notes.append(
                f"max_tokens={budget.max_tokens} exceeds the space in a prompt ({limit}); "
                "raise context_window"
            )
    with limit_tokens(budget):
        top_k = budget.candidates(retriever)
        (results,) = await find_all(retriever, [context.searched], top_k, context.filters)
    if not budget:
        return results
    fitting = await work(budget.fit, results)
    context.notes += fitting.notes
    return fitting


def _variant_notes(results: Iterable[ScoredNode]) -> Iterable[str]:
    """Return the distinct notes of query variants, such as notes on failed model calls."""
    notes: dict[str, None] = {}
    for result in results:
        for match in result.evidence:
            notes |= {f"{v.strategy}: {v.note}": None for v in match.variants if v.note}
    return notes


def _space(context: AnswerContext) -> int:
    """Return the space for passages that is available in every prompt of the mode, at least 1."""
    return max(1, min(context.space(name) for name in PASSAGE_PROMPTS[context.engine.mode]))


async def preset_answer(context: AnswerContext) -> Answer | None:
    """Return the preset answer to the question, or None if no pair matches."""
    qa = context.engine.qa
    if qa is None:
        return None
    try:
        preset = await Do(
            partial(qa.answer, context.searched, filters=context.filters),
            partial(qa.aanswer, context.searched, filters=context.filters),
        )
    except (EmbeddingError, ModelError) as error:
        context.notes.append(f"the preset answers could not be searched: {error}")
        return None
    if preset is None:
        return None
    node = preset.result.node
    title = passage_title(node)
    source = Source(1, preset.result, str(node.content), cited=True, title=title)
    return replace(context.build_answer(preset.answer, [source], True), preset=preset)


def _cited_answer(context: AnswerContext, answer: FinalAnswer) -> Answer:
    """Convert the model's answer to an ``Answer`` in which the cited sources are marked."""
    text = answer.text or context.prompt("not_found")
    sources, notes = flag_cited(context.sources, answer.text, context.certain)
    if answer.answered and sources and not any(source.cited for source in sources) and not notes:
        notes = [UNCITED[language_of(answer.text)]]
    cited = context.build_answer(text, sources, answer.answered, notes)
    if context.engine.check == "quotes":
        return check_quotes(cited)
    return cited
