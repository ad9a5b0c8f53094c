"""The steps from a question to an answer: preset answers, condense, retrieve, ask, cite."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ...nodegraph.errors import EmbeddingError, ModelError
from ...nodegraph.models.output.answer_text import clean
from ...nodegraph.models.output.free_text import FinalAnswer, parse_final_answer
from ...nodegraph.models.output.json_values import find_json
from ...nodegraph.models.output.lines import ANSWER_LABEL, without_label
from ...nodegraph.models.templates import QuotedText, language_of, schema_of
from ..plans.effects import find_all
from ..plans.limits import CallLimits, LimitExceededError
from ..plans.plan import Do
from ..plans.prompting import ask_and_parse
from ..protocols import RetrieverProtocol
from ..ranking import cut_scores
from ..results import Results, ScoredNode
from ..strategies.outcome import OutcomeObserver
from ..strategies.passages import neutralize
from ..token_budget import TokenBudget
from ..tracing import observe, start_span
from .answer import UNCITED, Answer, AnswerError, Source, flag_cited
from .chat_history import Pair, condense
from .context import AnswerContext, cut, merge_results, passage_title, shorten
from .prompts import PASSAGE_PROMPTS, AnswerMode
from .quotes import check_quotes

logger = logging.getLogger(__name__)

ANSWER_TOKENS = 1_600
"""Default number of tokens of the passages from the default search."""


async def answer_question(context: AnswerContext, pairs: Sequence[Pair]) -> Answer:
    """Return the answer to a question.

    Args:
        context: The state of the question. A stream reads its fields while they are filled.
        pairs: The earlier conversation.

    Raises:
        AnswerError: If the model fails, or the search takes longer than ``total_timeout``.
    """
    with start_span("answer", question=context.question, mode=context.engine.mode) as span:
        context.limits = CallLimits(total_timeout=context.engine.total_timeout)
        try:
            answer = context.answer = await context.limits.enforce(partial(_steps, context, pairs))
        except LimitExceededError as error:  # no passages yet
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
        # For a question without words, the corpus decides.
        context.language = language_of(question, language_of(results[0].node.text))
    matches = (match for result in results for match in result.evidence)
    variants = (variant for match in matches for variant in match.variants)
    context.notes += dict.fromkeys(f"{v.strategy}: {v.note}" for v in variants if v.note)
    names = PASSAGE_PROMPTS[context.engine.mode]

    def has_space(source: Source) -> bool:
        return all(context.has_space(name, [source], answer="") for name in names)

    merge = partial(merge_results, results, has_space)
    context.candidates, context.omitted = await Do(merge, kind="work")
    if not context.candidates:
        return _cited_answer(context, FinalAnswer("", False))
    try:
        answer = await MODES[context.engine.mode](context)
        return await Do(partial(_cited_answer, context, answer), kind="work")
    except ModelError as error:
        partial_answer = context.partial_answer(f"the model failed: {error}")
        raise AnswerError(str(error), partial_answer) from error


async def answer_results(
    context: AnswerContext, retriever: RetrieverProtocol
) -> Sequence[ScoredNode]:
    """Return the results for an answer."""
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
    """Return the results within the token budget."""
    budget = TokenBudget(context.engine.max_tokens, top_k=context.top_k)
    if not budget and budget.top_k is None and getattr(retriever, "has_windows", False):
        budget = TokenBudget(min(ANSWER_TOKENS, await Do(partial(_space, context), kind="work")))
    elif budget.max_tokens is not None:
        limit = await Do(partial(_space, context), kind="work")
        if budget.max_tokens > limit:
            context.notes.append(
                f"max_tokens={budget.max_tokens} exceeds the space in a prompt ({limit}); "
                "raise context_window"
            )
    with budget.holding():
        top_k = budget.candidates(retriever)
        (results,) = await find_all(retriever, [context.searched], top_k, context.filters)
    if not budget:
        return results
    fitting = await Do(partial(budget.fit, results), kind="work")
    context.notes += fitting.notes
    return fitting


def _space(context: AnswerContext) -> int:
    """Return the maximum length of the passages in each prompt of the mode, at least 1."""
    return max(1, min(map(context.space, PASSAGE_PROMPTS[context.engine.mode])))


async def preset_answer(context: AnswerContext) -> Answer | None:
    """Return the preset answer to the question, or None."""
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
    """Return the model's answer with its cited sources."""
    text = answer.text or context.prompt("not_found")
    sources, notes = flag_cited(context.sources, answer.text, context.certain)
    if answer.answered and sources and not any(source.cited for source in sources) and not notes:
        notes = [UNCITED[language_of(answer.text)]]
    cited = context.build_answer(text, sources, answer.answered, notes)
    return check_quotes(cited) if context.engine.check == "quotes" else cited


