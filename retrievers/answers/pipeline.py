"""The path from a question to an answer: preset, condense, retrieve, ask, cite."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ...nodegraph import EmbeddingError, ModelError
from ...nodegraph.models import Language, language_of
from ...nodegraph.models.output import FinalAnswer
from ..filters import Filters
from ..plans import Effect, Find, Plan, count_calls
from ..results import ScoredNode
from ..tracing import start_span
from .answer import Answer, AnswerError, Source
from .citations import with_citations
from .context import Task, merged
from .conversation import Pair, condensed
from .qa import PresetAnswer, QaRetriever
from .settings import MODES, PROMPTS_OF, Settings
from .stream import Progress

logger = logging.getLogger(__name__)

_EXTRACTED = 3  # passages that are shown where no model answers


def answering(
    settings: Settings,
    question: str,
    pairs: Sequence[Pair],
    top_k: int | None,
    filters: Filters | None,
    progress: Progress,
) -> Plan[Answer]:
    """Return the answer to a question, as a plan.

    Args:
        settings: What the engine goes by.
        question: What is asked.
        pairs: The conversation so far.
        top_k: How many results to retrieve.
        filters: Conditions, for the retriever and for preset answers.
        progress: Is kept up to date, for whoever reads the answer while it is written.

    Raises:
        AnswerError: If the model fails, unless passages may stand for an answer.
    """
    with start_span("answer", question=question, mode=settings.mode) as done:
        plan = _answer(settings, question, pairs, top_k, filters, progress)
        answer = yield from count_calls(plan, progress.counter)
        progress.ended = answer
        done.attributes.update(
            answer=answer.text,
            found=answer.found,
            preset=answer.preset is not None,
            sources=len(answer.sources),
            left_out=len(answer.left_out),
            calls=answer.calls,
        )
        if answer.notes:
            done.attributes["notes"] = list(answer.notes)
    return answer


def _answer(
    settings: Settings,
    question: str,
    pairs: Sequence[Pair],
    top_k: int | None,
    filters: Filters | None,
    progress: Progress,
) -> Plan[Answer]:
    language: Language = language_of(question) if settings.language == "auto" else settings.language
    progress.searched = question
    preset = yield from _preset(settings, question, filters, progress)
    if preset is None and pairs and question.strip():
        progress.searched = yield from condensed(
            question,
            pairs,
            llm=settings.llm,
            prompt=settings.prompts["condense"],
            language=language,
            history_limit=settings.history_window,
            limit=settings.limit,
            length=settings.length,
            timeout=settings.timeout,
            notes=progress.notes,
        )
        if progress.searched != question:
            preset = yield from _preset(settings, progress.searched, filters, progress)
    if preset is not None:
        return preset
    task = Task(
        progress.searched,
        language,
        settings.llm,
        settings.prompts,
        settings.limit,
        settings.length,
        settings.timeout,
        settings.max_calls,
        notes=progress.notes,
        told=progress.told,
    )
    results: list[ScoredNode] = []
    if question.strip():
        with start_span("retrieve", query=task.question) as done:
            (results,) = yield from Find(settings.retriever, [task.question], top_k, filters)
            done.attributes["results"] = len(results)
    progress.notes += _notes_of(results)
    names = PROMPTS_OF[settings.mode]
    task.candidates, task.left_out = merged(
        results, settings.title, lambda s: all(task.fits(n, [s], answer="") for n in names)
    )
    progress.task = task
    if not task.candidates:
        return _told(FinalAnswer("", False), task, progress)
    try:
        said = yield from MODES[settings.mode](task)
    except ModelError as error:
        if progress.told or settings.on_error == "raise":
            why = f"the model failed: {error}"
            raise AnswerError(str(error), progress.unfinished(why)) from error
        logger.warning("the question %r is answered with passages: %s", question[:80], error)
        progress.notes.append(f"answered with the best passages, as the model failed: {error}")
        best = task.sources[:_EXTRACTED]
        task.certain = tuple(source.number for source in best)
        text = task.prompt("extract", passages=_quoted(best))
        return _told(FinalAnswer(text, True), task, progress, read=False)
    return _told(said, task, progress)


def _preset(
    settings: Settings, question: str, filters: Filters | None, progress: Progress
) -> Plan[Answer | None]:
    """Return the answer of the pair that has this question; None where there is none."""
    if settings.qa is None or not question.strip():
        return None
    try:
        preset = yield from Preset(settings.qa, question, filters)
    except (EmbeddingError, ModelError) as error:
        progress.notes.append(f"the preset answers could not be searched: {error}")
        return None
    if preset is None:
        return None
    node = preset.result.node
    source = Source(1, preset.result, str(node.content), True, settings.title(node))
    return Answer(
        preset.answer,
        progress.question,
        (source,),
        preset=preset,
        notes=tuple(dict.fromkeys(progress.notes)),
        searched=question,
        calls=progress.counter.calls,
    )


def _told(said: FinalAnswer, task: Task, progress: Progress, *, read: bool = True) -> Answer:
    """Return the answer that was made; ``read`` says whether what it cites is to be read."""
    text = said.text or task.prompt("not_found")
    sources, notes = with_citations(task.sources, said.text if read else "", task.certain)
    return Answer(
        text,
        progress.question,
        sources,
        said.answered,
        left_out=tuple(task.left_out),
        notes=tuple(dict.fromkeys([*progress.notes, *notes])),
        searched=task.question,
        calls=progress.counter.calls,
        confidence=task.confidence,
    )


def _notes_of(results: Sequence[ScoredNode]) -> list[str]:
    """Return what the evidence says of how the query was changed: what failed, partial answers."""
    forms = (form for result in results for match in result.evidence for form in match.variants)
    return list(dict.fromkeys(f"{form.strategy}: {form.note}" for form in forms if form.note))


def _quoted(sources: Sequence[Source]) -> str:
    """Return passages as a user reads them."""
    return "\n\n".join(
        f"[{source.number}] {source.title}".rstrip() + f"\n{source.text}" for source in sources
    )


@dataclass(frozen=True, slots=True)
class Preset(Effect["PresetAnswer | None"]):
    """Look whether a question-answer pair has this question; None comes of it where none does."""

    qa: QaRetriever
    question: str
    filters: Filters | None = None

    def run(self) -> PresetAnswer | None:
        """Return the pair's answer."""
        return self.qa.answer(self.question, filters=self.filters)

    async def arun(self) -> PresetAnswer | None:
        """Return the same without blocking the event loop."""
        return await self.qa.aanswer(self.question, filters=self.filters)
