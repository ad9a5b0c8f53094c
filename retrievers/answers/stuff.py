"""Answer from as many passages as fit, in one call of the model."""

from __future__ import annotations

from ..plan import Plan
from .answer import Source
from .said import Said
from .task import Task


def stuff(task: Task) -> Plan[Said]:
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
