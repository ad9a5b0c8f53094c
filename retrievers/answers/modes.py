"""Answer from as many passages as fit, in one call of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ...nodegraph import ModelError
from ...nodegraph.models.output import FinalAnswer
from ..plans import Each, Plan
from .answer import Source
from .context import Task, shown, shown_partials
from .truncation import cut


def stuff(task: Task) -> Plan[FinalAnswer]:
    """Answer from as many passages as fit, best first.

    A passage that there is no room for is left out, and a smaller one behind it may still be
    shown. One that is longer than all the room there is is cut around what matched.
    """
    for candidate in task.candidates:
        source = task.number(candidate)
        if task.fits("answer", [*task.sources, source]):
            task.sources.append(source)
            continue
        alone = task.fits("answer", [source])
        shorter = None if alone else task.shorten(source, lambda s: _more(task, s))
        if shorter is None:
            task.leave_out(candidate, "budget")
        else:
            task.sources.append(shorter)
            task.notes.append(f"[{shorter.number}] was cut: it is longer than the budget")
    task.check_room("answer")
    return (yield from task.ask(task.prompt("answer", passages=task.shown()), last=True))


def _more(task: Task, source: Source) -> bool:
    return task.fits("answer", [*task.sources, source])


def map_reduce(task: Task) -> Plan[FinalAnswer]:
    """Answer from each passage on its own, and make one answer of the partial answers.

    Partial answers that don't fit in one prompt are made into fewer first, as often as needed.
    Where only one passage tells anything, what it tells is the answer; where they can't be made
    into one, all of them are.

    Raises:
        ModelError: If every call for a passage fails, or the last one does when a part of its
            answer has been told.
    """
    parts = task.parts(lambda source: task.fits("partial", [source]))
    parts = task.keep(parts, (task.max_calls + 1) // 2)  # the rest is for reducing
    task.check_room("partial")
    prompts = [task.prompt("partial", passages=shown([part])) for part in parts]
    partials = yield from _answers(task, prompts, [f"[{part.number}]" for part in parts])
    while True:
        if len(partials) < 2:
            return FinalAnswer(partials[0], True) if partials else FinalAnswer("", False)
        groups = _groups(task, partials)
        alone = [group[0] for group in groups if len(group) == 1]
        groups = [group for group in groups if len(group) > 1]
        prompts = [task.prompt("reduce", partials=shown_partials(group)) for group in groups]
        names = ["a group of partial answers"] * len(groups)
        try:
            if len(groups) == 1 and not alone:
                return (yield from task.ask(prompts[0], last=True))
            partials = [*(yield from _answers(task, prompts, names)), *alone]
        except ModelError as error:
            if task.told:
                raise
            task.notes.append(f"the partial answers were not made into one: {error}")
            return FinalAnswer("\n\n".join(partials), True)


def _answers(task: Task, prompts: Sequence[str], names: Sequence[str]) -> Plan[list[str]]:
    """Ask several prompts at once; return the answers that there are, and note what failed."""
    outcomes = yield from Each([task.ask(prompt) for prompt in prompts])
    texts = []
    failed: BaseException | None = None
    for name, outcome in zip(names, cast("list[Any]", outcomes), strict=True):
        if isinstance(outcome, ModelError):
            failed = outcome
            task.notes.append(f"{name} did not take part: {outcome}")
        elif isinstance(outcome, BaseException):
            raise outcome
        elif outcome.answered:
            texts.append(outcome.text)
    if failed is not None and all(isinstance(outcome, ModelError) for outcome in outcomes):
        raise failed
    return texts


def _groups(task: Task, partials: Sequence[str]) -> list[list[str]]:
    """Return partial answers in groups that fit, of two or more; too long ones are cut for it."""

    def fits(group: Sequence[str]) -> bool:
        return task.short(task.prompt("reduce", partials=shown_partials(group)))

    groups: list[list[str]] = []
    for partial in partials:
        if groups and fits([*groups[-1], partial]):
            groups[-1].append(partial)
        elif groups and len(groups[-1]) < 2:
            groups[-1] = _pair(task, groups[-1][0], partial, fits)
        else:
            groups.append([partial])
    return groups


def _pair(task: Task, first: str, second: str, fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Cut two partial answers so that both fit in one prompt."""
    task.notes.append("partial answers were cut: they are longer than the budget")
    short = cut(first, lambda text: fits([text, text]))
    rest = cut(second, lambda text: fits([short, text]))
    return [text for text in (short, rest) if text] or [first]


def refine(task: Task) -> Plan[FinalAnswer]:
    """Answer from as many passages as fit, then improve the answer with as many more, to the end.

    A call that fails is noted, and the next passages are gone on with.

    Raises:
        ModelError: If every call fails; or if the last one fails when a part of its answer has
            been told.
    """
    # An answer so far may take a third of the room: passages must fit beside it.
    beside = max(0, task.limit - task.length(task.prompt("refine", passages="", answer=""))) // 3
    parts = task.parts(
        lambda s: (
            task.fits("answer", [s])
            and task.short(task.prompt("refine", passages=shown([s]), answer=""), reserve=beside)
        )
    )
    task.check_room("refine")
    every = parts
    so_far: FinalAnswer | None = None
    failed: ModelError | None = None
    calls = 0
    while parts:
        name, values = "answer", {}
        if so_far is not None and so_far.answered:
            name, values = "refine", {"answer": _short(task, so_far.text, parts[0])}
        taken = 1
        while taken < len(parts) and task.fits(name, parts[: taken + 1], **values):
            taken += 1
        batch, parts = parts[:taken], parts[taken:]
        calls += 1
        if parts and calls == task.max_calls:
            task.keep(every, len(every) - len(parts))
            parts = []
        prompt = task.prompt(name, passages=shown(batch), **values)
        try:
            said = yield from task.ask(prompt, last=not parts)
        except ModelError as error:
            if task.told:
                raise
            failed = error
            task.notes.append(f"{_numbers(batch)} did not take part: {error}")
            continue
        if said.answered or so_far is None:
            so_far = said
    if so_far is None:
        raise failed or ModelError("there was no passage to answer from")
    return so_far


def _short(task: Task, answer: str, part: Source) -> str:
    """Return an answer so far, cut where it leaves no room for the next passage."""
    short = cut(answer, lambda text: task.fits("refine", [part], answer=text))
    if short != answer:
        task.notes.append("the answer so far was cut: it left no room for further passages")
    return short


def _numbers(batch: Sequence[Source]) -> str:
    return "".join(f"[{number}]" for number in dict.fromkeys(part.number for part in batch))
