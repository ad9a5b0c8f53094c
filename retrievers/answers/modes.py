"""The answer modes of a query engine: stuff, refine, map-reduce and map-rerank."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...nodegraph.errors import ModelError
from ...nodegraph.models.output.free_text import FinalAnswer
from ...nodegraph.models.templates import QuotedText, schema_of
from ..plans.plan import work
from ..plans.prompting import ask_and_parse
from ..prompts.answer_prompts import AnswerMode
from ..strategies.passages import neutralize
from .answer import Source
from .context import AnswerContext
from .ranked_answer import RankedAnswer, parse_ranked_answer
from .sources import cut, shorten


async def stuff(context: AnswerContext) -> FinalAnswer:
    """Answer a question from the best passages that fit into a prompt, in one model call.

    A passage that does not fit is omitted, but shorter passages after it may still be included. A
    passage that is too long for any prompt is truncated around its best match.
    """
    prompt = await work(_pack_sources, context)
    return await context.ask(prompt, last=True)


def _pack_sources(context: AnswerContext) -> str:
    """Select the sources that fit, and return the prompt with their passages.

    The lengths of individual passages are added up, so that measuring takes linear time.
    """
    free = context.space("answer")
    for candidate in context.candidates:
        numbered = context.number(candidate)
        source: Source | None = numbered
        size = context.added_length("answer", numbered)
        if size > free and not context.has_space("answer", [numbered]):
            source = shorten(numbered, lambda s: context.has_space("answer", [*context.sources, s]))
            size = context.added_length("answer", source) if source else 0
        if source is None or size > free:
            context.omit(candidate)
            continue
        if not source.complete:
            note = f"[{source.number}] was cut: it is too long for the context window"
            context.notes.append(note)
        context.sources.append(source)
        free -= size + 1  # for the line break
    context.check_space("answer")
    return context.passages_prompt("answer", context.sources)


async def refine(context: AnswerContext) -> FinalAnswer:
    """Answer a question from the first passages, then improve the answer with further passages.

    If a call fails, a note is added, and the engine continues with the next passages.

    Raises:
        ModelError: If all calls fail, or if the last call fails after a part of its answer was
            streamed.
    """
    parts = await work(_parts_to_refine, context)
    best: FinalAnswer | None = None
    failure: ModelError | None = None
    while parts:
        earlier = best.text if best is not None and best.answered else None
        prompt, batch = await work(_pack_parts, context, parts, earlier)
        parts = parts[len(batch) :]
        try:
            answer = await context.ask(prompt, last=not parts)
        except ModelError as error:
            if context.streamed:
                raise
            failure = error
            different = dict.fromkeys(part.number for part in batch)
            numbers = "".join(f"[{number}]" for number in different)
            context.notes.append(f"{numbers} failed: {error}")
            continue
        if answer.answered or best is None:
            best = answer
    if best is None:
        raise failure or ModelError("there was no passage to answer from")
    return best


def _parts_to_refine(context: AnswerContext) -> list[Source]:
    """Split all passages into parts that leave a third of the space for an earlier answer."""
    engine = context.engine
    limit = engine.prompt_limit - max(0, context.space("refine")) // 3

    def has_space(source: Source) -> bool:
        prompt = context.passages_prompt("refine", [source], answer="")
        return context.has_space("answer", [source]) and engine.length(prompt) <= limit

    parts = context.number_parts(has_space)
    context.check_space("refine")
    return parts


def _pack_parts(
    context: AnswerContext, parts: Sequence[Source], earlier: str | None
) -> tuple[str, list[Source]]:
    """Create a prompt from the earlier answer and as many parts as fit.

    The result is the prompt and the parts in it.
    """
    name = "answer"
    values = dict[str, str]()
    if earlier is not None:
        name = "refine"
        next_part = [parts[0]]
        short = cut(earlier, lambda text: context.has_space("refine", next_part, answer=text))
        values["answer"] = short
        if short != earlier:
            note = "the answer so far was cut: it left no space for further passages"
            context.notes.append(note)
    batch: list[Source] = []
    used = context.engine.length(context.passages_prompt(name, (), **values))
    for part in parts:
        used += context.added_length(name, part, **values)
        if used > context.engine.prompt_limit:
            break
        batch.append(part)
        used += 1  # a line break
    batch = batch or [parts[0]]
    return context.passages_prompt(name, batch, **values), batch


async def map_reduce(context: AnswerContext) -> FinalAnswer:
    """Answer a question from each passage separately, and combine the partial answers.

    If the partial answers do not fit into one prompt, they are first combined in groups. A single
    partial answer is returned unchanged. If the model fails to combine the partial answers, the
    answer contains all of them.

    Raises:
        ModelError: If all calls for passages fail, or the last call fails after a part of its
            answer was streamed.
    """
    parts, prompts = await work(_single_prompts, context, "partial")
    partials = await _ask_all(context, prompts, [f"[{part.number}]" for part in parts])
    while len(partials) > 1:
        groups = await work(_group_partials, context, partials)
        prompts = [_reduce_prompt(context, group) for group in groups if len(group) > 1]
        try:
            if len(groups) == 1:
                return await context.ask(prompts[0], last=True)
            names = ["a group of partial answers"] * len(prompts)
            single = [group[0] for group in groups if len(group) == 1]
            partials = [*(await _ask_all(context, prompts, names)), *single]
        except ModelError as error:
            if context.streamed:
                raise
            context.notes.append(f"the partial answers were not combined: {error}")
            return FinalAnswer("\n\n".join(partials), True)
    return FinalAnswer("".join(partials), bool(partials))


def _single_prompts(context: AnswerContext, name: str) -> tuple[list[Source], list[str]]:
    """Split the passages into parts that fit, and return the parts with a prompt for each."""
    parts = context.number_parts(lambda source: context.has_space(name, [source]))
    context.check_space(name)
    return parts, [context.passages_prompt(name, [part]) for part in parts]


async def _ask_all(
    context: AnswerContext, prompts: Iterable[str], names: Sequence[str]
) -> list[str]:
    """Send several prompts to the model in parallel, and return the answers.

    Failed calls are reported in the notes.
    """
    answers = await context.gather(context.ask, prompts, names)
    return [answer.text for answer in answers if answer is not None and answer.answered]


def _may_join(context: AnswerContext, texts: Sequence[str]) -> bool:
    """Return whether partial answers can share a prompt. Two answers are always accepted."""
    return len(texts) == 2 or context.is_short(_reduce_prompt(context, texts))


def _group_partials(context: AnswerContext, partials: Sequence[str]) -> list[list[str]]:
    """Group partial answers so that each group fits into a prompt.

    The last group can consist of a single answer.
    """

    def has_space_twice(text: str) -> bool:
        return context.is_short(_reduce_prompt(context, [text, text]))

    short = [cut(text, has_space_twice) or text for text in partials]
    if short != list(partials):
        context.notes.append("partial answers were cut: they are too long for the context window")
    groups: list[list[str]] = []
    for text in short:
        if groups and _may_join(context, [*groups[-1], text]):
            groups[-1].append(text)
        else:
            groups.append([text])
    return groups


def _reduce_prompt(context: AnswerContext, partials: Iterable[str]) -> str:
    tagged = (f"<partial>\n{neutralize(text)}\n</partial>" for text in partials)
    return context.prompt("reduce", partials=QuotedText("\n".join(tagged)))


_RANK_FORM = '{"answer": "...", "confidence": 80}'


async def map_rerank(context: AnswerContext) -> FinalAnswer:
    """Answer a question from each passage, and choose the answer with the highest confidence.

    If two answers have equal confidence, the answer from the higher-ranked passage is chosen.
    Answers without a confidence rank last.

    Raises:
        ModelError: If all calls fail.
    """
    parts, prompts = await work(_single_prompts, context, "rank")
    engine = context.engine
    schema = schema_of(_RANK_FORM)

    async def rank(prompt: str) -> RankedAnswer:
        return await ask_and_parse(
            engine.llm,
            prompt,
            parse_ranked_answer,
            context.language,
            schema=schema,
            timeout=engine.timeout,
        )

    ranked = await context.gather(rank, prompts, [f"[{part.number}]" for part in parts])
    best: RankedAnswer = FinalAnswer("", False), None
    for part, candidate in zip(parts, ranked, strict=True):
        if candidate is None or not candidate[0].answered:
            continue
        if candidate[1] is None:
            context.notes.append(f"the answer from [{part.number}] came without a confidence")
        ranks = [-1.0 if sure is None else sure for sure in (candidate[1], best[1])]
        if not best[0].answered or ranks[0] > ranks[1]:
            best = candidate
            context.certain = (part.number,)
    context.confidence = best[1]
    return best[0]


MODES: Mapping[AnswerMode, Callable[[AnswerContext], Coroutine[Any, Any, FinalAnswer]]] = (
    MappingProxyType(
        {"stuff": stuff, "refine": refine, "map_reduce": map_reduce, "map_rerank": map_rerank}
    )
)