async def stuff(context: AnswerContext) -> FinalAnswer:
    """Answer from the best passages that fit, in one model call.

    A passage without space is omitted, but shorter passages after it may fit. A passage that is
    too long for any prompt is truncated around its best match.
    """
    prompt = await Do(partial(_pack_sources, context), kind="work")
    return await context.ask(prompt, last=True)


def _pack_sources(context: AnswerContext) -> str:
    """Return the prompt with the passages that fit, and set the sources.

    The lengths of single passages are added, so that measuring takes linear time.
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
        free -= size + 1  # a line break
    context.check_space("answer")
    return context.passages_prompt("answer", context.sources)


async def refine(context: AnswerContext) -> FinalAnswer:
    """Answer from the first passages that fit, then improve the answer with the next passages.

    After a failed call, a note is added and the next passages follow.

    Raises:
        ModelError: If all calls fail, or if the last call fails after a part of its answer was
            streamed.
    """
    parts = await Do(partial(_parts_to_refine, context), kind="work")
    best: FinalAnswer | None = None
    failure: ModelError | None = None
    while parts:
        earlier = best.text if best is not None and best.answered else None
        prompt, batch = await Do(partial(_pack_parts, context, parts, earlier), kind="work")
        parts = parts[len(batch) :]
        try:
            answer = await context.ask(prompt, last=not parts)
        except ModelError as error:
            if context.streamed:
                raise
            failure = error
            numbers = "".join(f"[{n}]" for n in dict.fromkeys(part.number for part in batch))
            context.notes.append(f"{numbers} failed: {error}")
            continue
        if answer.answered or best is None:
            best = answer
    if best is None:
        raise failure or ModelError("there was no passage to answer from")
    return best


def _parts_to_refine(context: AnswerContext) -> list[Source]:
    """Return all passages in parts that fit, with a third of the space for an earlier answer."""
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
    """Return a prompt with an earlier answer and the first parts that fit, and these parts."""
    name, values = "answer", dict[str, str]()
    if earlier is not None:
        name, next_part = "refine", [parts[0]]
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
    """Answer from each passage separately, and combine the partial answers.

    Partial answers that do not fit into one prompt are combined in groups first. A single partial
    answer is the answer. If the model cannot combine them, the answer contains all of them.

    Raises:
        ModelError: If all calls for passages fail, or the last call fails after a part of its
            answer was streamed.
    """
    parts, prompts = await Do(partial(_single_prompts, context, "partial"), kind="work")
    partials = await _ask_all(context, prompts, [f"[{part.number}]" for part in parts])
    while len(partials) > 1:
        groups = await Do(partial(_group_partials, context, partials), kind="work")
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
    """Return the parts of the passages, and a prompt for each part."""
    parts = context.number_parts(lambda source: context.has_space(name, [source]))
    context.check_space(name)
    return parts, [context.passages_prompt(name, [part]) for part in parts]


async def _ask_all(
    context: AnswerContext, prompts: Iterable[str], names: Sequence[str]
) -> list[str]:
    """Return the answers to several prompts, in parallel. Failures are noted."""
    answers = await context.gather([partial(context.ask, prompt) for prompt in prompts], names)
    return [answer.text for answer in answers if answer is not None and answer.answered]


def _group_partials(context: AnswerContext, partials: Sequence[str]) -> list[list[str]]:
    """Return partial answers in groups that fit into a prompt. The last may be a single answer."""

    def has_space_twice(text: str) -> bool:
        return context.is_short(_reduce_prompt(context, [text, text]))

    short = [cut(text, has_space_twice) or text for text in partials]
    if short != list(partials):
        context.notes.append("partial answers were cut: they are too long for the context window")
    groups: list[list[str]] = []
    for text in short:
        joined = [*groups[-1], text] if groups else []
        if len(joined) == 2 or (joined and context.is_short(_reduce_prompt(context, joined))):
            groups[-1] = joined
        else:
            groups.append([text])
    return groups


def _reduce_prompt(context: AnswerContext, partials: Iterable[str]) -> str:
    tagged = (f"<partial>\n{neutralize(text)}\n</partial>" for text in partials)
    return context.prompt("reduce", partials=QuotedText("\n".join(tagged)))


_RANK_FORM = '{"answer": "...", "confidence": 80}'

_LINE = re.compile(
    r"^[\s*_#>-]{0,12}(?:confidence|score|把握(?:程度)?|置信度)[\s*_]{0,9}[:：=](?P<value>[^\n]*)$",
    re.I | re.M,
)

_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,9})?")


RankedAnswer = tuple[FinalAnswer, float | None]
"""An answer with the model's confidence, from 0 to 100. None: no confidence."""


