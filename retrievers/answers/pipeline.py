"""The steps from a question to an answer: preset answers, condense, retrieve, ask, cite."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from ...nodegraph.errors import EmbeddingError, ModelError
from ...nodegraph.models.output.final_answer import FinalAnswer
from ..filters import Filters
from ..plans.effects import Compute, Find
from ..plans.limits import TimeLimit, TimeLimitError, count_calls
from ..plans.plan import Plan
from ..protocols import RetrieverProtocol
from ..results import ScoredNode
from ..strategies.outcome import OutcomeObserver
from ..tracing import observe, start_span
from .answer import Answer, AnswerError, Source, flag_cited
from .chat_history import Pair, condense
from .context import AnswerContext, merge_results
from .modes import map_reduce, map_rerank, refine, stuff
from .qa import QaRetriever
from .settings import PASSAGE_PROMPTS, AnswerMode

logger = logging.getLogger(__name__)

MODES: Mapping[AnswerMode, Callable[[AnswerContext], Plan[FinalAnswer]]] = MappingProxyType(
    {"stuff": stuff, "refine": refine, "map_reduce": map_reduce, "map_rerank": map_rerank}
)

_EXTRACTED = 3  # passages of an answer without a model


def answer_question(
    context: AnswerContext,
    retriever: RetrieverProtocol,
    qa: QaRetriever | None,
    pairs: Sequence[Pair],
    top_k: int | None,
    filters: Filters | None,
) -> Plan[Answer]:
    """Return the answer to a question, as a plan.

    Args:
        context: The question and the settings. Its fields are filled on the way, for a stream.
        retriever: Retrieves the passages.
        qa: Has preset answers.
        pairs: The conversation so far.
        top_k: How many results to retrieve.
        filters: Conditions, for the retriever and for preset answers.

    Raises:
        AnswerError: If the model fails, unless ``on_error`` is ``"extract"``, or if the search
            takes longer than ``max_seconds``.
    """
    with start_span("answer", question=context.question, mode=context.mode) as span:
        time_limit = TimeLimit(context.settings.max_seconds)
        steps = time_limit.enforce(_steps(context, retriever, qa, pairs, top_k, filters))
        try:
            answer = context.answer = yield from count_calls(steps, context.counter)
        except TimeLimitError as error:  # before there were passages
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


def _steps(
    context: AnswerContext,
    retriever: RetrieverProtocol,
    qa: QaRetriever | None,
    pairs: Sequence[Pair],
    top_k: int | None,
    filters: Filters | None,
) -> Plan[Answer]:
    question = context.searched = context.question
    results: list[ScoredNode] = []
    if question.strip():
        preset = yield from _preset_answer(context, qa, filters)
        if preset is None and pairs:
            context.searched = yield from condense(context, pairs)
            if context.searched != question:
                preset = yield from _preset_answer(context, qa, filters)
        if preset is not None:
            return preset
        with start_span("retrieve", queries=[context.searched]) as span:
            if getattr(retriever, "is_free", False):  # no strategy within asks a model
                (results,) = yield from Find(retriever, [context.searched], top_k, filters)
            else:
                observer = OutcomeObserver()
                with observe(observer):
                    (results,) = yield from Find(retriever, [context.searched], top_k, filters)
                if observer.outcome is not None:
                    context.use_sub_answers(observer.outcome.parts)
            span.set_results([results])
    context.notes += _variant_notes(results)
    names = PASSAGE_PROMPTS[context.mode]
    context.candidates, context.omitted = merge_results(
        results,
        context.settings.title,
        lambda source: all(context.has_space(name, [source], answer="") for name in names),
    )
    if not context.candidates:
        return _cited_answer(context, FinalAnswer("", False))
    try:
        return _cited_answer(context, (yield from MODES[context.mode](context)))
    except ModelError as error:
        if context.streamed or context.settings.on_error == "raise":
            partial_answer = context.partial_answer(f"the model failed: {error}")
            raise AnswerError(str(error), partial_answer) from error
        return _extracted_answer(context, error)


def _preset_answer(
    context: AnswerContext, qa: QaRetriever | None, filters: Filters | None
) -> Plan[Answer | None]:
    """Return the answer of the pair that has this question, or None."""
    if qa is None:
        return None
    try:
        preset = yield from Compute(
            partial(qa.answer, context.searched, filters=filters),
            partial(qa.aanswer, context.searched, filters=filters),
        )
    except (EmbeddingError, ModelError) as error:
        context.notes.append(f"the preset answers could not be searched: {error}")
        return None
    if preset is None:
        return None
    node = preset.result.node
    title = context.settings.title(node)
    source = Source(1, preset.result, str(node.content), cited=True, title=title)
    return replace(context.build_answer(preset.answer, [source], True), preset=preset)


def _cited_answer(context: AnswerContext, answer: FinalAnswer) -> Answer:
    """Return the model's answer with the sources that it cites."""
    text = answer.text or context.prompt("not_found")
    sources, notes = flag_cited(context.sources, answer.text, context.certain)
    return context.build_answer(text, sources, answer.answered, notes)


def _extracted_answer(context: AnswerContext, error: ModelError) -> Answer:
    """Return the best passages as an answer, where the model failed."""
    logger.warning("the question %r is answered with passages: %s", context.searched[:80], error)
    note = f"answered with the best passages, as the model failed: {error}"
    best = context.sources[:_EXTRACTED]
    passages = "\n\n".join(
        f"[{source.number}] {source.title}".rstrip() + f"\n{source.text}" for source in best
    )
    sources = flag_cited(context.sources, "", [source.number for source in best])[0]
    return context.build_answer(context.prompt("extract", passages=passages), sources, True, [note])


def _variant_notes(results: Sequence[ScoredNode]) -> list[str]:
    """Return the notes of strategies on the query: what failed, partial answers."""
    matches = (match for result in results for match in result.evidence)
    variants = (variant for match in matches for variant in match.variants)
    return list(dict.fromkeys(f"{v.strategy}: {v.note}" for v in variants if v.note))
