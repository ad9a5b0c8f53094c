"""Answer from the first passages, then improve the answer with the next ones."""

from __future__ import annotations

from collections.abc import Sequence

from ...nodegraph import ModelError
from ..plan import Plan
from .answer import Source
from .cutting import cut
from .passages import shown
from .said import Said
from .task import Task


def refine(task: Task) -> Plan[Said]:
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
    so_far: Said | None = None
    failed: ModelError | None = None
    calls = 0
    while parts:
        name, values = "answer", {}
        if so_far is not None and so_far.found:
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
        if said.found or so_far is None:
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