async def map_rerank(context: AnswerContext) -> FinalAnswer:
    """Answer from each passage separately, and choose the answer with the highest confidence.

    Of equal answers, the answer from the better passage wins. Answers without a confidence rank
    last.

    Raises:
        ModelError: If all calls fail.
    """
    parts, prompts = await Do(partial(_single_prompts, context, "rank"), kind="work")
    engine, schema = context.engine, schema_of(_RANK_FORM)

    async def rank(prompt: str) -> RankedAnswer:
        return await ask_and_parse(
            *(engine.llm, prompt, parse_ranked_answer, context.language),
            schema=schema,
            timeout=engine.timeout,
        )

    calls = [partial(rank, prompt) for prompt in prompts]
    ranked = await context.gather(calls, [f"[{part.number}]" for part in parts])
    best: RankedAnswer = FinalAnswer("", False), None
    for part, candidate in zip(parts, ranked, strict=True):
        if candidate is None or not candidate[0].answered:
            continue
        if candidate[1] is None:
            context.notes.append(f"the answer from [{part.number}] came without a confidence")
        ranks = [-1.0 if sure is None else sure for sure in (candidate[1], best[1])]
        if not best[0].answered or ranks[0] > ranks[1]:
            best, context.certain = candidate, (part.number,)
    context.confidence = best[1]
    return best[0]


def parse_ranked_answer(answer: str) -> RankedAnswer:
    """Parse an answer and its confidence, in JSON or in lines.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> parse_ranked_answer("Answer: Tea [1].\\nConfidence: 80 (clear)")
        (FinalAnswer(text='Tea [1].', answered=True), 80.0)
        >>> parse_ranked_answer("回答：茶[1]。\\n**把握：** 90")[1]
        90.0
    """
    text, said = answer, ""
    cleaned = clean(answer)
    value = find_json(cleaned) if cleaned.startswith("{") else None
    if isinstance(value, Mapping):
        text = str(value.get("answer") or "")
        said = str(value.get("confidence", ""))
    elif lines := list(_LINE.finditer(answer)):
        line = lines[-1]
        said = line["value"]
        text = answer[: line.start()] if answer[: line.start()].strip() else answer[line.end() :]
    final = parse_final_answer(text)
    if final.answered:
        final = parse_final_answer(without_label(final.text, ANSWER_LABEL))
    if final.answered and not final.text:
        raise ValueError("the answer is empty")
    number = _NUMBER.search(unicodedata.normalize("NFKC", said))
    confidence = float(number[0]) if number else None
    return final, None if confidence is None or confidence > 100 else confidence


MODES: Mapping[AnswerMode, Callable[[AnswerContext], Coroutine[Any, Any, FinalAnswer]]] = (
    MappingProxyType(
        {"stuff": stuff, "refine": refine, "map_reduce": map_reduce, "map_rerank": map_rerank}
    )
)
