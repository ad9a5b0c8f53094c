"""Answer from all passages at once, from one batch after the other, or from each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...nodegraph.errors import ModelError
from ...nodegraph.models.language import QuotedText
from ...nodegraph.models.output.final_answer import FinalAnswer
from ..plans.passages import neutralize
from ..plans.plan import Plan
from .answer import Source
from .context import AnswerContext, Packing, format_sources, shorten
from .truncation import cut


def stuff(context: AnswerContext) -> Plan[FinalAnswer]:
    """Answer from as many passages as fit, best first, in one call of the model.

    A passage that there is no room for is omitted, and a smaller one behind it may still be used.
    One that is too long for a prompt of its own is cut around its best match.
    """

    packing = context.packing("answer")
    for candidate in context.candidates:
        source = context.number(candidate)
        if packing.add(source):
            context.sources.append(source)
            continue
        too_long = not context.has_room("answer", [source])
        shorter = shorten(source, partial(_has_room, context)) if too_long else None
        if shorter is None:
            context.omit(candidate, "context_window")
        else:
            packing.add(shorter)
            context.sources.append(shorter)
            note = f"[{shorter.number}] was cut: it is too long for the context window"
            context.notes.append(note)
    context.sources = packing.fitting()
    for source in packing.items[len(context.sources) :]:
        context.omit(source, "context_window")
    context.check_room("answer")
    prompt = context.prompt("answer", passages=format_sources(context.sources))
    return (yield from context.ask(prompt, last=True))


def _has_room(context: AnswerContext, source: Source) -> bool:
    return context.has_room("answer", [*context.sources, source])


def refine(context: AnswerContext) -> Plan[FinalAnswer]:
    """Answer from as many passages as fit, then improve the answer with as many more, to the end.

    A call that fails is noted, and the next passages follow.

    Raises:
        ModelError: If every call fails; or if the last one fails when a part of its answer was
            streamed.
    """
    settings = context.settings
    # An earlier answer may take a third of the room: passages must fit beside it.
    room = settings.prompt_limit - settings.length(context.prompt("refine", passages="", answer=""))
    reserve = max(0, room) // 3

    def has_room(source: Source) -> bool:
        prompt = context.prompt("refine", passages=format_sources([source]), answer="")
        return context.has_room("answer", [source]) and context.is_short(prompt, reserve)

    all_parts = parts = context.number_parts(has_room)
    context.check_room("refine")
    best: FinalAnswer | None = None
    failure: ModelError | None = None
    calls = 0
    while parts:
        name, values = "answer", {}
        if best is not None and best.answered:
            name, values = "refine", {"answer": _shorten_answer(context, best.text, parts[0])}
        packing = context.packing(name, **values)
        for part in parts:
            if not packing.add(part):
                break
        batch = packing.fitting() or parts[:1]
        parts = parts[len(batch) :]
        calls += 1
        if parts and calls == settings.max_calls:
            context.limit_parts(all_parts, len(all_parts) - len(parts))
            parts = []
        prompt = context.prompt(name, passages=format_sources(batch), **values)
        try:
            answer = yield from context.ask(prompt, last=not parts)
        except ModelError as error:
            if context.streamed:
                raise
            failure = error
            numbers = "".join(f"[{n}]" for n in dict.fromkeys(part.number for part in batch))
            context.notes.append(f"{numbers} did not take part: {error}")
            continue
        if answer.answered or best is None:
            best = answer
    if best is None:
        raise failure or ModelError("there was no passage to answer from")
    return best


def _shorten_answer(context: AnswerContext, answer: str, part: Source) -> str:
    """Return an earlier answer, cut where it leaves no room for the next passage."""
    short = cut(answer, lambda text: context.has_room("refine", [part], answer=text))
    if short != answer:
        context.notes.append("the answer so far was cut: it left no room for further passages")
    return short


def map_reduce(context: AnswerContext) -> Plan[FinalAnswer]:
    """Answer from each passage by itself, and make one answer of the partial answers.

    Partial answers that don't fit in one prompt are made into fewer first, as often as needed.
    Where only one passage helps, its partial answer is the answer; where they can't be made into
    one, all of them are.

    Raises:
        ModelError: If every call for a passage fails, or the last one does when a part of its
            answer was streamed.
    """
    parts = context.number_parts(lambda source: context.has_room("partial", [source]))
    max_parts = (context.settings.max_calls + 1) // 2  # the other calls are for reducing
    parts = context.limit_parts(parts, max_parts)
    context.check_room("partial")
    prompts = [context.prompt("partial", passages=format_sources([part])) for part in parts]
    partials = yield from _ask_all(context, prompts, [f"[{part.number}]" for part in parts])
    while len(partials) > 1:
        groups = _group_partials(context, partials)
        single = [group[0] for group in groups if len(group) == 1]
        prompts = [_reduce_prompt(context, group) for group in groups if len(group) > 1]
        try:
            if len(prompts) == 1 and not single:
                return (yield from context.ask(prompts[0], last=True))
            names = ["a group of partial answers"] * len(prompts)
            partials = [*(yield from _ask_all(context, prompts, names)), *single]
        except ModelError as error:
            if context.streamed:
                raise
            context.notes.append(f"the partial answers were not made into one: {error}")
            return FinalAnswer("\n\n".join(partials), True)
    return FinalAnswer("".join(partials), bool(partials))


def _ask_all(
    context: AnswerContext, prompts: Iterable[str], names: Sequence[str]
) -> Plan[list[str]]:
    """Ask several prompts in parallel; return the answers that there are, and note failures."""
    answers = yield from context.gather([context.ask(prompt) for prompt in prompts], names)
    return [answer.text for answer in answers if answer is not None and answer.answered]


def _group_partials(context: AnswerContext, partials: Sequence[str]) -> list[list[str]]:
    """Return partial answers in groups that fit, of two or more; too long ones are cut for it."""

    def has_room(group: Sequence[str]) -> bool:
        return context.is_short(_reduce_prompt(context, group))

    groups: list[list[str]] = []
    packing = _reduce_packing(context)
    for answer in partials:
        if packing.items and packing.add(answer):
            continue
        if len(packing.items) == 1:
            note = "partial answers were cut: they are too long for the context window"
            context.notes.append(note)
            packing.items[:] = _cut_pair(packing.items[0], answer, has_room)
            continue
        packing = _reduce_packing(context)
        if not packing.add(answer):
            packing.items.append(answer)  # it is cut with the next one
        groups.append(packing.items)
    return groups


def _reduce_packing(context: AnswerContext) -> Packing[str]:
    settings = context.settings
    return Packing(
        settings.length, settings.prompt_limit, lambda group: _reduce_prompt(context, group)
    )


def _cut_pair(first: str, second: str, has_room: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return two partial answers, cut so that both fit in one prompt."""
    short = cut(first, lambda text: has_room([text, text]))
    rest = cut(second, lambda text: has_room([short, text]))
    return [text for text in (short, rest) if text] or [first]


def _reduce_prompt(context: AnswerContext, partials: Iterable[str]) -> str:
    tagged = (f"<partial>\n{neutralize(text)}\n</partial>" for text in partials)
    return context.prompt("reduce", partials=QuotedText("\n".join(tagged)))
