"""Answer from each passage on its own, all at once, and make one answer of the answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ...nodegraph import ModelError
from ..effects import Each
from ..plan import Plan
from .cutting import cut
from .passages import shown, shown_partials
from .said import Said
from .task import Task


def map_reduce(task: Task) -> Plan[Said]:
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
            return Said(partials[0], True) if partials else Said("", False)
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
            return Said("\n\n".join(partials), True)


def _answers(task: Task, prompts: Sequence[str], names: Sequence[str]) -> Plan[list[str]]:
    """Ask several prompts at once; return the answers that there are, and note what failed."""
    outcomes = yield Each([task.ask(prompt) for prompt in prompts])
    texts = []
    failed: BaseException | None = None
    for name, outcome in zip(names, cast("list[Any]", outcomes), strict=True):
        if isinstance(outcome, ModelError):
            failed = outcome
            task.notes.append(f"{name} did not take part: {outcome}")
        elif isinstance(outcome, BaseException):
            raise outcome
        elif outcome.found:
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
